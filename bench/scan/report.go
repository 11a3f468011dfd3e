package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// report prints what was measured and the goals; it tells whether all goals that could be looked at are met.
func report(all []series) bool {
	find := func(prefix string) (series, bool) {
		for _, s := range all {
			if strings.HasPrefix(s.name, prefix) {
				return s, true
			}
		}
		return series{}, false
	}
	base, _ := find(fmt.Sprintf("ours, %d rules, warm", benchRules))
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s, %d rounds, load %s\n\n", runtime.Version(), len(base.rounds), strings.Join(strings.Fields(string(load))[:1], ""))
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ENGINE\tµs/2 KB\tLOW – HIGH\tTIMES OURS, WARM\tLOW – HIGH\tp99 µs/TEXT\tPAIRS\tCOMPILE ms")
	for _, s := range all {
		per, times := s.of(func(r result) float64 { return r.perText }), s.times(base)
		p99 := s.of(func(r result) float64 { return r.p99 })
		compile := s.of(func(r result) float64 { return r.compileMS })
		fmt.Fprintf(t, "%s\t%.1f\t%.1f – %.1f\t%.2f\t%.2f – %.2f\t%s\t%s\t%s\n", s.name, per.median, per.low, per.high, times.median, times.low, times.high,
			orNone("%.0f", p99.median), orNone("%.0f", float64(s.rounds[0].pairs)), orNone("%.0f", compile.median))
	}
	_ = t.Flush()
	return goals(find)
}

func orNone(format string, v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// goals prints the goals. Those of peers that are not there are left out.
func goals(find func(prefix string) (series, bool)) bool {
	met := true
	goal := func(what string, got float64, ok bool) {
		verdict := "met"
		if !ok {
			verdict, met = "MISSED", false
		}
		fmt.Printf("%-60s %8.2f  %s\n", what, got, verdict)
	}
	ours := func(what string) series {
		s, _ := find("ours, " + what)
		return s
	}
	fmt.Println()
	warm, perText := ours("1000 rules, warm"), func(r result) float64 { return r.perText }
	v := warm.of(perText).median
	goal("warm: at most 12 µs", v, v <= 12)
	v = ours("1000 rules, cold").of(perText).median
	goal("cold: at most 25 µs", v, v <= 25)
	v = ours("2000 rules, warm").times(ours("500 rules, warm")).median
	goal("2,000 rules: at most 2 × the time of 500", v, v <= 2)
	v = ours("1000 rules, adversarial").of(func(r result) float64 { return r.p99 }).median
	goal("adversarial: p99 at most 1,000 µs", v, v <= 1000)
	for _, p := range []struct {
		name, what string
		least      float64
	}{
		{"Hyperscan", "Hyperscan takes at least 1.0 × our time", 1},
		{"Rust", "Rust takes at least 1/1.3 × our time", 1 / 1.3},
		{"llm-guard", "llm-guard takes at least 1,000 × our time", 1000},
		{"presidio", "presidio takes at least 500 × our time", 500},
	} {
		if s, ok := find(p.name); ok {
			v := s.times(warm).median
			goal(p.what, v, v >= p.least)
		}
	}
	return met
}
