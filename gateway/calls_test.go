package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// calling is a chunk with pieces of calls of tools.
func calling(pieces ...string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(pieces, ",") + `]}}]}`
}

// Calls are told apart by their ids where a provider gives them all one index, as Google's does.
func TestCallsOfOneIndex(t *testing.T) {
	const a, b = `{"index":0,"id":"a","type":"function","function":{"name":"lookup","arguments":"{\"q\":1}"}}`, `{"index":0,"id":"b","type":"function","function":{"name":"delete_user","arguments":"{\"id\":2}"}}`
	const both = `a lookup {"q":1}, b delete_user {"id":2}`
	for name, tc := range map[string]struct {
		chunks []string
		want   string
	}{
		"two chunks":              {[]string{calling(a), calling(b)}, both},
		"one chunk":               {[]string{calling(a, b)}, both},
		"without ids":             {[]string{calling(`{"function":{"name":"lookup","arguments":"{\"q\":1}"}}`), calling(`{"function":{"name":"delete_user","arguments":"{\"id\":2}"}}`)}, ` lookup {"q":1},  delete_user {"id":2}`},
		"the second in pieces":    {[]string{calling(a), calling(`{"index":0,"id":"b","function":{"name":"delete_user","arguments":""}}`), calling(`{"index":0,"function":{"arguments":"{\"id\""}}`), calling(`{"index":0,"function":{"arguments":":2}"}}`)}, both},
		"a name in pieces":        {[]string{calling(`{"index":0,"id":"a","function":{"name":"look"}}`), calling(`{"index":0,"function":{"name":"up"}}`), calling(`{"index":0,"function":{"arguments":"{\"q\":1}"}}`)}, `a lookup {"q":1}`},
		"told again and again":    {[]string{calling(`{"index":0,"id":"a","function":{"name":"lookup","arguments":"{\"q\""}}`), calling(`{"index":0,"id":"a","function":{"name":"lookup","arguments":":1}"}}`)}, `a lookup {"q":1}`},
		"an id for each piece":    {[]string{calling(`{"index":0,"id":"a","function":{"name":"lookup","arguments":""}}`), calling(`{"index":0,"id":"x","function":{"arguments":"{\"q\""}}`), calling(`{"index":0,"id":"y","function":{"arguments":":1}"}}`)}, `a lookup {"q":1}`},
		"beside another index":    {[]string{calling(a), calling(b), calling(`{"index":1,"id":"c","function":{"name":"stop","arguments":"{}"}}`)}, both + `, c stop {}`},
		"and whole at the end":    {[]string{calling(a), calling(b), `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[` + a + "," + b + `]}}]}`}, both},
		"only whole, of no piece": {[]string{`{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[` + a + "," + b + `]}}]}`}, both},
		"of before":               {[]string{`{"choices":[{"delta":{"function_call":{"name":"look","arguments":""}}}]}`, `{"choices":[{"delta":{"function_call":{"name":"up","arguments":"{\"q\":1}"}}}]}`}, ` lookup {"q":1}`},
	} {
		got := &answer{}
		for _, c := range tc.chunks {
			chat{}.chunk(got, gjson.Parse(c))
		}
		var all []string
		for _, c := range gjson.ParseBytes(got.messages()[0].Calls).Array() {
			all = append(all, fmt.Sprint(c.Get("id"), " ", c.Get("function.name"), " ", c.Get("function.arguments")))
		}
		if said := strings.Join(all, ", "); said != tc.want {
			t.Errorf("%s: %q, want %q", name, said, tc.want)
		}
	}
	s := start(t, newProvider(t, streams("\n", calling(a), calling(b), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")).URL, nil)
	s.do(PathChat, prompt("x", streamed))
	if in := s.recorded(); in.Response != "lookup q 1\ndelete_user id 2" {
		t.Errorf("recorded %q", in.Response)
	}
}

// Each of them is masked as a text of its own.
func TestMaskCallsOfOneIndex(t *testing.T) {
	pay := func(id, args string) string {
		return `{"index":0,"id":"` + id + `","function":{"name":"pay_` + id + `","arguments":` + string(quoted(args)) + `}}`
	}
	more := func(args string) string {
		return `{"index":0,"function":{"arguments":` + string(quoted(args)) + `}}`
	}
	apart := []string{calling(pay("a", "The card is 41111111")), calling(pay("b", "11111111"))} // no number of a card
	end := `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	for name, chunks := range map[string][]string{
		"chunks":    {calling(pay("a", `{"n":1,"card": 4111111111111111}`)), calling(pay("b", `{"to":"lena@hafen.example"}`))},
		"one chunk": {calling(pay("a", `{"n":1,"card": 4111111111111111}`), pay("b", `{"to":"lena@hafen.example"}`))},
		"pieces":    {calling(pay("a", `{"n":1,"card": 41111111`)), calling(more(`11111111}`)), calling(pay("b", `{"to":"lena@`)), calling(more(`hafen.example"}`))},
		"numbers":   {calling(pay("a", `{"n":1,"card": 4111111111111111`)), calling(more(`}`), pay("b", `{"to":"lena@hafen.example"}`))},
		"apart":     apart,
	} {
		s := start(t, newProvider(t, streams("\n", append(chunks, end, "[DONE]")...)).URL, masks(MaskResponse, false))
		got := s.do(PathChat, prompt("x", streamed))
		args := map[string]string{}
		last := ""
		for _, d := range datas(got.body) {
			for _, c := range gjson.Get(d, "choices.0.delta.tool_calls").Array() {
				if id := c.Get("id").String(); id != "" {
					last = id
				}
				args[last] += c.Get("function.arguments").String()
			}
		}
		a, b := `{"n":1,"card": "[CREDIT_CARD_1]"}`, `{"to":"[EMAIL_1]"}`
		if name == "apart" {
			a, b = "The card is 41111111", "11111111"
		}
		if args["a"] != a || args["b"] != b {
			t.Errorf("%s: %d %v\n%s", name, got.status, args, got.body)
		}
	}
}
