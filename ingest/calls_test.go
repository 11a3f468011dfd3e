package ingest

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
		"before another index": {[]string{`{"index":1,"id":"c","function":{"name":"stop","arguments":"{\"n\":3}"}}`, a, b}, both + "\nstop n 3"},
		"told again and again": {[]string{`{"index":0,"id":"a","function":{"name":"lookup","arguments":"{\"q\""}}`, `{"index":0,"id":"a","function":{"name":"lookup","arguments":":1}"}}`}, "lookup q 1"},
		"an id for each piece": {[]string{`{"index":0,"id":"a","function":{"name":"lookup","arguments":""}}`, `{"index":0,"id":"x","function":{"arguments":"{\"q\""}}`, `{"index":0,"id":"y","function":{"arguments":":1}"}}`}, "lookup q 1"},
		"as OpenAI":            {[]string{`{"index":0,"id":"a","type":"function","function":{"name":"lookup","arguments":""}}`, `{"index":1,"id":"b","type":"function","function":{"name":"delete_user","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"q\":1}"}}`, `{"index":1,"function":{"arguments":"{\"id\":7}"}}`}, both},
		"a name in pieces":     {[]string{`{"index":0,"id":"a","function":{"name":"look"}}`, `{"index":0,"function":{"name":"up"}}`, `{"index":0,"function":{"arguments":"{\"q\":1}"}}`}, "lookup q 1"},
		"custom":               {[]string{`{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":"ls"}}`, `{"index":0,"id":"b","type":"custom","custom":{"name":"sql","input":"drop"}}`}, "sh ls\nsql drop"},
	} {
		var chunks []string
		for _, c := range tc.chunks {
			chunks = append(chunks, `{"choices":[{"index":0,"delta":{"tool_calls":[`+c+`]}}]}`)
		}
		if in := accepted(t, `{"response":[`+strings.Join(chunks, ",")+`]}`); in.Response != tc.want {
			t.Errorf("%s: %q, want %q", name, in.Response, tc.want)
		}
	}
	for _, nothing := range []string{`"function_call":null,"tool_calls":null`, `"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"","arguments":""}}]`} {
		if in := accepted(t, `{"response":[{"choices":[{"index":0,"delta":{"content":"Hi",`+nothing+`}}]}]}`); in.Response != "Hi" {
			t.Errorf("%s: %q", nothing, in.Response)
		}
	}
	ollama := `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"lookup","arguments":{"q":1}}}]},"done":false},{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"delete_user","arguments":{"id":7}}}]},"done":true}`
	if in := accepted(t, `{"response":[`+ollama+`]}`); in.Response != both {
		t.Errorf("Ollama: %q", in.Response)
	}
}
