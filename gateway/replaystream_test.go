package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	oairesponses "github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
)

// firstStreams answers with the stream of the first text, and then with the others in one piece.
func firstStreams(d dialect, texts ...string) http.HandlerFunc {
	var n atomic.Int64
	_, chats := d.(chat)
	return func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		switch {
		case i >= len(texts):
			w.WriteHeader(http.StatusInternalServerError)
		case chats && i == 0:
			streams("\n", pieces(texts[i])...)(w, r)
		case chats:
			says(texts[i])(w, r)
		default:
			respond(i == 0, texts[i])(w, r)
		}
	}
}

// heard is what OpenAI's own client makes of a stream: its text, its tokens, and the event that carries our report.
type heard struct {
	text, report string
	tokens       int64
	err          error
}

func hearChat(t *testing.T, s *stand) (h heard) {
	ask := ask()
	ask.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client(s).Chat.Completions.NewStreaming(t.Context(), ask)
	acc := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		c := stream.Current()
		if !acc.AddChunk(c) {
			t.Errorf("chunk does not fit: %s", c.RawJSON())
		}
		if r := gjson.Get(c.RawJSON(), "evenhand"); r.Exists() {
			h.report = r.Raw
		}
	}
	h.err = stream.Err()
	_ = stream.Close()
	if h.err == nil && len(acc.Choices) == 1 && acc.Choices[0].FinishReason == "stop" && acc.ID == "chatcmpl-1" {
		h.text, h.tokens = acc.Choices[0].Message.Content, acc.Usage.TotalTokens
	}
	return h
}

func hearResponse(t *testing.T, s *stand) (h heard) {
	stream := client(s).Responses.NewStreaming(t.Context(), responsesAsk())
	var said strings.Builder
	var last oairesponses.ResponseStreamEventUnion
	for n := int64(0); stream.Next(); n++ {
		if last = stream.Current(); last.SequenceNumber != n {
			t.Errorf("event %d has number %d", n, last.SequenceNumber)
		}
		if last.Type == "response.output_text.delta" {
			said.WriteString(last.Delta)
		}
	}
	h.err = stream.Err()
	_ = stream.Close()
	if last.Type == "response.completed" && last.Response.OutputText() == said.String() && last.Response.Status == "completed" {
		h.text, h.tokens, h.report = said.String(), last.Response.Usage.TotalTokens, gjson.Get(last.RawJSON(), "response.evenhand").Raw
	}
	return h
}

// A held stream is replayed like an answer in one piece, and its caller gets a stream of whatever is kept.
func TestReplayOfStreams(t *testing.T) {
	for _, tc := range []struct {
		name  string
		texts []string
		want  string // answer, note without its id, statuses of the events
	}{
		{"passes", []string{"fine"}, "fine||success"},
		{"improves on round two", []string{"bad bad", "bad", "fine words"}, "fine words|2 2 passed|blocked blocked success"},
		{"never improves", []string{"bad", "too bad"}, "bad||success blocked"},
		{"gets worse", []string{"bad", "bad bad"}, "bad||success blocked"},
		{"gets worse after it was better", []string{"bad bad", "bad", "bad bad bad"}, "bad|2 1 no_improvement|blocked success blocked"},
		{"the provider fails", []string{"bad"}, "bad||success error"},
	} {
		for _, d := range []dialect{chat{}, responses{}} {
			t.Run(d.method()+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, firstStreams(d, tc.texts...))
				s := start(t, p.URL, func(c *Config, deps *Deps) {
					c.Replay, deps.Validate, c.Stream, c.KeepAlive = Replaying{2, 10 * time.Second}, marksOut, StreamHold, time.Minute
				})
				hear := hearChat
				if _, chats := d.(chat); !chats {
					hear = hearResponse
				}
				h := hear(t, s)
				note := ""
				if h.report != "" {
					note = gjson.Get(h.report, "replay.rounds").Raw + " " + gjson.Get(h.report, "replay.kept").Raw + " " + gjson.Get(h.report, "replay.stop").String()
				}
				var statuses []string
				for i, e := range s.events() {
					statuses = append(statuses, fmt.Sprint(e["status"]))
					if e["response"] == h.text && h.report != "" && gjson.GetBytes(encode(e), "metadata.gateway.replay.id").String() != gjson.Get(h.report, "replay.id").String() {
						t.Errorf("event %d is kept and the caller is told of %s", i, h.report)
					}
				}
				if got := h.text + "|" + note + "|" + strings.Join(statuses, " "); h.err != nil || got != tc.want || h.tokens != 46 {
					t.Errorf("%d tokens, %v: got %s, want %s", h.tokens, h.err, got, tc.want)
				}
				if r, sent := p.last(); p.calls() > 1 && (gjson.Get(sent, "stream").Exists() || gjson.Get(sent, "stream_options").Exists() ||
					!strings.Contains(gjson.Get(sent, d.texts()+".@reverse.0.content").String(), "bad") || r.Header.Get("Accept") != "application/json") {
					t.Errorf("asked again with %s", sent)
				}
			})
		}
	}
}

