package gateway

import (
	"fmt"
	"strings"
	"testing"
)

// What the caller's tools gave is judged whatever shape it has; pictures of screens are named.
func TestOutputsOfTools(t *testing.T) {
	const bad = `"Women are too emotional to be good executives."`
	picture := `"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 100_000) + `"`
	long := strings.Repeat("All is well here. ", 100)
	items := map[string]struct{ item, messages string }{
		"a screen": {`"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":` + picture + `}`,
			`[map[content:[map[bytes:1.100067e+06 type:computer_screenshot (left out)]] role:tool tool_call_id:c]]`},
		"a screen that is kept elsewhere": {`"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}`,
			`[map[content:[map[file_id:f type:computer_screenshot]] role:tool tool_call_id:c]]`},
		"a short command": {`"type":"shell_call_output","call_id":"c","output":[{"stdout":` + bad + `,"stderr":"","outcome":{"type":"exit","exit_code":0}}]`,
			`[map[content:[map[text:Women are too emotional to be good executives. type:text]] role:tool tool_call_id:c]]`},
		"a long command": {`"type":"shell_call_output","call_id":"c","output":[{"stdout":"` + long + `","stderr":` + bad + `,"outcome":{"type":"exit","exit_code":1}}]`,
			`[map[content:[map[text:` + long + "\n" + `Women are too emotional to be good executives. type:text]] role:tool tool_call_id:c]]`},
		"an object": {`"type":"x_call_output","call_id":"c","output":{"found":[{"words":` + bad + `}],"image_url":` + picture + `}`,
			`[map[content:[map[text:Women are too emotional to be good executives. type:text]] role:tool tool_call_id:c]]`},
		"a result": {`"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":` + bad + `}]}]`,
			`[map[content:[map[text:Women are too emotional to be good executives. type:tool_result]] role:user]]`},
		"a picture beside words": {`"role":"user","content":[{"type":"input_image","image_url":"https://a.example/women","detail":"low"},{"type":"x","text":"","words":` + bad + `}]`,
			`[map[content:[map[detail:low image_url:https://a.example/women type:input_image] map[text:Women are too emotional to be good executives. type:x]] role:user]]`},
	}
	for name, tc := range items {
		s := start(t, newProvider(t, respond(false, clean)).URL, func(c *Config, d *Deps) { blocks(c, d); c.Guard.Check = "both" })
		want := 200
		if strings.Contains(tc.item, "Women") {
			want = 400
		}
		got := s.do(PathResponses, `{"model":"gpt-x","input":[{`+tc.item+`}]}`)
		if got.status != want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if e := s.event(); fmt.Sprint(e["messages"]) != tc.messages {
			t.Errorf("%s: messages %.300v\nwant %.300s", name, e["messages"], tc.messages)
		}
	}
}
