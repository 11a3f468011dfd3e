package client_test

import (
	"strings"
	"testing"
)

// Calls of tools are told apart where a provider gives them one index, as Google's endpoint does, and ids and names that come again are not doubled.
func TestCallsOfOneIndex(t *testing.T) {
	const a, b = `{"index":0,"id":"a","type":"function","function":{"name":"lookup","arguments":"{\"q\":1}"}}`, `{"index":0,"id":"b","type":"function","function":{"name":"delete_user","arguments":"{\"id\":7}"}}`
	const both = "lookup q 1\ndelete_user id 7"
	for name, tc := range map[string]struct {
		chunks []string
		want   string
	}{
		"two chunks":           {[]string{a, b}, both},
		"one chunk":            {[]string{a + "," + b}, both},
		"one tool twice":       {[]string{a, `{"index":0,"id":"b","function":{"name":"lookup","arguments":"{\"q\":2}"}}`}, "lookup q 1\nlookup q 2"},
		"without ids":          {[]string{`{"function":{"name":"lookup","arguments":"{\"q\":1}"}}`, `{"function":{"name":"delete_user","arguments":"{\"id\":7}"}}`}, both},
		"the second in pieces": {[]string{a, `{"index":0,"id":"b","function":{"name":"delete_user","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"id\""}}`, `{"index":0,"function":{"arguments":":7}"}}`}, both},
		"beside another index": {[]string{a, b, `{"index":1,"id":"c","function":{"name":"stop","arguments":"{}"}}`}, both + "\nstop "},
		"told again and again": {[]string{`{"index":0,"id":"a","function":{"name":"lookup","arguments":"{\"q\""}}`, `{"index":0,"id":"a","function":{"name":"lookup","arguments":":1}"}}`}, "lookup q 1"},
		"an id for each piece": {[]string{`{"index":0,"id":"a","function":{"name":"lookup","arguments":""}}`, `{"index":0,"id":"x","function":{"arguments":"{\"q\""}}`, `{"index":0,"id":"y","function":{"arguments":":1}"}}`}, "lookup q 1"},
		"as OpenAI":            {[]string{`{"index":0,"id":"a","type":"function","function":{"name":"lookup","arguments":""}}`, `{"index":1,"id":"b","type":"function","function":{"name":"delete_user","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"q\":1}"}}`, `{"index":1,"function":{"arguments":"{\"id\":7}"}}`}, both},
		"a name in pieces":     {[]string{`{"index":0,"id":"a","function":{"name":"look"}}`, `{"index":0,"function":{"name":"up"}}`, `{"index":0,"function":{"arguments":"{\"q\":1}"}}`}, "lookup q 1"},
		"the type first":       {[]string{`{"index":0,"id":"a","type":"function"}`, `{"index":0,"function":{"name":"lookup","arguments":"{\"q\":1}"}}`}, "lookup q 1"},
		"custom":               {[]string{`{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":"ls"}}`, `{"index":0,"id":"b","type":"custom","custom":{"name":"sql","input":"drop"}}`}, "sh ls\nsql drop"},
	} {
		var body strings.Builder
		for _, c := range tc.chunks {
			body.WriteString(`data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[` + c + `]}}]}` + "\n\n")
		}
		body.WriteString(`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n")
		app := newApp(t, nil)
		if _, _, err := app.post(t, newProvider(t, streams(body.String())).URL+"/chat/completions", chatAsk); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e := app.event(t); e.Response != tc.want {
			t.Errorf("%s: %q, want %q", name, e.Response, tc.want)
		}
	}
}
