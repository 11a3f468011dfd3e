package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/judge/replay"
)

// masks sets gateway.mask, and gateway.unmask.
func masks(how string, back bool) func(*Config, *Deps) {
	return func(c *Config, _ *Deps) { c.Mask, c.Unmask = how, back }
}

// What a model reads has placeholders, in any place that texts stand in; everything else goes on byte for byte.
func TestMaskRequest(t *testing.T) {
	for _, tc := range []struct{ name, path, asked, sent string }{
		{"a text", PathChat, `{"model":"m", "n":1.50,"messages":[{"role":"user","content":"Tell \u00fcber nora@kontor.example <b>"}] }`,
			`{"model":"m", "n":1.50,"messages":[{"role":"user","content":"Tell über [EMAIL_1] \u003cb\u003e"}] }`},
		{"every role, one memory", PathChat, `{"model":"m","messages":[{"role":"system","content":"Help nora@kontor.example."},{"role":"developer","name":"nora@kontor.example","content":"x"},{"role":"user","content":"I am nora@kontor.example, he is tim@kontor.example"}]}`,
			`{"model":"m","messages":[{"role":"system","content":"Help [EMAIL_1]."},{"role":"developer","name":"nora@kontor.example","content":"x"},{"role":"user","content":"I am [EMAIL_1], he is [EMAIL_2]"}]}`},
		{"what the other text explains", PathChat, `{"model":"m","messages":[{"role":"assistant","content":"What is your SSN?"},{"role":"user","content":"536228745"}]}`,
			`{"model":"m","messages":[{"role":"assistant","content":"What is your SSN?"},{"role":"user","content":"[US_SSN_1]"}]}`},
		{"parts, pictures", PathChat, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"nora@kontor.example"},{"type":"image_url","image_url":{"url":"https://nora@kontor.example/a.png"}}, "tim@kontor.example"]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"[EMAIL_1]"},{"type":"image_url","image_url":{"url":"https://nora@kontor.example/a.png"}}, "[EMAIL_2]"]}]}`},
		{"tools", PathChat, `{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"nora@kontor.example","type":"function","function":{"name":"mail","arguments":"{\"to\":\"nora@kontor.example\",\"card\": 4111111111111111}"}}]},{"role":"tool","tool_call_id":"nora@kontor.example","content":"{\"id\":\"tim@kontor.example\",\"n\":1.0}"}]}`,
			`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"nora@kontor.example","type":"function","function":{"name":"mail","arguments":"{\"to\":\"[EMAIL_1]\",\"card\": \"[CREDIT_CARD_1]\"}"}}]},{"role":"tool","tool_call_id":"nora@kontor.example","content":"{\"id\":\"[EMAIL_2]\",\"n\":1.0}"}]}`},
		{"an object of a tool's own, where any name may stand for a text", PathChat, `{"model":"m","messages":[{"role":"tool","content":{"id":"nora@kontor.example","data":["tim@kontor.example"]}}]}`,
			`{"model":"m","messages":[{"role":"tool","content":{"id":"[EMAIL_1]","data":["[EMAIL_2]"]}}]}`},
		{"what no model reads, and what is not known", PathChat, `{"model":"m","user":"nora@kontor.example","metadata":{"a":"nora@kontor.example"},"documents":[{"text":"tim@kontor.example"}],"tools":[{"type":"function","function":{"name":"f","description":"as tim@kontor.example says","parameters":{"enum":["nora@kontor.example"]}}}],"messages":[]}`,
			`{"model":"m","user":"nora@kontor.example","metadata":{"a":"nora@kontor.example"},"documents":[{"text":"[EMAIL_1]"}],"tools":[{"type":"function","function":{"name":"f","description":"as [EMAIL_1] says","parameters":{"enum":["nora@kontor.example"]}}}],"messages":[]}`},
		{"a literal placeholder is left to itself", PathChat, `{"model":"m","messages":[{"role":"user","content":"[EMAIL_1] is not nora@kontor.example"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"[EMAIL_1] is not [EMAIL_2]"}]}`},
		{"responses, a text", PathResponses, `{"model":"m","instructions":"Help nora@kontor.example","input":"nora@kontor.example","prompt":{"id":"nora@kontor.example","variables":{"name":"tim@kontor.example"}}}`,
			`{"model":"m","instructions":"Help [EMAIL_1]","input":"[EMAIL_1]","prompt":{"id":"nora@kontor.example","variables":{"name":"[EMAIL_2]"}}}`},
		{"responses, items", PathResponses, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"nora@kontor.example"},{"type":"input_image","image_url":"https://nora@kontor.example/a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"to\":\"nora@kontor.example\"}"},{"type":"function_call_output","call_id":"c","output":"sent to nora@kontor.example"},{"type":"computer_call","action":{"type":"type","text":"nora@kontor.example"}},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"nora@kontor.example","logprobs":[{"token":"nora"}]}]}]}`,
			`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"[EMAIL_1]"},{"type":"input_image","image_url":"https://nora@kontor.example/a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"to\":\"[EMAIL_1]\"}"},{"type":"function_call_output","call_id":"c","output":"sent to [EMAIL_1]"},{"type":"computer_call","action":{"type":"type","text":"[EMAIL_1]"}},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[EMAIL_1]","logprobs":[]}]}]}`},
	} {
		p := newProvider(t, says(clean))
		s := start(t, p.URL, masks(MaskRequest, false))
		got := s.do(tc.path, tc.asked)
		if _, sent := p.last(); got.status != 200 || sent != tc.sent || got.body != completion(clean) {
			t.Errorf("%s: %d, the provider got\n%s, want\n%s", tc.name, got.status, sent, tc.sent)
		}
		s.close()
	}
}

