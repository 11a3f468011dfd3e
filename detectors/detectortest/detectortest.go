// Package detectortest is the contract that every detector keeps: the same answer from eight
// goroutines, the interaction left as it was, spans inside the text, and texts that are empty, broken
// or hostile survived. A family's test calls [Run] with texts on which the detector fires.
package detectortest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
)

// last is the analyzer that Analyzer made last: those of all packs take seconds to compile, and tables ask for them at every line.
var last struct {
	sync.Mutex
	of detectors.Detector
	a  *detectors.Analyzer
}

// Analyzer gives an analyzer of one detector with the default policy, the same as long as it is asked for the same detector, which is a pointer.
func Analyzer(t testing.TB, d detectors.Detector) *detectors.Analyzer {
	t.Helper()
	last.Lock()
	defer last.Unlock()
	if last.of != d {
		a, err := detectors.NewAnalyzer(detectors.DefaultPolicy(), d)
		if err != nil {
			t.Fatal(err)
		}
		last.of, last.a = d, a
	}
	return last.a
}

// Interaction is a fixed interaction of the general domain with the given texts.
func Interaction(prompt, response string) *audit.Interaction {
	return &audit.Interaction{
		ID: audit.DeriveID("detectortest", prompt, response), Tenant: "test", Domain: audit.General,
		Time: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), Status: "success",
		Provider: "unknown", Model: "unknown", Prompt: prompt, Response: response,
	}
}

// Findings runs the detector on a response, through the common scanner, in order.
func Findings(t testing.TB, d detectors.Detector, response string) []audit.Finding {
	t.Helper()
	fs, err := d.Detect(context.Background(), Analyzer(t, d).Prepare(Interaction("", response)))
	if err != nil {
		t.Fatal(err)
	}
	audit.SortFindings(fs)
	return fs
}

// Describe writes findings as "kind/rule[start,end)" joined by spaces, for table tests.
func Describe(fs []audit.Finding) string {
	parts := make([]string, len(fs))
	for i, f := range fs {
		parts[i] = fmt.Sprintf("%s/%s[%d,%d)", f.Kind, f.Rule, f.Span.Start, f.Span.End)
	}
	return strings.Join(parts, " ")
}

// Sentences runs the sentences of rules through the common scanner, as the pipeline does: each that must match
// gives a finding of its rule, each that must not gives none of it.
func Sentences(t *testing.T, d detectors.Detector, rs []*rules.Rule) {
	t.Helper()
	a := Analyzer(t, d)
	fired := func(text, rule string) bool {
		return slices.ContainsFunc(detect(t, a, d, text), func(f audit.Finding) bool { return f.Rule == rule })
	}
	for _, r := range rs {
		for _, s := range r.Match {
			if !fired(s, r.ID) {
				t.Errorf("%s is silent on %q", r.ID, s)
			}
		}
		for _, s := range r.NoMatch {
			if fired(s, r.ID) {
				t.Errorf("%s fires on %q", r.ID, s)
			}
		}
	}
}

// Run holds the contract. Each of firing must give at least one finding as a response.
func Run(t *testing.T, d detectors.Detector, firing ...string) {
	t.Helper()
	if len(firing) == 0 {
		t.Fatal("name at least one text on which the detector fires")
	}
	a := Analyzer(t, d)
	t.Run("info", func(t *testing.T) { testInfo(t, d) })
	t.Run("fires", func(t *testing.T) {
		for _, text := range firing {
			if len(detect(t, a, d, text)) == 0 {
				t.Errorf("no finding in %q", text)
			}
		}
	})
	t.Run("spans and scores", func(t *testing.T) {
		for _, text := range append(hostile(firing), firing...) {
			for _, f := range detect(t, a, d, text) {
				testFinding(t, f, text)
			}
		}
	})
	t.Run("spans move with the text", func(t *testing.T) { testShift(t, a, d, firing) })
	t.Run("empty text", func(t *testing.T) {
		if fs := detect(t, a, d, ""); len(fs) > 0 {
			t.Errorf("findings in nothing: %s", Describe(fs))
		}
	})
	t.Run("interaction unchanged", func(t *testing.T) {
		in := Interaction(firing[0], firing[0])
		before := *in
		if _, err := d.Detect(context.Background(), a.Prepare(in)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(before, *in) {
			t.Error("Detect changed the interaction")
		}
	})
	t.Run("concurrent use", func(t *testing.T) { testConcurrent(t, a, d, firing) })
	t.Run("ended context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := d.Detect(ctx, a.Prepare(Interaction("", firing[0]))); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("error %v does not say that the context ended", err)
		}
	})
}

