package pii_test

import (
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/pii"
)

func TestMask(t *testing.T) {
	f := func(entity string, start, end uint32, confidence audit.Score) audit.Finding {
		return audit.Finding{Kind: "pii.x", Entity: entity, Side: audit.Output, Span: audit.Span{Start: start, End: end}, Confidence: confidence}
	}
	other := f("IBAN", 0, 2, 1)
	other.Kind = "safety.pii_leakage"
	prompt := f("IBAN", 0, 2, 1)
	prompt.Side = audit.Input
	for _, tc := range []struct {
		name, text, want string
		fs               []audit.Finding
	}{
		{"nothing", "abc", "abc", nil},
		{"code points", "éà😀bc", "éà[EMAIL]c", []audit.Finding{f("EMAIL", 2, 4, 1)}},
		{"whole", "abc", "[EMAIL]", []audit.Finding{f("EMAIL", 0, 3, 1)}},
		{"one after the other", "abcd", "[A][B]", []audit.Finding{f("B", 2, 4, 1), f("A", 0, 2, 1)}},
		{"the longest of overlapping ones", "abcdef", "a[LONG]f", []audit.Finding{f("SHORT", 0, 3, 9), f("LONG", 1, 5, 1)}},
		{"the surest of equally long ones", "abcd", "[SURE]d", []audit.Finding{f("GUESS", 0, 3, 1), f("SURE", 0, 3, 2)}},
		{"beyond the end", "abc", "ab[A]", []audit.Finding{f("A", 2, 9, 1), f("B", 20, 30, 1)}},
		{"invalid UTF-8", "a\xff\xfeb", "a[A]b", []audit.Finding{f("A", 1, 3, 1)}},
		{"other kinds and sides", "abc", "abc", []audit.Finding{other, prompt}},
	} {
		if got := pii.Mask(tc.text, audit.Output, tc.fs); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		// The places tell how to come back: what lies between them is the same.
		masked, places := pii.Replace(tc.text, audit.Output, tc.fs)
		from, to := audit.Span{}, audit.Span{}
		for _, p := range append(places, pii.Place{Original: audit.Span{Start: 99}, Masked: audit.Span{Start: 99}}) {
			from.End, to.End = p.Original.Start, p.Masked.Start
			if from.Slice(tc.text) != to.Slice(masked) {
				t.Errorf("%s: %q became %q", tc.name, from.Slice(tc.text), to.Slice(masked))
			}
			if m := p.Masked.Slice(masked); m != "" && (m[0] != '[' || m[len(m)-1] != ']') {
				t.Errorf("%s: %q is no placeholder", tc.name, m)
			}
			from.Start, to.Start = p.Original.End, p.Masked.End
		}
	}
}

// Values are found and masked however their characters are written.
func TestMaskSpelled(t *testing.T) {
	for text, want := range map[string]string{
		"Write to bob.miller&#64;example.org, please.":              "Write to [EMAIL], please.",
		"Write to bob.miller&commat;example&period;org.":            "Write to [EMAIL].",
		"Write to bob.mil\u00adler@exam\u200bple.org.":              "Write to [EMAIL].",
		"Card 4111\u200b1111\u200b1111\u200b1111, thanks":           "Card [CREDIT_CARD], thanks",
		"Card ４１１１ １１１１ １１１１ １１１１, thanks":                          "Card [CREDIT_CARD], thanks",
		"IBAN 𝐃𝐄𝟖𝟗 𝟑𝟕𝟎𝟒 𝟎𝟎𝟒𝟒 𝟎𝟓𝟑𝟐 𝟎𝟏𝟑𝟎 𝟎𝟎.":                         "IBAN [IBAN].",
		"My SSN is &#49;23-45-6789, é.":                             "My SSN is [US_SSN], é.",
		"R&D told AT&T: 4111 is no card, ４１１１ neither; x&#64;y too": "R&D told AT&T: 4111 is no card, ４１１１ neither; x&#64;y too",
	} {
		if got := pii.Mask(text, audit.Output, find(t, text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What is found fills the record's fields and nothing else of the verdict.
func TestPersonal(t *testing.T) {
	for _, tc := range []struct {
		name, prompt, response string
		want                   audit.Personal
	}{
		{"clean", "Who fits?", "Ask her.", audit.Personal{}},
		{"response only", "Who fits?", "From 203.0.113.7.", audit.Personal{Contained: true, Sensitivity: "low", RedactionSummary: `{"by":"pii","total":1,"response":{"IP_ADDRESS":1}}`}},
		{"prompt", "Mail a.b@example.org and c@example.org", "Done.", audit.Personal{Contained: true, Sensitivity: "medium",
			RedactionSummary: `{"by":"pii","total":2,"prompt":{"EMAIL":2}}`, SanitizedPrompt: "Mail [EMAIL] and [EMAIL]"}},
		{"both", "IBAN NO93 8601 1117 947", "SSN: 536228745", audit.Personal{Contained: true, Sensitivity: "high",
			RedactionSummary: `{"by":"pii","total":2,"prompt":{"IBAN":1},"response":{"US_SSN":1}}`, SanitizedPrompt: "IBAN [IBAN]"}},
	} {
		v := analyzer(t).Analyze(t.Context(), detectortest.Interaction(tc.prompt, tc.response))
		if v.Personal == nil || *v.Personal != tc.want {
			t.Errorf("%s: %+v", tc.name, v.Personal)
		}
		if v.Detected || v.BiasSum != 0 || v.SafetySum != 0 || v.MaxSeverity != 0 || v.Mitigation != "" || len(v.Scores) > 0 {
			t.Errorf("%s: has a part in %+v", tc.name, v)
		}
	}
	in := detectortest.Interaction("", "")
	in.WithoutContent = true
	if v := analyzer(t).Analyze(t.Context(), in); v.Personal != nil {
		t.Error("nobody looked, but something is said")
	}
}
