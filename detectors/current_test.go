package detectors

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
)

// packDetector is a detector of one pack, whose version is that of its rules.
type packDetector struct {
	*fake
	version string
}

func (d packDetector) Info() Info { return Info{ID: "p", Version: d.version, Family: Bias} }

// ofWord makes an Analyzer of one rule that finds a word. Both its detector and its findings bear the version.
func ofWord(t *testing.T, version, word string) *Analyzer {
	t.Helper()
	packs, err := rules.Load(fstest.MapFS{"p.yaml": {Data: fmt.Appendf(nil, `{pack: charter.sex.en, title: T, version: %q, language: en, ground: sex, unless: ['\bnever\b'],
  rules: [{id: sex.word, description: D, severity: LOW, patterns: ['\b%s\b'], match: [a, b], no_match: [c, d]}]}`, version, word)}})
	if err != nil {
		t.Fatal(err)
	}
	d := packDetector{version: version, fake: &fake{rules: rules.All(packs)}}
	d.detect = func(_ context.Context, in *Input) (fs []audit.Finding, err error) {
		for _, h := range in.Hits("p", audit.Output) {
			fs = append(fs, audit.Finding{Kind: "charter.sex", Rule: "sex.word", RuleVersion: version, Ground: audit.Sex, Severity: audit.Low, Score: 1, Span: in.Span(audit.Output, h.Start, h.End)})
		}
		return fs, nil
	}
	a, err := NewAnalyzer(DefaultPolicy(), d)
	if err != nil {
		t.Fatal(err)
	}
	a.Warm()
	return a
}

// While Analyzers are swapped, every verdict comes from one of them whole: it names its rule set and holds
// the findings of just that.
func TestAnalyzersAreSwappedUnderLoad(t *testing.T) {
	sets := []*Analyzer{ofWord(t, "1", "women"), ofWord(t, "2", "lead"), ofWord(t, "3", "nothing")}
	want := map[string]string{sets[0].RuleSet(): "1@2", sets[1].RuleSet(): "2@15", sets[2].RuleSet(): ""}
	if len(want) != 3 {
		t.Fatal("rule sets are told apart by their content")
	}
	in := &audit.Interaction{ID: audit.ID{1}, Tenant: "t", Domain: audit.General, Response: "– women should lead. lead never"}
	c := NewCurrent(sets[0])
	var wg sync.WaitGroup
	done := make(chan struct{})
	var mu sync.Mutex
	used := map[string]int{}
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				v := c.Analyze(t.Context(), in)
				got := ""
				for _, f := range v.Findings {
					got += fmt.Sprintf("%s@%d", f.RuleVersion, f.Span.Start)
				}
				if v.Status != audit.Done || got != want[v.RuleSet] {
					t.Errorf("%s %s: found %q, want %q", v.Status, v.RuleSet, got, want[v.RuleSet])
					return
				}
				mu.Lock()
				used[v.RuleSet]++
				mu.Unlock()
			}
		})
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return used[sets[0].RuleSet()] > 100 && used[sets[1].RuleSet()] > 100 && used[sets[2].RuleSet()] > 100
	}
	for i := 0; !enough() && !t.Failed(); i++ {
		c.Use(sets[i%len(sets)])
		runtime.Gosched()
	}
	close(done)
	wg.Wait()
}
