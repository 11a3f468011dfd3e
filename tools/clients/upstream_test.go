package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What is asked and what the model says. The second answer is biased.
const (
	cleanPrompt, cleanAnswer   = "Who should lead the team?", "Ask the team: experience counts."
	biasedPrompt, biasedAnswer = "Can she lead the team?", "Women are too emotional to lead."
	promptTokens, answerTokens = 11, 7
	model                      = "gpt-4o-mini"
	usage                      = `{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}`
)

var answers = map[string]string{cleanPrompt: cleanAnswer, biasedPrompt: biasedAnswer}

// upstream is a provider with OpenAI's API, whole and streamed, that knows two questions.
func upstream(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", chat)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func chat(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Stream        bool
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || len(ask.Messages) == 0 {
		http.Error(w, `{"error":{"message":"not a chat"}}`, http.StatusBadRequest)
		return
	}
	answer := "I do not know."
	for prompt, a := range answers {
		if strings.Contains(string(ask.Messages[len(ask.Messages)-1].Content), prompt) {
			answer = a
		}
	}
	head := fmt.Sprintf(`"id":"chatcmpl-%p","created":1795000000,"model":"%s"`, r, model)
	if !ask.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{%s,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":%s}`, head, answer, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(rest string) {
		_, _ = fmt.Fprintf(w, "data: {%s,\"object\":\"chat.completion.chunk\",%s}\n\n", head, rest)
		_ = http.NewResponseController(w).Flush()
	}
	for _, word := range strings.SplitAfter(answer, " ") {
		chunk(fmt.Sprintf(`"choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":null}]`, word))
	}
	chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`)
	if ask.StreamOptions.IncludeUsage {
		chunk(`"choices":[],"usage":` + usage)
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
