package client

import (
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
)

// Event is one call of a model, in the fields of docs/events.md. What is empty is left out.
type Event struct {
	ID        string    `json:"id,omitempty"`          // best a UUID; Emit makes one where there is none
	Tenant    string    `json:"tenant_id,omitempty"`   // where the credential names none
	Timestamp time.Time `json:"timestamp,omitzero"`    // of the call; Emit takes now where there is none
	TraceID   string    `json:"trace_id,omitempty"`    // W3C, 32 hexadecimal digits
	SpanID    string    `json:"span_id,omitempty"`     // 16
	Status    string    `json:"status,omitempty"`      // success, error or blocked; "" is success
	Domain    string    `json:"domain,omitempty"`      // general, hr, finance, healthcare, education
	Decision  string    `json:"decision_id,omitempty"` // what the call was for

	Application  string `json:"application,omitempty"`
	Conversation string `json:"conversation_id,omitempty"`
	UserID       string `json:"user_id,omitempty"`
	UserEmail    string `json:"user_email,omitempty"`
	UserRole     string `json:"user_role,omitempty"`

	Messages        []Message      `json:"messages,omitempty"` // or Prompt
	Prompt          string         `json:"prompt,omitempty"`
	Response        string         `json:"response,omitempty"`
	SanitizedPrompt string         `json:"sanitized_prompt,omitempty"`
	QueryContext    map[string]any `json:"query_context,omitempty"`
	Metadata        map[string]any `json:"metadata,omitempty"` // whatever else there is to say
	Error           string         `json:"error_message,omitempty"`

	Provider       string   `json:"provider,omitempty"`
	Model          string   `json:"model,omitempty"`
	PromptTokens   *int32   `json:"prompt_tokens,omitempty"`
	ResponseTokens *int32   `json:"response_tokens,omitempty"`
	LatencyMS      *int64   `json:"latency_ms,omitempty"`
	CostUSD        *float64 `json:"estimated_cost_usd,omitempty"`
}

// Message is one message of a prompt.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// What a call came to.
const (
	Success = "success"
	Failed  = "error"
	Blocked = "blocked"
)

// Encoded is an event on its way.
type Encoded struct {
	ID     string
	Tenant string // "" where the event names none
	JSON   []byte
}

func (e *Encoded) size() int { return len(e.ID) + len(e.Tenant) + len(e.JSON) + 64 }

// encode stamps id and time and gives the event as it is sent.
func (e *Event) encode(now time.Time) (Encoded, error) {
	if e.ID == "" {
		e.ID = audit.NewID(now).String()
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = now
	}
	e.Timestamp = e.Timestamp.UTC().Truncate(time.Millisecond)
	b, err := json.Marshal(e)
	if err != nil { // its words may quote what the application put in
		return Encoded{}, audit.E("client: encode", audit.KindInvalid, errors.New("query_context or metadata is no JSON"))
	}
	return Encoded{e.ID, e.Tenant, b}, nil
}

// What is kept of the texts of a call whose event would be too large: the log cuts at as much.
const (
	keptText   = 256 << 10
	keptPrompt = 400 << 10
)

// shorten cuts the texts, and says so in the metadata.
func (e *Event) shorten() {
	e.shortenPrompt()
	e.Prompt, e.Response = cut(e.Prompt, keptText), cut(e.Response, keptText)
	e.note("text_cut", true)
}

// shortenPrompt cuts the messages, oldest first; those of others stay as they are.
func (e *Event) shortenPrompt() {
	e.Messages = slices.Clone(e.Messages)
	room := keptPrompt
	for i := len(e.Messages) - 1; i >= 0; i-- {
		m := &e.Messages[i]
		m.Content = cut(m.Content, min(keptText, room))
		if room -= len(m.Content); room <= 0 {
			e.Messages = e.Messages[i:]
			break
		}
	}
}

// note adds to the metadata; those of others stay as they are.
func (e *Event) note(name string, v any) {
	m := map[string]any{name: v}
	for k, v := range e.Metadata {
		if k != name {
			m[k] = v
		}
	}
	e.Metadata = m
}

// promptSize is how much the messages say, in bytes.
func (e *Event) promptSize() (n int) {
	for _, m := range e.Messages {
		n += len(m.Content)
	}
	return n
}

// cut gives at most n bytes of s, whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
