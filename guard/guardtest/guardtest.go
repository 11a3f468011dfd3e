// Package guardtest makes analyzers for the tests of what guards texts.
package guardtest

import (
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
)

var shipped = sync.OnceValues(func() (*detectors.Analyzer, error) {
	var ds []detectors.Detector
	packs := func(fsys fs.FS) (ps []*rules.Pack) {
		ps, _ = rules.Load(fsys) // a detector without rules is found out at once
		return ps
	}
	b, err := bias.New(packs(bias.Packs()))
	if err != nil {
		return nil, err
	}
	s, err := safety.New(packs(safety.Packs()))
	if err != nil {
		return nil, err
	}
	g, err := gate.New(nil, nil)
	if err != nil {
		return nil, err
	}
	p, err := pii.New(pii.DefaultConfig(), append(packs(pii.Packs()), packs(safety.Packs())...)) // it reads the leaked numbers' rules, too
	if err != nil {
		return nil, err
	}
	policy := detectors.DefaultPolicy()
	policy.DetectTimeout = time.Minute // however busy the machine is
	a, err := detectors.NewAnalyzer(policy, append(ds, b, s, g, p)...)
	if err == nil && !testing.Short() { // what is cold only takes longer
		a.Warm()
	}
	return a, err
})

// Current is the shipped rules of bias, safety, gate and personal data, compiled once a test program.
func Current(tb testing.TB) *detectors.Current {
	tb.Helper()
	a, err := shipped()
	if err != nil {
		tb.Fatal(err)
	}
	return detectors.NewCurrent(a)
}

// Personal is the detector of personal data alone, as it is in Current: an analyzer of it is compiled in a moment.
func Personal(tb testing.TB) detectors.Detector {
	tb.Helper()
	for _, d := range Current(tb).Analyzer().Detectors() {
		if d.Info().Family == detectors.PII {
			return d
		}
	}
	tb.Fatal("nothing looks for personal data")
	return nil
}

// Light is the built-in gate rules alone, compiled in a moment: for fuzzing, where each worker compiles anew.
func Light(tb testing.TB) *detectors.Current {
	tb.Helper()
	g, err := gate.New(nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := detectors.NewAnalyzer(detectors.DefaultPolicy(), g)
	if err != nil {
		tb.Fatal(err)
	}
	return detectors.NewCurrent(a)
}