const about = "Write to lena@hafen.example or call. Her card is 4111 1111 1111 1111, and lena@hafen.example again."

const aboutMasked = "Write to [EMAIL_1] or call. Her card is [CREDIT_CARD_1], and [EMAIL_1] again."

// A whole answer has placeholders where the model spoke, its calls of tools and thoughts too; everything else stays byte for byte.
func TestMaskResponse(t *testing.T) {
	for _, tc := range []struct{ name, path, said, got string }{
		{"chat", PathChat, completion(about), completion(aboutMasked)},
		{"responses", PathResponses, response(about), response(aboutMasked)},
		{"calls and thoughts", PathChat, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"It is lena@hafen.example.","tool_calls":[{"id":"lena@hafen.example","type":"function","function":{"name":"pay","arguments":"{\"card\": 4111111111111111}"}}]},"logprobs":{"content":[{"token":"lena"}]},"finish_reason":"tool_calls"}]}`,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"It is [EMAIL_1].","tool_calls":[{"id":"lena@hafen.example","type":"function","function":{"name":"pay","arguments":"{\"card\": \"[CREDIT_CARD_1]\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}]}`},
		{"a refusal", PathChat, `{"choices":[{"message":{"refusal":"Not about lena@hafen.example"}}],"usage":{"x":"lena@hafen.example"}}`, `{"choices":[{"message":{"refusal":"Not about [EMAIL_1]"}}],"usage":{"x":"lena@hafen.example"}}`},
	} {
		s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tc.said)) }).URL, masks(MaskResponse, false))
		body := prompt("Who?", "")
		if tc.path == PathResponses {
			body = `{"model":"m","input":"Who?"}`
		}
		if got := s.do(tc.path, body); got.status != 200 || got.body != tc.got {
			t.Errorf("%s: %d\n%s, want\n%s", tc.name, got.status, got.body, tc.got)
		}
		s.close()
	}
}

