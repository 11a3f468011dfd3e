package pii

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/normal"
)

// Place is a range of a text and that of the placeholder that stands for it in the masked text, in code points.
type Place struct{ Original, Masked audit.Span }

// Mask is the text of Replace.
func Mask(text string, side audit.Side, findings []audit.Finding) string {
	masked, _ := Replace(text, side, findings)
	return masked
}

// Replace puts [ENTITY] in the place of what this detector's findings say of a text, the side being that of the
// text, and tells where, in order; findings of other kinds are passed over. Of overlapping findings the longest counts,
// then the surest, then the first; a finding beyond the end of the text counts as far as there is text. A number of JSON
// becomes a string. The same text and findings give the same result.
func Replace(text string, side audit.Side, findings []audit.Finding) (masked string, places []Place) {
	return replace(text, side, findings, func(p part) string { return "[" + p.finding.Entity + "]" })
}

// Numbers are the placeholders of texts that belong together: [EMAIL_1] stands for the same address in all of them,
// [EMAIL_2] for another. A value that is found as two kinds keeps the first one's. What stands in a text and looks like a
// placeholder is none of ours unless it was given before: no value from there on gets the same. The zero value is ready; it
// holds what was masked, so it must not outlive the texts. It is not safe for concurrent use.
type Numbers struct {
	of    map[string]string // by value
	count map[string]int    // by entity
	taken map[string]bool   // placeholders that stood in texts
}

// Mask is [Mask] with numbered placeholders.
func (n *Numbers) Mask(text string, side audit.Side, findings []audit.Finding) string {
	masked, _ := n.replace(text, side, findings)
	return masked
}

func (n *Numbers) replace(text string, side audit.Side, findings []audit.Finding) (masked string, places []Place) {
	read := 0
	masked, places = replace(text, side, findings, func(p part) string {
		n.reserve(text[read:p.from])
		read = p.to
		return n.placeholder(p.finding.Entity, p.value)
	})
	n.reserve(text[read:])
	return masked, places
}

func (n *Numbers) begin() {
	if n.of == nil {
		n.of, n.count = map[string]string{}, map[string]int{}
	}
}

func (n *Numbers) placeholder(entity, value string) string {
	n.begin()
	for n.of[value] == "" {
		n.count[entity]++
		if p := "[" + entity + "_" + strconv.Itoa(n.count[entity]) + "]"; !n.taken[p] {
			n.of[value] = p
		}
	}
	return n.of[value]
}

var placeholders = regexp.MustCompile(`\[[A-Z][A-Z_]*_[1-9][0-9]*\]`)

// reserve keeps the placeholders that stand in a text for themselves.
func (n *Numbers) reserve(text string) {
	for _, p := range placeholders.FindAllString(text, -1) {
		if n.taken == nil {
			n.taken = map[string]bool{}
		}
		n.taken[p] = true
	}
}

// moved gives the place in the masked text; what lies within something masked moves to the placeholder's edge.
func moved(places []Place, s audit.Span) audit.Span {
	at := func(pos uint32, edge func(audit.Span) uint32) uint32 {
		shift := 0
		for _, p := range places {
			if pos <= p.Original.Start {
				break
			}
			if pos < p.Original.End {
				return edge(p.Masked)
			}
			shift = int(p.Masked.End) - int(p.Original.End)
		}
		return uint32(int(pos) + shift)
	}
	return audit.Span{
		Start: at(s.Start, func(m audit.Span) uint32 { return m.Start }),
		End:   at(s.End, func(m audit.Span) uint32 { return m.End }),
	}
}

// part is what a finding says of a text, in code points and in bytes.
type part struct {
	finding  audit.Finding
	span     audit.Span
	from, to int
	value    string
	quote    string // that stands around its placeholder
}

