package rules

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// termHole is where the words of an entry go; in sentences each of them in turn.
const termHole = "{term}"

// expandTerms puts, in place of each rule with terms, one rule of each entry in order of the words: its id is the
// table's id and the first word, so that a finding's rule names the term and its wording without the text.
func expandTerms(rs []*Rule) []*Rule {
	out := make([]*Rule, 0, len(rs))
	for _, r := range rs {
		if r == nil || len(r.Terms) == 0 {
			out = append(out, r)
			continue
		}
		for _, words := range slices.Sorted(maps.Keys(r.Terms)) {
			out = append(out, ofTerm(r, words))
		}
	}
	return out
}

func ofTerm(table *Rule, entry string) *Rule {
	r := *table
	words := strings.Split(entry, " | ")
	r.ID, r.Term, r.Terms = table.ID+"."+slug(words[0]), words[0], nil
	r.Description = strings.ReplaceAll(r.Description, termHole, words[0])
	if table.Terms[entry] != "" {
		r.Replace = table.Terms[entry]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = regexp.QuoteMeta(w)
	}
	group := "(?:" + strings.Join(quoted, "|") + ")"
	r.Patterns = replaced(table.Patterns, group)
	r.Unless, r.UnlessHere = replaced(table.Unless, group), replaced(table.UnlessHere, group)
	r.Match, r.NoMatch = said(table.Match, words), said(table.NoMatch, words)
	return &r
}

func replaced(patterns []string, by string) []string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = strings.ReplaceAll(p, termHole, by)
	}
	return out
}

// said gives the sentences with each of the words in turn.
func said(frames, words []string) (out []string) {
	for _, frame := range frames {
		for _, w := range words {
			if s := strings.ReplaceAll(frame, termHole, w); !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug makes the end of an id of a term.
func slug(term string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(term), "_"), "_")
}
