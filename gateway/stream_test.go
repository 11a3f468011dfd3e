package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/guard"
)

const streamed = `,"stream":true,"stream_options":{"include_usage":true}`

// said joins what a stream's chunks say, of choice 0.
func saidOf(stream string) string {
	var b strings.Builder
	for _, d := range datas(stream) {
		b.WriteString(gjson.Get(d, "choices.0.delta.content").String())
	}
	return b.String()
}

// A packed stream, which was not asked for, passes byte for byte where nothing is stopped, and is refused elsewhere.
func TestPackedStream(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for _, c := range pieces(clean) {
		_, _ = io.WriteString(z, "data: "+c+"\n\n")
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(c *Config, d *Deps)
		status int
	}{
		"nothing is stopped":     {func(*Config, *Deps) {}, 200},
		"held, and open":         {func(c *Config, d *Deps) { blocks(c, d); c.Stream, c.Fail = StreamHold, FailOpen }, 200},
		"something is stopped":   {blocks, 503},
		"answers are not judged": {func(c *Config, d *Deps) { blocks(c, d); c.Guard.Check = string(guard.Prompt) }, 200},
	} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			half := packed.Len() / 2
			_, _ = w.Write(packed.Bytes()[:half])
			w.(http.Flusher).Flush()
			_, _ = w.Write(packed.Bytes()[half:])
		})
		s := start(t, p.URL, tc.change)
		got := s.do(PathChat, prompt("hi", `,"stream":true`), "Accept-Encoding", "gzip") // else Go's client unpacks
		if got.status != tc.status || tc.status == 200 && (got.body != packed.String() || got.header.Get("Content-Encoding") != "gzip") {
			t.Errorf("%s: %d, %d bytes of %d: %.200q", name, got.status, len(got.body), packed.Len(), got.body)
		}
		if e := s.event(); tc.status == 200 && e["status"] != "success" {
			t.Errorf("%s: %v", name, e["status"])
		}
	}
}

// What is allowed passes byte for byte in every mode and with every line end.
func TestStreamPassesAsItCame(t *testing.T) {
	for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
		for _, end := range []string{"\n", "\r\n"} {
			s := start(t, newProvider(t, streams(end, pieces(clean)...)).URL, func(c *Config, _ *Deps) { c.WindowBytes = 20 })
			got := s.do(PathChat, prompt("Tell me of Paris.", streamed), "X-Evenhand-Stream", mode)
			want := "data: " + strings.Join(pieces(clean), end+end+"data: ") + end + end
			if got.status != 200 || stripComments(got.body) != want || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
				t.Errorf("%s %q: %d\n%q\nwant\n%q", mode, end, got.status, got.body, want)
			}
			e := s.event()
			if e["response"] != clean || e["status"] != "success" || e["prompt_tokens"] != 12.0 || e["response_tokens"] != 34.0 || e["model"] != "gpt-x-2026" {
				t.Errorf("%s: event %v", mode, e)
			}
		}
	}
}

func stripComments(s string) string { return strings.ReplaceAll(s, ": evenhand is looking\n\n", "") }

// A block that is found while everything is held is an error of its own.
func TestHeldStreamIsBlocked(t *testing.T) {
	for name, tc := range map[string]struct {
		block string
		want  func(g got) bool
	}{
		"error": {BlockError, func(g got) bool { return g.status == 400 && gjson.Get(g.body, "error.code").String() == codeBlocked }},
		"refusal": {BlockRefusal, func(g got) bool {
			return g.status == 200 && saidOf(g.body) == "I cannot answer that." && strings.HasSuffix(g.body, "data: [DONE]\n\n")
		}},
	} {
		s := start(t, newProvider(t, streams("\n", pieces(biased)...)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Block, c.KeepAlive = tc.block, time.Minute })
		if got := s.do(PathChat, prompt("Who?", streamed)); !tc.want(got) || strings.Contains(got.body, "executives. That") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if e := s.event(); e["status"] != "blocked" || e["response"] != biased {
			t.Errorf("%s: event %v", name, e)
		}
	}
}

