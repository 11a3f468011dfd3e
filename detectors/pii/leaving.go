package pii

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
)

// Masked is a text as it may leave, such as to a judging model.
type Masked struct {
	Text   string
	Places []Place // of what was masked, in order
}

// Changed tells whether anything was masked.
func (m Masked) Changed() bool { return len(m.Places) > 0 }

// Original gives the place, in the text as it was, of a place in the masked one; both in code points. What touches a
// placeholder takes in all that it stands for.
func (m Masked) Original(s audit.Span) audit.Span {
	return audit.Span{Start: m.original(s.Start, false), End: m.original(s.End, true)}
}

func (m Masked) original(at uint32, end bool) uint32 {
	i, _ := slices.BinarySearchFunc(m.Places, at, func(p Place, at uint32) int { // the first that ends after at
		if p.Masked.End <= at {
			return -1
		}
		return 1
	})
	if i < len(m.Places) {
		if p := m.Places[i]; p.Masked.Start < at || p.Masked.Start == at && !end {
			if end {
				return p.Original.End
			}
			return p.Original.Start
		}
	}
	if i == 0 {
		return at
	}
	return at - m.Places[i-1].Masked.End + m.Places[i-1].Original.End
}

// Texts masks texts that leave together, in their order, with numbered placeholders: [EMAIL_1] stands for the same address
// in all of them. What one of them shows to be personal is masked in the others too, as in [Masker.Record]. Errors, of
// audit.KindInternal or, when ctx ends, KindUnavailable, say that nobody could look: then nothing may leave.
func (m *Masker) Texts(ctx context.Context, texts ...string) ([]Masked, error) {
	const op = "detectors/pii: mask"
	found := make([][]audit.Finding, len(texts))
	var values Numbers
	for i, text := range texts {
		if text == "" {
			continue
		}
		v := m.find.Analyze(ctx, &audit.Interaction{Response: text})
		if err := ctx.Err(); err != nil {
			return nil, audit.E(op, audit.KindUnavailable, err)
		}
		if v.Status != audit.Done {
			return nil, audit.E(op, audit.KindInternal, errors.New("could not look for personal data"))
		}
		found[i] = v.Findings
		values.Mask(text, audit.Output, v.Findings)
	}
	for i, text := range texts {
		found[i] = append(found[i], elsewhere(text, &values)...)
	}
	var numbers Numbers
	out := make([]Masked, len(texts))
	for i, text := range texts {
		out[i].Text, out[i].Places = numbers.replace(text, audit.Output, found[i])
	}
	return out, nil
}

// elsewhere finds the values that are known to be personal, wherever they stand.
func elsewhere(text string, known *Numbers) (fs []audit.Finding) {
	for key := range maps.Keys(known.of) {
		entity, value := key[0], key[1]
		if len(value) < shortest {
			continue
		}
		for from := 0; ; {
			at := strings.Index(text[from:], value)
			if at < 0 {
				break
			}
			start := uint32(utf8.RuneCountInString(text[:from+at]))
			fs = append(fs, audit.Finding{Kind: "pii.known", Entity: entity, Side: audit.Output, Span: audit.Span{Start: start, End: start + uint32(utf8.RuneCountInString(value))}})
			from += at + len(value)
		}
	}
	return fs
}
