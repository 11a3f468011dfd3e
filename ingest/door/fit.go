package door

import (
	"cmp"
	"maps"

	"github.com/evenhand/evenhand/ingest/call"
)

// fitting gives a call whose two sides, which come in two parts, fit one message of the log together: prompts get three quarters, answers one.
// Texts of a side that has more are cut, as the metadata then say; what the log refuses would be on record nowhere.
func fitting(p call.Part, message int) call.Part {
	room := message - noted - 16<<10 // for what is told beside the texts
	if room <= 0 {
		return p
	}
	var prompt, answer int
	p.Messages, prompt = fit(p.Messages, room/4*3)
	p.Answers, answer = fit(p.Answers, room/4)
	if limit := cmp.Or(prompt, answer); limit > 0 {
		if p.Metadata = maps.Clone(p.Metadata); p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata[call.CutAt] = limit
	}
	return p
}

// fit cuts messages until they fit, and says to how many bytes each text; 0 where they fit as they are.
func fit(ms []call.Message, room int) (out []call.Message, limit int) {
	for ok := true; ok && call.Size(ms) > room; {
		ms, limit, ok = call.Cut(ms, limit)
	}
	return ms, limit
}
