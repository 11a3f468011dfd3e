package detectors

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/language"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/scan"
)

// maxStates lets the scanner hold as many states as it can tell apart, in 12 MiB: texts of all kinds need some 55,000 in
// three million characters, and with fewer it would build the same states again and again.
const maxStates = 65_535

// scanned is one scanner over all rules that read one form of some texts.
type scanned struct {
	scanner *scan.Scanner // nil when there are no such rules
	owners  []*owner      // by pattern
}

const normalForm, rawForm, furtherForm = 0, 1, 2 // indexes of Analyzer.scans

// owner is the rule that a pattern is of, and who reads it: one rule may be several detectors'.
type owner struct {
	r       *rules.Rule
	readers []reader
}

// reader is a detector and the rule's index among its own.
type reader struct{ detector, rule int }

// Prepare computes the input of all detectors: the normal form of each side, and one scan of either form. Raw rules read
// the text as it is spelled, see [normal.Spelled].
func (a *Analyzer) Prepare(in *audit.Interaction) *Input {
	p, _ := audit.ProfileOf(in.Domain)
	if a.policy.BiasThreshold != nil {
		p.Threshold = *a.policy.BiasThreshold
	}
	x := newInput(in, p)
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		original, form := in.Text(side), x.Normal(side)
		if original == "" {
			continue
		}
		a.scan(x, normalForm, form.String(), 0, len(form.String()), side, form.Original)
		plain := language.PlainlyEnglish(form.String())
		if x.plain[sideIndex(side)] = plain; a.scans[furtherForm].scanner != nil && !plain {
			for from, to := range furtherParts(form.String()) {
				a.scan(x, furtherForm, form.String(), from, to, side, form.Original)
			}
		}
		if a.scans[rawForm].scanner != nil {
			spelled := normal.Spelled(original)
			a.scan(x, rawForm, spelled.String(), 0, len(spelled.String()), side, spelled.Original)
		}
	}
	for i := range x.hits {
		hits := x.hits[i].hits
		slices.SortFunc(hits, func(x, y Hit) int {
			return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
		})
		x.hits[i].hits = slices.Compact(hits) // several patterns of one rule may match at one place
	}
	return x
}

// furtherParts gives the parts of a normal text that are to be searched for words of further languages: all but the
// paragraphs that are plainly English. A name in one paragraph costs no more than that.
func furtherParts(text string) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		begin, end := 0, 0 // of the part in hand
		for from, to := range normal.Paragraphs(text) {
			if !language.PlainlyEnglish(text[from:to]) {
				end = to
				continue
			}
			if begin < end && !yield(begin, end) {
				return
			}
			begin, end = to, to
		}
		if begin < end {
			yield(begin, end)
		}
	}
}

// scan searches text[from:to] and gives each match to its detector, at its place in the original, without those that guards exclude or the text around them refutes.
func (a *Analyzer) scan(x *Input, form int, text string, from, to int, side audit.Side, original func(start, end int) (int, int)) {
	s := &a.scans[form]
	if s.scanner == nil {
		return
	}
	buf := a.scratch.Get().(*[]scan.Match)
	defer a.scratch.Put(buf)
	*buf = s.scanner.Scan(text[from:to], (*buf)[:0])
	for _, m := range *buf {
		o := s.owners[m.Pattern]
		for _, found := range rules.Accept(o.r, text, from+int(m.Start), from+int(m.End)) {
			begin, stop := found.From, found.To
			if form != rawForm {
				begin, stop = withoutMarks(text, begin, stop)
			}
			start, end := original(begin, stop)
			if form != rawForm && normal.Parted(text, begin, stop, x.sides[sideIndex(side)].text[start:end]) || o.r.Refutable() && x.refuted(side, start, end) {
				continue
			}
			for _, by := range o.readers {
				x.add(a.ds[by.detector].Info().ID, side, Hit{Rule: by.rule, Start: start, End: end})
			}
		}
	}
}

// withoutMarks is a match without white space at its ends and marks at its beginning: a pattern that wants the
// beginning of a sentence matches the end of the one before.
func withoutMarks(text string, start, end int) (from, to int) {
	const blanks, marks = " \t\r\n", ".,;:!?…"
	to = start + len(strings.TrimRight(text[start:end], blanks))
	from = to - len(strings.TrimLeft(text[start:to], blanks+marks))
	if from == to {
		return start, end
	}
	return from, to
}
