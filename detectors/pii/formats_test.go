package pii_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/pii"
)

// line is a text with a value of one entity, or a look-alike. bench/pii/generate.py makes them.
type line struct {
	ID, Text, Entity string
	PII              int
}

func formats(t testing.TB) []line { return detectortest.Rows[line](t, "testdata/formats.jsonl") }

func entities(fs []audit.Finding) (out []string) {
	for _, f := range fs {
		out = append(out, f.Entity)
	}
	return out
}

// TestFormats holds the floors: of the values nearly all are found as what they are, of the look-alikes
// hardly any.
func TestFormats(t *testing.T) {
	type tally struct{ found, of int }
	byEntity := map[string]*tally{}
	var all, alike tally
	for _, l := range formats(t) {
		got := entities(find(t, l.Text))
		if l.PII == 0 {
			alike.of++
			if len(got) > 0 {
				alike.found++
				t.Logf("%s %v: %q", l.ID, got, l.Text)
			}
			continue
		}
		if byEntity[l.Entity] == nil {
			byEntity[l.Entity] = &tally{}
		}
		byEntity[l.Entity].of++
		all.of++
		if slices.Contains(got, l.Entity) {
			byEntity[l.Entity].found++
			all.found++
		} else {
			t.Logf("%s not %s but %v: %q", l.ID, l.Entity, got, l.Text)
		}
	}
	if all.of < 600 || alike.of < 600 {
		t.Errorf("%d values, %d look-alikes", all.of, alike.of)
	}
	recall, fpr := float64(all.found)/float64(all.of), float64(alike.found)/float64(alike.of)
	t.Logf("recall %.4f of %d, false positives %.4f of %d", recall, all.of, fpr, alike.of)
	if recall < .98 || fpr > .02 {
		t.Errorf("recall %.4f, want .98; false positives %.4f, want .02 at most", recall, fpr)
	}
	for _, e := range slices.Sorted(maps.Keys(byEntity)) {
		n := byEntity[e]
		t.Logf("%-16s %d of %d", e, n.found, n.of)
		if float64(n.found) < .9*float64(n.of) {
			t.Errorf("%s: %d of %d", e, n.found, n.of)
		}
	}
}

// What was masked is not found again, and what was masked is gone.
func TestMaskedTextIsClean(t *testing.T) {
	for _, l := range formats(t) {
		fs := find(t, l.Text)
		masked := pii.Mask(l.Text, audit.Output, fs)
		if again := find(t, masked); len(again) > 0 {
			t.Errorf("%s: %v in %q, masked as %q", l.ID, entities(again), l.Text, masked)
		}
	}
}