// Once comments kept the connection alive, the block is told in the stream.
func TestKeepAliveThenBlock(t *testing.T) {
	alive := make(chan struct{})
	s := start(t, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+pieces(biased)[0]+"\n\n")
		w.(http.Flusher).Flush()
		<-alive // until the caller saw a comment
		for _, c := range pieces(biased)[1:] {
			_, _ = io.WriteString(w, "data: "+c+"\n\n")
		}
	}).URL, blocks)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+PathChat, strings.NewReader(prompt("Who?", streamed)))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewReader(res.Body)
	if line, _ := lines.ReadString('\n'); !strings.HasPrefix(line, ":") {
		t.Fatalf("first line %q", line)
	}
	close(alive)
	rest, _ := io.ReadAll(lines)
	ds := datas(string(rest))
	ds = ds[max(0, len(ds)-3):]
	if res.StatusCode != 200 || len(ds) != 3 || gjson.Get(ds[0], "choices.0.finish_reason").String() != "content_filter" || gjson.Get(ds[1], "error.code").String() != codeBlocked || ds[2] != "[DONE]" {
		t.Fatalf("%d %s", res.StatusCode, rest)
	}
	if strings.Contains(string(rest), "executives. That") {
		t.Error("blocked text went out")
	}
}

// Windows let whole sentences out, and stop at the first that is blocked.
func TestWindowStopsInTime(t *testing.T) {
	text := "Good day to you, dear reader. It is a pleasure to answer this. " + biased + " And much more of the same kind follows here."
	s := start(t, newProvider(t, streams("\n", pieces(text)...)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Stream, c.WindowBytes = StreamWindow, 20 })
	got := s.do(PathChat, prompt("Who?", streamed))
	ds := datas(got.body)
	if out := saidOf(got.body); got.status != 200 || !strings.HasPrefix(out, "Good day to you, dear reader.") || strings.Contains(out, "emotional") {
		t.Errorf("%d said %q", got.status, out)
	}
	if a := got.header.Get("X-Evenhand-Action"); a != "" {
		t.Errorf("action %q before anything was decided", a)
	}
	if n := len(ds); n < 3 || gjson.Get(ds[n-3], "choices.0.finish_reason").String() != "content_filter" || gjson.Get(ds[n-2], "error.code").String() != codeBlocked || ds[n-1] != "[DONE]" {
		t.Errorf("ends with %v", ds)
	}
	if e := s.event(); e["status"] != "blocked" || !strings.Contains(e["response"].(string), "emotional") {
		t.Errorf("event %v", e)
	}
}

// Clients hang up once they have read the end; that is no call that broke off.
func TestHangingUpBehindTheEnd(t *testing.T) {
	for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
		p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			streams("\n", pieces(clean)...)(w, r)
			<-r.Context().Done() // the provider does not end its stream
		})
		s := start(t, p.URL, nil)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+PathChat, strings.NewReader(prompt("hi", streamed)))
		r.Header.Set("X-Evenhand-Stream", mode)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(res.Body); lines.Scan() && lines.Text() != "data: [DONE]"; {
		}
		_ = res.Body.Close()
		if e := s.event(); e["status"] != "success" || e["response"] != clean {
			t.Errorf("%s: %v", mode, e)
		}
	}
}

// A warning stands in the last chunk that can carry it, and in headers where they are not out yet.
func TestStreamIsMarked(t *testing.T) {
	for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
		s := start(t, newProvider(t, streams("\n", pieces(biased)...)).URL, func(c *Config, _ *Deps) { c.KeepAlive = time.Minute })
		got := s.do(PathChat, prompt("Who?", streamed), "X-Evenhand-Stream", mode)
		marks := 0
		for _, d := range datas(got.body) {
			if gjson.Get(d, "evenhand.action").String() == "warn" {
				marks++
			}
		}
		if marks != 1 || saidOf(got.body) != biased || !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
			t.Errorf("%s: %d marks in %s", mode, marks, got.body)
		}
		if a := got.header.Get("X-Evenhand-Action"); mode == StreamHold && a != "warn" {
			t.Errorf("%s: header %q", mode, a)
		}
	}
}

