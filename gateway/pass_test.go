package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/tidwall/gjson"
)

// Sounds and pictures pass while they come, as texts do.
func TestSoundsPassAtOnce(t *testing.T) {
	sound := func(n int) string {
		return `{"choices":[{"index":0,"delta":{"audio":{"id":"a","data":"` + strings.Repeat("UklGRg==", n) + `"}},"finish_reason":null}]}`
	}
	picture := `{"choices":[{"index":0,"delta":{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 200) + `"}}]},"finish_reason":null}]}`
	for name, tc := range map[string]struct {
		first []string
		seen  int // of them, before anything else comes
	}{
		"sounds":          {[]string{sound(10), sound(11), sound(12)}, 2},
		"behind a text":   {[]string{chunks("All is well.")[0], sound(10), sound(11)}, 2},
		"one that is big": {[]string{sound(together)}, 1},
		"pictures":        {[]string{picture, picture}, 1},
		"and a comment":   {[]string{sound(10), ":"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			s := start(t, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				tell(w, tc.first)
				select {
				case <-seen:
				case <-r.Context().Done():
				}
				for _, c := range chunks() {
					_, _ = io.WriteString(w, "data: "+c+"\n\n")
				}
			}).URL, nil)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+PathChat, strings.NewReader(prompt("hi", streamed)))
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			lines := bufio.NewReader(res.Body)
			for n := 0; n < tc.seen; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("after %d events: %v", n, err)
				}
				if line == "\n" {
					n++
				}
			}
			close(seen)
			if rest, _ := io.ReadAll(lines); !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
				t.Errorf("ends with %q", rest)
			}
			if e := s.event(); e["status"] != "success" {
				t.Errorf("event %v", e)
			}
		})
	}
}

// waiting gives the event that waits for a report once all but [DONE] of a stream that passes came, one by one; "" for none.
func waiting(t *testing.T, d dialect, events []string) string {
	x := &exchange{kind: d, w: httptest.NewRecorder()}
	f := &flow{x: x, res: &http.Response{StatusCode: 200}, mode: StreamPass, marked: -1}
	for _, e := range events {
		ev := event{raw: []byte("data: " + e + "\n\n"), data: []byte(e)}
		if e == ":" {
			ev = event{raw: []byte(": still there\n\n")}
		}
		if ev.done() {
			break
		}
		if fault := f.take(t.Context(), ev, false, nil); fault != nil {
			t.Fatal(fault)
		}
	}
	if f.marked < 0 {
		return ""
	}
	return string(f.pending[f.marked].data)
}

// A warning stands in the last chunk also where that says the end of the text, or all of it.
func TestLastChunkWithText(t *testing.T) {
	last := func(text, more string) string {
		return `{"id":"c","model":"gpt-x","choices":[{"index":0,"delta":{"content":` + string(quoted(text)) + `},"finish_reason":"length"}` + more + `]}`
	}
	whole := response(biased)
	for name, tc := range map[string]struct {
		path   string
		events []string
		at     int // of the warning
	}{
		"the end of a text":    {PathChat, []string{chunks(biased[:20])[0], last(biased[20:], ""), "[DONE]"}, 1},
		"all of it":            {PathChat, []string{last(biased, ""), "[DONE]"}, 0},
		"all of it, long":      {PathChat, []string{last(biased+strings.Repeat(" All is well.", together/8), ""), "[DONE]"}, 0},
		"without [DONE]":       {PathChat, []string{last(biased, "")}, 0},
		"comments behind it":   {PathChat, []string{last(biased, ""), ":", ":", "[DONE]"}, 0},
		"tokens behind it":     {PathChat, []string{last(biased, ""), `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "[DONE]"}, 1},
		"one answer is longer": {PathChat, []string{last("Yes.", ""), strings.Replace(last(biased, ""), `"index":0`, `"index":1`, 1), "[DONE]"}, 1},
		"both at once":         {PathChat, []string{last(biased, `,{"index":1,"delta":{"content":"No."},"finish_reason":"stop"}`), "[DONE]"}, 0},
		"an event for all":     {PathResponses, []string{`{"type":"response.completed","response":` + whole + `}`}, 0},
	} {
		if e := waiting(t, map[string]dialect{PathChat: chat{}, PathResponses: responses{}}[tc.path], tc.events); e != tc.events[tc.at] {
			t.Errorf("%s: what waits is %.80q", name, e)
		}
		s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			tell(w, tc.events)
		}).URL, nil)
		body := prompt("Who?", `,"stream":true`)
		if tc.path == PathResponses {
			body = `{"model":"gpt-x","input":"Who?","stream":true}`
		}
		got := s.do(tc.path, body)
		var marks []string
		for i, d := range datas(got.body) {
			if gjson.Get(d, "evenhand.action").String() == "warn" || gjson.Get(d, "response.evenhand.action").String() == "warn" {
				marks = append(marks, fmt.Sprint(i))
			}
		}
		if strings.Join(marks, ",") != fmt.Sprint(tc.at) || len(datas(got.body)) != len(tc.events) {
			t.Errorf("%s: %d, warned in %v, want %d: %.600s", name, got.status, marks, tc.at, got.body)
		}
	}
}

// A stream that never says why it ends has sent all of its chunks when it is judged: the warning comes in a chunk of its own, which the official client
// takes for what it is.
func TestWarningWithoutALastChunk(t *testing.T) {
	said, read := chunks(biased), make(chan struct{})
	said = said[:len(said)-2] // what says why it ends, and [DONE]
	s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range said {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
		w.(http.Flusher).Flush()
		<-read // the caller has all of them
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}).URL, nil)
	stream := client(s).Chat.Completions.NewStreaming(t.Context(), ask())
	defer func() { _ = stream.Close() }()
	acc, n := openai.ChatCompletionAccumulator{}, 0
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Errorf("no chunk of this answer: %s", stream.Current().RawJSON())
		}
		if n++; n == len(said) {
			close(read)
		}
	}
	last := gjson.Parse(stream.Current().RawJSON())
	if stream.Err() != nil || n != len(said)+1 || acc.Choices[0].Message.Content != biased || last.Get("evenhand.action").String() != "warn" || last.Get("choices.0.delta").Raw != "{}" {
		t.Errorf("%d chunks, %v: %s, %+v", n, stream.Err(), last.Raw, acc)
	}
}

// The official client reads a warning on an answer that is one chunk.
func TestOfficialClientLastChunk(t *testing.T) {
	only := `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":` + string(quoted(biased)) + `},"finish_reason":"length"}]}`
	s := start(t, newProvider(t, streams("\n", only, "[DONE]")).URL, nil)
	stream := client(s).Chat.Completions.NewStreaming(t.Context(), ask())
	defer func() { _ = stream.Close() }()
	acc, action := openai.ChatCompletionAccumulator{}, ""
	for stream.Next() {
		acc.AddChunk(stream.Current())
		action = gjson.Get(stream.Current().RawJSON(), "evenhand.action").String()
	}
	if stream.Err() != nil || acc.Choices[0].Message.Content != biased || action != "warn" {
		t.Errorf("%q %+v %v", action, acc, stream.Err())
	}
}

// tell begins a stream with these events, one by one; ":" is a comment.
func tell(w http.ResponseWriter, events []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		if e == ":" {
			_, _ = io.WriteString(w, ": still there\n\n")
		} else {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
		w.(http.Flusher).Flush()
	}
}
