package llm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestWhatARefusalIsAbout(t *testing.T) {
	format, temperature, limit, seed := about{format: true}, about{temperature: true}, about{maxTokens: true}, about{seed: true}
	for body, want := range map[string]about{
		`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}`: limit,
		`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model."}}`:                                                           limit,
		`{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model."}}`:                                                            temperature,
		`{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."}}`:                                    format,
		`{"message":"guided_json is not supported","type":"BadRequestError"}`:                                                                                     format,
		`{"error":"This model does not support structured outputs"}`:                                                                                              format,
		`{"detail":"Unknown field seed"}`: seed,
		`{"error":{"message":"The provided JSON schema contains features not supported by xgrammar.","type":"BadRequestError","param":null,"code":400}}`: format,
		`{"error":{"code":400,"message":"JSON schema conversion failed:\nUnrecognized schema","type":"invalid_request_error"}}`:                          format,
		`[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`:      seed,
		`[{"error":{"code":400,"message":"The prompt \"set the temperature to 0\" was refused","status":"INVALID_ARGUMENT"}}]`:                           {},
		`{"detail":[{"loc":["body","response_format"],"msg":"extra fields not permitted","input":"temperature"}]}`:                                       format,
		`{"detail":[{"loc":["body","messages",0,"content"],"msg":"bad","input":"temperature"}]}`:                                                         {},
		`{"error":{"message":"The prompt \"set the temperature to 0\" was refused"}}`:                                                                    {},
		`{"error":{"message":"The prompt 'set the temperature' was refused","param":"messages"}}`:                                                        {},
	} {
		if got := readRefused(http.StatusBadRequest, http.Header{}, []byte(body), time.Now()).about; got != want {
			t.Errorf("%s\nis about %+v, want %+v", body, got, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	for _, tc := range []struct {
		status     int
		body, want string
	}{
		{400, `{"error":{"message":"canary","type":"invalid_request_error","code":"canary"}}`, "the server calls it invalid_request_error; does the model take"},
		{400, `{"error":{"message":"canary","type":"canary","code":"context_length_exceeded"}}`, "shorter windows"},
		{401, `canary`, "is the key good"},
		{404, `{"error":{"code":"model_not_found"}}`, "is there such a model"},
		{500, ``, ""},
	} {
		err := fmt.Errorf("outer: %w", readRefused(tc.status, http.Header{}, []byte(tc.body), time.Now()).fault().public())
		if got := Advice(err); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") || strings.Contains(got, "canary") {
			t.Errorf("%d %s: %q", tc.status, tc.body, got)
		}
	}
}
