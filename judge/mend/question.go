package mend

import (
	"encoding/json"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
)

// question makes the original call of what is stored of it. What was set beside the messages (temperature, limits) is not on record.
func question(in *audit.Interaction) (llm.Request, error) {
	q := llm.Request{Tenant: in.Tenant}
	if in.Messages == "" {
		if in.Prompt == "" {
			return q, ErrNotPlain
		}
		q.Messages = []llm.Message{{Role: "user", Content: in.Prompt}}
		return q, nil
	}
	var turns []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal([]byte(in.Messages), &turns) != nil {
		return q, ErrNotPlain
	}
	var system []string
	for _, t := range turns {
		text, ok := plain(t.Content)
		if !ok || len(t.Calls) > 0 && string(t.Calls) != "null" {
			return q, ErrNotPlain
		}
		switch {
		case text == "":
		case t.Role == "system" || t.Role == "developer":
			system = append(system, text)
		case t.Role == "user" || t.Role == "assistant":
			q.Messages = append(q.Messages, llm.Message{Role: t.Role, Content: text})
		default:
			return q, ErrNotPlain
		}
	}
	if len(q.Messages) == 0 {
		return q, ErrNotPlain
	}
	q.System = strings.Join(system, "\n\n")
	return q, nil
}

// plain gives a content as text; ok is false where it holds something else.
func plain(content json.RawMessage) (text string, ok bool) {
	if len(content) == 0 || json.Unmarshal(content, &text) == nil {
		return text, true
	}
	var parts []struct{ Text *string }
	if json.Unmarshal(content, &parts) != nil {
		return "", false
	}
	var texts []string
	for _, p := range parts {
		if p.Text == nil {
			return "", false
		}
		texts = append(texts, *p.Text)
	}
	return strings.Join(texts, "\n"), true
}
