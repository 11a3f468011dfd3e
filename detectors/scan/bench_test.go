package scan

import (
	"bufio"
	"encoding/json"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const benchRules = 1000

var kindsOfText = []struct {
	name  string
	texts func(testing.TB) []string
}{
	{"clean", func(testing.TB) []string { return makeTexts(500, makeText) }},
	{"hits", func(testing.TB) []string { return makeTexts(500, makeHits) }},
	{"adversarial", func(testing.TB) []string { return makeTexts(200, makeAttack) }},
	{"real", realTexts},
}

// realTexts cuts pieces of 2 KB out of the comments of Go's own sources.
func realTexts(t testing.TB) []string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", "[m-t]*", "*.go"))
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(src)) {
			if comment, ok := strings.CutPrefix(line, "// "); ok {
				b.WriteString(comment)
			}
		}
	}
	var texts []string
	for s := b.String(); len(s) > 2048; s = s[2048:] {
		texts = append(texts, s[:2048])
	}
	if len(texts) == 0 {
		t.Skip("Go's sources are not here")
	}
	return texts
}

func BenchmarkScan(b *testing.B) {
	rules := makeRules(benchRules)
	for _, k := range kindsOfText {
		b.Run(k.name, func(b *testing.B) {
			texts := k.texts(b)
			s := mustCompile(b, rules, Options{})
			benchScan(b, s, texts)
		})
	}
}

func benchScan(b *testing.B, s *Scanner, texts []string) {
	var dst []Match
	bytes, hits := 0, 0
	for _, text := range texts { // warm up
		dst = s.Scan(text, dst[:0])
		bytes, hits = bytes+len(text), hits+len(dst)
	}
	b.ReportAllocs()
	b.SetBytes(int64(bytes / len(texts)))
	i, begin := 0, cpuTime()
	for b.Loop() {
		dst = s.Scan(texts[i%len(texts)], dst[:0])
		i++
	}
	reportTime(b, begin)
	b.ReportMetric(float64(hits)/float64(len(texts)), "hits/text")
}

// cpuTime is the time that this process used; on a busy machine it says more than the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportTime(b *testing.B, begin time.Duration) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "µs/text")
	b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/1e3/float64(b.N), "cpu-µs/text")
}

// BenchmarkScanCold begins with an empty automaton every 1,000 texts.
func BenchmarkScanCold(b *testing.B) {
	s := mustCompile(b, makeRules(benchRules), Options{})
	b.Run("clean", func(b *testing.B) { benchCold(b, s, makeTexts(1000, makeText)) })
	b.Run("hits", func(b *testing.B) { benchCold(b, s, makeTexts(1000, makeHits)) })
}

func benchCold(b *testing.B, s *Scanner, texts []string) {
	texts = texts[:min(len(texts), 1000)]
	var dst []Match
	i, begin := 0, cpuTime()
	for b.Loop() {
		if i%len(texts) == 0 {
			s.cache.Store(newCache(s.program, firstStates))
		}
		dst = s.Scan(texts[i%len(texts)], dst[:0])
		i++
	}
	reportTime(b, begin)
}

func BenchmarkScanParallel(b *testing.B) {
	texts := makeTexts(500, makeHits)
	s := mustCompile(b, makeRules(benchRules), Options{})
	for _, text := range texts {
		s.Scan(text, nil)
	}
	begin := cpuTime()
	b.RunParallel(func(pb *testing.PB) {
		var dst []Match
		for i := 0; pb.Next(); i++ {
			dst = s.Scan(texts[i%len(texts)], dst[:0])
		}
	})
	reportTime(b, begin)
}

// BenchmarkStdlibLoop is what the scanner replaces, on the same rules and texts. It reports how many
// times as long it takes.
func BenchmarkStdlibLoop(b *testing.B) {
	rules := makeRules(benchRules)
	o := newOracle(rules)
	for _, k := range kindsOfText {
		b.Run(k.name, func(b *testing.B) {
			texts := k.texts(b)
			texts = texts[:min(len(texts), 20)]
			s := mustCompile(b, rules, Options{})
			const rounds = 50
			var dst []Match
			begin := cpuTime()
			for i := range (rounds + 1) * len(texts) {
				if i == len(texts) { // warm now
					begin = cpuTime()
				}
				dst = s.Scan(texts[i%len(texts)], dst[:0])
			}
			scan := float64((cpuTime() - begin).Nanoseconds()) / float64(rounds*len(texts))
			i, begin := 0, cpuTime()
			for b.Loop() {
				o.scan(texts[i%len(texts)])
				i++
			}
			reportTime(b, begin)
			b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/float64(b.N)/scan, "times-scan")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	rules := makeRules(benchRules)
	for b.Loop() {
		mustCompile(b, rules, Options{})
	}
}

// scanbench makes rules and texts with the shared generator.
func scanbench(tb testing.TB) (rules, corpus, attack []string) {
	tb.Helper()
	shared := os.Getenv("EVENHAND_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	tool := filepath.Join(shared, "tools", "scanbench")
	if _, err := os.Stat(tool); err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal(err)
		}
		tb.Skip("the shared scanbench is not here: set EVENHAND_SHARED")
	}
	dir := tb.TempDir()
	cmd := exec.Command("go", "run", ".", "-patterns", "1000", "-texts", "2000", "-size", "2048", "-hits", "0.05", "-seed", "1", "-out", dir)
	cmd.Dir = tool
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	read := func(name string) (out []string) {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var v struct{ RE, Text string }
			if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
				tb.Fatal(err)
			}
			out = append(out, v.RE+v.Text)
		}
		return out
	}
	return read("patterns.jsonl"), read("corpus.jsonl"), read("adversarial.jsonl")
}

func BenchmarkScanbench(b *testing.B) {
	rules, corpus, attack := scanbench(b)
	s := mustCompile(b, rules, Options{})
	b.Run("corpus", func(b *testing.B) { benchScan(b, s, corpus) })
	b.Run("adversarial", func(b *testing.B) { benchScan(b, s, attack) })
	b.Run("corpus_cold", func(b *testing.B) { benchCold(b, s, corpus) })
	b.Run("adversarial_cold", func(b *testing.B) { benchCold(b, s, attack) })
}

func TestScanbench(t *testing.T) {
	rules, corpus, attack := scanbench(t)
	s := mustCompile(t, rules, Options{})
	o := newOracle(rules)
	found := 0
	compare := func(texts []string, want func(hits int) bool, n int) {
		for _, text := range texts {
			hits := len(s.Scan(text, nil))
			if n == 0 || !want(hits) {
				continue
			}
			n--
			found += hits
			if d := different(s, o, rules, text); d != "" {
				t.Fatal(d)
			}
		}
	}
	n := 10
	if testing.Short() {
		n = 3
	}
	compare(corpus, func(hits int) bool { return hits > 0 }, n)
	compare(corpus, func(hits int) bool { return hits == 0 }, n)
	compare(attack, func(int) bool { return true }, n/2)
	if found < 20*n {
		t.Errorf("the texts hold %d hits only", found)
	}
}