// Several choices and calls of tools in pieces, under odd reads.
func TestStreamOfChoicesAndTools(t *testing.T) {
	chunks := []string{
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Bon"}},{"index":1,"delta":{"content":"Gut"}}]}`,
		`{"id":"c","model":"m","choices":[{"index":1,"delta":{"content":"en Tag"}}]}`,
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"jour","tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"find","arguments":""}}]}}]}`,
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}}]}}]}`,
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}},{"index":1,"id":"t2","type":"function","function":{"name":"stop","arguments":"{}"}}]}}]}`,
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"},{"index":1,"delta":{},"finish_reason":"stop"}]}`,
		`[DONE]`,
	}
	whole := ": hello\n\nevent: x\nid: 7\ndata: " + strings.Join(chunks, "\r\n\r\ndata:  ") + "\n" // no blank line at the end
	for step := 1; step < 40; step += 7 {
		s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := 0; i < len(whole); i += step {
				_, _ = io.WriteString(w, whole[i:min(i+step, len(whole))])
				w.(http.Flusher).Flush()
			}
		}).URL, nil)
		got := s.do(PathChat, prompt("hi", streamed), "X-Evenhand-Stream", "hold")
		if body := stripComments(got.body); body != whole+"\n" {
			t.Fatalf("%q\nwant\n%q", body, whole)
		}
		r := s.event()["response"]
		want := `[map[content:Bonjour role:assistant tool_calls:[map[function:map[arguments:{"q":"x"} name:find] id:t1 type:function] map[function:map[arguments:{} name:stop] id:t2 type:function]]] map[content:Guten Tag role:assistant]]`
		if fmt.Sprint(r) != want {
			t.Fatalf("response %v\nwant %s", r, want)
		}
	}
}

// Streams that end before the model had finished are told as what they are.
func TestBrokenStreams(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range pieces(clean)[:4] {
			_, _ = io.WriteString(w, "data: "+c+"\n\n")
		}
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	for mode, want := range map[string]string{StreamHold: "evenhand_upstream_broken", StreamWindow: "evenhand_upstream_broken", StreamPass: "evenhand_upstream_broken"} {
		s := start(t, newProvider(t, cut).URL, nil)
		got := s.do(PathChat, prompt("hi", streamed), "X-Evenhand-Stream", mode)
		if !strings.Contains(got.body, want) || mode == StreamHold && got.status != 502 {
			t.Errorf("%s: %d %s", mode, got.status, got.body)
		}
		if e := s.event(); e["status"] != "error" || !strings.HasPrefix(clean, e["response"].(string)) || e["response"] == "" {
			t.Errorf("%s: event %v", mode, e)
		}
	}
	for name, tc := range map[string]struct {
		chunks []string
		status string
	}{
		"without [DONE]":          {pieces(clean)[:len(pieces(clean))-1], "success"},
		"without finish":          {pieces(clean)[:4], "error"},
		"an error of theirs":      {append(pieces(clean)[:4], `{"error":{"message":"overloaded","type":"server_error"}}`), "error"},
		"[DONE] and then silence": {pieces(clean), "success"},
	} {
		s := start(t, newProvider(t, streams("\n", tc.chunks...)).URL, nil)
		got := s.do(PathChat, prompt("hi", streamed))
		if want := "data: " + strings.Join(tc.chunks, "\n\ndata: ") + "\n\n"; got.body != want {
			t.Errorf("%s: %q", name, got.body)
		}
		if e := s.event(); e["status"] != tc.status {
			t.Errorf("%s: event %v", name, e)
		}
	}
}

// A stream whose last event breaks off ends before it, as clients read it; what was said until then is judged and on record.
func TestStreamEndsInAnEvent(t *testing.T) {
	said := "data: " + strings.Join(pieces(clean)[:4], "\n\ndata: ") + "\n\n"
	for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
		s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, said+"data: "+pieces(clean)[4][:90])
		}).URL, nil)
		if got := s.do(PathChat, prompt("hi", streamed), "X-Evenhand-Stream", mode); got.status != http.StatusOK || got.body != said {
			t.Errorf("%s: %d %q", mode, got.status, got.body)
		}
		if e := s.event(); e["status"] != "error" || e["error_message"] != "the stream ended before the model had finished" || e["response"] == "" || recorded(e)["action"] != "allow" {
			t.Errorf("%s: event %v", mode, e)
		}
	}
}

// Who goes away takes the provider's call along, and is on record.
func TestCallerGoesAway(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	s := start(t, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+pieces(clean)[1]+"\n\n")
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
		close(gone)
	}).URL, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.http.URL+PathChat, strings.NewReader(prompt("hi", streamed)))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	cancel()
	_ = res.Body.Close()
	<-gone
	if e := s.event(); e["status"] != "error" || e["error_message"] != "the caller went away" || e["response"] != "The " {
		t.Errorf("event %v", e)
	}
}

