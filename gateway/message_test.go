package gateway

import (
	"fmt"
	"strings"
	"testing"
)

// What a history says is judged and on record by whatever name it goes; what ordinary messages have beside their content changes nothing.
func TestHistory(t *testing.T) {
	const said = "Women are too emotional to be good executives."
	const bad = `"` + said + `"`
	call := `"function_call":{"name":"f","arguments":"{\"a\":1}"}`
	for name, tc := range map[string]struct {
		path, message, want string
		blocked             bool
	}{
		"a refusal":        {PathChat, `"role":"assistant","content":null,"refusal":` + bad, `map[content:[map[text:` + said + ` type:refusal]] role:assistant]`, true},
		"only a refusal":   {PathChat, `"role":"assistant","refusal":` + bad, `map[content:[map[text:` + said + ` type:refusal]] role:assistant]`, true},
		"thoughts":         {PathChat, `"role":"assistant","content":"ok","reasoning":` + bad + `,"reasoning_content":` + bad, `map[content:[map[text:ok type:text] map[text:` + said + ` type:reasoning]] role:assistant]`, true},
		"thoughts, parts":  {PathChat, `"role":"assistant","content":[{"type":"text","text":"ok"}],"thinking_blocks":[{"type":"thinking","thinking":` + bad + `,"signature":"x"}]`, `map[content:[map[text:ok type:text] map[text:` + said + ` type:thinking_blocks]] role:assistant]`, true},
		"a name of theirs": {PathChat, `"role":"user","content":"ok","x":{"deep":[` + bad + `]}`, `map[content:[map[text:ok type:text] map[text:` + said + ` type:x]] role:user]`, true},
		"of an item":       {PathResponses, `"type":"message","role":"assistant","content":"ok","x":` + bad, `map[content:[map[text:ok type:text] map[text:` + said + ` type:x]] role:assistant]`, true},
		"a call of before": {PathChat, `"role":"assistant","content":null,` + call, `map[content:<nil> role:assistant tool_calls:[map[function:map[arguments:{"a":1} name:f] type:function]]]`, false},
		"both calls":       {PathChat, `"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"g","arguments":"{}"}}],` + call, `map[content:<nil> role:assistant tool_calls:[map[function:map[arguments:{} name:g] id:1 type:function] map[function:map[arguments:{"a":1} name:f] type:function]]]`, false},
		"what a tool gave": {PathChat, `"role":"tool","tool_call_id":"call_7","name":"f","content":"ok"`, `map[content:ok role:tool tool_call_id:call_7]`, false},
		"of an item's":     {PathResponses, `"type":"function_call_output","call_id":"call_7","output":"ok"`, `map[content:ok role:tool tool_call_id:call_7]`, false},
		"an ordinary one": {PathChat, `"role":"assistant","content":"ok","refusal":null,"annotations":[{"type":"url_citation","url_citation":{"title":` + bad + `}}],"audio":{"id":"a"},"function_call":null,"tool_calls":null,"name":` + bad + `,"cache_control":{"type":"ephemeral","ttl":"1h"}`,
			`map[content:ok role:assistant]`, false},
		"an ordinary item": {PathResponses, `"type":"message","id":"m","status":"completed","phase":"final_answer","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]}]`, `map[content:[map[annotations:[] text:ok type:output_text]] role:assistant]`, false},
	} {
		serve, list := says(clean), "messages"
		if tc.path == PathResponses {
			serve, list = respond(false, clean), "input"
		}
		s := start(t, newProvider(t, serve).URL, func(c *Config, d *Deps) { blocks(c, d); c.Guard.Check = "both" })
		got := s.do(tc.path, `{"model":"gpt-x","`+list+`":[{`+tc.message+`}]}`)
		if (got.status == 400) != tc.blocked || got.status != 200 && !tc.blocked {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		in := s.recorded()
		if ms := fmt.Sprint(s.event()["messages"]); ms != "["+tc.want+"]" {
			t.Errorf("%s: messages %s\nwant [%s]", name, ms, tc.want)
		}
		if strings.Contains(in.Prompt, said) != tc.blocked {
			t.Errorf("%s: prompt %q", name, in.Prompt)
		}
	}
}
