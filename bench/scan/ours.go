package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/evenhand/evenhand/detectors/scan"
)

// ours is a Scanner that lives through all rounds.
type ours struct {
	c       *corpus
	scanner *scan.Scanner
	found   []scan.Match
}

func newOurs(c *corpus) (*ours, error) {
	o := &ours{c: c}
	var err error
	if o.scanner, err = scan.Compile(c.rules, scan.Options{}); err != nil {
		return nil, err
	}
	for _, texts := range [][]string{c.texts, c.attempts} { // warm from the first round on
		o.look(o.scanner, texts)
	}
	return o, nil
}

// all lists what is measured with n rules.
func (o *ours) all(n int) []engine {
	name := func(what string) string { return fmt.Sprintf("ours, %d rules, %s", n, what) }
	all := []engine{measured{name("warm"), o.warm(ordinary)}}
	if n == benchRules {
		all = append(all, measured{name("cold, all texts"), o.cold(false, len(o.c.texts))},
			measured{name("cold, the first 50 texts"), o.cold(false, 50)}, measured{name("the same after Warm"), o.cold(true, 50)},
			measured{name("adversarial, warm"), o.warm(adversarial)})
	}
	return all
}

// measured is an engine of this process.
type measured struct {
	title string
	take  func() (result, error)
}

func (m measured) name() string              { return m.title }
func (m measured) round(int) (result, error) { return m.take() }
func (m measured) stop()                     {}

// look scans texts and gives nanoseconds of the processor and the pairs of text and rule.
func (o *ours) look(s *scan.Scanner, texts []string) (ns int64, pairs int) {
	hit := make([]int, len(o.c.rules)) // the last text in which a rule matched, from 1
	begin := processTime()
	for i, text := range texts {
		o.found = s.Scan(text, o.found[:0])
		for _, m := range o.found {
			if hit[m.Pattern] != i+1 {
				hit[m.Pattern] = i + 1
				pairs++
			}
		}
	}
	return processTime() - begin, pairs
}

// warm takes all texts of a kind at once, and then one by one.
func (o *ours) warm(kind int) func() (result, error) {
	return func() (r result, err error) {
		texts := o.c.kind(kind)
		ns, pairs := o.look(o.scanner, texts)
		r.perText, r.pairs = perUnit(ns, texts), pairs
		var each []int64
		for _, text := range texts {
			begin := threadTime()
			o.found = o.scanner.Scan(text, o.found[:0])
			each = append(each, threadTime()-begin)
		}
		slices.Sort(each)
		r.p99 = float64(each[len(each)*99/100]) / 1e3
		return r, nil
	}
}

// cold takes the first n texts with a Scanner that was just compiled.
func (o *ours) cold(warmed bool, n int) func() (result, error) {
	return func() (r result, err error) {
		begin := processTime()
		s, err := scan.Compile(o.c.rules, scan.Options{})
		if err != nil {
			return r, err
		}
		if warmed {
			s.Warm()
		}
		r.compileMS = float64(processTime()-begin) / 1e6
		texts := o.c.texts[:n]
		ns, pairs := o.look(s, texts)
		r.perText, r.pairs = perUnit(ns, texts), pairs
		return r, nil
	}
}

// processTime is what all threads of this process used, in nanoseconds.
func processTime() int64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// threadTime is what this thread used.
func threadTime() int64 { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// threads lists the threads of this process.
func threads() (ids []int) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return []int{0}
	}
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
