package scan_test

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
	"github.com/evenhand/evenhand/detectors/scan"
)

// shipped gives the rules of all packs that ship with the program.
var shipped = sync.OnceValues(func() ([]*rules.Rule, error) {
	bs, err := rules.Load(bias.Packs())
	if err != nil {
		return nil, err
	}
	ss, err := rules.Load(safety.Packs())
	if err != nil {
		return nil, err
	}
	ps, err := rules.Load(pii.Packs())
	if err != nil {
		return nil, err
	}
	gs, err := rules.Load(gate.Packs())
	return rules.All(slices.Concat(bs, ss, ps, gs)), err
})

// shippedPatterns gives the patterns of those of some packs, and their own sentences as one text for each rule.
func shippedPatterns(tb testing.TB, of func(*rules.Pack) bool) (patterns []string, texts []text) {
	tb.Helper()
	all, err := shipped()
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range all {
		if !of(r.Pack) {
			continue
		}
		from := len(patterns)
		patterns = append(patterns, r.Expanded...)
		texts = append(texts, text{strings.Join(slices.Concat(r.Match, r.NoMatch), "\n"), from, len(patterns)})
	}
	return patterns, texts
}

func allPacks(*rules.Pack) bool { return true }

// The three scanners that the program compiles: of rules for all texts, of those that plainly English ones are not searched for, and of those
// that read texts as they are spelled.
func forAllTexts(p *rules.Pack) bool   { return !p.NotInEnglish && !p.Raw }
func notForEnglish(p *rules.Pack) bool { return p.NotInEnglish && !p.Raw }
func asSpelled(p *rules.Pack) bool     { return p.Raw }

// text is one, and whose patterns it is made for.
type text struct {
	string
	from, to int
}

// sharedTexts gives texts of a shared data set, or skips.
func sharedTexts(tb testing.TB, name string) []string {
	tb.Helper()
	var texts []string
	for _, row := range detectortest.Rows[struct{ Text string }](tb, detectortest.Shared(tb, "data", name)) {
		texts = append(texts, row.Text)
	}
	return texts
}

