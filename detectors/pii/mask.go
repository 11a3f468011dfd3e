package pii

import (
	"cmp"
	"encoding/json"
	"maps"
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
	return replace(text, side, findings, func(entity, _ string) string { return "[" + entity + "]" })
}

// Numbers are the placeholders of texts that belong together: [EMAIL_1] stands for the same address in all of them,
// [EMAIL_2] for another. The zero value is ready; it holds what was masked, so it must not outlive the texts. It is not
// safe for concurrent use.
type Numbers struct {
	of    map[[2]string]int // by entity and value
	count map[string]int    // by entity
}

// Mask is [Mask] with numbered placeholders.
func (n *Numbers) Mask(text string, side audit.Side, findings []audit.Finding) string {
	masked, _ := n.replace(text, side, findings)
	return masked
}

func (n *Numbers) replace(text string, side audit.Side, findings []audit.Finding) (string, []Place) {
	return replace(text, side, findings, n.placeholder)
}

func (n *Numbers) placeholder(entity, value string) string {
	if n.of == nil {
		n.of, n.count = map[[2]string]int{}, map[string]int{}
	}
	key := [2]string{entity, value}
	if n.of[key] == 0 {
		n.count[entity]++
		n.of[key] = n.count[entity]
	}
	return "[" + entity + "_" + strconv.Itoa(n.of[key]) + "]"
}

// longestFirst lists entity and value of what was masked.
func (n *Numbers) longestFirst() [][2]string {
	return slices.SortedFunc(maps.Keys(n.of), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(len(b[1]), len(a[1])), cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0]))
	})
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

// replace puts what placeholder gives in the place of findings.
func replace(text string, side audit.Side, findings []audit.Finding, placeholder func(entity, value string) string) (masked string, places []Place) {
	var fs []audit.Finding
	for _, f := range findings {
		if f.Side == side && strings.HasPrefix(f.Kind, "pii.") && f.Span.Start < f.Span.End {
			fs = append(fs, f)
		}
	}
	if len(fs) == 0 {
		return text, nil
	}
	slices.SortFunc(fs, func(a, b audit.Finding) int {
		return cmp.Or(cmp.Compare(b.Span.End-b.Span.Start, a.Span.End-a.Span.Start), cmp.Compare(b.Confidence, a.Confidence),
			cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Entity, b.Entity))
	})
	kept := apart(fs, func(f audit.Finding) (from, to int) { return int(f.Span.Start), int(f.Span.End) })
	var out strings.Builder
	plain := normal.PlainJSON(text)
	next, n, from := 0, uint32(0), 0 // finding, code points passed, byte not yet written
	shift := 0                       // code points by which the masked text is ahead
	for at := range text {
		if next < len(kept) && n == kept[next].Span.End {
			from = at
			next++
		}
		if next < len(kept) && n == kept[next].Span.Start {
			out.WriteString(text[from:at])
			original := kept[next].Span
			original.End = min(original.End, n+uint32(utf8.RuneCountInString(text[at:])))
			value := within(text[at:], original)
			put := placeholder(kept[next].Entity, value)
			if plain(at, at+len(value)) { // JSON stays JSON
				put = `"` + put + `"`
			}
			out.WriteString(put)
			begin, size := uint32(int(n)+shift), utf8.RuneCountInString(put)
			places = append(places, Place{original, audit.Span{Start: begin, End: begin + uint32(size)}})
			shift += size - int(original.End-original.Start)
			from = len(text)
		}
		n++
	}
	if from < len(text) {
		out.WriteString(text[from:])
	}
	return out.String(), places
}

// within is the text of a span that begins where text does.
func within(text string, s audit.Span) string {
	return audit.Span{End: s.End - s.Start}.Slice(text)
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