// A first answer that is kept goes out as it came, byte for byte; that it was validated is in the header.
func TestReplayedStreamAsItCame(t *testing.T) {
	s := start(t, newProvider(t, firstStreams(chat{}, "bad", "bad bad")).URL, func(c *Config, d *Deps) {
		c.Replay.Rounds, d.Validate, c.Stream, c.KeepAlive = 2, marksOut, StreamHold, time.Minute
	})
	got := s.do(PathChat, prompt("x", streamed))
	if want := "data: " + strings.Join(pieces("bad"), "\n\ndata: ") + "\n\n"; got.body != want || !strings.HasPrefix(got.header.Get("X-Evenhand-Replay"), "rounds=1, kept=0, stop=no_improvement, id="+got.header.Get("X-Evenhand-Id")) {
		t.Errorf("%v %q", got.header, got.body)
	}
}

// Comments keep the connection open while the provider is asked again; the report then says what no header can.
func TestReplayKeepsAlive(t *testing.T) {
	for second, want := range map[string]string{"fine": "1 passed", "bad bad": "0 no_improvement"} {
		alive := make(chan struct{})
		serve := firstStreams(chat{}, "bad", second)
		p := newProvider(t, nil)
		p.serve = func(w http.ResponseWriter, r *http.Request) {
			if p.calls() > 1 {
				<-alive // until the caller saw a comment
			}
			serve(w, r)
		}
		s := start(t, p.URL, func(c *Config, d *Deps) {
			c.Replay, d.Validate, c.Stream = Replaying{2, time.Minute}, marksOut, StreamHold
		})
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+PathChat, strings.NewReader(prompt("x", streamed)))
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var comment [1]byte
		if _, err := io.ReadFull(res.Body, comment[:]); err != nil || comment[0] != ':' {
			t.Fatalf("%q %v", comment, err)
		}
		close(alive)
		rest, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		var reports []string
		for _, d := range datas(string(rest)) {
			if v := gjson.Get(d, "evenhand.replay"); v.Exists() {
				reports = append(reports, v.Get("kept").Raw+" "+v.Get("stop").String())
			}
		}
		if strings.Join(reports, ",") != want || res.Header.Get("X-Evenhand-Replay") != "" || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
			t.Errorf("%s: %v in %s", second, reports, rest)
		}
		s.close()
	}
}

// What is kept of a stream is for the guard to decide.
func TestReplayedStreamIsBlocked(t *testing.T) {
	for _, d := range []dialect{chat{}, responses{}} {
		s := start(t, newProvider(t, firstStreams(d, "bad", biased)).URL, func(c *Config, deps *Deps) {
			blocks(c, deps)
			c.Replay.Rounds, deps.Validate, c.KeepAlive = 1, marksOut, time.Minute
		})
		path, body := PathChat, prompt("x", streamed)
		if _, chats := d.(chat); !chats {
			path, body = PathResponses, `{"model":"m","input":"x","stream":true}`
		}
		got := s.do(path, body)
		if got.status != 400 || gjson.Get(got.body, "error.evenhand.replay.kept").Int() != 1 || strings.Contains(got.body, "data:") {
			t.Errorf("%d %s", got.status, got.body)
		}
		for _, e := range s.events() {
			if e["status"] != "blocked" {
				t.Errorf("%v", e)
			}
		}
	}
}
