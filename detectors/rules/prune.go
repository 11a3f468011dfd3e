package rules

import (
	"cmp"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/scan"
)

// Weight is what a rule brings over labelled texts.
type Weight struct {
	Rule  *Rule
	Hits  int // texts labelled biased that it fires on
	Sole  int // those on which no other rule of its kind does that is kept
	False int // texts labelled not biased that it fires on
	// Keep says why it stays: "hits", "slurs", or the example kind that no other rule covers; "" if it goes.
	Keep string
}

// Scales weigh rules over labelled texts, one text at a time. They are not safe for concurrent use.
type Scales struct {
	rules   []*Rule
	raw     bool // what is read: the text as it came, or its normal form
	scanner *scan.Scanner
	owners  []*Rule // by pattern
	at      map[*Rule]int
	found   []scan.Match
	biased  [][]int // rules that fired, by text and kind
	hits    []int
	false   []int
}

// NewScales makes the scales of packs that read the same form of the text.
func NewScales(packs []*Pack) (*Scales, error) {
	s := &Scales{rules: All(packs), at: map[*Rule]int{}, raw: len(packs) > 0 && packs[0].Raw}
	var patterns []string
	for i, r := range s.rules {
		s.at[r] = i
		for _, p := range r.Expanded {
			patterns, s.owners = append(patterns, p), append(s.owners, r)
		}
	}
	s.hits, s.false = make([]int, len(s.rules)), make([]int, len(s.rules))
	var err error
	if s.scanner, err = scan.Compile(patterns, scan.Options{}); err != nil {
		return nil, audit.E("rules: scales", audit.KindInvalid, err)
	}
	return s, nil
}

// Add takes one text and gives the rules that fire on it. A text that was written for a rule, own, is no
// evidence for that rule.
func (s *Scales) Add(text string, biased bool, own string) (fired []*Rule) {
	byKind := map[string][]int{}
	_, fs := s.rulesOn(text)
	for _, f := range fs {
		fired = append(fired, f.rule)
		i := s.at[f.rule]
		switch {
		case f.rule.ID == own:
		case biased:
			s.hits[i]++
			byKind[f.rule.Kind] = append(byKind[f.rule.Kind], i)
		default:
			s.false[i]++
		}
	}
	for _, together := range byKind {
		s.biased = append(s.biased, together)
	}
	return fired
}

// firing is a rule and the first text that it matches.
type firing struct {
	rule *Rule
	text string
}

// textOf gives what a rule matched, "" if it is not among the firings.
func textOf(fs []firing, r *Rule) string {
	for _, f := range fs {
		if f.rule == r {
			return f.text
		}
	}
	return ""
}

// rulesOn gives the rules whose patterns match in a text, and those of them that guards and checks keep.
func (s *Scales) rulesOn(text string) (matched, fired []firing) {
	read := normal.Of
	if s.raw {
		read = normal.Spelled
	}
	form := read(text)
	text = form.String()
	s.found = s.scanner.Scan(text, s.found[:0])
	for _, m := range s.found {
		r, start, end := s.owners[m.Pattern], int(m.Start), int(m.End)
		if textOf(matched, r) == "" {
			matched = append(matched, firing{r, text[start:end]})
		}
		if textOf(fired, r) != "" {
			continue
		}
		if len(Accept(r, text, start, end)) > 0 {
			fired = append(fired, firing{r, text[start:end]})
		}
	}
	return matched, fired
}

// Weigh says of every rule what it brings, and which stay: rules leave one at a time, those with the
// fewest hits first, as long as each of their hits is another rule's of the same kind. Rules for slurs
// (abusive, without class, or of the class slur) stay, and so does the last rule that covers an example kind
// of its pack.
func (s *Scales) Weigh() []Weight {
	ws := make([]Weight, len(s.rules))
	covered := map[string]int{} // pack and example kind -> rules
	for i, r := range s.rules {
		ws[i] = Weight{Rule: r, Hits: s.hits[i], False: s.false[i]}
		covered[r.Pack.ID+"\x00"+r.Example]++
	}
	left := make([]int, len(s.biased)) // rules kept, by text and kind
	textsOf := make([][]int, len(s.rules))
	for t, together := range s.biased {
		left[t] = len(together)
		for _, i := range together {
			textsOf[i] = append(textsOf[i], t)
		}
	}
	order := make([]int, len(s.rules))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ws[a].Hits, ws[b].Hits), cmp.Compare(ws[b].False, ws[a].False))
	})
	for _, i := range order {
		r, example := s.rules[i], s.rules[i].Pack.ID+"\x00"+s.rules[i].Example
		switch {
		case slices.ContainsFunc(textsOf[i], func(t int) bool { return left[t] == 1 }):
			ws[i].Keep = "hits"
		case r.Abusive && (r.Class == "" || r.Class == "slur"):
			ws[i].Keep = "slurs"
		case r.Example != "" && covered[example] == 1:
			ws[i].Keep = r.Example
		default:
			covered[example]--
			for _, t := range textsOf[i] {
				left[t]--
			}
		}
	}
	for i := range ws {
		if ws[i].Keep == "" {
			continue
		}
		for _, t := range textsOf[i] {
			if left[t] == 1 {
				ws[i].Sole++
			}
		}
	}
	return ws
}