// A process that ends does not wait for models: what was said until then is judged and on record, and the caller is told.
func TestStop(t *testing.T) {
	for mode, body := range map[string]string{StreamPass: prompt("hi", streamed), StreamWindow: prompt("hi", streamed), StreamHold: prompt("hi", streamed), "": prompt("hi", "")} {
		begun := make(chan struct{})
		s := start(t, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			if mode != "" {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, c := range pieces(clean)[:12] {
					_, _ = io.WriteString(w, "data: "+c+"\n\n")
				}
				w.(http.Flusher).Flush()
			}
			close(begun)
			<-r.Context().Done()
		}).URL, nil)
		answered := make(chan got, 1)
		go func() { answered <- s.do(PathChat, body, "X-Evenhand-Stream", mode) }()
		<-begun
		s.g.Stop()
		got := <-answered
		if !strings.Contains(got.body, "evenhand_stopping") || mode == "" && got.status != http.StatusServiceUnavailable {
			t.Errorf("%q: %d %s", mode, got.status, got.body)
		}
		e := s.event()
		if said, _ := e["response"].(string); e["status"] != "error" || e["error_message"] != "the gateway was stopped" || !strings.HasPrefix(clean, said) {
			t.Errorf("%q: event %v", mode, e)
		}
	}
	who := &person{answer: make(chan guard.GateDecision)}
	s := start(t, newProvider(t, says(wire)).URL, gated(who))
	answered := make(chan got, 1)
	go func() { answered <- s.do(PathChat, prompt("pay", "")) }()
	for who.opened() == 0 {
		<-time.After(time.Millisecond)
	}
	s.g.Stop()
	if got := <-answered; got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "evenhand_stopping") {
		t.Errorf("gate: %d %s", got.status, got.body)
	}
	if e := s.event(); e["status"] != "blocked" {
		t.Errorf("gate: event %v", e)
	}
}

func gated(p *person) func(*Config, *Deps) {
	return func(c *Config, d *Deps) { c.Guard.HITLGate, d.Gates = true, p }
}

func TestGate(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		serve  http.HandlerFunc
		answer guard.GateDecision
		want   func(g got) bool
		status string
	}{
		"approved": {prompt("pay", ""), says(wire), guard.GateDecision{Approved: true}, func(g got) bool {
			return g.status == 200 && g.header.Get("X-Evenhand-Action") == "gate" && gjson.Get(g.body, "evenhand.hitlGateTriggered").Bool()
		}, "success"},
		"denied": {prompt("pay", ""), says(wire), guard.GateDecision{Reason: "denied", Detail: "no"}, func(g got) bool {
			return g.status == 403 && gjson.Get(g.body, "error.code").String() == "evenhand_gate_denied" && gjson.Get(g.body, "error.evenhand.error.detail").String() == "no"
		}, "blocked"},
		"timeout": {prompt("pay", ""), says(wire), guard.GateDecision{Reason: "timeout"}, func(g got) bool {
			return g.status == 403 && gjson.Get(g.body, "error.code").String() == "evenhand_gate_timeout"
		}, "blocked"},
		"approved, stream": {prompt("pay", streamed), streams("\n", pieces(wire)...), guard.GateDecision{Approved: true}, func(g got) bool {
			return g.status == 200 && saidOf(g.body) == wire && strings.Contains(g.body, "hitlGateTriggered")
		}, "success"},
		"denied, stream": {prompt("pay", streamed), streams("\n", pieces(wire)...), guard.GateDecision{Reason: "denied"}, func(g got) bool { return saidOf(g.body) == "" && strings.Contains(g.body, "evenhand_gate_denied") }, "blocked"},
	} {
		who := &person{answer: make(chan guard.GateDecision, 1)}
		s := start(t, newProvider(t, tc.serve).URL, gated(who))
		who.answer <- tc.answer
		if got := s.do(PathChat, tc.body); !tc.want(got) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if len(who.asked) != 1 || who.asked[0].MatchedText == "" || who.asked[0].Tenant != "acme" || who.asked[0].Method != "chat.completions.create" {
			t.Errorf("%s: asked %+v", name, who.asked)
		}
		if e := s.event(); e["status"] != tc.status || e["response"] != wire {
			t.Errorf("%s: event %v", name, e)
		}
	}
}