// replace puts what placeholder gives in the place of findings.
func replace(text string, side audit.Side, findings []audit.Finding, placeholder func(part) string) (masked string, places []Place) {
	var out strings.Builder
	done, shift := 0, 0 // bytes that are written, code points by which the masked text is ahead
	for _, p := range partsOf(text, side, findings) {
		put := p.quote + placeholder(p) + p.quote
		out.WriteString(text[done:p.from])
		out.WriteString(put)
		done = p.to
		begin, size := uint32(int(p.span.Start)+shift), utf8.RuneCountInString(put)
		places = append(places, Place{p.span, audit.Span{Start: begin, End: begin + uint32(size)}})
		shift += size - int(p.span.End-p.span.Start)
	}
	if done == 0 {
		return text, nil
	}
	out.WriteString(text[done:])
	return out.String(), places
}

// partsOf gives the parts of a text that are to be replaced, none overlapping another, by their place.
func partsOf(text string, side audit.Side, findings []audit.Finding) []part {
	var parts []part
	var ends []uint32
	for _, f := range findings {
		if f.Side == side && strings.HasPrefix(f.Kind, "pii.") && f.Span.Start < f.Span.End {
			parts = append(parts, part{finding: f, span: f.Span})
			ends = append(ends, f.Span.Start, f.Span.End)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	bytesAt, size := offsets(text, ends)
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.span.Start >= size })
	plain := normal.PlainJSON(text)
	for i := range parts {
		p := &parts[i]
		p.span.End = min(p.span.End, size)
		p.from, p.to = bytesAt[p.span.Start], bytesAt[p.span.End]
		p.value = text[p.from:p.to]
		p.widen(plain)
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.to-b.from, a.to-a.from), cmp.Compare(b.finding.Confidence, a.finding.Confidence),
			cmp.Compare(a.from, b.from), cmp.Compare(a.finding.Entity, b.finding.Entity))
	})
	return apart(parts, func(p part) (from, to int) { return p.from, p.to })
}

// widen takes in the whole of a number of JSON, which becomes a string: JSON stays JSON.
func (p *part) widen(plain []normal.Plain) {
	of := func(at int) (q normal.Plain) {
		i, _ := slices.BinarySearchFunc(plain, at+1, func(q normal.Plain, end int) int { return cmp.Compare(q.To, end) })
		if i < len(plain) && plain[i].From <= at {
			q = plain[i]
		}
		return q
	}
	first, last := of(p.from), of(p.to-1)
	if first.Quote == "" || first.Quote != last.Quote {
		return
	}
	p.span.Start -= uint32(p.from - first.From) // they are ASCII
	p.span.End += uint32(last.To - p.to)
	p.from, p.to, p.quote = first.From, last.To, first.Quote
}

// offsets gives the bytes at which code points stand, those beyond the end at the end, and how many code points a text has.
func offsets(text string, of []uint32) (at map[uint32]int, size uint32) {
	slices.Sort(of)
	at = make(map[uint32]int, len(of)+1)
	for i := range text {
		for len(of) > 0 && of[0] == size {
			at[size] = i
			of = of[1:]
		}
		size++
	}
	at[size] = len(text)
	return at, size
}

// Personal implements [detectors.Personal]: what was found, in the form of the record's fields.
func (d *Detector) Personal(in *detectors.Input, findings []audit.Finding) *audit.Personal {
	p := &audit.Personal{Contained: len(findings) > 0}
	if len(findings) == 0 {
		return p
	}
	worst := uint8(0)
	counts := map[audit.Side]map[string]int{}
	for _, f := range findings {
		worst = max(worst, f.Severity.Level())
		if counts[f.Side] == nil {
			counts[f.Side] = map[string]int{}
		}
		counts[f.Side][f.Entity]++
	}
	switch {
	case worst >= audit.High.Level():
		p.Sensitivity = "high"
	case worst == audit.Medium.Level():
		p.Sensitivity = "medium"
	default:
		p.Sensitivity = "low"
	}
	b, _ := json.Marshal(struct { // numbers by name: cannot fail
		By       string         `json:"by"`
		Total    int            `json:"total"`
		Prompt   map[string]int `json:"prompt,omitempty"`
		Response map[string]int `json:"response,omitempty"`
	}{ID, len(findings), counts[audit.Input], counts[audit.Output]})
	p.RedactionSummary = string(b)
	if d.cfg.SanitizePrompt && counts[audit.Input] != nil {
		p.SanitizedPrompt = Mask(in.Interaction.Text(audit.Input), audit.Input, findings)
	}
	return p
}
