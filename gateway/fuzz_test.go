package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// FuzzRequest: whatever is asked, the answer is JSON, and what passes on means the same to the provider.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{prompt("hi", ""), prompt("hi", streamed), `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`,
		`{"model":"m","input":[{"type":"reasoning"},{"role":"user","content":"x"}],"instructions":"y","messages":[]}`, `{"model":"m","messages":[],"metadata":{"evenhand_domain":"hr","a":[1]}}`, `{"model":"m","messages":[{"tool_calls":[{"a":1,"a":2}]}]}`} {
		f.Add([]byte(s))
	}
	p := newProvider(f, says(clean))
	s := start(f, p.URL, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		s.t = t
		for _, d := range []dialect{chat{}, responses{}} {
			q, bad := readRequest(body, d)
			if bad != nil {
				continue
			}
			if _, _, bad = d.prompt(q); bad != nil {
				continue
			}
			if bad = q.outgoing(&upstream{}, ""); bad == nil && !json.Valid(q.body) {
				t.Fatalf("%q became %q", body, q.body)
			}
		}
		if got := s.do(PathChat, string(body)); !json.Valid([]byte(got.body)) || got.status == http.StatusInternalServerError {
			t.Fatalf("%d %q", got.status, got.body)
		}
	})
}

// FuzzStream: a stream that is allowed passes byte for byte, whatever it holds.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: "+strings.Join(pieces(clean), "\n\ndata: ")+"\n\n"), uint8(3))
	f.Add([]byte(responseEvents(clean)), uint8(1))
	f.Add([]byte(":\r\n\r\ndata:{}\r\ndata:x\r\n\r\n\n\nevent: x\n\ndata"), uint8(7))
	f.Fuzz(func(t *testing.T, raw []byte, step uint8) {
		e := newEvents(&stepped{raw, int(step)%17 + 1}, 1<<20)
		var out []byte
		a := answer{}
		for {
			ev, err := e.next()
			if err != nil {
				break
			}
			out = append(out, ev.raw...)
			for _, d := range []dialect{chat{}, responses{}} {
				if json.Valid(ev.data) {
					d.chunk(&a, gjson.ParseBytes(ev.data))
				}
			}
		}
		_ = a.messages()
		if !bytes.HasPrefix(bytes.TrimRight(out, "\r\n"), bytes.TrimRight(raw, "\r\n")) {
			t.Fatalf("%q became %q", raw, out)
		}
	})
}

// FuzzEvents: a completion that came in one piece says the same as a stream, in JSON and with our report in one event.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{completion(clean), response(clean), `{"choices":[{"index":1,"message":{"content":[{"text":"a\nb"}],"reasoning":"r"},"logprobs":{},"finish_reason":null}]}`, "{\"choices\":[{\"message\":\n{\"content\":\"x\", \"content\":\"y\"}}]}",
		`{"status":"incomplete","output":[{"type":"reasoning","summary":[{"text":"r"}]},{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"},{"type":"odd","text":"c"}]}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || !utf8.Valid(body) { // other bytes than UTF-8 become U+FFFD in an event
			return
		}
		v := gjson.ParseBytes(body)
		for _, d := range []dialect{chat{}, responses{}} {
			var whole, told answer
			if d.whole(&whole, v); whole.opaque || whole.failed != "" || !whole.plain() {
				continue
			}
			with, err := sjson.SetRawBytes(body, "evenhand", []byte(`{"a":1}`))
			if err != nil {
				t.Fatal(err)
			}
			marks := 0
			for e := newEvents(bytes.NewReader(d.events(with, true)), 1<<20); ; {
				ev, err := e.next()
				if err != nil {
					break
				}
				if ev.done() {
					continue
				}
				if !json.Valid(ev.data) {
					t.Fatalf("%q became %q", body, ev.raw)
				}
				data := gjson.ParseBytes(ev.data)
				d.chunk(&told, data)
				if path := d.marked(data); path != "" && data.Get(path).Exists() {
					marks++
				}
			}
			if told.text() != whole.text() || marks != 1 || thought(&told) != thought(&whole) {
				t.Fatalf("%q said %q, and as a stream %q; %d marks", body, whole.text(), told.text(), marks)
			}
		}
	})
}

func thought(a *answer) (s string) {
	for _, m := range a.messages() {
		s += string(m.Reasoning)
	}
	return s
}

// stepped reads few bytes at a time.
type stepped struct {
	b []byte
	n int
}

func (s *stepped) Read(to []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), s.n)], s.b)
	s.b = s.b[n:]
	return n, nil
}