// An approval holds for the match that was shown: what the same rule matches later is another, in the answer and in later windows of it. Who
// calls is named, so that they cannot answer.
func TestApprovalsAreOfMatches(t *testing.T) {
	later := strings.Repeat("All is well. ", 200) + "Then I will transfer $1,000,000 to account 8."
	thinks := []string{`{"choices":[{"index":0,"delta":{"reasoning":"I will transfer $5,000 to account 7. Then I say so."}}]}`}
	for name, tc := range map[string]struct {
		body  string
		serve http.HandlerFunc
		want  []string
	}{
		"thoughts come to stand behind": {prompt("pay", streamed), streams("\n", append(thinks, pieces(strings.Repeat("All is well. ", 20))...)...), []string{"transfer $5,000"}},
		"the same twice":                {prompt("pay", streamed), streams("\n", pieces(wire+" "+strings.Repeat("All is well. ", 20)+wire)...), []string{"transfer $5,000", "transfer $5,000|transfer $5,000"}},
		"prompt and answer":             {prompt("transfer $5 to account 7", ""), says(wire), []string{"transfer $5", "transfer $5,000"}},
		"windows":                       {prompt("pay", streamed), streams("\n", pieces(wire+" "+later)...), []string{"transfer $5,000", "transfer $5,000|transfer $1,000,000"}},
	} {
		who := &person{answer: make(chan guard.GateDecision, 9)}
		s := start(t, newProvider(t, tc.serve).URL, func(c *Config, d *Deps) {
			gated(who)(c, d)
			c.Guard.Check, c.Stream, c.WindowBytes = string(guard.Both), StreamWindow, 16
		})
		for range 9 {
			who.answer <- guard.GateDecision{Approved: true}
		}
		if got := s.do(PathChat, tc.body); got.status != 200 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		var asked []string
		for _, a := range who.asked {
			var texts []string
			for _, m := range a.Matches {
				texts = append(texts, m.Text)
			}
			asked = append(asked, strings.Join(texts, "|"))
			if a.Requester != "anonymous" {
				t.Errorf("%s: asked by %q", name, a.Requester)
			}
		}
		if !slices.Equal(asked, tc.want) {
			t.Errorf("%s: asked about %q, want %q", name, asked, tc.want)
		}
	}
}

// Comments keep a stream open while a person thinks.
func TestGateKeepsTheStreamOpen(t *testing.T) {
	who := &person{answer: make(chan guard.GateDecision)}
	s := start(t, newProvider(t, streams("\n", pieces(wire)...)).URL, gated(who))
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+PathChat, strings.NewReader(prompt("pay", streamed)))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewReader(res.Body)
	for range 4 { // two comments
		if line, err := lines.ReadString('\n'); err != nil || strings.Contains(line, "data") {
			t.Fatalf("%q %v", line, err)
		}
	}
	who.answer <- guard.GateDecision{Approved: true}
	rest, _ := io.ReadAll(lines)
	if saidOf(string(rest)) != wire {
		t.Errorf("%s", rest)
	}
}

// Nobody to ask is a denial at once; so is nobody who answers within gate_wait, and a gate that fails.
func TestGateWithoutAnybody(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *Config, d *Deps)
		status int
		code   string
	}{
		"nobody set up": {func(c *Config, _ *Deps) { c.Guard.HITLGate = true }, 403, "evenhand_gate_denied"},
		"nobody in time": {func(c *Config, d *Deps) {
			c.Guard.HITLGate, d.Gates, c.GateWait = true, &person{answer: make(chan guard.GateDecision)}, time.Millisecond
		}, 403, "evenhand_gate_timeout"},
	} {
		s := start(t, newProvider(t, says(wire)).URL, tc.change)
		if got := s.do(PathChat, prompt("pay", "")); got.status != tc.status || gjson.Get(got.body, "error.code").String() != tc.code {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// What a caller asks behind the path goes to the provider, too: Azure wants its api-version there.
func TestQueryPasses(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, nil)
	if got := s.do(PathChat+"?api-version=preview&a=%20b", prompt("hi", "")); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	if r, _ := p.last(); r.URL.RawQuery != "api-version=preview&a=%20b" || r.URL.Path != PathChat {
		t.Errorf("asked %s", r.URL)
	}
}

// A stream's lines may end in \r alone, however it is cut, and none is held back for what could follow.
func TestLineEndsOfStreams(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		raw := strings.ReplaceAll(": hi\n\nid: 1\ndata: {\"a\":\ndata: 1}\n\n\ndata: é\n\ndata: [DONE]", "\n", end)
		for step := 1; step < 12; step++ {
			e := newEvents(&stepped{[]byte(raw), step}, 1<<20)
			var datas, raws []string
			for {
				ev, err := e.next()
				if err != nil {
					break
				}
				datas, raws = append(datas, string(ev.data)), append(raws, string(ev.raw))
			}
			if got, want := fmt.Sprintf("%q", datas), fmt.Sprintf("%q", []string{"", "{\"a\":\n1}", "é", "[DONE]"}); got != want {
				t.Errorf("%q in steps of %d: %s, want %s", end, step, got, want)
			}
			if got, want := strings.Join(raws, ""), strings.TrimSuffix(raw, end)+"\n\n"; got != want {
				t.Errorf("%q in steps of %d passes as %q", end, step, got)
			}
		}
	}
	s := start(t, newProvider(t, streams("\r", append(pieces(clean), "[DONE]")...)).URL, nil)
	if got := s.do(PathChat, prompt("hi", `,"stream":true`)); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	if in := s.recorded(); in.Response != clean || in.Status != "success" {
		t.Errorf("%s %q", in.Status, in.Response)
	}
}

