package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/client"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	doors "github.com/evenhand/evenhand/ingest/door"
)

// people decide gates.
type people struct {
	mu     sync.Mutex
	asked  []guard.GateRequest
	opened chan struct{}
	answer chan guard.GateDecision
}

func (p *people) Open(_ context.Context, r guard.GateRequest) (audit.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r)
	p.opened <- struct{}{}
	return r.ID, nil
}

func (p *people) Wait(ctx context.Context, _ audit.ID) (guard.GateDecision, error) {
	select {
	case d := <-p.answer:
		return d, nil
	case <-ctx.Done():
		return guard.GateDecision{}, ctx.Err()
	}
}

// guarded is a server's guard door, what it records, and what ends it so that all is recorded.
func guarded(t *testing.T, gates guard.Gates) (*httptest.Server, *log, func()) {
	t.Helper()
	l := &log{}
	q := guard.NewQueue(guard.DefaultQueueConfig(), guard.QueueOptions[ingest.Message]{Send: l.Produce})
	a, err := auth.New(t.Context(), auth.Config{DefaultTenant: "acme", StaticKey: staticKey}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := client.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(doors.Handler(doors.Deps{Auth: a, Decoder: ingest.NewDecoder(ingest.Options{DefaultTenant: "acme"}), Producer: l,
		Inline: &doors.Inline{Guard: guard.New(detectors.NewCurrent(rules), guard.Config{}), Defaults: guard.DefaultOptions(), Events: q, Gates: gates}}))
	end := func() {
		s.Close()
		_ = q.Close(context.Background())
	}
	t.Cleanup(end)
	return s, l, end
}

// remote is an application whose answers a server judges.
func remote(t *testing.T, s *httptest.Server, key string, change func(*client.Options)) *app {
	t.Helper()
	r, err := client.NewRemote(client.Server{URL: s.URL, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	a := &app{sent: &memory{}}
	a.emitter = emitter(t, a.sent, nil)
	o := client.DefaultOptions()
	o.Emitter = a.emitter
	if change != nil {
		change(&o)
	}
	next := &http.Transport{}
	t.Cleanup(func() {
		next.CloseIdleConnections()
		r.Close()
	})
	if a.transport, err = client.NewTransport(next, r, o); err != nil {
		t.Fatal(err)
	}
	a.Client = &http.Client{Transport: a.transport}
	return a
}

// A server decides as the process would, and has the call on record: once.
func TestRemote(t *testing.T) {
	threshold := audit.Score(900_000)
	for name, tc := range map[string]struct {
		serve  http.HandlerFunc
		change func(*client.Options)
		check  func(error) bool
	}{
		"clean":     {says(completion(clean)), blocks, func(err error) bool { return err == nil }},
		"warned":    {says(completion(biased)), func(o *client.Options) { o.Domain = audit.HR }, func(err error) bool { return err == nil }},
		"threshold": {says(completion(biased)), func(o *client.Options) { blocks(o); o.BiasThreshold = &threshold }, func(err error) bool { return err == nil }},
		"streamed":  {streams(chunks(clean)), nil, func(err error) bool { return err == nil }},
		"bias": {streams(chunks(biased)), blocks, func(err error) bool {
			var e *client.BiasDetectedError
			return errors.As(err, &e) && e.Domain == audit.HR && e.Score == 600_000 && e.Threshold == 150_000 && len(e.Findings) > 0 && e.Findings[0].Characteristic == "sex" && strings.HasPrefix(e.Findings[0].Evidence, "Women are")
		}},
		"safety": {says(completion(cards)), func(o *client.Options) { o.SafetyFilter = true }, func(err error) bool {
			var e *client.SafetyViolationError
			return errors.As(err, &e) && e.Findings[0].Category == "pii_leakage" && e.Findings[0].Score > 0
		}},
		"nobody to ask": {says(completion(transfer)), func(o *client.Options) { o.HITLGate = true }, func(err error) bool {
			var e *client.HumanGateDeniedError
			return errors.As(err, &e) && e.Reason == "denied" && e.Rule == "financial" && e.Detail != ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, l, end := guarded(t, nil)
			a := remote(t, s, staticKey, tc.change)
			p := newProvider(t, tc.serve)
			ctx, watch := client.Watch(t.Context())
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(chatAsk))
			res, err := a.Do(req)
			if err == nil {
				_, _, err = drained(res)
			}
			if !tc.check(err) {
				t.Fatal(err)
			}
			if r := watch.Report(); r == nil || r.RuleSet == "" || (r.Action == guard.Warn) != (name == "warned") {
				t.Errorf("report %+v", r)
			}
			if err := a.emitter.Flush(t.Context()); err != nil || len(a.sent.ids()) != 0 {
				t.Errorf("on record twice: %v", a.sent.ids())
			}
			end()
			if ids := l.keys(); len(ids) != 1 || ids[0] != watch.Report().ID.String() {
				t.Errorf("the server has %v", ids)
			}
		})
	}
}

// A prompt that the server would not take whole is cut; the answer is judged all the same.
func TestRemoteLargePrompt(t *testing.T) {
	s, l, end := guarded(t, nil)
	a := remote(t, s, staticKey, blocks)
	p := newProvider(t, says(completion(clean)))
	if _, _, err := a.post(t, p.URL+"/v1/chat/completions", `{"messages":[{"role":"system","content":"`+strings.Repeat(clean+" ", 30_000)+`"},{"role":"user","content":"Who?"}]}`); err != nil {
		t.Fatal(err)
	}
	end()
	if len(l.ms) != 1 || !strings.Contains(string(l.ms[0].Value), `"text_cut":true`) || !strings.Contains(string(l.ms[0].Value), `"Who?"`) {
		t.Errorf("%d on record", len(l.ms))
	}
}

// A server's people are asked, and asked for again while they think.
func TestRemoteGate(t *testing.T) {
	for _, approved := range []bool{true, false} {
		who := &people{opened: make(chan struct{}, 100), answer: make(chan guard.GateDecision, 1)}
		s, _, _ := guarded(t, who)
		a := remote(t, s, staticKey, func(o *client.Options) { o.HITLGate, o.HITLGateTimeout = true, 900*time.Millisecond })
		p := newProvider(t, says(completion(transfer)))
		go func() {
			<-who.opened
			<-who.opened // the first request has ended without an answer
			who.answer <- guard.GateDecision{Approved: approved, Reason: guard.Denied, Detail: "above the limit"}
		}()
		res, _, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk)
		var denied *client.HumanGateDeniedError
		switch {
		case approved && (err != nil || res.Header.Get("X-Evenhand-Hitl-Gate-Triggered") != "true" || res.Header.Get("X-Evenhand-Gate") == ""):
			t.Errorf("approved: %v %v", err, res)
		case !approved && (!errors.As(err, &denied) || denied.Detail != "above the limit"):
			t.Errorf("denied: %v", err)
		}
		if who.asked[0].ID != who.asked[1].ID || who.asked[0].Provider != "127.0.0.1" {
			t.Errorf("%+v", who.asked)
		}
	}
}

// A server that cannot be asked is not taken for a yes.
func TestRemoteAway(t *testing.T) {
	p := newProvider(t, says(completion(clean)))
	s, _, _ := guarded(t, nil)
	for name, key := range map[string]string{"wrong key": "another-key-of-thirty-two-letters!", "away": staticKey} {
		if name == "away" {
			s.Close()
		}
		a := remote(t, s, key, blocks)
		var unchecked *client.UncheckedError
		if _, _, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk); !errors.As(err, &unchecked) || audit.KindOf(unchecked) != audit.KindUnavailable {
			t.Errorf("%s: %v", name, err)
		}
		if e := a.event(t); e.Status != "blocked" || e.Response != clean { // nobody else has it
			t.Errorf("%s: %+v", name, e)
		}
		a = remote(t, s, key, nil)
		if res, _, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk); err != nil || res.Header.Get("X-Evenhand-Action") != "unchecked" || a.event(t).Status != "success" {
			t.Errorf("%s, passing: %v", name, err)
		}
	}
	r, _ := client.NewRemote(client.Server{URL: s.URL})
	o := client.DefaultOptions()
	o.Stream = client.StreamWindow
	if _, err := client.NewTransport(nil, r, o); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("windows: %v", err)
	}
	o = client.DefaultOptions()
	o.OnGateTriggered = func(context.Context, client.GateRequest) (client.GateDecision, error) {
		return client.GateDecision{}, nil
	}
	if _, err := client.NewTransport(nil, r, o); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("callback: %v", err)
	}
}
