package guard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
)

// texts of 2 KB: ordinary prose, and the same with a finding.
var (
	prose  = strings.Repeat("The committee met on Tuesday, read the three reports that had been asked for, and put the budget off until May. ", 18)
	biased = prose[:1000] + emotion + prose[1000:]
)

// BenchmarkDecide compares a decision with the analysis alone, in turn on the same texts, and shows both in
// microseconds: at the middle, at the 99th of 100, and what the decision adds at the middle.
func BenchmarkDecide(b *testing.B) {
	current := guardtest.Current(b)
	g := guard.New(current, guard.Config{})
	a := current.Analyzer()
	everything := options(b, `{"domain":"hr","biasAction":"block","safetyFilter":true,"hitlGate":true}`)
	both := everything
	both.Check = guard.Both
	checked := guard.DefaultOptions()
	checked.CheckedOnly = true
	for _, bc := range []struct {
		name string
		in   *audit.Interaction
		o    guard.Options
	}{
		{"clean", detectortest.Interaction("", prose), guard.DefaultOptions()}, {"clean, all on", detectortest.Interaction("", prose), everything},
		{"found", detectortest.Interaction("", biased), everything}, {"found, both", detectortest.Interaction(biased, biased), both},
		{"behind 200 KB", detectortest.Interaction(strings.Repeat(prose, 100), prose), guard.DefaultOptions()}, {"behind 200 KB, checked only", detectortest.Interaction(strings.Repeat(prose, 100), prose), checked},
	} {
		bc.o.Domain = bc.in.Domain
		b.Run(bc.name, func(b *testing.B) {
			alone, decided := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
			for b.Loop() {
				t0 := time.Now()
				a.Analyze(b.Context(), bc.in)
				t1 := time.Now()
				if _, err := g.Decide(b.Context(), bc.in, bc.o); err != nil {
					b.Fatal(err)
				}
				alone, decided = append(alone, t1.Sub(t0)), append(decided, time.Since(t1))
			}
			at := func(ds []time.Duration, share float64) float64 {
				slices.Sort(ds)
				return float64(ds[int(share*float64(len(ds)-1))].Nanoseconds()) / 1000
			}
			b.ReportMetric(at(alone, 0.5), "alone-p50-µs")
			b.ReportMetric(at(alone, 0.99), "alone-p99-µs")
			b.ReportMetric(at(decided, 0.5), "p50-µs")
			b.ReportMetric(at(decided, 0.99), "p99-µs")
			b.ReportMetric(at(decided, 0.5)-at(alone, 0.5), "added-µs")
			b.ReportMetric(testing.AllocsPerRun(100, func() { _, _ = g.Decide(b.Context(), bc.in, bc.o) })-
				testing.AllocsPerRun(100, func() { a.Analyze(b.Context(), bc.in) }), "added-allocs")
		})
	}
}
