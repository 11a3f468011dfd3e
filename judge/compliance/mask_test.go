package compliance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/detectors/rules"
)

func personal(t *testing.T) func(context.Context, string) (pii.Masked, error) {
	t.Helper()
	packs, err := rules.Load(pii.Packs())
	if err != nil {
		t.Fatal(err)
	}
	d, err := pii.New(pii.DefaultConfig(), packs)
	if err != nil {
		t.Fatal(err)
	}
	m, err := pii.NewMasker(d)
	if err != nil {
		t.Fatal(err)
	}
	return MaskPersonal(m)
}

// The model sees placeholders; quotes are checked on what it saw and come back in the words of the text.
func TestMaskedTextsComeBack(t *testing.T) {
	const text = "Écris à jean.dupont@example.org ou a.b@example.com: women are too emotional, so says jean.dupont@example.org 👍 again: women."
	for _, tc := range []struct{ name, quote, want string }{
		{"beside", "women are too emotional", "women are too emotional"},
		{"across", "[EMAIL_2]: women are too", "a.b@example.com: women are too"},
		{"two of them", "à [EMAIL_1] ou [EMAIL_2]: women", "à jean.dupont@example.org ou a.b@example.com: women"},
		{"a part of one", "EMAIL_1] ou", "jean.dupont@example.org ou"},
		{"after the last", "again: women", "again: women"},
		{"what the model never saw", "jean.dupont", ""},
	} {
		m := says(edited(found("stereotype", "gender", tc.quote, 0)))
		r, err := evaluator(t, m, func(c *Config) { c.Mask = personal(t) }).Evaluate(t.Context(), Input{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := window(m.asked[0])
		if err != nil || strings.Contains(seen, "@") || strings.Count(seen, "[EMAIL_") != 3 {
			t.Fatalf("the model saw %q, %v", seen, err)
		}
		if tc.want == "" {
			if r.Unverified != 1 || len(r.Findings) > 0 {
				t.Errorf("%s: %s", tc.name, describe(r.Findings))
			}
			continue
		}
		f := r.Verdict.Bias.Findings
		if len(f) != 1 || f[0].Excerpt != tc.want || (audit.Span{Start: f[0].Span[0], End: f[0].Span[1]}).Slice(text) != tc.want {
			t.Errorf("%s: %+v", tc.name, f)
		}
		if r.Verdict.Meta.InputLength != len([]rune(text)) {
			t.Errorf("length %d", r.Verdict.Meta.InputLength)
		}
	}
}

// A text that could not be masked is not sent.
func TestMaskFails(t *testing.T) {
	m := says(edited())
	broken := audit.E("mask", audit.KindInternal, errors.New("no"))
	_, err := evaluator(t, m, func(c *Config) {
		c.Mask = func(context.Context, string) (pii.Masked, error) { return pii.Masked{}, broken }
	}).Evaluate(t.Context(), Input{Text: text})
	if !errors.Is(err, broken) || audit.KindOf(err) != audit.KindInternal || len(m.asked) > 0 {
		t.Errorf("%v, %d calls", err, len(m.asked))
	}
}

// The way back keeps words that no placeholder touches, and takes in whole what a touched one stands for.
func TestBackIsTheWayBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abé👍 .")), 1, 60, -1).Draw(t, "text")
		n := uint32(len([]rune(text)))
		var fs []audit.Finding
		for range rapid.IntRange(0, 5).Draw(t, "findings") {
			from := rapid.Uint32Range(0, n-1).Draw(t, "from")
			fs = append(fs, audit.Finding{Kind: "pii.x", Entity: rapid.SampledFrom([]string{"A", "EMAIL"}).Draw(t, "entity"), Side: audit.Output,
				Span: audit.Span{Start: from, End: rapid.Uint32Range(from+1, n+3).Draw(t, "to")}})
		}
		masked, places := pii.Replace(text, audit.Output, fs)
		m := pii.Masked{Text: masked, Places: places}
		length := uint32(len([]rune(masked)))
		from := rapid.Uint32Range(0, length-1).Draw(t, "from")
		at := audit.Span{Start: from, End: rapid.Uint32Range(from+1, length).Draw(t, "to")}
		back := m.Original(at)
		if back.Start >= back.End || back.End > n {
			t.Fatalf("%v became %v of %d", at, back, n)
		}
		// Masking what came back gives at least what was quoted.
		want := at
		for _, p := range places {
			if p.Masked.Start < at.End && at.Start < p.Masked.End {
				want.Start, want.End = min(want.Start, p.Masked.Start), max(want.End, p.Masked.End)
				if back.Start > p.Original.Start || back.End < p.Original.End {
					t.Fatalf("%v leaves out a part of %v", back, p)
				}
			}
		}
		var inside []audit.Finding
		for _, p := range places {
			if p.Original.Start >= back.Start && p.Original.End <= back.End {
				span := audit.Span{Start: p.Original.Start - back.Start, End: p.Original.End - back.Start}
				inside = append(inside, audit.Finding{Kind: "pii.x", Entity: strings.Trim(p.Masked.Slice(masked), "[]"), Side: audit.Output, Span: span})
			}
		}
		if again, _ := pii.Replace(back.Slice(text), audit.Output, inside); again != want.Slice(masked) {
			t.Fatalf("%q of %q came back as %q", want.Slice(masked), masked, back.Slice(text))
		}
	})
}
