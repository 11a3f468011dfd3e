package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/guard"
)

// afterComment asks, waits for a comment that keeps the stream open, lets go on what waits for that, and gives the rest of the stream.
func (s *stand) afterComment(path, body string, goOn func()) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var comment [1]byte
	if _, err := io.ReadFull(res.Body, comment[:]); err != nil || comment[0] != ':' {
		s.t.Fatalf("%q %v", comment, err)
	}
	goOn()
	rest, _ := io.ReadAll(res.Body)
	return string(rest)
}

// A stream of /v1/responses that is stopped before anything of it went out begins and ends as clients want it: openai-python raises a
// RuntimeError of its own where response.created is missing.
func TestStoppedResponseBegins(t *testing.T) {
	const ask = `{"model":"gpt-x","input":"hi","stream":true}`
	for _, name := range []string{"blocked", "denied"} {
		text, goOn, who := biased, make(chan struct{}), &person{answer: make(chan guard.GateDecision)}
		change, decide := blocks, func() { close(goOn) }
		if name == "denied" {
			close(goOn)
			text, change, decide = wire, gated(who), func() { who.answer <- guard.GateDecision{Reason: "denied"} }
		}
		s := start(t, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-goOn
			respond(true, text)(w, r)
		}).URL, change)
		stream := s.afterComment(PathResponses, ask, decide)
		var kinds []string
		for n, d := range datas(stream) {
			if d == ":" {
				continue
			}
			if kinds = append(kinds, gjson.Get(d, "type").String()); gjson.Get(d, "sequence_number").Int() != int64(len(kinds)-1) {
				t.Errorf("%s: event %d is %s", name, n, d)
			}
			if r := gjson.Get(d, "response"); len(kinds) == 1 && (r.Get("status").String() != "in_progress" || r.Get("output").Raw != "[]" || r.Get("evenhand").Exists() || r.Get("id").String() != "resp_1") {
				t.Errorf("%s: begins with %s", name, d)
			}
		}
		if got := strings.Join(kinds, " "); got != "response.created response.incomplete error" {
			t.Errorf("%s: %s", name, got)
		}
	}
	// Where it was begun it is not begun again, and its numbers go on.
	s := start(t, newProvider(t, respond(true, "Hello there, good friend. "+biased)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Stream, c.WindowBytes = StreamWindow, 20 })
	before, begun := int64(-1), 0
	for _, d := range datas(s.do(PathResponses, ask).body) {
		if d == ":" { // a comment that keeps the stream open
			continue
		}
		if n := gjson.Get(d, "sequence_number").Int(); n <= before {
			t.Errorf("%d after %d", n, before)
		} else {
			before = n
		}
		begun += strings.Count(d, `"type":"response.created"`)
	}
	if begun != 1 {
		t.Errorf("begun %d times", begun)
	}
}