// The record holds what was said, and what of it was masked; the caller is told so, and it is counted.
func TestMaskIsOnRecord(t *testing.T) {
	s := start(t, newProvider(t, says(about)).URL, masks(MaskBoth, false))
	got := s.do(PathChat, prompt("Is lena@hafen.example or ute@hafen.example in?", ""))
	if want := "request; EMAIL=2, response; CREDIT_CARD=1; EMAIL=1"; got.header.Get("X-Evenhand-Masked") != want {
		t.Errorf("told %q", got.header.Get("X-Evenhand-Masked"))
	}
	e := s.event()
	note := gjson.Parse(string(encode(e["metadata"]))).Get("gateway.mask").Raw
	if e["response"] != about || !strings.Contains(fmt.Sprint(e["messages"]), "Is lena@hafen.example or ute@hafen.example in?") || note != `{"request":{"EMAIL":2},"response":{"CREDIT_CARD":1,"EMAIL":1}}` {
		t.Errorf("%v", e)
	}
	if want := map[string]int{"request EMAIL": 2, "response EMAIL": 1, "response CREDIT_CARD": 1}; !reflect.DeepEqual(s.figures.masked, want) {
		t.Errorf("counted %v", s.figures.masked)
	}
}

// Our own report quotes nothing of an answer that is masked, in a warning and in a block.
func TestMaskedReport(t *testing.T) {
	const leak = "Women are too emotional. Her SSN is 536228745, said lena@hafen.example."
	for _, change := range []func(*Config, *Deps){nil, blocks} {
		s := start(t, newProvider(t, says(leak)).URL, func(c *Config, d *Deps) {
			if change != nil {
				change(c, d)
			}
			c.Mask, c.Guard.SafetyFilter = MaskResponse, true
		})
		got := s.do(PathChat, prompt("Who?", ""))
		if !strings.Contains(got.body, `"evidence":"Women are too emotional"`) || strings.Contains(got.body, "536228745") || strings.Contains(got.body, "lena") {
			t.Errorf("%d %s", got.status, got.body)
		}
		s.close()
	}
}

// cuts gives a text in pieces of n bytes at least, at characters.
func cuts(text string, n int) (out []string) {
	for len(text) > 0 {
		at := min(n, len(text))
		for at < len(text) && text[at]&0xc0 == 0x80 {
			at++
		}
		out, text = append(out, text[:at]), text[at:]
	}
	return out
}

// chunks are the events of a chat's stream that says a text in pieces.
func chunks(said ...string) (out []string) {
	for _, s := range said {
		out = append(out, `{"id":"c","model":"gpt-x","choices":[{"index":0,"delta":{"content":`+string(quoted(s))+`},"finish_reason":null}]}`)
	}
	return append(out, `{"id":"c","model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`)
}

// saidBy joins what a stream's events say at a path.
func saidBy(stream, path string) (all string) {
	for _, d := range datas(stream) {
		all += gjson.Get(d, path).String()
	}
	return all
}

// The values come back into the answer, wherever the stream cuts the placeholders.
func TestUnmask(t *testing.T) {
	const ask, said, want = "I am lena@hafen.example, he is uwe@hafen.example.", "Dear [EMAIL_1] 👋, [EMAIL_2], [EMAIL_3] and [EMAIL: [EMAIL_1]", "Dear lena@hafen.example 👋, uwe@hafen.example, [EMAIL_3] and [EMAIL: lena@hafen.example"
	s := start(t, newProvider(t, says(said)).URL, masks(MaskRequest, true))
	if got := s.do(PathChat, prompt(ask, "")); got.body != completion(want) || s.event()["response"] != said {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
		for n := 1; n < 12; n++ {
			p := newProvider(t, streams("\n", chunks(cuts(said, n)...)...))
			s := start(t, p.URL, func(c *Config, _ *Deps) { c.Mask, c.Unmask, c.Stream, c.WindowBytes = MaskRequest, true, mode, 10 })
			got := s.do(PathChat, prompt(ask, streamed))
			if text := saidBy(got.body, "choices.0.delta.content"); text != want || strings.Count(got.body, "data:") != len(cuts(said, n))+2 {
				t.Errorf("%s, %d bytes at a time: %q", mode, n, text)
			}
			s.close()
		}
	}
	s = start(t, newProvider(t, respond(true, said)).URL, masks(MaskBoth, true))
	got := s.do(PathResponses, `{"model":"m","input":`+string(quoted(ask))+`,"stream":true}`)
	if saidBy(got.body, "delta") != want || saidBy(got.body, "response.output.0.content.0.text") != want || strings.Contains(got.body, "[EMAIL_1]") {
		t.Error(got.body)
	}
}

