package scan

import (
	"math/rand/v2"
	"testing"
)

// The assembly does what Go does, step by step, whatever stands in the table.
func TestStride(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	s := mustCompile(t, makeRules(200), Options{})
	for _, text := range makeTexts(50, makeHits) {
		s.Scan(text, nil)
	}
	c := s.cache.Load()
	for range 2_000 {
		n := r.IntN(200)
		one := stride{table: c.table, ascii: &c.ascii, at: r.IntN(n + 1)}
		texts := makeTexts(lanes, makeText)
		for lane := range lanes {
			from := r.IntN(len(texts[lane]) - n)
			one.texts[lane] = texts[lane][from : from+n]
			one.states[lane] = silent + uint32(r.IntN(int(c.lastSilent-silent)))
		}
		other := one
		for one.at < n {
			one.run()
			other.runGo()
			if one.at != other.at || one.states != other.states || one.next != other.next {
				t.Fatalf("at %d of %d, states %d, next %d; in Go at %d, states %d, next %d", one.at, n, one.states, one.next, other.at, other.states, other.next)
			}
			for lane, e := range one.next {
				if one.states[lane] = e; e == 0 {
					one.states[lane] = silent
				}
			}
			one.at++
			other = one
		}
	}
}
