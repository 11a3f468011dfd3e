package gateway

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"
)

// An error that comes with the status 200 passes as it came and is on record with the provider's words; what stands beside it is judged.
func TestErrorsOfStatus200(t *testing.T) {
	const (
		none = `{"error":{"message":"No endpoints found","code":404},"user_id":"u"}`
		bad  = `"Women are too emotional to lead."`
		ask  = `{"model":"gpt-x","input":"hi"}`
	)
	masks := func(c *Config, d *Deps) { blocks(c, d); c.Mask = MaskBoth }
	for name, tc := range map[string]struct {
		path, body string
		change     func(*Config, *Deps)
		status     int
		says       string // on record, or the code of our error
	}{
		"nothing is stopped":               {PathChat, none, nil, 200, "No endpoints found"},
		"something may be":                 {PathChat, none, blocks, 200, "No endpoints found"},
		"masked":                           {PathChat, none, masks, 200, "No endpoints found"},
		"as a text":                        {PathChat, `{"error":"no such model"}`, masks, 200, "no such model"},
		"of a response":                    {PathResponses, none, masks, 200, "No endpoints found"},
		"without words":                    {PathChat, `{"error":{"code":500}}`, blocks, 200, "the provider ended its answer with an error"},
		"no error":                         {PathChat, `{"error":null}`, blocks, 503, "evenhand_unchecked"},
		"a text beside it":                 {PathChat, `{"error":{"message":"x"},"said":` + bad + `}`, blocks, 503, "evenhand_unchecked"},
		"choices that are none":            {PathChat, `{"error":{"message":"x"},"choices":{"0":{"message":{"content":` + bad + `}}}}`, blocks, 503, "evenhand_unchecked"},
		"a text beside it, of a response":  {PathResponses, `{"error":{"message":"x"},"output":` + bad + `}`, blocks, 503, "evenhand_unchecked"},
		"beside choices":                   {PathChat, `{"error":{"message":"x"},"choices":[{"message":{"content":` + bad + `}}]}`, blocks, 400, "evenhand_blocked"},
		"of a choice":                      {PathChat, `{"choices":[{"error":{"message":"cut off","code":502},"message":{"content":"All is"},"finish_reason":"error"}]}`, blocks, 200, "cut off"},
		"of a choice that says nothing":    {PathChat, `{"choices":[{"error":{"message":"cut off"},"finish_reason":"error"}]}`, masks, 200, "cut off"},
		"of a choice, in a reason":         {PathChat, `{"choices":[{"message":{"content":"All is"},"finish_reason":"error"}]}`, blocks, 200, "the provider ended its answer with an error"},
		"of a choice that says what it is": {PathChat, `{"choices":[{"error":{"message":"x"},"said":` + bad + `}]}`, blocks, 503, "evenhand_unchecked"},
		"of a choice that is judged":       {PathChat, `{"choices":[{"error":{"message":"x"},"message":{"content":` + bad + `}}]}`, blocks, 400, "evenhand_blocked"},
	} {
		s := start(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.body) }).URL, tc.change)
		body := prompt("hi", "")
		if tc.path == PathResponses {
			body = ask
		}
		got := s.do(tc.path, body)
		e := s.event()
		said, status := gjson.Get(got.body, "error.code").String(), "blocked"
		if tc.status == 200 {
			if said, status = fmt.Sprint(e["error_message"]), "error"; got.body != tc.body {
				t.Errorf("%s: %s", name, got.body)
			}
		}
		if got.status != tc.status || said != tc.says || e["status"] != status {
			t.Errorf("%s: %d %s, event %v", name, got.status, got.body, e)
		}
	}
	for name, tc := range map[string]struct{ chunk, says, status string }{
		"an error":                 {`{"error":{"message":"gone"}}`, "gone", "error"},
		"an error of a choice":     {`{"choices":[{"index":0,"delta":{"content":""},"error":{"message":"gone"},"finish_reason":"error"}]}`, "gone", "error"},
		"an error beside a choice": {`{"error":{"message":"gone"},"choices":[{"index":0,"delta":{"content":"."},"finish_reason":"error"}]}`, "gone", "error"},
		"a choice is judged":       {`{"error":{"message":"gone"},"choices":[{"index":0,"delta":{"content":` + bad + `},"finish_reason":"error"}]}`, "evenhand_blocked", "blocked"},
		"a text beside it":         {`{"error":{"message":"gone"},"said":` + bad + `}`, "evenhand_unchecked", "blocked"},
	} {
		s := start(t, newProvider(t, streams("\n", append(pieces(clean)[:4:4], tc.chunk, "[DONE]")...)).URL, blocks)
		got := s.do(PathChat, prompt("hi", streamed))
		e := s.event()
		said := fmt.Sprint(e["error_message"])
		if tc.status == "blocked" {
			said = gjson.Get(got.body, "error.code").String()
		}
		if said != tc.says || e["status"] != tc.status {
			t.Errorf("%s: %s, event %v", name, got.body, e)
		}
	}
}
