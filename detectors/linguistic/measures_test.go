package linguistic

import (
	"math"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

// smoothed is a share drawn towards 0.8 by five hits, as in TestConfidence.
func smoothed(right, hits int) audit.Score {
	return audit.ScoreOf(math.Round(100*float64(right+4)/float64(hits+5)) / 100)
}

// TestSentimentFindings recomputes the confidence of sentiment.divergence and holds how many of the texts it finds.
func TestSentimentFindings(t *testing.T) {
	look := looker(t, mustNew(t))
	hits, right, of, plain := 0, 0, 0, 0
	for _, f := range lines(t, "testdata/responses.tsv") {
		fs, scores := look(audit.General, f[1])
		found := false
		for _, x := range fs {
			found = found || x.Rule == RuleDivergence
		}
		if f[0] == "1" {
			of++
		} else {
			plain++
		}
		if found {
			hits++
			if f[0] == "1" {
				right++
			}
		}
		if found != (f[0] == "1") {
			t.Logf("found %t: %s %v", found, f[1], scores)
		}
	}
	t.Logf("%d of %d found, %d of %d plain texts", right, of, hits-right, plain)
	if right < of*8/10 || hits-right > plain/10 {
		t.Errorf("%d of %d found, %d of %d plain texts", right, of, hits-right, plain)
	}
	if want := smoothed(right, hits); want != divergenceConfidence {
		t.Errorf("confidence %v, want %v", divergenceConfidence, want)
	}
}

// TestCodedAdverts does the same for adverts.
func TestCodedAdverts(t *testing.T) {
	look := looker(t, mustNew(t))
	want := map[string]string{"m": RuleMasculine, "f": RuleFeminine}
	hits, right, of := 0, 0, 0
	for _, f := range lines(t, "testdata/adverts.tsv") {
		fs, scores := look(audit.General, f[1])
		rule, score := "", -1.0
		for _, x := range fs {
			if x.Rule == RuleMasculine || x.Rule == RuleFeminine {
				rule = x.Rule
			}
		}
		for _, s := range scores {
			if s.Name == "gendered_language" {
				score = s.Value.Float()
			}
		}
		if want[f[0]] != "" {
			of++
		}
		if rule != "" {
			hits++
			if rule == want[f[0]] {
				right++
			}
		}
		if rule != want[f[0]] {
			t.Logf("%q, want %q: %s", rule, want[f[0]], f[1])
		}
		if f[0] == "x" && score >= 0 {
			t.Errorf("measured as an advert: %s", f[1])
		}
	}
	t.Logf("%d of %d strongly coded adverts found, %d others", right, of, hits-right)
	if right < of*9/10 || hits-right > 1 {
		t.Errorf("%d of %d found, %d others", right, of, hits-right)
	}
	if want := smoothed(right, hits); want != codedConfidence {
		t.Errorf("confidence %v, want %v", codedConfidence, want)
	}
}

// The balance is symmetric, grows with the surplus and is 0 without one.
func TestBalance(t *testing.T) {
	c := parseCoded(codedFile)
	score := func(text string) float64 { b := c.balance(text); return b.score() }
	for _, tc := range []struct {
		text string
		want float64
	}{
		{"nothing here", 0}, {"lead", 1.0 / 5}, {"lead compete decisive", 3.0 / 7}, {"support share trust", 3.0 / 7}, {"lead share", 0},
		{"The analyst reads responses of the committee.", 0},
	} {
		if got := score(tc.text); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s: %.3f, want %.3f", tc.text, got, tc.want)
		}
	}
}

// BenchmarkDetect is the cost of the detector beside the scan: on clean text, on one with persons of two sexes, and on
// one that is read for tone and roles.
func BenchmarkDetect(b *testing.B) {
	d := mustNew(b)
	for _, bc := range []struct{ name, text string }{
		{"clean", "The report has three pages. It lists the trains of the week and the price of each ticket."},
		{"persons", "He took the train and she drove. Later he called her and she told him the time."},
		{"divided", divided},
	} {
		b.Run(bc.name, func(b *testing.B) {
			x := prepared(b, d, bc.text)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := d.DetectScored(b.Context(), x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
