package scan

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func zzLines(t *testing.T, name string) []string {
	var out []string
	f, _ := os.Open(name)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v struct{ RE, Text string }
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v.RE+v.Text)
	}
	return out
}

func TestZZ(t *testing.T) {
	raw, _ := os.ReadFile("/tmp/scanwork/patterns.txt")
	ps := strings.Split(string(raw), "\n")
	if os.Getenv("SB") != "" {
		ps = zzLines(t, "/tmp/scanwork/sb/patterns.jsonl")
	}
	t0 := cpuTime()
	s, err := Compile(ps, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("compile cpu", cpuTime()-t0, "parts", s.program.size, "chains", len(s.chains), "insts", len(s.program.inst), "cols", columnsFor(s.program.alphabet), "max", s.maxStates)
	count := map[uint32]int{}
	hot := map[int32]int{}
	defer func() {
		type kv struct {
			p uint32
			n int
		}
		var l []kv
		for p, n := range count {
			l = append(l, kv{p, n})
		}
		slices.SortFunc(l, func(a, b kv) int { return b.n - a.n })
		uses := map[int32]int{}
		for _, c := range s.chains {
			for _, j := range c.parts {
				uses[j.part]++
			}
		}
		for _, x := range l[:min(len(l), 60)] {
			t.Logf("%6d uses %d triggers %d  %.150s", x.n, uses[int32(x.p)], len(s.triggers[x.p]), dbg[int32(x.p)])
		}
		var h []kv
		for p, n := range hot {
			h = append(h, kv{uint32(p), n})
		}
		slices.SortFunc(h, func(a, b kv) int { return b.n - a.n })
		for _, x := range h[:min(len(h), 40)] {
			of := s.chainsOf[x.p]
			str := ""
			for _, c := range s.chains[of.lo : of.lo+1] {
				for _, j := range c.parts {
					str += "  @@ " + fmt.Sprintf("%.60s", dbg[j.part])
				}
			}
			t.Logf("%6d %.100s ||| %s", x.n, ps[x.p], str)
		}
	}()
	for _, c := range []string{"/tmp/scanwork/sb/corpus.jsonl", "/work/shared/data/vicuna_eval_answers.jsonl"} {
		texts := zzLines(t, c)
		for pass := range 3 {
			hits, n, starts, present, chains, bytes, fl := 0, 0, 0, 0, 0, 0, 0
			t0 = cpuTime()
			var dst []Match
			for _, x := range texts {
				dst = s.Scan(x, dst[:0])
				hits += len(dst)
				bytes += len(x)
			}
			d := cpuTime() - t0
			t1 := cpuTime()
			for _, x := range texts {
				w := s.walk()
				w.filter(x)
				n++
				starts += len(w.hits)
				present += len(w.present)
				chains += len(w.open)
				for _, p := range w.present {
					fl += len(w.ends[p])
					count[p] += len(w.ends[p])
				}
				for _, h := range w.hits {
					hot[h]++
				}
				s.release(w)
			}
			d2 := cpuTime() - t1
			t.Logf("pass %d: %.1f µs/text, %.1f per 2KB, filter %.1f, states %d, hits %.2f patterns hit %.2f chains %.2f parts present %.1f reports %.1f", pass, float64(d.Nanoseconds())/1e3/float64(n), float64(d.Nanoseconds())/1e3/float64(bytes)*2048, float64(d2.Nanoseconds())/1e3/float64(n), s.cache.Load().n, float64(hits)/float64(n), float64(starts)/float64(n), float64(chains)/float64(n), float64(present)/float64(n), float64(fl)/float64(n))
		}
	}
}