// A stream is read as one whatever its Content-Type, if its caller asked for a stream; an answer in one piece stays one.
func TestMislabelledStreams(t *testing.T) {
	as := func(media, before string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, before)
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "data: "+strings.Join(append(pieces(biased), "[DONE]"), "\n\ndata: ")+"\n\n")
		}
	}
	for _, media := range []string{"application/json", "text/plain; charset=utf-8", ""} {
		for _, before := range []string{"", ": hello\n\n", "\ufeff\r\n", "event: x\n"} {
			s := start(t, newProvider(t, as(media, before)).URL, blocks)
			got := s.do(PathChat, prompt("hi", `,"stream":true`))
			if in := s.recorded(); in.Response != biased || in.Status != "blocked" || strings.Contains(got.body, "[DONE]") && strings.Contains(got.body, biased) {
				t.Errorf("%q %q: %q %q %s", media, before, in.Status, in.Response, got.body)
			}
		}
	}
	for _, body := range []string{"", "date", "d", "\xef\xbb", "{}", "<html>"} {
		res := &http.Response{Body: io.NopCloser(strings.NewReader(body))}
		if mislabelled(res) {
			t.Errorf("%q is taken for a stream", body)
		}
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != body {
			t.Errorf("%q is %q then: %v", body, b, err)
		}
	}
}

// byHand gives the address of a provider whose connections are served by hand, and closed then.
func byHand(t *testing.T, serve func(c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer func() { _ = c.Close() }()
				serve(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); conns.Wait() })
	return "http://" + l.Addr().String()
}

// A provider that closes its connections without an answer is asked once more, not once for each that is idle.
func TestAskedOnceMore(t *testing.T) {
	const idle = 6
	var dying, asked atomic.Int32
	var warm sync.WaitGroup
	warm.Add(idle)
	base := byHand(t, func(c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if dying.Load() > 0 {
				asked.Add(1)
				return
			}
			warm.Done()
			warm.Wait() // so that each of them has a connection
			body := completion(clean)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	s := start(t, base, nil)
	var calls sync.WaitGroup
	for range idle {
		calls.Go(func() { s.do(PathChat, prompt("hi", "")) })
	}
	calls.Wait()
	dying.Store(1)
	if got := s.do(PathChat, prompt("hi", "")); got.status != http.StatusBadGateway {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times, want twice", n)
	}
	s.close()
}

// Nor is one that worked a while before it closed: it may have done what it was asked, or ask for its price.
func TestOnceMoreAtOnceOnly(t *testing.T) {
	body := func() (io.ReadCloser, error) { return http.NoBody, nil }
	synctest.Test(t, func(t *testing.T) {
		again := onceMore(body)
		if _, err := again(); err != nil {
			t.Error(err)
		}
		if _, err := again(); !errors.Is(err, errClosed) {
			t.Errorf("a third time: %v", err)
		}
		late := onceMore(body)
		time.Sleep(stale + 1)
		if _, err := late(); !errors.Is(err, errClosed) {
			t.Errorf("late: %v", err)
		}
	})
}

// A provider that closes a connection which was idle, just as a call takes it, is asked again on another.
func TestStaleConnection(t *testing.T) {
	base := byHand(t, func(c net.Conn, in *bufio.Reader) {
		for n := 0; ; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, theirs := r.Header["Idempotency-Key"]; theirs {
				t.Error("a header of our own is sent")
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if n == 1 {
				return
			}
			body := completion(clean)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	s := start(t, base, nil)
	for range 4 {
		if got := s.do(PathChat, prompt("hi", "")); got.status != http.StatusOK {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	s.close()
}
