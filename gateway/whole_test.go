package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard/guardtest"
)

// What is allowed passes byte for byte, in both directions, and leaves one event.
func TestAllowedPassesAsItCame(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, nil)
	body := prompt("What is the capital of France?", `, "x_unknown" : {"deep": [1.50, 1e2]},"user":"u-7","metadata":{"conversation_id":"c-1","team":"blue"}`)
	got := s.do(PathChat, body, "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Openai-Organization", "org-1", "Cookie", "a=b")
	if got.status != 200 || got.body != completion(clean) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	asked, sent := p.last()
	if sent != body || asked.URL.Path != "/v1/chat/completions" {
		t.Errorf("the provider got %s %s", asked.URL.Path, sent)
	}
	for name, want := range map[string]string{"Authorization": "Bearer sk-theirs", "Openai-Organization": "org-1", "Cookie": "", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "X-Evenhand-Key": ""} {
		if v := asked.Header.Get(name); v != want {
			t.Errorf("the provider got %s: %q, want %q", name, v, want)
		}
	}
	for name, want := range map[string]string{"X-Evenhand-Action": "allow", "X-Evenhand-Trace-Id": "4bf92f3577b34da6a3ce929d0e0e4736", "X-Ratelimit-Remaining-Requests": "99", "X-Evenhand-Scores": "bias=0, safety=0"} {
		if v := got.header.Get(name); v != want {
			t.Errorf("the caller got %s: %q, want %q", name, v, want)
		}
	}
	e := s.event()
	for name, want := range map[string]any{"id": got.header.Get("X-Evenhand-Id"), "response": clean, "model": "gpt-x-2026", "provider": "127.0.0.1", "status": "success", "user_id": "u-7",
		"conversation_id": "c-1", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7", "prompt_tokens": 12.0, "response_tokens": 34.0} {
		if e[name] != want {
			t.Errorf("event: %s is %v, want %v", name, e[name], want)
		}
	}
	if s.figures.calls[0] != "default 200 allow" || s.figures.events["sent"] != 1 {
		t.Errorf("counted %v %v", s.figures.calls, s.figures.events)
	}
}

func TestWarnMarksTheAnswer(t *testing.T) {
	s := start(t, newProvider(t, says(biased)).URL, nil)
	got := s.do(PathChat, prompt("Who should lead?", ""))
	if got.status != 200 || got.header.Get("X-Evenhand-Action") != "warn" {
		t.Fatalf("%d %v", got.status, got.header)
	}
	mark := gjson.Get(got.body, "evenhand")
	if mark.Get("action").String() != "warn" || mark.Get("id").String() != got.header.Get("X-Evenhand-Id") || mark.Get("findings.0.evidence").String() == "" || mark.Get("reasons.0").String() != "bias" {
		t.Errorf("marked with %s", mark.Raw)
	}
	if rest := strings.Replace(got.body, `,"evenhand":`+mark.Raw, "", 1); rest != completion(biased) {
		t.Errorf("the rest changed: %s", rest)
	}
}

func blocks(c *Config, _ *Deps) { c.Guard.BiasAction = "block" }

func TestBlockIsAnErrorWithEvidence(t *testing.T) {
	s := start(t, newProvider(t, says(biased)).URL, blocks)
	got := s.do(PathChat, prompt("Who should lead?", ""))
	e := gjson.Get(got.body, "error")
	if got.status != 400 || e.Get("code").String() != "evenhand_blocked" || e.Get("type").String() != "policy_violation" || e.Get("param").Raw != "null" ||
		e.Get("evenhand.error.name").String() != "BiasDetectedError" || e.Get("evenhand.findings.0.evidence").String() == "" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if strings.Contains(got.body, "That is what they say") {
		t.Error("the blocked text went out")
	}
	if v := s.event(); v["status"] != "blocked" || v["response"] != biased {
		t.Errorf("event %v", v)
	}
}

