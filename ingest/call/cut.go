package call

import "github.com/evenhand/evenhand/audit"

// What the log does not take whole is cut: each text to at most longest bytes at first, then to half as many, down to shortest; then the oldest messages go.
const (
	longest  = 256 << 10
	shortest = 1 << 10
)

// CutAt is where the metadata of a call say to how many bytes its texts were cut.
const CutAt = "text_cut_at"

// Cut gives messages that say less, as plain texts, and to how many bytes each of them was cut: limit is what Cut gave before, 0 at first.
// ok is false where there is nothing left to cut.
func Cut(ms []Message, limit int) (out []Message, to int, ok bool) {
	switch {
	case limit == 0:
		limit = longest
	case limit > shortest:
		limit /= 2
	case len(ms) > 1:
		ms = ms[(len(ms)+1)/2:]
	default:
		return ms, limit, false
	}
	return Plain(ms, limit), limit, true
}

// Shorter is Cut of a whole call: prompts, answers and instructions.
func Shorter(p Part, limit int) (out Part, to int, ok bool) {
	if p.Messages, to, ok = Cut(p.Messages, limit); !ok {
		return p, limit, false
	}
	p.Answers, p.System = Plain(p.Answers, to), audit.Clip(p.System, to)
	return p, to, true
}
