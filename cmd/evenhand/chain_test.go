package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

// BenchmarkChain takes answers of models in pieces of 2 KB through all detectors, as the pipeline does, and
// gives the processor's time for one: at the median and at the 99th percentile, without the encoder and with each of its efforts.
func BenchmarkChain(b *testing.B) {
	for _, effort := range encoderEfforts {
		b.Run("encoder="+effort, func(b *testing.B) { benchmarkChain(b, effort) })
	}
}

func benchmarkChain(b *testing.B, effort string) {
	s := defaultSettings()
	s.Classifier.Encoder = effort
	s.Classifier.Memory = 0 // each text is to be as dear as the first time
	a, err := newAnalyzer(s)
	if err != nil {
		b.Fatal(err)
	}
	a.Warm()
	texts := chainTexts(b)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := func() int64 { return used(unix.CLOCK_THREAD_CPUTIME_ID) }
	var each []int64
	i := 0
	look := func() {
		in := &audit.Interaction{ID: audit.ID{1}, Tenant: "t", Domain: audit.General, Response: texts[i%len(texts)]}
		begin := clock()
		a.Analyze(b.Context(), in)
		each = append(each, clock()-begin)
		i++
	}
	for range texts { // what ordinary traffic has warmed
		look()
	}
	slices.Sort(each)
	first := each[len(each)*99/100]
	each = each[:0]
	b.ReportAllocs()
	for b.Loop() {
		look()
	}
	slices.Sort(each)
	b.ReportMetric(float64(each[len(each)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(each[len(each)*99/100])/1e3, "p99-µs")
	b.ReportMetric(float64(first)/1e3, "first-p99-µs")
}

// used is the processor's time of a thread or the process in nanoseconds.
func used(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// chainTexts cuts the shared answers into pieces of 2 KB.
func chainTexts(b *testing.B) (texts []string) {
	b.Helper()
	var all strings.Builder
	for _, row := range detectortest.Rows[struct{ Text string }](b, detectortest.Shared(b, "data", "vicuna_eval_answers.jsonl")) {
		all.WriteString(row.Text + "\n\n")
	}
	for s := all.String(); len(s) >= 2048; s = s[2048:] {
		texts = append(texts, strings.ToValidUTF8(s[:2048], ""))
	}
	return texts
}

// BenchmarkReload loads, lints, tests, compiles and warms 1,000 rules of an operator's own: alone, and with those
// that ship.
func BenchmarkReload(b *testing.B) {
	const rulesOfOne = 1000
	var pack strings.Builder
	pack.WriteString("pack: charter.age.own.en\ntitle: T\nversion: 2026.11.1\nlanguage: en\nground: age\nrules:\n")
	names := strings.Fields("clerk driver nurse teacher farmer baker pilot writer singer painter")
	words := strings.Fields("slow late careless rude idle sloppy vague noisy gloomy stubborn")
	for i := range rulesOfOne {
		n, w := names[i%10], words[i/10%10]
		fmt.Fprintf(&pack, "  - {id: age.own.r%d, description: D, rationale: R, source: S, severity: MEDIUM, patterns: ['\\b(?:%s|%ss|x%d)\\b[^.!?\\n]{0,30}\\b(?:%s|y%d) z%d\\b'], match: [The %s is %s z%d., A x%d y%d z%d], no_match: [The %s., So %s.]}\n",
			i, n, n, i, w, i, i, n, w, i, i, i, i, n, w)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(pack.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	s := defaultSettings()
	s.Rules.Dir = dir
	report := func(b *testing.B, begin int64) {
		b.ReportMetric(float64(used(unix.CLOCK_PROCESS_CPUTIME_ID)-begin)/1e6/float64(b.N), "cpu-ms")
	}
	b.Run("alone", func(b *testing.B) {
		begin := used(unix.CLOCK_PROCESS_CPUTIME_ID)
		for b.Loop() {
			own, err := s.Rules.load(nil)
			if err != nil {
				b.Fatal(err)
			}
			d, err := bias.New(own)
			if err != nil {
				b.Fatal(err)
			}
			a, err := detectors.NewAnalyzer(s.policy(), d)
			if err != nil {
				b.Fatal(err)
			}
			a.Warm()
		}
		report(b, begin)
	})
	b.Run("with_shipped", func(b *testing.B) {
		begin := used(unix.CLOCK_PROCESS_CPUTIME_ID)
		for b.Loop() {
			a, err := newAnalyzer(s)
			if err != nil {
				b.Fatal(err)
			}
			a.Warm()
		}
		report(b, begin)
	})
}
