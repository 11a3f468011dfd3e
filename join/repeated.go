package join

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/ingest/call"
)

// unrepeated gives the answers of a call that was told at its end, with the texts that were seen on their way where those hold: LiteLLM's logger
// tells of a stream that a guard looked at some chunks twice (1.106.2, 1.108.7). Everything else of an answer stays.
func unrepeated(told, seen []call.Message) []call.Message {
	if len(told) != len(seen) {
		return told
	}
	for i := range told {
		var end, onTheWay string
		if json.Unmarshal(told[i].Content, &end) != nil || json.Unmarshal(seen[i].Content, &onTheWay) != nil || !repeats(end, onTheWay) {
			continue
		}
		told = slices.Clone(told)
		told[i].Content = seen[i].Content
	}
	return told
}

// repeats tells whether told is seen with a stretch put in that it has not. Where it stands at the end, it may also be what was not seen
// yet: then it is a repetition only if its words are seen's, in their order.
func repeats(told, seen string) bool {
	if seen == "" || len(told) <= len(seen) {
		return false
	}
	more, goesOn := strings.CutPrefix(told, seen)
	if goesOn {
		return follows(strings.Fields(seen), strings.Fields(more))
	}
	at := 0
	for at < len(seen) && told[at] == seen[at] {
		at++
	}
	return strings.HasSuffix(told, seen[at:])
}

// follows tells whether words stand in all in their order, with others between them.
func follows(all, words []string) bool {
	for _, w := range all {
		if len(words) > 0 && words[0] == w {
			words = words[1:]
		}
	}
	return len(words) == 0
}

// onTheWay is the longest answer among parts that were told while it came.
func onTheWay(ps []piece) (seen []call.Message) {
	most := 0
	for i := range ps {
		if n := ps[i].Said(); ps[i].SoFar && n > most {
			seen, most = ps[i].Answers, n
		}
	}
	return seen
}
