package call

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
)

// Flatten gives a call whose messages are plain texts of at most limit bytes: whatever shape they came in, the event takes them.
func Flatten(p Part, limit int) Part {
	p.System = audit.Clip(p.System, limit)
	p.Messages, p.Answers = Plain(p.Messages, limit), Plain(p.Answers, limit)
	return p
}

// Plain gives messages as plain texts of at most limit bytes each.
func Plain(ms []Message, limit int) []Message {
	out := make([]Message, len(ms))
	for i, m := range ms {
		if len(m.Content) > 0 && string(m.Content) != "null" {
			m.Content = quoted(audit.Clip(textOf(m.Content), limit))
		}
		if len(m.Reasoning) > 0 {
			m.Reasoning = quoted(audit.Clip(textOf(m.Reasoning), limit))
		}
		if len(m.Calls) > 0 {
			m.Calls, _ = json.Marshal([]string{audit.Clip(string(m.Calls), limit)}) // a string always can be
		}
		out[i] = m
	}
	return out
}

// textOf gives the text of a content: the string, or the texts of its parts.
func textOf(content json.RawMessage) string {
	v := gjson.ParseBytes(content)
	if v.Type == gjson.String {
		return v.String()
	}
	var b strings.Builder
	for _, part := range v.Array() {
		if part.Type != gjson.String {
			part = part.Get("text")
		}
		b.WriteString(part.String() + "\n")
	}
	return b.String()
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always can be
	return b
}
