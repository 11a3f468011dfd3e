package gates_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/sinks/webhook"
)

const hookSecret = "0123456789abcdef"

// receiver is the other side of the webhook: it checks signatures as the documentation says.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	fails  int // of the next requests
	said   []gates.Announcement
	bodies []string
	ids    []string
	faults []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, err := io.ReadAll(q.Body)
		if err == nil {
			err = webhook.Verify(hookSecret, q.Header.Get(webhook.HeaderSignature), body, time.Now())
		}
		var a gates.Announcement
		if err == nil {
			err = json.Unmarshal(body, &a)
		}
		if err != nil || a.Type != q.Header.Get(webhook.HeaderEvent) {
			r.faults = append(r.faults, "refused")
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		if r.fails--; r.fails >= 0 {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		r.said, r.bodies, r.ids = append(r.said, a), append(r.bodies, string(body)), append(r.ids, q.Header.Get(webhook.HeaderDelivery))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) heard() []gates.Announcement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}

func (r *receiver) hook(t *testing.T, allow ...string) *webhook.Client {
	t.Helper()
	c := webhook.DefaultConfig()
	c.Key, c.URL, c.Secret, c.Allow = "gates.webhook", r.URL, hookSecret, allow
	h, err := webhook.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// A webhook is told of both ends of a gate, signed, again until it takes it, and without anybody's words.
func announced(t *testing.T, w *world) {
	r := newReceiver(t)
	r.fails = 2
	hook := r.hook(t, "127.0.0.0/8")
	p := w.start(gates.DefaultConfig(), func(p *gates.Parts) { p.Announcer = hook })
	id := w.open(p, w.transfer())
	ours := func(as []gates.Announcement) (out []gates.Announcement) { // a start announces what other tests left open
		for _, a := range as {
			if a.Gate.ID == id {
				out = append(out, a)
			}
		}
		return out
	}
	eventually(t, func() bool { return len(ours(r.heard())) == 1 })
	if a := ours(r.heard())[0]; a.Type != gates.EventOpened || a.Gate.State != audit.GateOpen || a.Path != "/v1/gates/"+id.String()+"/decision" || a.Gate.Request.Rule.ID != "financial" {
		t.Errorf("%+v", a)
	}
	w.decide(p, id, w.who("ann"), gates.Answer{Approve: true, Note: "a word"})
	eventually(t, func() bool { return len(ours(r.heard())) == 2 })
	if a := ours(r.heard())[1]; a.Type != gates.EventDecided || !a.Gate.Decision.Approved || a.Gate.Decision.By != "ann" || a.Path != "" {
		t.Errorf("%+v", a)
	}
	for _, b := range r.bodies {
		if strings.Contains(b, "$5,000") || strings.Contains(b, "a word") || strings.Contains(b, "u-7") {
			t.Errorf("words are announced: %s", b)
		}
	}
	if len(r.faults) > 0 {
		t.Error(r.faults)
	}

	// After a restart what is open is told again, under the same delivery.
	open := w.open(p, w.transfer())
	told := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, d := range r.ids {
			if d == audit.DeriveID("gate", open.String(), gates.EventOpened).String() {
				n++
			}
		}
		return n
	}
	eventually(t, func() bool { return told() == 1 })
	p.stop()
	c := gates.DefaultConfig()
	c.AnnounceTexts = true
	second := w.start(c, func(p *gates.Parts) { p.Announcer = hook })
	eventually(t, func() bool { return told() == 2 })
	with := w.open(second, w.transfer())
	eventually(t, func() bool {
		return slices.ContainsFunc(r.heard(), func(a gates.Announcement) bool {
			return a.Gate.ID == with && a.Gate.Request.MatchedText != nil && *a.Gate.Request.MatchedText == "transfer $5,000 to account"
		})
	})

	// Addresses inside are not reached, and the gate goes on without.
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	inside := &receiver{Server: &httptest.Server{URL: "https://localhost:" + port}}
	before := len(r.heard())
	if _, err := inside.hook(t).Post(t.Context(), audit.NewID(time.Now()), gates.EventOpened, []byte("{}")); audit.KindOf(err) != audit.KindUnavailable || len(r.heard()) != before {
		t.Errorf("a host that is this machine: %v", err)
	}
}

// A tenant's stream begins with what is open, tells news of every process, and goes on after a break.
func streamed(t *testing.T, w *world) {
	p, other := w.start(asking(), nil), w.start(asking(), nil)
	first := w.open(p, w.transfer())
	foreign := w.on(t, "streamed-2").transfer()
	follow := func(after string) (<-chan gates.Event, func()) {
		ctx, cancel := context.WithCancel(t.Context())
		events, done := make(chan gates.Event, 100), make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range p.Events(ctx, w.tenant, after) {
				if err != nil {
					t.Error(err)
					return
				}
				events <- e
			}
		}()
		return events, func() { cancel(); <-done }
	}
	next := func(events <-chan gates.Event, typ string, id audit.ID) gates.Event {
		t.Helper()
		select {
		case e := <-events:
			if e.Type != typ || e.Gate.ID != id || e.Gate.Tenant != w.tenant {
				t.Errorf("%s %s of %s, want %s %s", e.Type, e.Gate.ID, e.Gate.Tenant, typ, id)
			}
			return e
		case <-time.After(30 * time.Second):
			t.Fatalf("no %s", typ)
		}
		return gates.Event{}
	}
	events, stop := follow("")
	next(events, gates.EventOpened, first)
	w.open(other, foreign)
	second := w.open(other, w.transfer())
	seen := next(events, gates.EventOpened, second)
	stop()
	w.decide(other, first, w.who("ann"), gates.Answer{})
	third := w.open(p, w.transfer())
	events, stop = follow(seen.ID)
	defer stop()
	got := map[string]bool{}
	for range 10 { // what was told shortly before may come again
		e := <-events
		got[e.Type+" "+e.Gate.ID.String()] = true
		if e.ID == seen.ID {
			t.Error("told again what was named")
		}
		if got[gates.EventDecided+" "+first.String()] && got[gates.EventOpened+" "+third.String()] {
			break
		}
	}
	w.decide(p, third, w.who("ann"), gates.Answer{Approve: true, Note: "yes"})
	if e := next(events, gates.EventDecided, third); e.Gate.Note != "yes" {
		t.Errorf("%+v", e.Gate)
	}
	for _, bad := range []string{"x", "1", "-5-open", strings.Repeat("1", 200)} {
		for _, err := range p.Events(t.Context(), w.tenant, bad) {
			if audit.KindOf(err) != audit.KindInvalid {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
}
