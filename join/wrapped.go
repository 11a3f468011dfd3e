package join

import (
	"slices"
	"strings"
	"unicode"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
)

// uncover tells covered wrappers whose answer the calls of their group do not say: what an agent answers is not always what its last call did.
// It is the answer of a call that was told without texts, if that is the only one; else the wrapper is a call of its own. Of wrappers
// that say the same the first is. Where some of the group was told before nobody knows its texts, and nothing is uncovered.
func uncover(nodes []*node) {
	if !slices.ContainsFunc(nodes, (*node).answersCovered) {
		return
	}
	said, calls := words{}, 0
	var blind *node
	for _, n := range nodes {
		if n.known {
			return
		}
		if n.isModel() {
			calls++
			if texts(&n.Part) == 0 && n.Status != "error" {
				blind = n
			}
			said.add(&n.Part)
		}
	}
	for _, n := range nodes {
		if !n.answersCovered() || said.repeat(&n.Part) {
			continue
		}
		if calls == 1 && blind != nil {
			blind.System, blind.Messages, blind.Answers, blind.Withheld, blind = n.System, n.Messages, n.Answers, false, nil
		} else {
			n.covered = false
		}
		said.add(&n.Part)
	}
}

// answersCovered tells a covered wrapper that has an answer.
func (n *node) answersCovered() bool {
	return n.Kind == call.Outer && n.covered && n.fresh && len(n.Answers) > 0
}

// words are those of what was said and asked.
type words map[string]bool

func (w words) add(p *call.Part) {
	for _, m := range slices.Concat(p.Messages, p.Answers) {
		for _, s := range wordsOf(m) {
			w[s] = true
		}
	}
}

// fewWords is how many words a wrapper's answer has at least that were not said: a label or a score that an application makes of an answer has fewer.
const fewWords = 4

// repeat tells whether a wrapper says again what was said, in other order or shape as it may be: fewer than half of its words are new, or hardly any.
func (w words) repeat(p *call.Part) bool {
	all, fresh := 0, words{}
	for _, m := range p.Answers {
		for _, s := range wordsOf(m) {
			if all++; !w[s] {
				fresh[s] = true
			}
		}
	}
	return len(fresh) < fewWords || 2*len(fresh) < all
}

func wordsOf(m call.Message) []string {
	return strings.FieldsFunc(strings.ToLower(ingest.Answer([]call.Message{m})), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}