// A placeholder that the request brings along stands for something else, wherever it stands.
func TestUnmaskNotOfTheirs(t *testing.T) {
	p := newProvider(t, says("[EMAIL_1] or [EMAIL_2]?"))
	s := start(t, p.URL, masks(MaskRequest, true))
	got := s.do(PathChat, `{"model":"m","messages":[{"role":"user","content":"lena@hafen.example"},{"role":"assistant","content":"As [EMAIL_1] says."}]}`)
	if _, sent := p.last(); got.body != completion("[EMAIL_1] or lena@hafen.example?") || !strings.Contains(sent, `"content":"[EMAIL_2]"`) {
		t.Errorf("%s after %s", got.body, sent)
	}
}

// A value with quotation marks stays one string of JSON in what a tool is asked.
func TestUnmaskInJSON(t *testing.T) {
	x := &exchange{mask: masking{values: map[string]string{"[CREDENTIAL_1]": `a"b\c"`}}}
	const args = `{"password":"[CREDENTIAL_1]"}`
	var v map[string]string
	if err := json.Unmarshal(changed([]byte(args), x.putBack(args, nil)), &v); err != nil || v["password"] != `a"b\c"` {
		t.Errorf("%v %v", v, err)
	}
	if got := string(changed([]byte("say [CREDENTIAL_1]"), x.putBack("say [CREDENTIAL_1]", nil))); got != `say a"b\c"` {
		t.Error(got)
	}
}

// What a provider has kept of other calls may use the same placeholders for other values.
func TestUnmaskNotOfOtherCalls(t *testing.T) {
	s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(response("It is [EMAIL_1]."))) }).URL, masks(MaskRequest, true))
	for more, want := range map[string]string{`,"previous_response_id":null`: "It is lena@hafen.example.", `,"previous_response_id":"resp_1"`: "It is [EMAIL_1].", `,"conversation":"conv_1"`: "It is [EMAIL_1]."} {
		if got := s.do(PathResponses, `{"model":"m","input":"lena@hafen.example"`+more+`}`); gjson.Get(got.body, "output.0.content.0.text").String() != want {
			t.Errorf("%s: %s", more, got.body)
		}
	}
}

// long is a text in which a value stands far from both ends.
var long = strings.Repeat("The ferry goes at noon, and nobody knows why. ", 12) + about + strings.Repeat(" The ferry comes back at night, and all know why.", 12)

