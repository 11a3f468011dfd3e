package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/client"
	"github.com/evenhand/evenhand/guard"
)

const (
	chatAsk   = `{"model":"gpt-x","user":"u7","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Who?"},{"type":"image_url","image_url":{"url":"data:x"}}]}]}`
	streamAsk = `{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Who?"}]}`
	respAsk   = `{"model":"gpt-x","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"Who?"}]},{"type":"function_call","name":"find","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"found"},{"type":"reasoning","id":"r"}]}`
)

// What is well passes byte for byte, and is on record.
func TestPasses(t *testing.T) {
	for _, tc := range []struct {
		name, path, ask, answer string
		serve                   http.HandlerFunc
		change                  func(*client.Options)
		prompt                  string
	}{
		{"chat", "/v1/chat/completions", chatAsk, completion(clean), says(completion(clean)), nil, "Be brief.\n\nWho?\n[image_url]"},
		{"chat that may be blocked", "/v1/chat/completions", chatAsk, completion(clean), says(completion(clean)), blocks, "Be brief.\n\nWho?\n[image_url]"},
		{"responses", "/v1/responses", respAsk, response(clean), says(response(clean)), blocks, "Be brief.\n\nWho?\n\nfind {}\n\nfound"},
		{"stream", "/v1/chat/completions", streamAsk, chunks(clean), streams(chunks(clean)), nil, "Who?"},
		{"held stream", "/v1/chat/completions", streamAsk, chunks(clean), streams(chunks(clean)), blocks, "Who?"},
		{"stream in windows", "/v1/chat/completions", streamAsk, chunks(clean), streams(chunks(clean)), windows, "Who?"},
		{"stream of responses", "/v1/responses", respAsk, responseEvents(clean), streams(responseEvents(clean)), nil, "Be brief.\n\nWho?\n\nfind {}\n\nfound"},
		{"held stream of responses", "/v1/responses", respAsk, responseEvents(clean), streams(responseEvents(clean)), blocks, "Be brief.\n\nWho?\n\nfind {}\n\nfound"},
		{"stream of responses in windows", "/v1/responses", respAsk, responseEvents(clean), streams(responseEvents(clean)), windows, "Be brief.\n\nWho?\n\nfind {}\n\nfound"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, tc.serve)
			a := newApp(t, func(o *client.Options) {
				if tc.change != nil {
					tc.change(o)
				}
				o.Describe = func(_ *http.Request, e *client.Event) { e.Application, e.Tenant = "hr-bot", "acme" }
			})
			res, got, err := a.post(t, p.URL+tc.path, tc.ask)
			if err != nil || got != tc.answer || p.asked[0] != tc.ask {
				t.Fatalf("%v %q", err, got)
			}
			e := a.event(t)
			if e.Response != clean || e.Prompt != tc.prompt || e.Model != "gpt-x-2026" || e.PromptTokens != 12 || e.ResponseTokens != 34 || e.Status != "success" ||
				e.Application != "hr-bot" || e.Tenant != "acme" || e.Provider != "127.0.0.1" || e.LatencyMS < 0 {
				t.Errorf("event %+v", e)
			}
			if res.Header.Get("X-Evenhand-Id") != e.ID.String() {
				t.Errorf("headers %v", res.Header)
			}
			if s := a.transport.Stats(); s.Calls != 1 || s.Judged != 1 || s.Warned+s.Blocked+s.Unchecked+s.Unread != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func windows(o *client.Options) { blocks(o); o.Stream, o.WindowBytes = client.StreamWindow, 20 }

// A warning lets the answer pass as it came, and is told beside it.
func TestWarns(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{"whole": says(completion(biased)), "stream": streams(chunks(biased))} {
		p := newProvider(t, serve)
		a := newApp(t, func(o *client.Options) { o.Domain = audit.HR })
		ctx, watch := client.Watch(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(chatAsk))
		res, err := a.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		r := watch.Report()
		if r == nil || r.Action != guard.Warn || len(r.Findings) == 0 || r.Findings[0].Characteristic != "sex" || !strings.HasPrefix(r.Findings[0].Evidence, "Women are") {
			t.Fatalf("%s: %+v", name, r)
		}
		if name == "whole" && (res.Header.Get("X-Evenhand-Action") != "warn" || !strings.HasPrefix(res.Header.Get("X-Evenhand-Scores"), "bias=0.6")) {
			t.Errorf("headers %v", res.Header)
		}
		_ = res.Body.Close()
		if e := a.event(t); e.Response != biased || e.Status != "success" || !strings.Contains(e.Metadata, `"action":"warn"`) || r.ID != e.ID {
			t.Errorf("event %+v", e)
		}
		if s := a.transport.Stats(); s.Warned != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// What may not pass is the seeds' error, through http.Client's own, and is on record.
func TestBlocks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		text   string
		change func(*client.Options)
		check  func(error) bool
	}{
		{"bias", biased, blocks, func(err error) bool {
			var e *client.BiasDetectedError
			return errors.As(err, &e) && e.Domain == audit.HR && e.Findings[0].Characteristic == "sex" && strings.HasPrefix(e.Findings[0].Evidence, "Women are too emotional") && e.Threshold == 150_000
		}},
		{"safety", cards, func(o *client.Options) { o.SafetyFilter = true }, func(err error) bool {
			var e *client.SafetyViolationError
			return errors.As(err, &e) && e.Findings[0].Category == "pii_leakage" && e.Findings[0].Evidence == "4111 1111 1111 1111"
		}},
		{"nobody to ask", transfer, func(o *client.Options) { o.HITLGate = true }, func(err error) bool {
			var e *client.HumanGateDeniedError
			return errors.As(err, &e) && e.Reason == guard.Denied && e.Rule == "financial"
		}},
	} {
		for path, serve := range map[string]http.HandlerFunc{
			"chat": says(completion(tc.text)), "second choice": says(completion(clean, tc.text)), "responses": says(response(tc.text)), "chat streamed": streams(chunks(tc.text)), "responses streamed": streams(responseEvents(tc.text)),
		} {
			p := newProvider(t, serve)
			a := newApp(t, tc.change)
			url := p.URL + "/v1/chat/completions"
			if strings.HasPrefix(path, "resp") {
				url = p.URL + "/v1/responses"
			}
			_, got, err := a.post(t, url, chatAsk)
			if !tc.check(err) || got != "" {
				t.Errorf("%s, %s: %v %q", tc.name, path, err, got)
			}
			// The provider's port may hold the digits of the card.
			if told := strings.ReplaceAll(fmt.Sprint(err), p.URL, ""); strings.Contains(told, "emotional") || strings.Contains(told, "4111") {
				t.Errorf("%s, %s: %v %q", tc.name, path, err, got)
			}
			if e := a.event(t); !strings.Contains(e.Response, tc.text) || e.Status != "blocked" || p.calls() != 1 {
				t.Errorf("%s, %s: event %+v", tc.name, path, e)
			}
			if s := a.transport.Stats(); s.Blocked != 1 || s.Judged != 1 {
				t.Errorf("%s: %+v", tc.name, s)
			}
		}
	}
}

// What tools are asked to do, and reasoning, are judged with the text.
func TestJudgesBeside(t *testing.T) {
	tool := `{"id":"c","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"pay","arguments":"{\"note\":\"transfer $5,000 to \\u0061ccount 7\"}"}}]}}]}`
	pieces := `data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"pay","arguments":"{\"note\":\"transf"}}]}}]}` + "\n\n" +
		`data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"er $5,000 to account 7\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	item := `{"id":"r","status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"I think."}]},{"type":"function_call","call_id":"t","name":"pay","arguments":"{\"note\":\"transfer $5,000 to account 7\"}"}]}`
	for name, tc := range map[string]struct {
		path  string
		serve http.HandlerFunc
	}{"chat": {"/chat/completions", says(tool)}, "streamed": {"/chat/completions", streams(pieces)}, "responses": {"/responses", says(item)}} {
		p := newProvider(t, tc.serve)
		a := newApp(t, func(o *client.Options) { o.HITLGate = true })
		_, _, err := a.post(t, p.URL+tc.path, chatAsk)
		var denied *client.HumanGateDeniedError
		if !errors.As(err, &denied) {
			t.Errorf("%s: %v", name, err)
		}
		if e := a.event(t); !strings.Contains(e.Response, "pay note transfer $5,000 to account 7") {
			t.Errorf("%s: %q", name, e.Response)
		}
	}
}

func TestGate(t *testing.T) {
	p := newProvider(t, says(completion(transfer)))
	var seen client.GateRequest
	gated := func(decide func(ctx context.Context, r client.GateRequest) (client.GateDecision, error)) *app {
		return newApp(t, func(o *client.Options) {
			o.HITLGate, o.HITLGateTimeout, o.Provider = true, 50*time.Millisecond, "openai"
			o.OnGateTriggered = func(ctx context.Context, r client.GateRequest) (client.GateDecision, error) {
				return decide(ctx, r)
			}
		})
	}
	url := p.URL + "/v1/chat/completions"

	a := gated(func(_ context.Context, r client.GateRequest) (client.GateDecision, error) {
		seen = r
		return client.GateDecision{Approved: true}, nil
	})
	res, got, err := a.post(t, url, chatAsk)
	if err != nil || got != completion(transfer) || res.Header.Get("X-Evenhand-Hitl-Gate-Triggered") != "true" {
		t.Fatalf("approved: %v %v", err, res)
	}
	if seen.Rule.ID != "financial" || seen.MatchedText != "transfer $5,000" || seen.Provider != "openai" || seen.Method != "chat.completions.create" || seen.Time.IsZero() {
		t.Errorf("request %+v", seen)
	}
	for name, tc := range map[string]struct {
		decide         func(ctx context.Context, r client.GateRequest) (client.GateDecision, error)
		reason, detail string
	}{
		"denied in the seed's words": {func(context.Context, client.GateRequest) (client.GateDecision, error) {
			return client.GateDecision{Reason: "Operator rejected the action"}, nil
		}, "denied", "Operator rejected the action"},
		"failed": {func(context.Context, client.GateRequest) (client.GateDecision, error) {
			return client.GateDecision{Approved: true}, errors.New("no line")
		}, "denied", "OnGateTriggered failed"},
		"panicked": {func(context.Context, client.GateRequest) (client.GateDecision, error) { panic("x") }, "denied", "OnGateTriggered panicked (string)"},
		"timed out": {func(ctx context.Context, _ client.GateRequest) (client.GateDecision, error) {
			<-ctx.Done()
			return client.GateDecision{}, ctx.Err()
		}, "timeout", ""},
	} {
		_, _, err := gated(tc.decide).post(t, url, chatAsk)
		var denied *client.HumanGateDeniedError
		if !errors.As(err, &denied) || denied.Reason != tc.reason || tc.detail != "" && denied.Detail != tc.detail {
			t.Errorf("%s: %v %+v", name, err, denied)
		}
	}

	// Who hangs up while a person thinks is told so, not that the gate was denied.
	ctx, cancel := context.WithCancel(t.Context())
	a = gated(func(ctx context.Context, _ client.GateRequest) (client.GateDecision, error) {
		cancel()
		<-ctx.Done()
		return client.GateDecision{}, ctx.Err()
	})
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(chatAsk))
	var denied *client.HumanGateDeniedError
	if _, err := a.Do(req); !errors.Is(err, context.Canceled) || errors.As(err, &denied) { //nolint:bodyclose // there is none
		t.Errorf("hung up: %v", err)
	}
}

// Windows let whole sentences go, and a block ends the stream where it stands.
func TestWindows(t *testing.T) {
	first := "Hello there, good friend. "
	at := strings.Index(chunks(first+biased), "friend. ")
	head := chunks(first + biased)[:at+strings.Index(chunks(first + biased)[at:], "\n\n")+2]
	more := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		streams(head)(w, r)
		<-more
		streams(strings.TrimPrefix(chunks(first+biased), head))(w, r)
	})
	a := newApp(t, windows)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(streamAsk))
	res, err := a.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, len(head))
	if _, err = io.ReadFull(res.Body, begun); err != nil || string(begun) != head {
		t.Fatalf("%v %q", err, begun)
	}
	close(more)
	rest, err := io.ReadAll(res.Body)
	var bias *client.BiasDetectedError
	if !errors.As(err, &bias) || len(rest) > 0 {
		t.Errorf("%v %q", err, rest)
	}
	_ = res.Body.Close()
	if e := a.event(t); e.Status != "blocked" || !strings.HasPrefix(e.Response, first+"Women are too emotional") {
		t.Errorf("event %+v", e)
	}

	// A gate is asked once for its rule, however many windows follow.
	asked := 0
	long := transfer + strings.Repeat(" And then we will all go home and have some tea.", 50)
	p = newProvider(t, streams(chunks(long)))
	a = newApp(t, func(o *client.Options) {
		o.Stream, o.WindowBytes, o.HITLGate = client.StreamWindow, 20, true
		o.OnGateTriggered = func(context.Context, client.GateRequest) (client.GateDecision, error) {
			asked++
			return client.GateDecision{Approved: true}, nil
		}
	})
	if _, got, err := a.post(t, p.URL+"/v1/chat/completions", streamAsk); err != nil || got != chunks(long) || asked != 1 {
		t.Errorf("%v, asked %d times, %d bytes of %d", err, asked, len(got), len(chunks(long)))
	}
}

// A stream passes as it comes: its first piece is there while its last is not sent yet.
func TestStreamAsItComes(t *testing.T) {
	parts := strings.SplitAfter(chunks(clean), "\n\n")
	more := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		streams(parts[0]+parts[1])(w, r)
		<-more
		streams(strings.Join(parts[2:], ""))(w, r)
	})
	a := newApp(t, nil)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(streamAsk))
	res, err := a.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, len(parts[0]+parts[1]))
	if _, err = io.ReadFull(res.Body, head); err != nil || string(head) != parts[0]+parts[1] {
		t.Fatalf("%v %q", err, head)
	}
	close(more)
	rest, err := io.ReadAll(res.Body)
	if err != nil || string(head)+string(rest) != chunks(clean) {
		t.Errorf("%v %q", err, rest)
	}
	_ = res.Body.Close()
}

// An endless stream that nothing can stop is never held: what is beyond the limit passes unchecked.
func TestEndlessStream(t *testing.T) {
	piece := strings.Split(chunks(clean), "\n\n")[1] + "\n\n"
	ended := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	})
	a := newApp(t, func(o *client.Options) { o.BodyBytes = 4096 })
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(streamAsk))
	res, err := a.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.CopyN(io.Discard, res.Body, 4<<20); err != nil {
		t.Fatal(n, err)
	}
	_ = res.Body.Close()
	<-ended
	if e := a.event(t); e.Status != "error" || e.ErrorMessage != "the caller went away" || len(e.Response) > 4096 || a.transport.Stats().Unchecked != 1 {
		t.Errorf("event %d %s %s %+v", len(e.Response), e.Status, e.ErrorMessage, a.transport.Stats())
	}
	// Where it might have been stopped it is not read for ever.
	for _, mode := range []client.Stream{client.StreamHold, client.StreamWindow} {
		ended = make(chan struct{})
		a = newApp(t, func(o *client.Options) { blocks(o); o.BodyBytes, o.Stream = 4096, mode })
		var unchecked *client.UncheckedError
		if _, _, err = a.post(t, p.URL+"/v1/chat/completions", streamAsk); !errors.As(err, &unchecked) {
			t.Errorf("%s: %v", mode, err)
		}
		<-ended
	}
}

// Answers and faults of a provider stay what they are.
func TestTruthful(t *testing.T) {
	limited := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow down"}}`)
	}
	a := newApp(t, blocks)
	res, got, err := a.post(t, newProvider(t, limited).URL+"/v1/chat/completions", chatAsk)
	if err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After") != "7" || got != `{"error":{"message":"slow down"}}` {
		t.Errorf("429: %v %v %s", err, res, got)
	}
	if e := a.event(t); e.Status != "error" || e.ErrorMessage != "the provider answered 429" || e.Query != "Who?\n[image_url]" {
		t.Errorf("429: %+v", e)
	}

	// Other paths and methods are none of ours.
	a = newApp(t, blocks)
	if _, got, err = a.post(t, newProvider(t, says(biased)).URL+"/v1/embeddings", `{}`); err != nil || got != biased || a.transport.Stats().Calls != 0 {
		t.Errorf("embeddings: %v %s", err, got)
	}

	// A provider that is not there.
	a = newApp(t, blocks)
	gone := newProvider(t, says(""))
	gone.Close()
	if _, _, err = a.post(t, gone.URL+"/v1/chat/completions", chatAsk); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("gone: %v", err)
	}
	if e := a.event(t); e.Status != "error" || e.ErrorMessage != "the provider was not reached" {
		t.Errorf("gone: %+v", e)
	}

	// A body that breaks off, whole or streamed, held or not.
	cut := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Length", fmt.Sprint(len(body)+100))
			_, _ = io.WriteString(w, body)
		}
	}
	half := chunks(clean)[:len(chunks(clean))/2]
	whole := half[:strings.LastIndex(half, "\n\n")+2] // of half an event nothing can be said
	for name, tc := range map[string]struct {
		serve  http.HandlerFunc
		change func(*client.Options)
		want   string
	}{
		"whole":   {cut("application/json", completion(clean)[:60]), nil, completion(clean)[:60]},
		"blocked": {cut("application/json", completion(clean)[:60]), blocks, ""},
		"stream":  {cut("text/event-stream", half), nil, half},
		"held":    {cut("text/event-stream", half), blocks, whole},
		"windows": {cut("text/event-stream", half), windows, whole},
	} {
		a = newApp(t, tc.change)
		_, got, err = a.post(t, newProvider(t, tc.serve).URL+"/v1/chat/completions", chatAsk)
		if !errors.Is(err, io.ErrUnexpectedEOF) || got != tc.want {
			t.Errorf("%s: %v %q", name, err, got)
		}
		if e := a.event(t); e.Status != "error" || e.ErrorMessage != "the provider's answer broke off" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// A stream that ends without an end passes, and the record says so.
	a = newApp(t, blocks)
	short := strings.Join(strings.SplitAfter(chunks(clean), "\n\n")[:5], "")
	if _, got, err = a.post(t, newProvider(t, streams(short)).URL+"/v1/chat/completions", chatAsk); err != nil || got != short || a.event(t).ErrorMessage != "the stream ended before the model had finished" {
		t.Errorf("short: %v %q", err, got)
	}
}

