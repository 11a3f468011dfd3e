package llmtest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/llm"
)

func TestStrictSchemas(t *testing.T) {
	for _, tc := range []struct{ name, schema, want string }{
		{"good", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"array","items":{"$ref":"#/$defs/c"},"minItems":2}},"required":["a","b"],"additionalProperties":false,
			"$defs":{"c":{"enum":["x"],"type":"string"}}}`, ""},
		{"open", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "schema: additionalProperties is not false"},
		{"optional", `{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`, "schema: a is not required"},
		{"unknown required", `{"type":"object","properties":{},"required":["b"],"additionalProperties":false}`, "schema: requires b, which is no property"},
		{"below", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}},"required":["b"]}},"required":["a"],"additionalProperties":false}`,
			"schema.a: additionalProperties is not false\nschema.a.b: has no type"},
		{"tuple", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"number"}]}},"required":["a"],"additionalProperties":false}`,
			"schema.a: keyword prefixItems is not supported\nschema.a: an array without items"},
		{"oneOf", `{"type":"object","properties":{"a":{"type":"string","oneOf":[]}},"required":["a"],"additionalProperties":false}`, "schema.a: keyword oneOf is not supported"},
		{"array", `{"type":"array","items":{"type":"string"}}`, "schema: the root is no object"},
		{"outside", `{"type":"object","properties":{"a":{"$ref":"https://x/y"}},"required":["a"],"additionalProperties":false}`, "schema.a: $ref leads outside"},
		{"any", `{"type":"object","properties":{"a":{"anyOf":[{"type":"object"}]}},"required":["a"],"additionalProperties":false}`, "schema.a.anyOf[0]: additionalProperties is not false"},
		{"no JSON", `{`, "schema: unexpected end of JSON input"},
	} {
		got := ""
		if err := Strict([]byte(tc.schema)); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func TestRequestsThatNoServerTakes(t *testing.T) {
	const good = `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
		body   string
		want   string
	}{
		{"good", nil, good, ""},
		{"GET", func(r *http.Request) { r.Method = "GET" }, good, `method: "GET", want "POST"`},
		{"path", func(r *http.Request) { r.URL.Path = "/chat/completions" }, good, `path: "/chat/completions", want "/v1/chat/completions"`},
		{"query", func(r *http.Request) { r.URL.RawQuery = "a=b" }, good, `query: "a=b"`},
		{"type", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, good, `Content-Type: "text/plain", want "application/json"`},
		{"key", func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") }, good, "Authorization: is not the key, once"},
		{"two keys", func(r *http.Request) { r.Header.Set("Api-Key", "k") }, good, "Api-Key: is set"},
		{"field", nil, `{"model":"m","messages":[{"role":"user","content":"x"}],"stop":null}`, `body: json: unknown field "stop"`},
		{"number", nil, `{"model":1}`, "body: json: cannot unmarshal number into Go struct field Fields.model of type string"},
		{"two", nil, good + good, "body: more than one JSON value"},
		{"empty", nil, `{}`, "model: is missing\nmessages: are missing"},
		{"roles", nil, `{"model":"m","messages":[{"role":"user","content":""},{"role":"system","content":"x"}]}`, "messages[0].content: is empty\nmessages[1].role: \"system\""},
		{"limits", nil, `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":0,"max_completion_tokens":1,"temperature":3}`,
			"temperature: 3\nmax_tokens: stands beside max_completion_tokens\nmax_tokens: 0"},
		{"JSON mode without its word", nil, `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}`, "messages: must contain the word 'json' to use response_format json_object"},
		{"loose schema", nil, `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}}`,
			"response_format.json_schema.name: \"a b\"\nresponse_format.json_schema.strict: is not true"},
		{"format", nil, `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"yaml"}}`, `response_format: type "yaml" with or without its schema`},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(tc.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer k")
		if tc.change != nil {
			tc.change(r)
		}
		_, err := Config{Key: "k"}.read(r, []byte(tc.body))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func TestARecordingRepeatsAServerWithoutItsKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "verdicts.jsonl")
	server := New(t, Config{Key: "sk-canary"}, Say("<one>"), Say("two"), Fail(http.StatusTooManyRequests, "Retry-After", "3600", "X-Request-Id", "canary"), Page(http.StatusBadGateway))
	ask := func(next http.RoundTripper, url string) (out []string) {
		c := llm.DefaultConfig()
		c.BaseURL, c.APIKey, c.Retries = url, "sk-canary", 0
		m, err := llm.New(c, llm.Options{Transport: next})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"<a> & b", "<a> & b", "c", "d"} {
			a, err := m.Complete(context.Background(), llm.Request{Messages: []llm.Message{{Role: "user", Content: text}}})
			if err != nil {
				out = append(out, err.Error())
			} else {
				out = append(out, a.Text)
			}
		}
		return out
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	url := server.Listen()
	first := ask(Record(file, transport), url)
	again := ask(Replay(t, file), "http://127.0.0.1:1/v1")
	if got, want := strings.Join(again, "|"), strings.Join(first, "|"); got != want || want != "<one>|two|llm: HTTP 429|llm: HTTP 502" {
		t.Errorf("got %s, want %s", got, want)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("canary")) || bytes.Contains(b, []byte("127.0.0.1")) {
		t.Errorf("kept: %s", b)
	}
	if got := ask(Replay(t, file), "http://127.0.0.1:1/v2")[0]; got != "llm: the connection broke before the answer was whole" {
		t.Errorf("what was never asked was answered %s", got)
	}
}
