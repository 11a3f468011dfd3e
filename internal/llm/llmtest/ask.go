package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Asked is a request that the server took.
type Asked struct {
	Path   string
	Header http.Header
	Body   []byte
	Fields
}

// Fields are the body's; any other is refused.
type Fields struct {
	Model               string          `json:"model"`
	Messages            []Message       `json:"messages"`
	Temperature         *float64        `json:"temperature"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Seed                *int64          `json:"seed"`
	Format              *ResponseFormat `json:"response_format"`
}

// Message is one turn.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ResponseFormat is how the answer's form was asked for.
type ResponseFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Strict      *bool           `json:"strict"`
		Schema      json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// Form gives json_schema, json_object or text.
func (a Asked) Form() string {
	if a.Format == nil {
		return "text"
	}
	return a.Format.Type
}

// System gives the system prompt, "" when there is none.
func (a Asked) System() string {
	if len(a.Messages) > 0 && a.Messages[0].Role == "system" {
		return a.Messages[0].Content
	}
	return ""
}

// Last gives what was said last.
func (a Asked) Last() string { return a.Messages[len(a.Messages)-1].Content }

// read takes a request as OpenAI would, or tells why not.
func (c Config) read(r *http.Request, body []byte) (Asked, error) {
	a := Asked{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&a.Fields); err != nil {
		return a, fmt.Errorf("body: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a, errors.New("body: more than one JSON value")
	}
	return a, errors.Join(c.transport(r, a.Model), a.check())
}

// transport checks method, path and headers.
func (c Config) transport(r *http.Request, model string) error {
	var errs []error
	want := func(what, got, want string) {
		if got != want {
			errs = append(errs, fmt.Errorf("%s: %q, want %q", what, got, want))
		}
	}
	path := "/v1/chat/completions"
	if c.APIVersion != "" {
		path = "/openai/deployments/" + model + "/chat/completions"
	}
	want("method", r.Method, http.MethodPost)
	want("path", r.URL.Path, path)
	want("api-version", r.URL.Query().Get("api-version"), c.APIVersion)
	if len(r.URL.Query()) > 1 || c.APIVersion == "" && r.URL.RawQuery != "" {
		errs = append(errs, fmt.Errorf("query: %q", r.URL.RawQuery))
	}
	want("Content-Type", r.Header.Get("Content-Type"), "application/json")
	header, key := c.KeyHeader, c.Key
	if header == "" {
		header = "Authorization"
		if key != "" {
			key = "Bearer " + key
		}
	}
	if got := r.Header.Values(header); len(got) > 1 || r.Header.Get(header) != key {
		errs = append(errs, fmt.Errorf("%s: is not the key, once", header)) // keys are not shown
	}
	for _, other := range []string{"Authorization", "Api-Key", "X-Api-Key", "Cookie"} {
		if !strings.EqualFold(other, header) && r.Header.Get(other) != "" {
			errs = append(errs, fmt.Errorf("%s: is set", other))
		}
	}
	return errors.Join(errs...)
}

var name = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check holds the body to OpenAI's rules.
func (a Asked) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.Model == "" {
		bad("model: is missing")
	}
	if len(a.Messages) == 0 {
		bad("messages: are missing")
	}
	for i, m := range a.Messages {
		if !slices.Contains([]string{"user", "assistant", "system"}, m.Role) || m.Role == "system" && i > 0 {
			bad("messages[%d].role: %q", i, m.Role)
		}
		if m.Content == "" {
			bad("messages[%d].content: is empty", i)
		}
	}
	if t := a.Temperature; t != nil && (*t < 0 || *t > 2) {
		bad("temperature: %v", *t)
	}
	if a.MaxTokens != nil && a.MaxCompletionTokens != nil {
		bad("max_tokens: stands beside max_completion_tokens")
	}
	for _, n := range []*int{a.MaxTokens, a.MaxCompletionTokens} {
		if n != nil && *n < 1 {
			bad("max_tokens: %d", *n)
		}
	}
	switch f := a.Format; {
	case f == nil, f.Type == "text" && f.Schema == nil:
	case f.Type == "json_object" && f.Schema == nil:
		if !slices.ContainsFunc(a.Messages, func(m Message) bool { return strings.Contains(strings.ToLower(m.Content), "json") }) {
			bad("messages: must contain the word 'json' to use response_format json_object")
		}
	case f.Type == "json_schema" && f.Schema != nil:
		if !name.MatchString(f.Schema.Name) {
			bad("response_format.json_schema.name: %q", f.Schema.Name)
		}
		if f.Schema.Strict == nil || !*f.Schema.Strict {
			bad("response_format.json_schema.strict: is not true")
		} else if err := Strict(f.Schema.Schema); err != nil {
			errs = append(errs, err)
		}
	default:
		bad("response_format: type %q with or without its schema", f.Type)
	}
	return errors.Join(errs...)
}
