package pii_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
)

func TestTextsThatLeave(t *testing.T) {
	m := masker(t)
	const prompt, response = "Mail jane.roe@example.com or bob@example.org. SSN: 536228745", "Für Jäne 😀: jane.roe@example.com, ref x536228745y"
	got, err := m.Texts(t.Context(), prompt, "", response)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Text != "Mail [EMAIL_1] or [EMAIL_2]. SSN: [US_SSN_1]" || got[1].Text != "" || got[2].Text != "Für Jäne 😀: [EMAIL_1], ref x[US_SSN_1]y" || !got[0].Changed() || got[1].Changed() {
		t.Fatalf("%+v", got)
	}
	for _, tc := range []struct{ quote, want string }{
		{"Jäne 😀", "Jäne 😀"}, {": [EMAIL_1],", ": jane.roe@example.com,"}, {"[EMAIL_1]", "jane.roe@example.com"}, {"EMAIL", "jane.roe@example.com"},
		{"_1], ref", "jane.roe@example.com, ref"}, {", ref x[US", ", ref x536228745"}, {"y", "y"}, {"x", "x"}, {"Für", "Für"}, {": ", ": "}, {", ref x", ", ref x"},
	} {
		at := strings.LastIndex(got[2].Text, tc.quote)
		start := uint32(utf8.RuneCountInString(got[2].Text[:at]))
		span := got[2].Original(audit.Span{Start: start, End: start + uint32(utf8.RuneCountInString(tc.quote))})
		if s := span.Slice(response); s != tc.want {
			t.Errorf("%q: %q at %v", tc.quote, s, span)
		}
	}
	clean, err := m.Texts(t.Context(), "Who fits?")
	if err != nil || clean[0].Text != "Who fits?" || clean[0].Original(audit.Span{Start: 4, End: 8}) != (audit.Span{Start: 4, End: 8}) {
		t.Error(clean, err)
	}
	blank, err := m.Texts(t.Context(), " \n", "Who fits?", "\u200b")
	if err != nil || blank[0].Text != " \n" || blank[2].Text != "\u200b" {
		t.Error("texts of blanks:", blank, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := m.Texts(gone, prompt); out != nil || audit.KindOf(err) != audit.KindUnavailable {
		t.Error(out, err)
	}
}

// Whatever the text, nothing personal is in the masked one, what was not masked is there as it was, and every place
// leads back to where it came from.
func TestPlacesLeadBack(t *testing.T) {
	m := masker(t)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{"jane.roe@example.com", "bob@example.org", "203.0.113.7", "SSN: 536228745"}), rapid.StringMatching(`[a-zé😀ñ́ ]{1,6}`)), 0, 12).Draw(t, "words")
		text := strings.Join(words, " ")
		out, err := m.Texts(context.Background(), text)
		if err != nil {
			t.Fatal(err)
		}
		masked := out[0]
		if strings.Contains(masked.Text, "@example") || strings.Contains(masked.Text, "536228745") {
			t.Fatalf("%q", masked.Text)
		}
		plain, inside := []rune(masked.Text), false
		var last audit.Span
		for i, r := range plain {
			inside = inside || r == '['
			at := masked.Original(audit.Span{Start: uint32(i), End: uint32(i + 1)})
			if s := at.Slice(text); !inside && s != string(r) || at.Start > at.End || at.Start < last.Start || at.End < last.End {
				t.Fatalf("%q at %d of %q leads to %v, %q", r, i, masked.Text, at, s)
			}
			inside = inside && r != ']'
			last = at
		}
		if whole := masked.Original(audit.Span{End: uint32(len(plain))}); whole.Slice(text) != text {
			t.Fatalf("all of %q leads to %v", masked.Text, whole)
		}
	})
}
