package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oairesponses "github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
)

func client(s *stand) *openai.Client {
	c := openai.NewClient(option.WithBaseURL(s.http.URL+"/v1"), option.WithAPIKey("sk-theirs"), option.WithMaxRetries(0))
	return &c
}

func ask() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "gpt-x", Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("hi")}}
}

// OpenAI's own client sees what it would see without us.
func TestOfficialClient(t *testing.T) {
	s := start(t, newProvider(t, says(clean)).URL, nil)
	c, err := client(s).Chat.Completions.New(t.Context(), ask())
	if err != nil || c.Choices[0].Message.Content != clean || c.Usage.TotalTokens != 46 {
		t.Fatalf("%v %v", c, err)
	}
	e := s.event()
	if ms := fmt.Sprint(e["messages"]); ms != "[map[content:Be brief. role:system] map[content:hi role:user]]" {
		t.Errorf("messages %s", ms)
	}

	s = start(t, newProvider(t, streams("\n", pieces(clean)...)).URL, nil)
	stream := client(s).Chat.Completions.NewStreaming(t.Context(), ask())
	acc := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if stream.Err() != nil || acc.Choices[0].Message.Content != clean || acc.Usage.TotalTokens != 46 {
		t.Fatalf("%v %v", acc, stream.Err())
	}
	_ = stream.Close()
}

// And blocks as its own kind of error, with our report in it.
func TestOfficialClientBlocked(t *testing.T) {
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		mode  string
		send  func(c *openai.Client) error
	}{
		"whole": {says(biased), StreamHold, func(c *openai.Client) error {
			_, err := c.Chat.Completions.New(t.Context(), ask())
			return err
		}},
		"held stream": {streams("\n", pieces(biased)...), StreamHold, func(c *openai.Client) error {
			s := c.Chat.Completions.NewStreaming(t.Context(), ask())
			for s.Next() {
			}
			return errors.Join(s.Err(), s.Close())
		}},
		"windows": {streams("\n", pieces("Hello there, good friend. "+biased)...), StreamWindow, func(c *openai.Client) error {
			s := c.Chat.Completions.NewStreaming(t.Context(), ask())
			for s.Next() {
			}
			return errors.Join(s.Err(), s.Close())
		}},
	} {
		s := start(t, newProvider(t, tc.serve).URL, func(c *Config, d *Deps) { blocks(c, d); c.Stream, c.WindowBytes = tc.mode, 20 })
		err := tc.send(client(s))
		var typed *openai.Error
		switch {
		case errors.As(err, &typed):
			if typed.StatusCode != 400 || typed.Code != codeBlocked || gjson.Get(typed.RawJSON(), "evenhand.error.name").String() != "BiasDetectedError" {
				t.Errorf("%s: %d %s %s", name, typed.StatusCode, typed.Code, typed.RawJSON())
			}
		case err == nil || !strings.Contains(err.Error(), codeBlocked):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// response is a whole answer of /v1/responses.
func response(text string) string {
	return `{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","model":"gpt-x-2026","output":[` +
		`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":` + string(quoted(text)) + `,"annotations":[]}]}],` +
		`"usage":{"input_tokens":12,"output_tokens":34,"total_tokens":46},"x_unknown":1.0}`
}

// responseEvents tells the same in pieces.
func responseEvents(text string) string {
	var b strings.Builder
	n := 0
	event := func(kind, fields string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, n, fields)
		n++
	}
	begun := `{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-x-2026","output":[]}`
	event("response.created", `"response":`+begun)
	event("response.in_progress", `"response":`+begun)
	event("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}`)
	event("response.content_part.added", `"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	for _, word := range strings.SplitAfter(text, " ") {
		event("response.output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":`+string(quoted(word)))
	}
	event("response.output_text.done", `"item_id":"msg_1","output_index":0,"content_index":0,"text":`+string(quoted(text)))
	event("response.output_item.done", `"output_index":0,"item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":`+string(quoted(text))+`,"annotations":[]}]}`)
	event("response.completed", `"response":`+response(text))
	return b.String()
}

func respond(stream bool, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, responseEvents(text))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, response(text))
	}
}

func responsesAsk() oairesponses.ResponseNewParams {
	return oairesponses.ResponseNewParams{Model: "gpt-x", Instructions: openai.String("Be brief."), Input: oairesponses.ResponseNewParamsInputUnion{OfString: openai.String("hi")}}
}

func TestResponses(t *testing.T) {
	s := start(t, newProvider(t, respond(false, clean)).URL, nil)
	r, err := client(s).Responses.New(t.Context(), responsesAsk())
	if err != nil || r.OutputText() != clean || r.RawJSON() != response(clean) {
		t.Fatalf("%v %v", r, err)
	}
	if e := s.event(); e["response"] != clean || fmt.Sprint(e["messages"]) != "[map[content:Be brief. role:system] map[content:hi role:user]]" || e["prompt_tokens"] != 12.0 || e["response_tokens"] != 34.0 {
		t.Errorf("event %v", e)
	}

	s = start(t, newProvider(t, respond(false, biased)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Block = BlockRefusal })
	if r, err = client(s).Responses.New(t.Context(), responsesAsk()); err != nil || r.OutputText() != "I cannot answer that." || r.Status != "incomplete" || r.IncompleteDetails.Reason != "content_filter" || r.Usage.TotalTokens != 46 {
		t.Fatalf("%v %v", r, err)
	}
}