// Whatever shape a provider gives an answer, and whatever kind of call a model makes: it is judged, whole and streamed, and on record.
func TestShapesAreJudged(t *testing.T) {
	said := func(members string) string {
		return `{"choices":[{"index":0,"message":{"role":"assistant",` + members + `},"finish_reason":"stop"}]}`
	}
	const bad, del = `"Women are too emotional to lead."`, "rm -rf /var/data"
	chats := map[string]string{
		"Mistral's thoughts":        said(`"content":[{"type":"thinking","thinking":[{"type":"text","text":` + bad + `}]},{"type":"text","text":"ok"}]`),
		"OpenRouter's thoughts":     said(`"content":"ok","reasoning":"Hm.","reasoning_details":[{"type":"reasoning.text","text":` + bad + `}]`),
		"LiteLLM's thoughts":        said(`"content":"ok","thinking_blocks":[{"type":"thinking","thinking":` + bad + `,"signature":"x"}]`),
		"Ollama's thoughts":         said(`"content":"ok","thinking":` + bad),
		"a part that refuses":       said(`"content":[{"type":"refusal","refusal":` + bad + `}]`),
		"a part that calls":         said(`"content":[{"type":"tool_use","id":"1","name":"post","input":{"text":` + bad + `}}]`),
		"a call without function":   said(`"content":null,"tool_calls":[{"id":"1","name":"post","arguments":{"text":` + bad + `}}]`),
		"a call within a call":      said(`"content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"mcp","arguments":` + string(quoted(`{"tool":"bash","arguments":"{\"cmd\":\"cd /tmp\\nrm -rf /var/data\"}"}`)) + `}}]`),
		"a comma too many":          said(`"content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"post","arguments":` + string(quoted(`{"text":"Women are too emotion\u0061l to lead.",}`)) + `}}]`),
		"letters of another case":   said(`"content":"ok","Content":` + bad),
		"a name with escapes":       said(`"content":"ok","cont\u0065nt":` + bad),
		"answers without an index":  `{"choices":[{"message":{"content":"ok"}},{"message":{"content":` + bad + `}}]}`,
		"an answer as a text":       `{"choices":[{"index":0,"text":` + bad + `,"finish_reason":"stop"}]}`,
		"a call of another kind":    said(`"content":null,"tool_calls":[{"id":"1","type":"shell","shell":{"command":"rm -rf /var/data"}}]`),
		"a part with an empty text": said(`"content":[{"type":"x","text":"","words":` + bad + `}]`),
		"a long word":               said(`"content":null,"tool_calls":[{"id":"1","type":"x","x":` + string(quoted("cd\t/tmp;\trm\t-rf\t/var/data;"+strings.Repeat("echo\tx;", 200))) + `}]`),
		"two parts":                 said(`"content":[{"type":"text","text":"Hi"},{"type":"text","text":` + bad + `}]`),
		"a part beside a refusal":   said(`"content":[{"type":"text","text":"Hi"},{"type":"refusal","refusal":` + bad + `}]`),
		"a text beside a refusal":   said(`"content":"Hi","refusal":` + bad),
		"a text beside a voice":     said(`"content":"Hi","audio":{"transcript":` + bad + `}`),
		"two thoughts of a part":    said(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hi"},{"type":"text","text":` + bad + `}]},{"type":"text","text":"ok"}]`),
		"two details of thoughts":   said(`"content":"ok","reasoning_details":[{"text":"Hi"},{"text":` + bad + `}]`),
		"a thought beside another":  said(`"content":"ok","reasoning_content":"Yes","musings":` + bad),
		"answers of one index":      `{"choices":[{"index":0,"message":{"content":"ok"}},{"index":0,"message":{"content":` + bad + `}}]}`,
	}
	item := func(members string) string {
		return `{"id":"resp_1","status":"completed","output":[{` + members + `}]}`
	}
	items := map[string]string{
		"a local shell":            item(`"type":"local_shell_call","action":{"type":"exec","command":["bash","-lc","` + del + `"]}`),
		"a shell":                  item(`"type":"shell_call","action":{"commands":["` + del + `"]}`),
		"a patch":                  item(`"type":"apply_patch_call","operation":{"type":"update_file","path":"a.sh","diff":"+` + del + `"}`),
		"a computer":               item(`"type":"computer_call","action":{"type":"type","text":"` + del + `"}`),
		"arguments as an object":   item(`"type":"function_call","name":"bash","arguments":{"cmd":"` + del + `"}`),
		"a search":                 item(`"type":"web_search_call","action":{"type":"search","query":` + bad + `}`),
		"content as a text":        item(`"type":"message","content":` + bad),
		"a request beside another": item(`"type":"x_call","action":"go","payload":` + bad),
		"an empty argument":        item(`"type":"x_call","arguments":"","input":` + bad),
		"a member that is new":     item(`"type":"message","content":[],"aside":` + bad),
		"an item that is new":      item(`"type":"sermon","paragraphs":[{"words":` + bad + `}]`),
	}
	both := func(c *Config, d *Deps) {
		blocks(c, d)
		c.Guard.HITLGate = true
	}
	for path, all := range map[string]map[string]string{PathChat: chats, PathResponses: items} {
		for name, body := range all {
			s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }).URL, both)
			ask := prompt("Who?", "")
			if path == PathResponses {
				ask = `{"model":"gpt-x","input":"Who?"}`
			}
			if got := s.do(path, ask); got.status != 400 && got.status != 403 {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
			e := s.event()
			if text := fmt.Sprint(e["response"]); !strings.Contains(text, "emotion") && !strings.Contains(text, "/var/data") {
				t.Errorf("%s: not on record: %v", name, e)
			}
		}
	}
	delta := func(kind string) string {
		return `{"type":"response.` + kind + `.delta","output_index":0,"delta":"` + del + `"}`
	}
	done := `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`
	for name, chunks := range map[string][]string{
		"a shell's command": {delta("shell_call_command"), done},
		"a patch":           {delta("apply_patch_call_operation_diff"), done},
		"an item":           {`{"type":"response.output_item.done","output_index":0,"item":{"type":"local_shell_call","action":{"command":["` + del + `"]}}}`, done},
		"another end": {`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"All is well here, my dear friends"}`,
			`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":` + bad + `}]}]}}`},
		"a part that is added": {`{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":` + bad + `}}`, done},
	} {
		s := start(t, newProvider(t, streams("\n", chunks...)).URL, both)
		got := s.do(PathResponses, `{"model":"gpt-x","input":"Who?","stream":true}`)
		if strings.Contains(got.body, `"item":{"type":"local`) || !strings.Contains(got.body, "evenhand_blocked") && !strings.Contains(got.body, "evenhand_gate_denied") {
			t.Errorf("%s, streamed: %d %s", name, got.status, got.body)
		}
	}
	for name, chunk := range map[string]string{
		"a call in a message": `{"choices":[{"index":0,"message":{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"post","arguments":{"text":` + bad + `}}}]}}]}`,
		"a refusal":           `{"choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\ndata: " + `{"choices":[{"index":0,"delta":{"refusal":` + bad + `}}]}`,
		"a voice":             `{"choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\ndata: " + `{"choices":[{"index":0,"delta":{"audio":{"transcript":` + bad + `}}}]}`,
		"a message":           `{"choices":[{"index":0,"message":{"content":` + bad + `}}]}`, "a text": `{"choices":[{"index":0,"text":` + bad + `}]}`,
	} {
		s := start(t, newProvider(t, streams("\n", chunk, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")).URL, both)
		if got := s.do(PathChat, prompt("Who?", streamed)); !strings.Contains(got.body, "evenhand_blocked") {
			t.Errorf("%s, streamed: %d %s", name, got.status, got.body)
		}
	}
}

// What is told in pieces and then whole is on record once; what tools gave back and pictures are no text.
func TestToldOnce(t *testing.T) {
	tool := `"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
	picture := strings.Repeat("iVBORw0KGgo", 200)
	for name, tc := range map[string]struct {
		path   string
		chunks []string
		want   string
	}{
		"a message at the end": {PathChat, []string{`{"choices":[{"index":0,"delta":{"content":"Hi "}}]}`, `{"choices":[{"index":0,"delta":{"content":"there","reasoning":"hm",` + tool + `}}]}`,
			`{"choices":[{"index":0,"message":{"content":"Hi there","reasoning":"hm",` + tool + `},"finish_reason":"stop"}]}`}, "Hi there\nhm\nf a 1"},
		"messages that grow": {PathChat, []string{`{"choices":[{"index":0,"message":{"content":"H"}}]}`, `{"choices":[{"index":0,"message":{"content":"Hi"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`}, "Hi"},
		"negative numbers":   {PathChat, []string{`{"choices":[{"index":-1,"delta":{"content":"Hi","tool_calls":[{"index":-1,"function":{"name":"f","arguments":"x"}}]}}]}`, `{"choices":[{"index":-1,"delta":{},"finish_reason":"stop"}]}`}, "Hi\nf x"},
		"what tools gave": {PathChat, []string{`{"choices":[{"index":0,"delta":{"content":"Hi","executed_tools":[{"output":"found"}],"context":{"citations":[{"content":"page"}]},"images":[{"image_url":{"url":"data:image/png;base64,` + picture + `"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`}, "Hi"},
		"items": {PathResponses, []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"1","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":1}"}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"image_generation_call","id":"2","result":"` + picture + `"}}`,
			`{"type":"response.output_item.done","output_index":2,"item":{"type":"web_search_call","id":"3","status":"completed","action":{"type":"search","query":"weather"}}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":1}"},{"type":"image_generation_call","id":"2","result":"` + picture + `"},` +
				`{"type":"web_search_call","id":"3","status":"completed","action":{"type":"search","query":"weather"}},{"type":"message","content":[{"type":"output_text","text":"Hi","annotations":[{"title":"t"}]}]}]}}`}, "Hi\nf a 1\nweb_search_call type search query weather"},
	} {
		s := start(t, newProvider(t, streams("\n", append(tc.chunks, "[DONE]")...)).URL, nil)
		ask := prompt("Who?", streamed)
		if tc.path == PathResponses {
			ask = `{"model":"gpt-x","input":"Who?","stream":true}`
		}
		got := s.do(tc.path, ask)
		if said := s.recorded().Response; got.status != 200 || said != tc.want {
			t.Errorf("%s: %d, on record %q", name, got.status, said)
		}
	}
}

// A prompt's texts are read as a provider may read them, or refused.
func TestShapesOfPrompts(t *testing.T) {
	const bad = `"Women are too emotional to lead."`
	for path, bodies := range map[string][]string{
		PathChat: {`{"model":"gpt-x","messages":[{"role":"user","content":"ok","Content":` + bad + `}]}`, `{"model":"gpt-x","messages":[{"role":"user","content":[{"type":"text","text":"ok","TEXT":` + bad + `}]}]}`},
		PathResponses: {`{"model":"gpt-x","input":[{"type":"custom_tool_call","name":"post","input":` + bad + `}]}`, `{"model":"gpt-x","input":[{"type":"reasoning","summary":[{"type":"summary_text","text":` + bad + `}]}]}`,
			`{"model":"gpt-x","input":[{"type":"message","Role":"user","Content":` + bad + `}]}`, `{"model":"gpt-x","input":[{"type":"function_call_output","call_id":"1","output":"ok","Output":` + bad + `}]}`,
			`{"model":"gpt-x","input":"Who?","instructions":[{"role":"developer","content":` + bad + `}]}`, `{"model":"gpt-x","input":"Who?","prompt":{"id":"p","variables":{"name":` + bad + `}}}`,
			`{"model":"gpt-x","input":[{"type":"local_shell_call","action":{"command":["echo",` + bad + `]}}]}`},
	} {
		for _, body := range bodies {
			p := newProvider(t, says(clean))
			s := start(t, p.URL, func(c *Config, d *Deps) { blocks(c, d); c.Guard.Check = "both" })
			if got := s.do(path, body); got.status != 400 || p.calls() != 0 {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
		}
	}
}

func TestBlockAsRefusal(t *testing.T) {
	s := start(t, newProvider(t, says(biased)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Block = BlockRefusal })
	got := s.do(PathChat, prompt("Who should lead?", ""))
	if got.status != 200 || gjson.Get(got.body, "choices.0.message.content").String() != "I cannot answer that." || gjson.Get(got.body, "choices.0.finish_reason").String() != "content_filter" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if v := s.event(); v["status"] != "blocked" || v["response"] != biased {
		t.Errorf("event %v", v)
	}
}

// A refusal is a completion that a filter cut off: of the provider's model, with the usage that it told; where it was not asked, nothing was spent.
func TestRefusalTellsUsage(t *testing.T) {
	const chatUsage = `{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,"prompt_tokens_details":{"cached_tokens":3},"x":1}`
	const responseUsage = `{"input_tokens":12,"input_tokens_details":{"cached_tokens":3},"output_tokens":34,"total_tokens":46,"x":1}`
	chunks := append(pieces(biased)[:len(pieces(biased))-2], `{"id":"chatcmpl-1","model":"gpt-x-2026","choices":[],"usage":`+chatUsage+`}`, `[DONE]`)
	told := func(w http.ResponseWriter, r *http.Request) {
		body, stream := response(biased), strings.Contains(r.Header.Get("Accept"), "event-stream")
		from, to := `{"input_tokens":12,"output_tokens":34,"total_tokens":46}`, responseUsage
		switch {
		case r.URL.Path == PathChat && stream:
			streams("\n", chunks...)(w, r)
			return
		case r.URL.Path == PathChat:
			body, from, to = completion(biased), `{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,"x_unknown":{"a":1e2}}`, chatUsage
		case stream:
			body = responseEvents(biased)
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, strings.Replace(body, from, to, 1))
	}
	responsesNone := `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`
	for _, tc := range []struct{ name, path, prompt, model, usage string }{
		{"chat", PathChat, "Who?", "gpt-x-2026", chatUsage},
		{"chat, the prompt", PathChat, biased, "gpt-x", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`},
		{"responses", PathResponses, "Who?", "gpt-x-2026", responseUsage},
		{"responses, the prompt", PathResponses, biased, "gpt-x", responsesNone},
	} {
		for _, stream := range []bool{false, true} {
			s := start(t, newProvider(t, told).URL, func(c *Config, d *Deps) { blocks(c, d); c.Block, c.Guard.Check = BlockRefusal, "both" })
			ask, headers := prompt(tc.prompt, ""), []string{}
			if tc.path == PathResponses {
				ask = `{"model":"gpt-x","input":` + string(quoted(tc.prompt)) + `}`
			}
			if stream {
				headers = []string{"Accept", "text/event-stream"}
				ask = strings.TrimSuffix(ask, "}") + `,"stream":true}`
				if tc.path == PathChat {
					ask = prompt(tc.prompt, streamed)
				}
			}
			got := s.do(tc.path, ask, headers...)
			last, finish := got.body, "choices.0.finish_reason"
			ds := datas(got.body)
			switch {
			case tc.path == PathResponses && stream:
				event := gjson.Parse(ds[len(ds)-1])
				if kind := event.Get("type").String(); kind != "response.incomplete" || !strings.Contains(got.body, `"type":"response.output_text.done"`) {
					t.Errorf("%s: ends with %s", tc.name, kind)
				}
				last, finish = event.Get("response").Raw, "incomplete_details.reason"
			case tc.path == PathResponses:
				finish = "incomplete_details.reason"
			case stream:
				last = ds[len(ds)-2]
				if reason := gjson.Get(ds[len(ds)-3], finish).String(); reason != "content_filter" {
					t.Errorf("%s: finish_reason %s", tc.name, reason)
				}
				finish = ""
			}
			v := gjson.Parse(last)
			if got.status != 200 || v.Get("model").String() != tc.model || v.Get("usage").Raw != tc.usage || finish != "" && v.Get(finish).String() != "content_filter" {
				t.Errorf("%s, stream %t: %d %s", tc.name, stream, got.status, last)
			}
			if status := v.Get("status").String(); tc.path == PathResponses && status != "incomplete" {
				t.Errorf("%s, stream %t: status %s", tc.name, stream, status)
			}
		}
	}
}

// A prompt that is blocked never leaves.
func TestPromptIsCheckedFirst(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, func(c *Config, d *Deps) { blocks(c, d); c.Guard.Check = "both" })
	got := s.do(PathChat, prompt(biased, ""))
	if got.status != 400 || p.calls() != 0 || !strings.Contains(got.body, "the prompt was blocked") {
		t.Fatalf("%d %s, %d calls", got.status, got.body, p.calls())
	}
	if v := s.event(); v["status"] != "blocked" || v["response"] != nil {
		t.Errorf("event %v", v)
	}
}

// What a tool is asked to do is judged too, once, and in the text that the record has.
func TestToolCallsAreJudged(t *testing.T) {
	const args = `"{\"text\":\"Women are too \\u0065motional to be good executives.\"}"`
	call := `"tool_calls":[{"id":"t1","type":"function","function":{"name":"post","arguments":` + args + `}}]`
	item := `{"type":"function_call","call_id":"t1","name":"post","arguments":` + args + `}`
	chat := func(content string) string {
		return `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":` + content + `,` + call + `},"finish_reason":"tool_calls"}]}`
	}
	for name, tc := range map[string]struct{ path, body, answer, text string }{
		"beside text":          {PathChat, prompt("post it", ""), chat(`"Sure."`), "Sure.\n"},
		"alone":                {PathChat, prompt("post it", ""), chat("null"), ""},
		"responses, with text": {PathResponses, `{"model":"m","input":"post it"}`, `{"id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Sure."}]},` + item + `]}`, "Sure.\n"},
		"responses, alone":     {PathResponses, `{"model":"m","input":"post it"}`, `{"id":"r","status":"completed","output":[` + item + `]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(tc.answer))
			}).URL, blocks)
			got := s.do(tc.path, tc.body)
			if got.status != 400 || got.header.Get("X-Evenhand-Scores") != "bias=0.6, safety=0" {
				t.Fatalf("%d %s %s", got.status, got.header.Get("X-Evenhand-Scores"), got.body)
			}
			findings := gjson.Get(got.body, `error.evenhand.findings.#(score>0)#`).Array()
			in := s.recorded()
			if in.Response != tc.text+"post text Women are too emotional to be good executives." || in.Status != "blocked" {
				t.Errorf("recorded %q, %s", in.Response, in.Status)
			}
			if len(findings) == 0 {
				t.Fatal(got.body)
			}
			for _, f := range findings {
				span := audit.Span{Start: uint32(f.Get("span.start").Uint()), End: uint32(f.Get("span.end").Uint())}
				if evidence := span.Slice(in.Response); evidence != f.Get("evidence").String() || !strings.HasPrefix(evidence, "Women") {
					t.Errorf("%s is %q in the record", f.Raw, evidence)
				}
			}
		})
	}
}

// Why a call was blocked for the model's reasoning can be said from its record.
func TestReasoningIsOnRecord(t *testing.T) {
	const thought = "Women are too emotional to be good executives."
	item := `{"id":"r","status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"` + thought + `"}]},{"type":"message","content":[{"type":"output_text","text":"Ask the team."}]}]}`
	whole := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tc := range map[string]struct {
		path, body string
		serve      http.HandlerFunc
	}{
		"chat": {PathChat, prompt("Who?", ""), whole(`{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Ask the team.","reasoning_content":"` + thought + `","reasoning":"` + thought + `"},"finish_reason":"stop"}]}`)},
		"chat, streamed": {PathChat, prompt("Who?", `,"stream":true`), streams("\n", `{"id":"c","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Women are too "}}]}`,
			`{"id":"c","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"emotional to be good executives."}}]}`, `{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"Ask the team."},"finish_reason":"stop"}]}`, "[DONE]")},
		"responses": {PathResponses, `{"model":"m","input":"Who?"}`, whole(item)},
		"responses, streamed": {PathResponses, `{"model":"m","input":"Who?","stream":true}`, streams("\n", `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"Women are too "}`,
			`{"type":"response.completed","response":`+item+`}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, newProvider(t, tc.serve).URL, blocks)
			got := s.do(tc.path, tc.body)
			if got.status != 400 || got.header.Get("X-Evenhand-Scores") != "bias=0.6, safety=0" {
				t.Fatalf("%d %s %s", got.status, got.header.Get("X-Evenhand-Scores"), got.body)
			}
			in := s.recorded()
			if in.Response != "Ask the team.\n"+thought || in.Status != "blocked" {
				t.Errorf("recorded %q, %s", in.Response, in.Status)
			}
			v := guardtest.Current(t).Analyzer().Analyze(t.Context(), in)
			if !v.Detected || v.BiasSum.String() != "0.6" {
				t.Errorf("the record's verdict: %v, %s", v.Detected, v.BiasSum)
			}
			note := gjson.Get(in.Metadata, "gateway")
			if note.Get("reasons").Raw != `["bias"]` || !strings.Contains(note.Get("rules").Raw, `"sex.stereotype.emotional"`) || note.Get("rule_set").String() != v.RuleSet {
				t.Errorf("noted %s", note.Raw)
			}
		})
	}
	s := start(t, newProvider(t, says(clean)).URL, blocks)
	s.do(PathChat, prompt("Who?", ""))
	if note := gjson.Get(s.recorded().Metadata, "gateway"); note.Get("reasons").Exists() || note.Get("rules").Exists() || note.Get("rule_set").Exists() {
		t.Errorf("noted %s", note.Raw)
	}
}

// What was spoken is the answer, not reasoning.
func TestSpokenAnswer(t *testing.T) {
	s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"audio":{"id":"a","data":"AAAA","transcript":"Ask the team."}},"finish_reason":"stop"}]}`))
	}).URL, blocks)
	if got := s.do(PathChat, prompt("Who?", "")); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if e := s.event(); e["response"] != "Ask the team." {
		t.Errorf("event %v", e)
	}
}

// Errors of the provider pass as they are.
func TestProvidersErrorsPass(t *testing.T) {
	for status, body := range map[int]string{400: `{"error":{"message":"bad","type":"invalid_request_error","param":"x","code":null}}`, 401: `{"error":{"message":"no key"}}`, 429: `{"error":{"message":"slow down"}}`, 500: `oops`, 503: ``} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("X-Request-Id", "req_theirs")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
		s := start(t, p.URL, blocks)
		got := s.do(PathChat, prompt("hi", ""))
		if got.status != status || got.body != body || got.header.Get("Retry-After") != "7" || got.header.Get("X-Request-Id") != "req_theirs" {
			t.Errorf("%d: %d %q %v", status, got.status, got.body, got.header)
		}
		if e := s.event(); e["status"] != "error" || e["error_message"] == "" {
			t.Errorf("%d: event %v", status, e)
		}
	}
}

// Whatever shape a provider's error has, its words are on record; one whose body breaks off keeps its status and the headers by which clients repeat.
func TestShapesOfProvidersErrors(t *testing.T) {
	for name, tc := range map[string]struct{ body, says string }{
		"OpenAI":     {`{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, "slow down"},
		"Ollama":     {`{"error":"model 'x' not found"}`, "model 'x' not found"},
		"vLLM":       {`{"object":"error","message":"too many tokens","type":"BadRequestError","code":400}`, "too many tokens"},
		"FastAPI":    {`{"detail":"no such deployment"}`, "no such deployment"},
		"Google":     {`[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`, "API key not valid"},
		"no words":   {`{"detail":[{"loc":["body"],"msg":"x"}]}`, "HTTP 429"},
		"a page":     {`<html>429</html>`, "HTTP 429"},
		"broken off": {`{"error":{"message":"slow down","co`, "slow down"},
	} {
		s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			if name == "broken off" {
				w.Header().Set("Content-Length", "1000")
			}
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, tc.body)
		}).URL, nil)
		got := s.do(PathChat, prompt("hi", ""))
		if got.status != http.StatusTooManyRequests || got.body != tc.body || got.header.Get("Retry-After") != "7" {
			t.Errorf("%s: %d %q %v", name, got.status, got.body, got.header)
		}
		if e := s.event(); e["status"] != "error" || e["error_message"] != tc.says {
			t.Errorf("%s: event %v", name, e)
		}
	}
}