// A caller that hangs up ends the provider's call, and gets its own error.
func TestCancelled(t *testing.T) {
	for _, change := range []func(*client.Options){nil, blocks, windows} {
		gone := make(chan struct{})
		p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			streams(strings.Join(strings.SplitAfter(chunks(clean), "\n\n")[:3], ""))(w, r)
			<-r.Context().Done()
			close(gone)
		})
		a := newApp(t, change)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(streamAsk))
		res, err := a.Do(req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		<-gone
		if e := a.event(t); e.Status != "error" || e.ErrorMessage != "the caller went away" {
			t.Errorf("event %+v", e)
		}
	}
}

// What cannot be read is never taken for clean.
func TestUnchecked(t *testing.T) {
	zipped := func(encoding, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Encoding", encoding)
			_, _ = io.WriteString(w, body)
		}
	}
	gz := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		return b.String()
	}
	for _, tc := range []struct {
		name  string
		serve http.HandlerFunc
		body  string
	}{
		{"no JSON", says("sorry"), "sorry"},
		{"no choices", says(`{"id":"x"}`), `{"id":"x"}`},
		{"unknown encoding", zipped("br", "application/json", "xyz"), "xyz"},
		{"broken gzip", zipped("gzip", "application/json", "xyz"), "xyz"},
		{"gzip bomb", zipped("gzip", "application/json", gz(strings.Repeat("x", 1<<20))), gz(strings.Repeat("x", 1<<20))},
		{"too large", says(completion(strings.Repeat(clean, 2000))), completion(strings.Repeat(clean, 2000))},
		{"broken stream", streams("data: {\"choices\n\n"), "data: {\"choices\n\n"},
		{"deep", says(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)), strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)},
	} {
		p := newProvider(t, tc.serve)
		a := newApp(t, func(o *client.Options) { blocks(o); o.BodyBytes = 64 << 10 })
		var unchecked *client.UncheckedError
		if _, _, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk); !errors.As(err, &unchecked) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if e := a.event(t); e.Status != "blocked" || a.transport.Stats().Unchecked != 1 {
			t.Errorf("%s: %+v", tc.name, e)
		}
		for _, open := range []func(*client.Options){func(*client.Options) {}, func(o *client.Options) { blocks(o); o.FailOpen = true }} {
			a = newApp(t, func(o *client.Options) { open(o); o.BodyBytes = 64 << 10 })
			res, got, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk)
			if err != nil || got != tc.body || res.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" && res.Header.Get("X-Evenhand-Action") != "unchecked" {
				t.Errorf("%s, passing: %v %q", tc.name, err, got)
			}
			if s := a.transport.Stats(); s.Unchecked != 1 || s.Judged != 0 {
				t.Errorf("%s, passing: %+v", tc.name, s)
			}
		}
		// A gate never fails open.
		a = newApp(t, func(o *client.Options) { o.HITLGate, o.FailOpen, o.BodyBytes = true, true, 64<<10 })
		if _, _, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk); !errors.As(err, &unchecked) {
			t.Errorf("%s, gated: %v", tc.name, err)
		}
	}
	// gzip is read, and passed on as it came.
	p := newProvider(t, zipped("gzip", "application/json", gz(completion(biased))))
	a := newApp(t, func(o *client.Options) { o.Domain = audit.HR })
	if res, got, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk); err != nil || got != gz(completion(biased)) || res.Header.Get("X-Evenhand-Action") != "warn" {
		t.Errorf("gzip: %v %v", err, res)
	}
	// So is a stream in gzip, held.
	p = newProvider(t, zipped("gzip", "text/event-stream", gz(chunks(biased))))
	a = newApp(t, windows)
	var bias *client.BiasDetectedError
	if _, _, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk); !errors.As(err, &bias) {
		t.Errorf("gzip stream: %v", err)
	}
}