func TestResponsesStream(t *testing.T) {
	for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
		s := start(t, newProvider(t, respond(true, clean)).URL, func(c *Config, _ *Deps) { c.Stream, c.WindowBytes = mode, 20 })
		if got := s.do(PathResponses, `{"model":"gpt-x","input":"hi","stream":true}`); stripComments(got.body) != responseEvents(clean) {
			t.Errorf("%s: %q", mode, got.body)
		}
		if e := s.event(); e["response"] != clean || e["status"] != "success" || e["response_tokens"] != 34.0 {
			t.Errorf("%s: event %v", mode, e)
		}
	}
	// A warning lies in the response that the stream ends with.
	s := start(t, newProvider(t, respond(true, biased)).URL, nil)
	stream := client(s).Responses.NewStreaming(t.Context(), responsesAsk())
	var last oairesponses.ResponseStreamEventUnion
	for stream.Next() {
		last = stream.Current()
	}
	if stream.Err() != nil || last.Type != "response.completed" || gjson.Get(last.RawJSON(), "response.evenhand.action").String() != "warn" {
		t.Errorf("%v %s", stream.Err(), last.RawJSON())
	}
	_ = stream.Close()
	// A block ends it as incomplete, with an error.
	s = start(t, newProvider(t, respond(true, "Hello there, good friend. "+biased)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Stream, c.WindowBytes = StreamWindow, 20 })
	ds := datas(s.do(PathResponses, `{"model":"gpt-x","input":"hi","stream":true}`).body)
	if n := len(ds); n < 3 || gjson.Get(ds[n-2], "response.incomplete_details.reason").String() != "content_filter" || gjson.Get(ds[n-1], "error.code").String() != codeBlocked || gjson.Get(ds[n-1], "type").String() != "error" {
		t.Errorf("ends with %v", ds)
	}
	// A refusal is a stream of its own.
	s = start(t, newProvider(t, respond(true, biased)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Block = BlockRefusal })
	stream = client(s).Responses.NewStreaming(t.Context(), responsesAsk())
	for stream.Next() {
		last = stream.Current()
	}
	if stream.Err() != nil || last.Type != "response.incomplete" || last.Response.OutputText() != "I cannot answer that." || last.Response.Usage.TotalTokens != 46 {
		t.Errorf("%v %s", stream.Err(), last.RawJSON())
	}
	_ = stream.Close()
}

// Items of input are messages of the event; background work would be fetched past us.
func TestResponsesInput(t *testing.T) {
	p := newProvider(t, respond(false, clean))
	s := start(t, p.URL, nil)
	if got := s.do(PathResponses, `{"model":"gpt-x","input":"hi","background":true}`); got.status != 400 || p.calls() != 0 {
		t.Errorf("background: %d %s", got.status, got.body)
	}
	s.do(PathResponses, `{"model":"gpt-x","input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:`+strings.Repeat("x", 2000)+`"}]},{"type":"function_call","name":"find","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"found"},{"type":"reasoning","id":"r"}]}`)
	want := `[map[content:[map[text:hi type:input_text] map[bytes:2042 type:input_image (left out)]] role:user] map[content:<nil> role:assistant tool_calls:[map[function:map[arguments:{} name:find] id:c type:function]]] map[content:found role:tool tool_call_id:c] map[content:<nil> role:reasoning]]`
	if got := fmt.Sprint(s.event()["messages"]); got != want {
		t.Errorf("messages %s\nwant %s", got, want)
	}
}

// What asking again does not mend is asked for once: the provider is not paid for each attempt. What may pass is asked for again.
func TestOfficialClientAsksOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		serve  http.HandlerFunc
		change func(*Config, *Deps)
		calls  int
	}{
		"a redirect":       {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, nil, 1},
		"too long":         {says(strings.Repeat("x ", 5000)), func(c *Config, d *Deps) { blocks(c, d); c.ResponseBytes = 4 << 10 }, 1},
		"too long to mask": {says(strings.Repeat("x ", 5000)), func(c *Config, _ *Deps) { c.Mask, c.ResponseBytes = MaskResponse, 4<<10 }, 1},
		"broken off":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, completion(clean)[:90]) }, blocks, 2},
	} {
		p := newProvider(t, tc.serve)
		s := start(t, p.URL, tc.change)
		c := openai.NewClient(option.WithBaseURL(s.http.URL+"/v1"), option.WithAPIKey("sk-theirs"), option.WithMaxRetries(1))
		_, err := c.Chat.Completions.New(t.Context(), ask())
		if s.close(); err == nil || p.calls() != tc.calls {
			t.Errorf("%s: asked %d times, want %d: %v", name, p.calls(), tc.calls, err)
		}
	}
}

// Each attempt of a client is a call of its own: the record says which it was and what it was answered.
func TestAttemptsOfAClient(t *testing.T) {
	n := 0
	s := start(t, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		says(clean)(w, r)
	}).URL, nil)
	c := openai.NewClient(option.WithBaseURL(s.http.URL+"/v1"), option.WithAPIKey("sk-theirs"), option.WithMaxRetries(1))
	if _, err := c.Chat.Completions.New(t.Context(), ask()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range s.events() {
		got = append(got, fmt.Sprintln(e["status"], recorded(e)["http_status"], recorded(e)["retry"]))
	}
	if slices.Sort(got); !slices.Equal(got, []string{"error 429 <nil>\n", "success <nil> 1\n"}) {
		t.Errorf("%q", got)
	}
}

// A list of models that breaks off is an error, not a list that looks whole.
func TestModelsBreakOff(t *testing.T) {
	s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"object":"list","data":[`)
	}).URL, nil)
	_, err := client(s).Models.List(t.Context())
	var typed *openai.Error
	if !errors.As(err, &typed) || typed.StatusCode != http.StatusBadGateway || typed.Code != "evenhand_upstream_broken" {
		t.Errorf("%v", err)
	}
}
