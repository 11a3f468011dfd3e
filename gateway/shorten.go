package gateway

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// Texts of an event that the log does not take: each at most this many bytes at first, then half, down to least; then
// the oldest messages go.
const (
	longest  = 64 << 10
	shortest = 1 << 10
)

// cutAt is where our part of the metadata says to how many bytes texts were cut.
const cutAt = "text_cut_at"

// shorten gives a shorter copy of a call, nil when there is nothing left to cut. The caller's own metadata goes
// first: it may be what is too long.
func shorten(p *call.Part) *call.Part {
	own, _ := p.Metadata["gateway"].(map[string]any)
	limit := longest
	if was, again := own[cutAt].(int); again {
		limit = was / 2
	}
	out := *p
	if limit < shortest {
		if len(out.Messages) < 2 {
			return nil
		}
		limit = 2 * shortest
		out.Messages = out.Messages[(len(out.Messages)+1)/2:]
	}
	out = flatten(out, limit)
	own = maps.Clone(own)
	own[cutAt] = limit
	out.Metadata = map[string]any{"gateway": own}
	return &out
}

// flatten gives a call whose messages are plain texts of at most limit bytes: whatever shape they came in, the
// event takes them.
func flatten(p call.Part, limit int) call.Part {
	p.System = audit.Clip(p.System, limit)
	p.Messages, p.Answers = shorter(p.Messages, limit), shorter(p.Answers, limit)
	return p
}

func shorter(ms []call.Message, limit int) []call.Message {
	out := make([]call.Message, len(ms))
	for i, m := range ms {
		if len(m.Content) > 0 && string(m.Content) != "null" {
			m.Content = quoted(audit.Clip(said(m.Content), limit))
		}
		if len(m.Reasoning) > 0 {
			m.Reasoning = quoted(audit.Clip(said(m.Reasoning), limit))
		}
		if len(m.Calls) > 0 {
			m.Calls = encode([]string{audit.Clip(string(m.Calls), limit)})
		}
		out[i] = m
	}
	return out
}

// said gives the text of a content: the string, or the texts of its parts.
func said(content json.RawMessage) string {
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