// A stream is masked in each mode, however it is cut; what is not changed in it stays, and nothing of a value goes out.
func TestMaskStream(t *testing.T) {
	want := strings.Replace(long, about, aboutMasked, 1)
	for _, mode := range []string{StreamHold, StreamWindow, StreamPass} {
		for _, n := range []int{1, 3, 7, 40, 5000} {
			p := newProvider(t, streams("\r\n", chunks(cuts(long, n)...)...))
			s := start(t, p.URL, func(c *Config, _ *Deps) { c.Mask, c.Stream = MaskResponse, mode })
			got := s.do(PathChat, prompt("Who?", streamed))
			if text := saidBy(got.body, "choices.0.delta.content"); text != want || strings.Count(got.body, "data:") != len(cuts(long, n))+2 || !strings.HasSuffix(got.body, "[DONE]\r\n\r\n") {
				t.Errorf("%s, %d bytes at a time: %q", mode, n, text)
			}
			if e := s.event(); e["response"] != long || gjson.ParseBytes(encode(e["metadata"])).Get("gateway.mask").Raw != `{"response":{"CREDIT_CARD":1,"EMAIL":1}}` {
				t.Errorf("%s: %v", mode, e["metadata"])
			}
		}
		s := start(t, newProvider(t, respond(true, long)).URL, func(c *Config, _ *Deps) { c.Mask, c.Stream = MaskResponse, mode })
		got := s.do(PathResponses, `{"model":"m","input":"Who?","stream":true}`)
		if saidBy(got.body, "delta") != want || saidBy(got.body, "text") != want || saidBy(got.body, "item.content.0.text") != want || saidBy(got.body, "response.output.0.content.0.text") != want || strings.Contains(got.body, "hafen") {
			t.Errorf("%s: %s", mode, got.body)
		}
		s.close()
	}
}

// A stream in which nothing is personal passes byte for byte, and before its end.
func TestMaskStreamOfNothing(t *testing.T) {
	text := strings.Repeat("The ferry goes at noon 👋, and nobody knows why. ", 40)
	said, more := chunks(cuts(text, 9)...), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		streams("\n", said[:len(said)-40]...)(w, r)
		<-more
		streams("\n", said[len(said)-40:]...)(w, r)
	})
	s := start(t, p.URL, masks(MaskBoth, true))
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+PathChat, strings.NewReader(prompt("Who?", streamed)))
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	first := make([]byte, 1<<10)
	if _, err := res.Body.Read(first); err != nil || !bytes.Contains(first, []byte("The ferry")) {
		t.Errorf("%v %s", err, first)
	}
	close(more)
	var all bytes.Buffer
	all.Write(bytes.TrimRight(first, "\x00"))
	if _, err := all.ReadFrom(res.Body); err != nil || all.String() != "data: "+strings.Join(said, "\n\ndata: ")+"\n\n" {
		t.Errorf("%v %s", err, all.String())
	}
}