// compare holds Scan against package regexp, which takes a second for 2 KB and all patterns: on each text
// the patterns that it is made for, those that Scan finds there, and one in so many others, in turn.
func compare(t *testing.T, patterns []string, texts []text, share int) (found int) {
	t.Helper()
	s, err := scan.Compile(patterns, scan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hits := make([]map[int][][]int, len(texts)) // by text and pattern
	for i, x := range texts {
		hits[i] = map[int][][]int{}
		for _, m := range s.Scan(x.string, nil) {
			hits[i][int(m.Pattern)] = append(hits[i][int(m.Pattern)], []int{int(m.Start), int(m.End)})
			found++
		}
	}
	for p, pattern := range patterns { // one at a time: compiled, they hold a gigabyte
		re := regexp.MustCompile("(?i)" + pattern)
		for i, x := range texts {
			got := hits[i][p]
			if got == nil && (p+i)%share != 0 && (p < x.from || p >= x.to) {
				continue
			}
			if want := re.FindAllStringIndex(x.string, -1); !slices.EqualFunc(got, want, slices.Equal[[]int]) {
				t.Fatalf("pattern %d %.200s\non %q:\n got %v\nwant %v", p, pattern, x.string, got, want)
			}
		}
	}
	return found
}

// TestShippedSentences takes every rule's own sentences.
func TestShippedSentences(t *testing.T) {
	patterns, texts := shippedPatterns(t, allPacks)
	share := 100
	if testing.Short() {
		share, patterns, texts = 1000, patterns[:texts[len(texts)/8].to], texts[:len(texts)/8]
	}
	if n := compare(t, patterns, texts, share); n < 2*len(texts) {
		t.Errorf("%d matches only", n)
	}
}

// TestShippedRealTexts takes answers of models and posts of people.
func TestShippedRealTexts(t *testing.T) {
	patterns, _ := shippedPatterns(t, allPacks)
	var texts []text
	for _, x := range append(sharedTexts(t, "vicuna_eval_answers.jsonl"), every(sharedTexts(t, "redditbias.jsonl"), 20)...) {
		texts = append(texts, text{string: x})
	}
	share := 30
	if testing.Short() {
		share, patterns = 300, every(patterns, 4)
	}
	compare(t, patterns, texts, share)
}

func every(list []string, n int) (some []string) {
	for i := 0; i < len(list); i += n {
		some = append(some, list[i])
	}
	return some
}

// ordinary gives texts of all kinds: articles, comments, tasks, dialogues and answers.
func ordinary(tb testing.TB) (texts []string) {
	for _, name := range []string{
		"bold_wikipedia_neutral.jsonl", "clinc_assistant.jsonl", "gsm8k.jsonl", "self_instruct.jsonl", "sgd_dialogue.jsonl",
		"vicuna_eval_answers.jsonl", "wiki_comments.jsonl",
	} {
		texts = append(texts, sharedTexts(tb, name)...)
	}
	return texts
}

// The automaton of the shipped rules, those apart that plainly English texts are not searched for, holds what texts of all
// kinds need, and is not built anew meanwhile.
func TestShippedStates(t *testing.T) {
	texts := ordinary(t)
	for name, packs := range map[string]func(*rules.Pack) bool{"for all texts": forAllTexts, "not for English": notForEnglish, "as spelled": asSpelled} {
		t.Run(name, func(t *testing.T) {
			patterns, _ := shippedPatterns(t, packs)
			s, err := scan.Compile(patterns, scan.Options{MaxStates: 1<<16 - 1})
			if err != nil {
				t.Fatal(err)
			}
			before, read := 0, 0
			for _, text := range texts {
				s.Scan(text, nil)
				read += len(text)
				n, _ := s.States()
				if n < before {
					t.Fatalf("%d states, and built anew after %d bytes", before, read)
				}
				before = n
			}
			n, bytes := s.States()
			t.Logf("%d patterns: %d states in a table of %d bytes, after %d bytes of text", len(patterns), n, bytes, read)
			if n > 60_000 || bytes > 12<<20 {
				t.Errorf("%d states in a table of %d bytes", n, bytes)
			}
		})
	}
}

// BenchmarkShippedRules gives the time for 2 KB of text in processor time: warm, cold (each text for the
// first time in an empty automaton), and how many times as long package regexp takes.
func BenchmarkShippedRules(b *testing.B) {
	patterns, sentences := shippedPatterns(b, forAllTexts)
	begin, before := cpu(), heap()
	s, err := scan.Compile(patterns, scan.Options{})
	if err != nil {
		b.Fatal(err)
	}
	compile, size := cpu()-begin, heap()-before
	for _, k := range []struct {
		name  string
		texts func() []string
	}{
		{"answers", func() []string { return sharedTexts(b, "vicuna_eval_answers.jsonl") }},
		{"ordinary", func() []string { return ordinary(b) }},
		{"sentences", func() (own []string) {
			for _, x := range sentences {
				own = append(own, x.string)
			}
			return own
		}},
	} {
		b.Run(k.name, func(b *testing.B) {
			texts := k.texts()
			all := 0
			for _, text := range texts {
				all += len(text)
			}
			var dst []scan.Match
			pass := func() float64 {
				begin := cpu()
				for _, text := range texts {
					dst = s.Scan(text, dst[:0])
				}
				return float64((cpu() - begin).Nanoseconds()) / 1e3 / float64(all) * 2048
			}
			s.Forget()
			cold, warm, n := pass(), 0.0, 0
			for b.Loop() {
				warm += pass()
				n++
			}
			warm /= float64(n)
			states, bytes := s.States()
			for name, v := range map[string]float64{
				"cold-µs/2KB": cold, "warm-µs/2KB": warm, "times-scan": stdlib(patterns, texts) / warm,
				"states": float64(states), "table-MiB": float64(bytes) / (1 << 20),
				"compile-ms": float64(compile.Milliseconds()), "program-MiB": size,
			} {
				b.ReportMetric(v, name)
			}
		})
	}
}

// stdlib gives the µs that package regexp takes for 2 KB, out of a part of the patterns and texts.
func stdlib(patterns, texts []string) float64 {
	const share = 16
	some := every(texts, max(1, len(texts)/4))
	all := 0
	var used time.Duration
	for _, p := range every(patterns, share) {
		re := regexp.MustCompile("(?i)" + p)
		begin := cpu()
		for _, text := range some {
			re.FindAllStringIndex(text, -1)
		}
		used += cpu() - begin
	}
	for _, text := range some {
		all += len(text)
	}
	return float64(used.Nanoseconds()) / 1e3 * share / float64(all) * 2048
}

// cpu is the time that this process used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is the MiB in use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse) / (1 << 20)
}

// BenchmarkCompileShipped gives the time and memory to compile the patterns of English texts.
func BenchmarkCompileShipped(b *testing.B) {
	patterns, _ := shippedPatterns(b, forAllTexts)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scan.Compile(patterns, scan.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
