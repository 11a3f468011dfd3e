package llmtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Reply is one answer.
type Reply func(w http.ResponseWriter, r *http.Request, a Asked)

// Completion is a well-formed answer; zero values are left as a plain server has them.
type Completion struct {
	Text, Refusal string
	Finish        string // "": stop
	Model         string // "": the one that was asked
	Input, Output int    // tokens; 0: a quarter of the bytes
	NoUsage       bool
}

// Say answers with a text.
func Say(text string) Reply { return Complete(Completion{Text: text}) }

// Fenced answers with a text in a Markdown fence, and prose around it.
func Fenced(text string) Reply { return Say("Here it is:\n```json\n" + text + "\n```\nAnything else?") }

// Refuse answers that the model will not.
func Refuse(why string) Reply { return Complete(Completion{Refusal: why}) }

// Cut answers with a text that met the limit of tokens.
func Cut(text string) Reply { return Complete(Completion{Text: text, Finish: "length"}) }

// Complete answers with a completion.
func Complete(c Completion) Reply {
	return func(w http.ResponseWriter, _ *http.Request, a Asked) { send(w, "application/json", c.encode(a)) }
}

// encode makes OpenAI's JSON.
func (c Completion) encode(a Asked) []byte {
	if c.Finish == "" {
		c.Finish = "stop"
	}
	if c.Model == "" {
		c.Model = a.Model
	}
	if c.Input == 0 {
		c.Input = len(a.Body)/4 + 1
	}
	if c.Output == 0 {
		c.Output = len(c.Text+c.Refusal)/4 + 1
	}
	message := map[string]any{"role": "assistant", "content": c.Text, "refusal": nil}
	if c.Refusal != "" {
		message["content"], message["refusal"] = nil, c.Refusal
	}
	out := map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": c.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": c.Finish}},
	}
	if !c.NoUsage {
		out["usage"] = map[string]any{"prompt_tokens": c.Input, "completion_tokens": c.Output, "total_tokens": c.Input + c.Output}
	}
	b, _ := json.Marshal(out) // it holds nothing that cannot be written
	return b
}

// Fail answers with a status and OpenAI's words for it; headers come in pairs.
func Fail(status int, headers ...string) Reply { return FailCode(status, "", headers...) }

// FailCode is Fail with a code.
func FailCode(status int, code string, headers ...string) Reply {
	return func(w http.ResponseWriter, _ *http.Request, a Asked) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		refuse(w, status, code, "", "The text was: "+a.Last()) // as some servers do
	}
}

// Body answers 200 with a body of a type, whatever it is.
func Body(contentType, body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request, _ Asked) { send(w, contentType, []byte(body)) }
}

// Page answers as a proxy does, with a status and HTML that repeats the key and the text.
func Page(status int) Reply {
	return func(w http.ResponseWriter, r *http.Request, a Asked) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<html><h1>Bad Gateway</h1><pre>" + r.Header.Get("Authorization") + a.Last() + "</pre></html>"))
	}
}

// Redirect leads elsewhere.
func Redirect(to string) Reply {
	return func(w http.ResponseWriter, r *http.Request, _ Asked) {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}
}

// Huge answers with so many bytes of JSON.
func Huge(n int) Reply {
	return func(w http.ResponseWriter, _ *http.Request, a Asked) {
		send(w, "application/json", Completion{Text: strings.Repeat("x", n)}.encode(a))
	}
}

// Break answers with the first half of a text's bytes and breaks the connection.
func Break(text string) Reply {
	return func(w http.ResponseWriter, _ *http.Request, a Asked) {
		b := Completion{Text: text}.encode(a)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		_, _ = w.Write(b[:len(b)/2]) // fewer than said: the connection is closed
	}
}

// Hang answers nothing until the caller goes.
func Hang() Reply {
	return func(_ http.ResponseWriter, r *http.Request, _ Asked) { <-r.Context().Done() }
}

func send(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}