// Thoughts go on while the answer comes, calls of tools when they are whole, and texts of several choices are texts of their own.
func TestMaskStreamOfManyTexts(t *testing.T) {
	delta := func(i int, d string) string {
		return fmt.Sprintf(`{"choices":[{"index":%d,"delta":%s,"finish_reason":null}]}`, i, d)
	}
	var said []string
	for _, s := range cuts("It must be lena@hafen.example, I think.", 5) {
		said = append(said, delta(0, `{"reasoning_content":`+string(quoted(s))+`}`))
	}
	for _, s := range cuts(strings.Repeat("An answer of some length. ", 10)+"lena@hafen.example", 11) {
		said = append(said, delta(0, `{"content":`+string(quoted(s))+`}`), delta(1, `{"content":`+string(quoted(s))+`}`))
	}
	for _, s := range cuts(`{"card": 4111111111111111, "to": "lena@hafen.example"}`, 4) {
		said = append(said, delta(0, `{"tool_calls":[{"index":1,"function":{"arguments":`+string(quoted(s))+`}}]}`))
	}
	said = append(said, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"},{"index":1,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	s := start(t, newProvider(t, streams("\n", said...)).URL, masks(MaskResponse, false))
	got := s.do(PathChat, prompt("Who?", streamed))
	answer := strings.Repeat("An answer of some length. ", 10) + "[EMAIL_1]"
	for path, want := range map[string]string{`choices.#(index==0).delta.reasoning_content`: "It must be [EMAIL_1], I think.", `choices.#(index==0).delta.content`: answer, `choices.#(index==1).delta.content`: answer,
		`choices.0.delta.tool_calls.0.function.arguments`: `{"card": "[CREDIT_CARD_1]", "to": "[EMAIL_1]"}`} {
		if text := saidBy(got.body, path); text != want {
			t.Errorf("%s: %q", path, text)
		}
	}
}

// Halves of a character that a stream cuts stay halves.
func TestMaskStreamKeepsHalves(t *testing.T) {
	piece := func(s string) string { return `{"choices":[{"index":0,"delta":{"content":"` + s + `"}}]}` }
	s := start(t, newProvider(t, streams("\n", piece(`a \ud83d`), piece(`\udc4b lena@hafen`), piece(`.example \ud83d`), piece(`\udc4b b`), "[DONE]")).URL, masks(MaskResponse, false))
	got := s.do(PathChat, prompt("Who?", streamed))
	if want := []string{piece(`a \ud83d`), piece(`\udc4b [EMAIL_1]`), piece(` \ud83d`), piece(`\udc4b b`), "[DONE]"}; !reflect.DeepEqual(datas(got.body), want) {
		t.Errorf("%q", datas(got.body))
	}
}

// blind cannot look.
type blindMasker struct{}

func (blindMasker) Masks() bool { return true }
func (blindMasker) MaskMore(context.Context, *pii.Memory, []string) ([]pii.Masked, error) {
	return nil, audit.E("test", audit.KindUnavailable, errAgain)
}

// What could not be looked at goes nowhere, or on as it came where gateway.fail is open, and then says so.
func TestNotMasked(t *testing.T) {
	sealed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("sealed"))
	}
	lots := prompt("x", `,"documents":[`+strings.Repeat(`"a",`, maxTexts)+`"a"]`)
	blind := func(_ *Config, d *Deps) { d.Mask = blindMasker{} }
	for _, tc := range []struct {
		name, mask, body, say string
		serve                 http.HandlerFunc
		change                func(*Config, *Deps)
	}{
		{"a request", MaskRequest, prompt("x", ""), "nobody could look at the request", says(clean), blind},
		{"a request of too many texts", MaskRequest, lots, "the request has more than 100000 texts", says(clean), nil},
		{"an answer", MaskResponse, prompt("x", ""), "nobody could look at the response", says(clean), blind},
		{"a stream", MaskResponse, prompt("x", streamed), "nobody could look at the response", streams("\n", chunks("a b")...), blind},
		{"a stream that is held", MaskResponse, prompt("x", streamed), "nobody could look at the response", streams("\n", chunks("a b")...), func(c *Config, d *Deps) { blind(c, d); c.Stream = StreamHold }},
		{"a sealed stream", MaskResponse, prompt("x", streamed), "Content-Encoding", sealed, nil},
		{"an answer that is none", MaskResponse, prompt("x", ""), "cannot be read", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, nil},
		{"an event that is no JSON", MaskResponse, prompt("x", streamed), "an event of the stream holds no JSON", streams("\n", "{", "[DONE]"), nil},
		{"a long call of a tool", MaskResponse, prompt("x", streamed), "gateway.response_bytes", streams("\n", slices.Repeat([]string{strings.Repeat(" ", 1<<10) + `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`}, 2*together>>10)...),
			func(c *Config, _ *Deps) { c.ResponseBytes = 1200 }},
	} {
		for _, fails := range []string{FailClosed, FailOpen} {
			p := newProvider(t, tc.serve)
			s := start(t, p.URL, func(c *Config, d *Deps) {
				c.Mask, c.Fail = tc.mask, fails
				if tc.change != nil {
					tc.change(c, d)
				}
			})
			got := s.do(PathChat, tc.body)
			e := s.event()
			note := gjson.ParseBytes(encode(e["metadata"])).Get("gateway.mask").Raw
			if fails == FailClosed {
				if got.status != 503 || !strings.Contains(got.body, `"code":"evenhand_not_masked"`) || !strings.Contains(got.body, tc.say) || e["status"] != "blocked" || tc.mask == MaskRequest && p.calls() > 0 {
					t.Errorf("%s: %d %.300s %v", tc.name, got.status, got.body, e["status"])
				}
			} else if got.status != 200 || got.header.Get("X-Evenhand-Masked") != sideOf(tc.mask)+"; failed" && !strings.Contains(tc.body, `"stream"`) || note != `{"`+sideOf(tc.mask)+`":"failed"}` {
				t.Errorf("%s, open: %d %.300s %v %s", tc.name, got.status, got.body, got.header, note)
			}
		}
	}
}

