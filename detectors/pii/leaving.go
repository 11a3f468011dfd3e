package pii

import (
	"cmp"
	"context"
	"errors"
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

// openTail is how many code points behind a value, or of it, may still tell what it is.
const openTail = 160

// Open is how many code points at the end of the masked text may read otherwise when the text goes on, as that of a stream does: half
// a number, or one whose name is still to come. They are whole words, and a key block that has no end yet is open from its beginning.
func (m Masked) Open() int {
	at := len(m.Text)
	for n := 0; n < openTail && at > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(m.Text[:at])
		at -= size
	}
	at = strings.LastIndexAny(m.Text[:at], " \t\r\n") + 1
	if block := strings.LastIndex(m.Text, "-----BEGIN"); block >= 0 && !strings.Contains(m.Text[block:], "-----END") {
		at = min(at, block)
	}
	return utf8.RuneCountInString(m.Text[at:])
}

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
// in all of them. They are read one by one and as one: what one of them shows to be personal is masked in the others too, and a
// question in one may tell what another answers. Errors, of audit.KindInternal or, when ctx ends, KindUnavailable, say that
// nobody could look: then nothing may leave.
func (m *Masker) Texts(ctx context.Context, texts ...string) ([]Masked, error) {
	return m.More(ctx, new(Memory), texts...)
}

// More is Texts for texts of a call of which some have left already: memory is of those, and after it of these, too.
func (m *Masker) More(ctx context.Context, memory *Memory, texts ...string) ([]Masked, error) {
	found, err := m.together(ctx, texts)
	if err != nil {
		return nil, audit.E("detectors/pii: mask", audit.KindOf(err), err)
	}
	numbers, values := &memory.numbers, &memory.values
	for i, text := range texts {
		fs, err := m.findings(ctx, text)
		if err != nil {
			return nil, audit.E("detectors/pii: mask", audit.KindOf(err), err)
		}
		found[i] = append(found[i], fs...)
		values.learn(text, audit.Output, found[i])
	}
	out := make([]Masked, len(texts))
	for i, text := range texts {
		out[i].Text, out[i].Places = numbers.replace(text, audit.Output, append(found[i], values.in(text, audit.Output)...))
	}
	return out, nil
}

// findings gives what is found in one text.
func (m *Masker) findings(ctx context.Context, text string) ([]audit.Finding, error) {
	if text == "" {
		return nil, nil
	}
	v := m.find.Analyze(ctx, &audit.Interaction{Response: text})
	if err := ctx.Err(); err != nil {
		return nil, audit.E("analyze", audit.KindUnavailable, err)
	}
	if !looked(v) {
		return nil, audit.E("analyze", audit.KindInternal, errors.New("could not look for personal data"))
	}
	return v.Findings, nil
}

// looked says whether all of a text was looked at: a text of blanks is skipped, and hides nothing.
func looked(v *audit.Verdict) bool { return v.Status == audit.Done || v.Status == audit.Skipped }

// together gives what is found in texts that are read as one, by text. What would lie in two of them is left out.
func (m *Masker) together(ctx context.Context, texts []string) (found [][]audit.Finding, err error) {
	found = make([][]audit.Finding, len(texts))
	if len(texts) < 2 {
		return found, nil
	}
	const between = "\n\n"
	all, err := m.findings(ctx, strings.Join(texts, between))
	if err != nil || len(all) == 0 {
		return found, err
	}
	slices.SortFunc(all, func(a, b audit.Finding) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	start := uint32(0)
	for i, text := range texts {
		end := start + uint32(utf8.RuneCountInString(text))
		for len(all) > 0 && all[0].Span.Start < end {
			f := all[0]
			all = all[1:]
			if f.Span.Start >= start && f.Span.End <= end {
				f.Span.Start, f.Span.End = f.Span.Start-start, f.Span.End-start
				found[i] = append(found[i], f)
			}
		}
		start = end + uint32(len(between))
	}
	return found, nil
}
