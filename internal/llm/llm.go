// Package llm asks language models over the OpenAI chat API: OpenAI, Azure, vLLM, Ollama, LiteLLM and their like.
//
// A question is one request, made again on failures that pass (429, 5xx, broken connections, timeouts), after what
// Retry-After says or a growing, jittered wait; never longer than Config.RetryWait and the caller's deadline. Failures in a
// row have a model asked a harmless sentence; where that fails, too, its circuit opens. Of each tenant's day so many calls and tokens are spent at most: reserved before, settled after.
//
// An answer's form is asked for as strictly as the server takes it: a JSON schema, else JSON, else in words; what a model
// was found not to take (also a temperature, a seed, max_tokens) is remembered for an hour. The answer's
// text is given as it came: whether it keeps the schema is for the caller to see.
//
// Answers above 4 MiB, pages of proxies and redirects are errors. No error holds text of a request or answer, or a key.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/evenhand/evenhand/internal/secret"
)

// Request is one question to a model.
type Request struct {
	Tenant      string // whose budget it comes out of
	Model       string // "": the configured one
	System      string // the system prompt, "" for none
	Messages    []Message
	Schema      *Schema // of the answer; nil: free text
	Temperature float64 // 0..2
	MaxTokens   int     // of the answer; 0: the server's own limit
	Seed        *int64  // for servers that repeat themselves with it
	// Key is a caller's own, sent instead of the configured one; "" for that.
	Key secret.Text
}

// Message is one turn.
type Message struct {
	Role    string // user or assistant
	Content string
}

// Schema is a JSON schema that the answer must keep.
type Schema struct {
	Name string // [A-Za-z0-9_-]{1,64}
	JSON json.RawMessage
}

// Answer is what a model said.
type Answer struct {
	Text     string
	Refusal  string // why the model would not answer, "" when it did
	Model    string // as the server names it, where that is a name; else as it was asked for
	Finish   string // stop, length, content_filter, …
	Form     Form   // how its form was asked for, where there was a schema
	Usage    Usage
	CostUSD  float64 // 0 when no price is known: see Priced
	Priced   bool
	Duration time.Duration
}

// Usage counts tokens, as the server says; zero when it does not.
type Usage struct{ Input, Output int }

// ErrBudget says that a tenant's budget of the day is spent.
var ErrBudget = errors.New("the budget of the day is spent")

// Model answers. Errors are of audit.KindUnavailable (ask later: away, slow, too many requests, circuit open),
// audit.KindOverloaded (ErrBudget) and audit.KindInvalid (the settings, the key or the request are at fault). None
// holds text of the request or the answer.
type Model interface {
	Complete(ctx context.Context, r Request) (*Answer, error)
}