func sideOf(mask string) string {
	if mask == MaskRequest {
		return sideNames[0]
	}
	return sideNames[1]
}

// A replay is asked for with masks, and what it answers is masked like any answer, also where a stream was asked for.
func TestMaskReplays(t *testing.T) {
	for _, more := range []string{"", streamed} {
		first := says("bad")
		if more != "" {
			first = streams("\n", pieces("bad")...)
		}
		n := 0
		p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				first(w, r)
				return
			}
			says("Fine, [EMAIL_1]. Ask uwe@hafen.example.")(w, r)
		})
		s := start(t, p.URL, func(c *Config, d *Deps) {
			c.Mask, c.Unmask, c.Stream, c.Replay.Rounds = MaskBoth, true, StreamHold, 1
			d.Validate = func(ctx context.Context, in *audit.Interaction) (*replay.Check, error) {
				c, err := marksOut(ctx, in)
				for i := range c.Notes {
					c.Notes[i].Issue = "not what lena@hafen.example, tim@hafen.example want"
				}
				return c, err
			}
		})
		got := s.do(PathChat, prompt("I am lena@hafen.example.", more))
		_, sent := p.last()
		if !strings.Contains(got.body, `"Fine, lena@hafen.example. Ask [EMAIL_3]."`) || strings.Contains(got.body, "uwe") || strings.Contains(sent, "hafen") || !strings.Contains(sent, "what [EMAIL_1], [EMAIL_2] want") {
			t.Errorf("%s after %s", got.body, sent)
		}
		s.close()
	}
}

// Callers may have more masked than the settings say, where they may say so, and never less.
func TestMaskByCaller(t *testing.T) {
	p := newProvider(t, says(about))
	s := start(t, p.URL, masks(MaskRequest, false))
	for how, want := range map[string]string{MaskOff: about, MaskResponse: aboutMasked, "": about} {
		got := s.do(PathChat, prompt("lena@hafen.example", ""), "X-Evenhand-Mask", how)
		if _, sent := p.last(); got.body != completion(want) || strings.Contains(sent, "lena") {
			t.Errorf("%s: %s after %s", how, got.body, sent)
		}
	}
	if got := s.do(PathChat, prompt("x", ""), "X-Evenhand-Mask", "none"); got.status != 400 || !strings.Contains(got.body, "wants one of off, request, response, both") {
		t.Errorf("%d %s", got.status, got.body)
	}
	s = start(t, p.URL, func(c *Config, _ *Deps) { c.Overrides = nil })
	if got := s.do(PathChat, prompt("x", ""), "X-Evenhand-Mask", MaskBoth); got.status != 400 || !strings.Contains(got.body, "gateway.overrides") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestMaskSettings(t *testing.T) {
	c := DefaultConfig()
	c.Mask = "all"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `gateway.mask: "all" is not one of off, request, response, both`) {
		t.Error(err)
	}
	for _, how := range []string{MaskOff, MaskResponse} {
		c.Mask, c.Unmask = how, true
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "gateway.unmask: puts back what is masked in requests, and gateway.mask masks none: set that to request or both") {
			t.Errorf("%s: %v", how, err)
		}
	}
	c.Overrides = []string{"mask"}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// However a stream is cut and comes, what its caller has read in the end is what masking the whole text at once gives, and of what is personal
