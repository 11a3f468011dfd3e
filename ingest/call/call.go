// Package call holds what clients of other formats tell of calls of a model, until it is an event.
//
// A format's decoder (packages otlp, litellm, …) turns a payload into parts. Most payloads tell a whole call; in
// others its prompt, its answer and its facts come apart, in several requests, or twice. Parts that may belong
// together share a Group; package join gathers them and makes one native event of each call, which then goes the way
// of all events. Its id is derived from tenant, group and key, so that a call that is told again, after a restart
// or by a second sender, is the same event.
package call

import (
	"encoding/json"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Kind says what a part is to its call.
type Kind string

// The kinds of parts.
const (
	Model   Kind = "model"   // the call of a model itself
	Outer   Kind = "outer"   // what wraps one and repeats its texts: a call only where no Model part is beneath it
	Content Kind = "content" // texts of the call with the same key, told apart from it
	Context Kind = "context" // no call: what holds for those beneath it (tenant, user, domain)
)

// Part is what one payload tells of one call. Text fields are personal: they go nowhere but into the event.
// Empty fields are not known.
type Part struct {
	Format string `json:"format"` // "otlp", "litellm", …: shown to people, never compared
	Kind   Kind   `json:"kind"`
	Group  string `json:"group"`            // what may belong together: a trace id, a client's call id
	Key    string `json:"key"`              // the call within the group: a span id
	Parent string `json:"parent,omitempty"` // the key of what is above it
	// Done says that nothing more is to come for the call: it need not wait.
	Done bool `json:"done,omitempty"`
	// Tenant is the credential's or the header's, which nothing overrides; Claimed is what the payload names.
	Tenant  string `json:"tenant,omitempty"`
	Claimed string `json:"claimed,omitempty"`

	Time        time.Time     `json:"time,omitzero"` // of the call's end, UTC
	Latency     time.Duration `json:"latency,omitempty"`
	TraceID     string        `json:"trace_id,omitempty"` // 32 hexadecimal digits
	SpanID      string        `json:"span_id,omitempty"`  // 16
	Service     string        `json:"service,omitempty"`  // the application
	Session     string        `json:"session,omitempty"`  // the conversation
	Domain      string        `json:"domain,omitempty"`
	UserID      string        `json:"user_id,omitempty"`
	UserEmail   string        `json:"user_email,omitempty"`
	UserRole    string        `json:"user_role,omitempty"`
	Provider    string        `json:"provider,omitempty"`
	Model       string        `json:"model,omitempty"`
	Tokens      [2]*int32     `json:"tokens,omitzero"` // of the prompt, of the response
	CostUSD     *float64      `json:"cost_usd,omitempty"`
	Status      string        `json:"status,omitempty"` // success | error | blocked
	Error       string        `json:"error,omitempty"`
	DecisionID  string        `json:"decision_id,omitempty"`
	TemplateID  string        `json:"template_id,omitempty"`
	TemplateVer string        `json:"template_version,omitempty"`

	System   string    `json:"system,omitempty"`   // instructions that are told apart from the messages
	Messages []Message `json:"messages,omitempty"` // of the prompt, in order
	Answers  []Message `json:"answers,omitempty"`  // one a choice
	// SoFar says that the answers may not be all of it: they were seen while they came. Of two such the longer holds, and
	// what is not so far holds above both.
	SoFar bool `json:"so_far,omitempty"`
	// Asked says that the model is being asked: how the call ends is still to be told.
	Asked bool `json:"asked,omitempty"`
	// Ends says that the part tells the end of a call whose own part has no answer: beside it, under the same parent, with the same messages.
	// Where there is none, it is a call.
	Ends bool `json:"ends,omitempty"`
	// Withheld says that the client told the call without its texts: capture of content is off there.
	Withheld bool `json:"withheld,omitempty"`
	// Unread names what of a withheld call looks like its texts, in a form that is not read. Names of attributes, no texts.
	Unread []string `json:"unread,omitempty"`
	// Passed says that a Context part names a model that was asked, as if it were a call.
	Passed bool `json:"-"`

	// Given is the event's id where it is not made of Group and Key.
	Given string `json:"given,omitempty"`

	Metadata map[string]any `json:"metadata,omitempty"` // the caller's own, JSON values
}

// Message is one message. Content is a string or, as OpenAI has them, an array of parts.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content,omitempty"`
	// Calls are the tools that the model asked for, as received.
	Calls json.RawMessage `json:"tool_calls,omitempty"`
	// ToolCallID says which call of a tool the message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// Reasoning is what the model thought on its way to an answer, a string; prompts have none.
	Reasoning json.RawMessage `json:"reasoning_content,omitempty"`
	// N is the message's place where messages come one by one, from 0.
	N int `json:"-"`
}

// Text makes a message of plain text.
func Text(role, text string) Message {
	return Message{Role: role, Content: quoted(text)}
}

// ID is the event of a call. Tenants do not share events, so the tenant is part of it.
func ID(tenant, group, key string) audit.ID { return audit.DeriveID("call", tenant, group, key) }