// TestPresidio takes the kinds that we cover of the synthetic texts of presidio-research: phone numbers are
// partly such as no country has.
func TestPresidio(t *testing.T) {
	path := detectortest.Shared(t, "data", "presidio_pii.jsonl")
	ours := map[string]string{"CREDIT_CARD": "CREDIT_CARD", "IBAN_CODE": "IBAN", "US_SSN": "US_SSN", "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "IP_ADDRESS": "IP_ADDRESS"}
	found, of, wrong, clean := map[string]int{}, map[string]int{}, 0, 0
	for _, l := range detectortest.Rows[struct {
		Text  string
		Label struct{ Types []string }
		Meta  struct{ Spans [][2]string }
	}](t, path) {
		fs := find(t, l.Text)
		covered := 0
		for _, s := range l.Meta.Spans {
			e := ours[s[0]]
			if e == "" {
				continue
			}
			covered++
			of[e]++
			if slices.ContainsFunc(fs, func(f audit.Finding) bool { return f.Entity == e && contains(f.Span.Slice(l.Text), s[1]) }) {
				found[e]++
			} else {
				t.Logf("not %s %q in %q", e, s[1], l.Text)
			}
		}
		if covered == 0 {
			clean++
			if slices.ContainsFunc(fs, func(f audit.Finding) bool { return f.Entity != "DATE_OF_BIRTH" }) {
				wrong++
				t.Logf("%v in %q", entities(fs), l.Text)
			}
		}
	}
	for _, e := range slices.Sorted(maps.Keys(of)) {
		floor := .98
		if e == "PHONE" {
			floor = .9
		}
		r := float64(found[e]) / float64(of[e])
		t.Logf("%-12s recall %.3f of %d", e, r, of[e])
		if r < floor {
			t.Errorf("%s: recall %.3f, want %.2f", e, r, floor)
		}
	}
	t.Logf("false positives %d of %d", wrong, clean)
	if float64(wrong) > .02*float64(clean) {
		t.Errorf("%d of %d texts without any", wrong, clean)
	}
}

// contains tells whether most of a value was found.
func contains(got, want string) bool {
	return len(got) > 0 && (got == want || len(got) >= len(want)*2/3)
}

// FuzzPII: any text is survived, spans lie in it, masking takes out what was found and can be done again.
func FuzzPII(f *testing.F) {
	f.Add("")
	f.Add(" \u200b")
	for i, l := range formats(f) {
		if i%10 == 0 {
			f.Add(l.Text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := analyzer(t)
		in := detectortest.Interaction(text, text)
		v := a.Analyze(t.Context(), in)
		want := audit.Done
		blank := strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) }) == ""
		if blank && !slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Side == audit.Output }) {
			want = audit.Skipped // no response
		}
		if v.Status != want {
			t.Fatalf("%s (%s), want %s", v.Status, v.Reason, want)
		}
		n := uint32(len([]rune(text)))
		for _, x := range v.Findings {
			if x.Span.Start >= x.Span.End || x.Span.End > n {
				t.Fatalf("%s [%d,%d) of %d", x.Rule, x.Span.Start, x.Span.End, n)
			}
		}
		masked := pii.Mask(text, audit.Output, v.Findings)
		if masked != pii.Mask(text, audit.Output, v.Findings) {
			t.Fatal("not the same twice")
		}
		if got := v.Personal.SanitizedPrompt; got != "" && got != masked {
			t.Fatalf("the prompt is masked as %q, the same response as %q", got, masked)
		}
	})
}

// TestCredentials takes what people who saw no rule wrote: secrets in as many forms as they could think of ("forms"), secrets as they are usually
// written ("usual"), and the same surroundings without one. The rules were mended by them, so the floors hold what is reached and are no forecast.
func TestCredentials(t *testing.T) {
	type tally struct{ found, of, alarms, clean int }
	bySet := map[string]*tally{"forms": {}, "usual": {}}
	for _, l := range detectortest.Rows[struct {
		ID, Text string
		Values   []string
	}](t, "testdata/credentials.jsonl") {
		set, _, _ := strings.Cut(l.ID, "-")
		n := bySet[set]
		fs := find(t, l.Text)
		if len(l.Values) == 0 {
			n.clean++
			if slices.Contains(entities(fs), "CREDENTIAL") {
				n.alarms++
				t.Logf("%s %v: %q", l.ID, entities(fs), l.Text)
			}
			continue
		}
		masked := pii.Mask(l.Text, audit.Output, fs)
		for _, v := range l.Values {
			if n.of++; strings.Count(masked, v) < strings.Count(l.Text, v) {
				n.found++
			} else {
				t.Logf("%s not %q in %q", l.ID, v, l.Text)
			}
		}
	}
	for _, set := range slices.Sorted(maps.Keys(bySet)) {
		n := bySet[set]
		recall, alarms := float64(n.found)/float64(n.of), float64(n.alarms)/float64(n.clean)
		t.Logf("%s: found %d of %d (%.3f), alarms %d of %d", set, n.found, n.of, recall, n.alarms, n.clean)
		if n.of < 200 || n.clean < 200 || recall < .84 || alarms > .01 {
			t.Errorf("%s: recall %.3f, want .84; alarms %.3f, want .01 at most", set, recall, alarms)
		}
	}
}
