package linguistic

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

// ceilings hold the share of ordinary texts with any finding of a kind. They stand a little above what was measured; a
// rule that pushes a kind through its ceiling says too much about texts in which nobody would change a word.
var ceilings = map[string]float64{
	"any": 0.005, "gendered_language": 0.004, "idiom": 0.001, "language": 0.001, "toxicity": 0.0005,
	"microaggression": 0.0002, "job_advert_wording": 0.0002, "sentiment": 0.0002,
}

func TestOrdinaryText(t *testing.T) {
	look := looker(t, mustNew(t))
	with, n := map[string]int{}, 0
	for _, name := range ordinary {
		here, rows := map[string]int{}, shared(t, name)
		for _, r := range rows {
			kinds := map[string]bool{}
			fs, _ := look(audit.General, r.Text)
			for _, f := range fs {
				kinds[f.Kind], kinds["any"] = true, true
			}
			for k := range kinds {
				here[k]++
				with[k]++
			}
		}
		n += len(rows)
		t.Logf("%s: %d texts, %v", name, len(rows), here)
	}
	for _, kind := range slices.Sorted(maps.Keys(ceilings)) {
		share, upper := float64(with[kind])/float64(n), wilson(with[kind], n)
		t.Logf("%-20s %3d of %d  %.4f  (95%% upper %.4f)", kind, with[kind], n, share, upper)
		if share > ceilings[kind] {
			t.Errorf("%s: %.4f of ordinary texts; at most %.4f", kind, share, ceilings[kind])
		}
	}
	if unlisted := slices.DeleteFunc(slices.Collect(maps.Keys(with)), func(k string) bool { return ceilings[k] > 0 }); len(unlisted) > 0 {
		t.Errorf("no ceiling for %v", unlisted)
	}
}

// wilson is the upper bound of the 95 % score interval.
func wilson(k, n int) float64 {
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	return (p + z*z/(2*m) + z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))) / (1 + z*z/m)
}

// TestConfidence recomputes each rule's confidence: the share of right hits in ordinary texts and in the dev part of posts,
// drawn towards 0.8 by five hits that were never made:
//
//	confidence = (right + 4) / (hits + 5)
//
// Rules of one table share one figure. Which hits are wrong stands in testdata/wrong.tsv.
func TestConfidence(t *testing.T) {
	wrong := map[string]bool{}
	for _, f := range lines(t, "testdata/wrong.tsv") {
		wrong[f[0]+" "+f[1]] = true
	}
	d := mustNew(t)
	look := looker(t, d)
	type count struct{ hits, right int }
	of := map[string]*count{}
	for i, name := range slices.Concat(ordinary, posts) {
		for _, r := range shared(t, name) {
			if i >= len(ordinary) && r.Split != "dev" {
				continue
			}
			fs, _ := look(audit.General, r.Text)
			for _, f := range fs {
				table := tableOf(d, f.Rule)
				right := !wrong[table+" "+r.ID]
				if f.Kind == "toxicity" {
					if r.Label.Toxic == nil {
						continue
					}
					right = *r.Label.Toxic == 1
				}
				if of[table] == nil {
					of[table] = &count{}
				}
				of[table].hits++
				if right {
					of[table].right++
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range d.rules[:d.inPacks] {
		table := tableOf(d, r.ID)
		if seen[table] {
			continue
		}
		seen[table] = true
		c := of[table]
		if c == nil {
			c = &count{}
		}
		want := math.Round(100*float64(c.right+4)/float64(c.hits+5)) / 100
		if math.Abs(want-r.Confidence) > 0.005 {
			t.Errorf("%s: confidence: %.2f; %d of %d hits are right: want %.2f", table, r.Confidence, c.right, c.hits, want)
		}
		if c.hits > 0 {
			t.Logf("%-40s %3d of %3d right  %.2f", table, c.right, c.hits, want)
		}
	}
}