// nothing has gone out.
func TestMaskStreamAsTheWhole(t *testing.T) {
	s := start(t, newProvider(t, says(clean)).URL, masks(MaskBoth, true))
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{"lena@hafen.example", "uwe@hafen.example,", "(+49 170 5551234)", "card 4111 1111 1111 1111.", "[EMAIL_1]", "[EMAIL_9]", "IBAN DE89 3704 0044 0532 0130 00", "👋\n", `"[EMAIL_1]"`, "[["}),
			rapid.StringMatching(`[a-zé😀ñ ]{1,12}`), rapid.Just(strings.Repeat("The ferry goes at noon. ", 9))), 0, 40).Draw(t, "words")
		text := strings.Join(words, " ")
		x := &exchange{g: s.g, kind: chat{}, r: httptest.NewRequest(http.MethodPost, "/", nil), opts: options{mask: [2]bool{true, true}}}
		x.mask.values = map[string]string{"[EMAIL_1]": "ida@werft.example"}
		x.mask.memory.Keep("ida@werft.example", "[EMAIL_1]")
		whole, err := s.g.Mask.MaskMore(t.Context(), x.mask.memory.Draft(), []string{text})
		if err != nil {
			t.Fatal(err)
		}
		want := string(changed([]byte(text), x.putBack(text, changesOf(text, whole[0]))))
		v, got := newVeil(x), ""
		take := func(last bool, evs ...event) {
			out, f := v.pass(t.Context(), evs, last)
			if f != nil {
				t.Fatal(f.say)
			}
			got += saidBy(string(out), "choices.0.delta.content")
			if !strings.HasPrefix(want, got) {
				t.Fatalf("%q\nbecame %q, want\n%q", text, got, want)
			}
		}
		var evs []event
		for len(text) > 0 {
			piece := cuts(text, rapid.IntRange(1, 60).Draw(t, "bytes"))[0]
			text = text[len(piece):]
			data := []byte(chunks(piece)[0])
			if evs = append(evs, event{sse("", data), data}); rapid.Bool().Draw(t, "comes") {
				take(false, evs...)
				evs = nil
			}
		}
		if take(true, evs...); got != want || len(v.queue) > 0 {
			t.Fatalf("%q, want\n%q", got, want)
		}
	})
}

// FuzzMaskEdit: whatever JSON is edited, it stays JSON, and all that no model reads is there as it was, numbers to their last digit.
func FuzzMaskEdit(f *testing.F) {
	for _, s := range []string{prompt("lena@hafen.example", `,"n":1.50`), completion(about), response(about), `{"messages":[[{"a":{"b":["x@y.example",1e400]}}],null],"logprobs":[{"a":1}]}`,
		`{"a\"b":"\\","input":[{"content":[{"text":"\u00e9 lena@hafen.example","logprobs":{"x":[1,{"y":"z"}]}}]}]}`, `["a",{"b":[]},{}]`, `"lena@hafen.example"`, ` {"choices" : [ {"delta":{"content":"a"} } ] } `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		walk(body, func(_ []step, s spot) {
			if !json.Valid(body[s.from:s.to]) {
				t.Fatalf("%q has no value at %v", body, s)
			}
		})
		for _, wanted := range []func([]step) bool{readByModel, func(p []step) bool { return chat{}.told(p, false) }, func(p []step) bool { return responses{}.told(p, true) }} {
			found := readSpots(body, wanted)
			for i := range found {
				found[i].changes = []change{{0, len(found[i].text), "[EMAIL_1]"}}
			}
			out := rewritten(body, found)
			var want []byte
			at := 0
			for _, r := range found { // all between the strings
				with := `"[EMAIL_1]"`
				if r.tokens {
					with = map[byte]string{'[': "[]", '{': "null"}[body[r.from]]
				}
				want, at = append(append(want, body[at:r.from]...), with...), r.to
			}
			if want = append(want, body[at:]...); !bytes.Equal(out, want) || !json.Valid(out) {
				t.Fatalf("%q became %q", body, out)
			}
		}
	})
}
