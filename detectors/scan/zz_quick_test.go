package scan

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"
	"fmt"
	"runtime"
)

func lines(t testing.TB, f, key string) (out []string) {
	fh, err := os.Open(os.Getenv("SB")+"/" + f)
	if err != nil { t.Skip(err) }
	defer fh.Close()
	sc := bufio.NewScanner(fh); sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		m := map[string]any{}
		json.Unmarshal(sc.Bytes(), &m)
		out = append(out, m[key].(string))
	}
	return
}

func TestStates(t *testing.T) {
	ps := lines(t, "patterns.jsonl", "re")
	corpus := lines(t, "corpus.jsonl", "text")
	adv := lines(t, "adversarial.jsonl", "text")
	var m0, m1 runtime.MemStats
	runtime.GC(); runtime.ReadMemStats(&m0)
	t0 := time.Now()
	s := mustCompile(t, ps, Options{})
	fmt.Println("compile", time.Since(t0), "insts", len(s.program.inst), "parts", len(s.program.parts), "classes", s.program.alphabet.end, "chains", len(s.chains), "states", s.maxStates, "bases", len(s.program.bases))
	runtime.GC(); runtime.ReadMemStats(&m1)
	fmt.Println("heap", (m1.HeapAlloc-m0.HeapAlloc)>>10, "KB")
	run := func(name string, texts []string) {
		var dst []Match
		n := 0
		t0 := time.Now()
		for _, x := range texts { dst = s.Scan(x, dst[:0]); n += len(dst) }
		d := time.Since(t0)
		fmt.Printf("%s %.2f µs/text hits %d states %d\n", name, float64(d.Microseconds())/float64(len(texts)), n, s.cache.Load().n)
	}
	filt := func(name string, texts []string) {
		t0 := time.Now()
		hits := 0
		for _, x := range texts { w := s.walks.Get().(*walk); w.cache = s.cache.Load(); w.filter(x); hits += len(w.hits); w.reset(); s.walks.Put(w) }
		d := time.Since(t0)
		fmt.Printf("%s filter only %.2f µs/text, candidates %d\n", name, float64(d.Microseconds())/float64(len(texts)), hits)
	}
	run("first 1000", corpus[:1000])
	run("corpus cold", corpus)
	run("corpus", corpus)
	run("corpus", corpus)
	filt("corpus", corpus)
	run("adv cold", adv)
	run("adv", adv)
	run("adv", adv)
	filt("adv", adv)
	runtime.GC(); runtime.ReadMemStats(&m1)
	fmt.Println("heap", (m1.HeapAlloc-m0.HeapAlloc)>>10, "KB")
	_ = run; _ = filt
}
func TestStates2(t *testing.T) {
	ps := lines(t, "patterns.jsonl", "re")
	corpus := lines(t, "corpus.jsonl", "text")
	adv := lines(t, "adversarial.jsonl", "text")
	s := mustCompile(t, ps, Options{MaxStates: 400000})
	count := func() { c := s.cache.Load(); f, m, ex, fm := 0,0,0,0; for _, st := range c.states[1:c.n] { if st.key[0]=='f' { f++; ex += (len(st.key)-9)/4-len(st.found); if len(st.found)>0 {fm++} } else {m++; ex += 0} }; fmt.Println("filter", f, "with found", fm, "match", m, "extra/f", float64(ex)/float64(f)) }
	for _, x := range corpus { w := s.walks.Get().(*walk); w.cache = s.cache.Load(); w.filter(x);  w.reset(); s.walks.Put(w) }
	count()
	for _, x := range corpus { s.Scan(x, nil) }
	count()
	for _, x := range adv { w := s.walks.Get().(*walk); w.cache = s.cache.Load(); w.filter(x);  w.reset(); s.walks.Put(w) }
	count()
	for _, x := range adv { s.Scan(x, nil) }
	count()
	run("corpus", corpus)
	filt("corpus", corpus)
	run("adv", adv)
	filt("adv", adv)
	run("corpus", corpus)
	filt("corpus", corpus)
	run("adv", adv)
	filt("adv", adv)
	}