// A prompt that cannot be read is sent as it is and counted; the answer is judged all the same.
func TestUnreadRequest(t *testing.T) {
	p := newProvider(t, says(completion(biased)))
	large := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 100_000) + `"}]}`
	for _, ask := range []string{large, "no JSON"} {
		a := newApp(t, func(o *client.Options) { blocks(o); o.BodyBytes = 64 << 10 })
		var bias *client.BiasDetectedError
		if _, _, err := a.post(t, p.URL+"/v1/chat/completions", ask); !errors.As(err, &bias) || p.asked[len(p.asked)-1] != ask {
			t.Errorf("%v", err)
		}
		if s := a.transport.Stats(); s.Unread != 1 {
			t.Errorf("%+v", s)
		}
	}
	// Background answers are fetched past us.
	a := newApp(t, blocks)
	var unchecked *client.UncheckedError
	n := p.calls()
	if _, _, err := a.post(t, p.URL+"/v1/responses", `{"model":"m","input":"hi","background":true}`); !errors.As(err, &unchecked) || p.calls() != n {
		t.Errorf("background: %v", err)
	}
}

func TestOptionsRefused(t *testing.T) {
	over := audit.Score(2_000_000)
	for want, change := range map[string]func(*client.Options){
		"domain":          func(o *client.Options) { o.Domain = "law" },
		"biasThreshold":   func(o *client.Options) { o.BiasThreshold = &over },
		"biasAction":      func(o *client.Options) { o.BiasAction = "" },
		"hitlGateTimeout": func(o *client.Options) { o.HITLGateTimeout = 0 },
		"Stream":          func(o *client.Options) { o.Stream = "" },
		"BodyBytes":       func(o *client.Options) { o.BodyBytes = 0 },
		"hitlGateRules[0]": func(o *client.Options) {
			o.HITLGate, o.HITLGateRules = true, []client.GateRule{{ID: "X", Pattern: "("}}
		},
	} {
		o := client.DefaultOptions()
		change(&o)
		if _, err := client.NewTransport(nil, decider(t), o); err == nil || !strings.Contains(err.Error(), want) || audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := client.Wrap(http.DefaultClient, nil, client.DefaultOptions()); err == nil {
		t.Error("no decider is taken")
	}
}

// Seed 001's own rules, as a JavaScript literal.
func TestOwnRules(t *testing.T) {
	p := newProvider(t, says(completion("I will export all the user data now.")))
	a := newApp(t, func(o *client.Options) {
		o.HITLGate = true
		o.HITLGateRules = []client.GateRule{{ID: "pii_export", Description: "PII data export", Pattern: `/\b(export|download|extract)\b.*\b(personal data|PII|user data|customer data)\b/i`, Category: "data_export"}}
	})
	var denied *client.HumanGateDeniedError
	if _, _, err := a.post(t, p.URL+"/v1/chat/completions", chatAsk); !errors.As(err, &denied) || denied.Rule != "pii_export" {
		t.Errorf("%v", err)
	}
}
