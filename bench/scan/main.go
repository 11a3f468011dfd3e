// Command scan measures the scanner beside other engines, on the rules and texts of the shared generator:
//
//	go run ./bench/scan                    ours alone
//	bench/scan/peers/setup.sh DIR          builds the peers
//	go run ./bench/scan -peers DIR         all of them
//
// EVENHAND_SHARED names the folder with tools/scanbench. Every engine has one process and one core, the same for
// all; they take turns, round by round, so that what else the machine does falls on all of them. Times are of the
// processor, per 2 KB of text: medians of the rounds, with the lowest and the highest. Ratios are taken within a
// round. It ends with the goals, and with status 1 when one is missed.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// ruleCounts are the sizes of rule sets whose times are compared.
var ruleCounts = []int{500, 1000, 2000}

const benchRules = 1000

func main() {
	peers := flag.String("peers", "", "folder of the peers that setup.sh built; empty: ours alone")
	rounds := flag.Int("rounds", 9, "rounds, at least 9 for figures to keep")
	core := flag.Int("core", 0, "the core that all run on")
	flag.Parse()
	ok, err := run(*peers, *rounds, *core)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/scan:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func run(peers string, rounds, core int) (ok bool, err error) {
	if rounds < 1 {
		return false, errors.New("-rounds: wants at least one")
	}
	dir, err := os.MkdirTemp("", "evenhand-bench-scan.")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sets := map[int]*corpus{}
	for _, n := range ruleCounts {
		if sets[n], err = generate(filepath.Join(dir, fmt.Sprint(n)), n); err != nil {
			return false, err
		}
	}
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread() // its clock times single texts
	var cpus unix.CPUSet
	cpus.Set(core)
	for _, pid := range threads() {
		if err := unix.SchedSetaffinity(pid, &cpus); err != nil {
			return false, fmt.Errorf("-core %d: %w", core, err)
		}
	}
	var engines []engine
	defer func() {
		for _, e := range engines {
			e.stop()
		}
	}()
	for _, n := range ruleCounts {
		o, err := newOurs(sets[n])
		if err != nil {
			return false, err
		}
		engines = append(engines, o.all(n)...)
	}
	if peers != "" {
		found, err := startPeers(peers, sets[benchRules])
		engines = append(engines, found...)
		if err != nil {
			return false, err
		}
	}
	results := make([]series, len(engines))
	for round := range rounds {
		for i, e := range engines {
			r, err := e.round(round)
			if err != nil {
				return false, fmt.Errorf("%s: %w", e.name(), err)
			}
			results[i].name = e.name()
			results[i].rounds = append(results[i].rounds, r)
		}
	}
	return report(results), nil
}

// engine is something that is measured.
type engine interface {
	name() string
	// round looks at its texts, or at those of the round's turn.
	round(n int) (result, error)
	stop()
}

// result is what one round of an engine gave.
type result struct {
	perText   float64 // µs of processor time per 2 KB
	p99       float64 // µs of the slowest text but one in a hundred; 0: not measured
	pairs     int     // of text and rule; 0: not told
	compileMS float64 // of the rules; 0: not measured
}

type series struct {
	name   string
	rounds []result
}

// spread is a median, and the lowest and the highest.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	slices.SortFunc(values, cmp.Compare)
	return spread{values[len(values)/2], values[0], values[len(values)-1]}
}

func (s series) of(f func(result) float64) spread {
	var values []float64
	for _, r := range s.rounds {
		values = append(values, f(r))
	}
	return spreadOf(values)
}

// times is how many times as long s takes as base, round by round.
func (s series) times(base series) spread {
	var values []float64
	for i := range s.rounds {
		values = append(values, s.rounds[i].perText/base.rounds[i].perText)
	}
	return spreadOf(values)
}