func detect(t testing.TB, a *detectors.Analyzer, d detectors.Detector, response string) []audit.Finding {
	t.Helper()
	fs, err := d.Detect(context.Background(), a.Prepare(Interaction("", response)))
	if err != nil {
		t.Fatal(err)
	}
	audit.SortFindings(fs)
	return fs
}

func testInfo(t *testing.T, d detectors.Detector) {
	info := d.Info()
	if info.ID == "" || info.Title == "" || info.Version == "" || info.Family == "" {
		t.Errorf("incomplete: %+v", info)
	}
	if info != d.Info() {
		t.Error("Info differs between two calls")
	}
}

func testFinding(t *testing.T, f audit.Finding, text string) {
	t.Helper()
	n := uint32(utf8.RuneCountInString(text))
	if f.Span.Start >= f.Span.End || f.Span.End > n {
		t.Errorf("%s: span [%d,%d) of %d code points in %.80q", f.Rule, f.Span.Start, f.Span.End, n, text)
	}
	if f.Kind == "" || f.Rule == "" || f.RuleVersion == "" || f.Side != audit.Output {
		t.Errorf("incomplete: %+v", f)
	}
	if f.Confidence <= 0 || f.Confidence > audit.One || f.Score < 0 {
		t.Errorf("%s: confidence %v, score %v", f.Rule, f.Confidence, f.Score)
	}
}

// testShift holds that code points in front move a span by their number and change nothing else.
func testShift(t *testing.T, a *detectors.Analyzer, d detectors.Detector, firing []string) {
	const front = "Été 日本 😀.\n"
	by := uint32(utf8.RuneCountInString(front))
	for _, text := range firing {
		want := detect(t, a, d, text)
		for i := range want {
			want[i].Span.Start += by
			want[i].Span.End += by
		}
		if got := detect(t, a, d, front+text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q behind %d code points:\ngot  %s\nwant %s", text, by, Describe(got), Describe(want))
		}
	}
}

func testConcurrent(t *testing.T, a *detectors.Analyzer, d detectors.Detector, firing []string) {
	texts := append(hostile(firing), firing...)
	want := make([][]audit.Finding, len(texts))
	for i, text := range texts {
		want[i] = detect(t, a, d, text)
	}
	// One input for each text, shared by all: that is how the pipeline uses it.
	inputs := make([]*detectors.Input, len(texts))
	for i, text := range texts {
		inputs[i] = a.Prepare(Interaction("", text))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, in := range inputs {
				fs, err := d.Detect(context.Background(), in)
				if err != nil {
					t.Errorf("text %d: %v", i, err)
					return
				}
				audit.SortFindings(fs)
				if !reflect.DeepEqual(fs, want[i]) {
					t.Errorf("text %d: another answer: %s", i, Describe(fs))
				}
			}
		})
	}
	wg.Wait()
}

// hostile makes texts that must be survived.
func hostile(firing []string) []string {
	one := firing[0]
	return []string{
		" ", "\x00", "\xff\xfe" + one + "\xff", one + "\xe2\x82", strings.Repeat("\xf0\x9f", 500),
		"e\u0301" + one + "\u200d\u202e" + one, strings.Repeat(one+" ", 200), strings.Repeat("a", 50_000),
		strings.Repeat("\u00a0\n", 5_000) + one, strings.Repeat("4", 10_000), "\ufeff" + one, strings.ToUpper(one),
	}
}
