package detectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
)

// fake is a detector whose answer is a function.
type fake struct {
	id     string
	family Family
	detect func(ctx context.Context, in *Input) ([]audit.Finding, error)
	rules  []*rules.Rule
}

func (f *fake) Info() Info {
	return Info{ID: f.id, Version: "1", Family: f.family, Deterministic: true}
}
func (f *fake) Detect(ctx context.Context, in *Input) ([]audit.Finding, error) {
	return f.detect(ctx, in)
}
func (f *fake) Rules() []*rules.Rule { return f.rules }

func says(id string, family Family, fs ...audit.Finding) *fake {
	return &fake{id: id, family: family, detect: func(context.Context, *Input) ([]audit.Finding, error) { return fs, nil }}
}

func charter(rule string, g audit.Ground, s audit.Severity, side audit.Side, start uint32) audit.Finding {
	return audit.Finding{Kind: "charter." + string(g), Rule: rule, Ground: g, Severity: s, Score: s.Weight(), Confidence: 900_000, Side: side, Span: audit.Span{Start: start, End: start + 1}}
}

func analyze(t *testing.T, p Policy, in *audit.Interaction, ds ...Detector) *audit.Verdict {
	t.Helper()
	a, err := NewAnalyzer(p, ds...)
	if err != nil {
		t.Fatal(err)
	}
	return a.Analyze(t.Context(), in)
}

var text = &audit.Interaction{ID: audit.ID{1}, Tenant: "t", Domain: audit.General, Response: "a response", Prompt: "a prompt"}

// A detector that cannot look never makes a clean verdict.
func TestAFailingDetectorIsNotClean(t *testing.T) {
	panics := &fake{id: "p", family: Bias, detect: func(context.Context, *Input) ([]audit.Finding, error) { panic("text of people") }}
	errs := &fake{id: "e", family: Bias, detect: func(context.Context, *Input) ([]audit.Finding, error) { return nil, errors.New("no") }}
	late := &fake{id: "l", family: Bias, detect: func(context.Context, *Input) ([]audit.Finding, error) { return nil, context.DeadlineExceeded }}
	fine := says("f", Bias, charter("r", audit.Sex, audit.High, audit.Output, 0))
	for _, tc := range []struct {
		ds     []Detector
		status audit.Status
		reason string
		failed string
	}{
		{[]Detector{fine}, audit.Done, "", "[]"},
		{[]Detector{panics}, audit.Failed, "panic", "[p]"},
		{[]Detector{errs}, audit.Failed, "error", "[e]"},
		{[]Detector{late}, audit.Failed, "timeout", "[l]"},
		{[]Detector{fine, panics}, audit.Partial, "panic", "[p]"},
		{[]Detector{panics, errs}, audit.Failed, "error", "[p e]"},
	} {
		v := analyze(t, DefaultPolicy(), text, tc.ds...)
		if v.Status != tc.status || v.Reason != tc.reason || fmt.Sprint(v.FailedBy) != tc.failed {
			t.Errorf("%d detectors: %s %s %v, want %s %s %s", len(tc.ds), v.Status, v.Reason, v.FailedBy, tc.status, tc.reason, tc.failed)
		}
	}
	if v := analyze(t, DefaultPolicy(), text, fine, panics); !v.Detected || len(v.Findings) != 1 {
		t.Error("the findings of the others are kept")
	}
}

func TestDetectorsShareTheTimeOfAnInteraction(t *testing.T) {
	clock := time.Unix(0, 0)
	slow := &fake{id: "slow", family: Bias, detect: func(context.Context, *Input) ([]audit.Finding, error) {
		clock = clock.Add(3 * time.Second)
		return nil, nil
	}}
	a, err := NewAnalyzer(DefaultPolicy(), slow, says("next", Safety))
	if err != nil {
		t.Fatal(err)
	}
	a.now = func() time.Time { return clock }
	if v := a.Analyze(t.Context(), text); v.Status != audit.Partial || v.Reason != "timeout" || !slices.Equal(v.FailedBy, []string{"next"}) {
		t.Errorf("%s %s %v", v.Status, v.Reason, v.FailedBy)
	}
}

func TestWithoutContentIsSkippedNotClean(t *testing.T) {
	v := analyze(t, DefaultPolicy(), &audit.Interaction{WithoutContent: true}, says("f", Bias))
	if v.Status != audit.Skipped || v.Reason != "no_content" || v.Detected {
		t.Errorf("%+v", v)
	}
}

// What is in a language that the detectors have not learnt is looked at all the same, and the verdict says so.
func TestOtherLanguagesAreNamed(t *testing.T) {
	found := says("f", Safety, audit.Finding{Kind: "safety.pii_leakage", Rule: "c", Severity: audit.High, Score: 600_000, Side: audit.Output})
	for text, reason := range map[string]string{
		"Du kan lämna tillbaka varan inom 30 dagar om du har kvar kvittot.": audit.OtherLanguage, "Μπορείτε να το επιστρέψετε.": audit.OtherLanguage,
		"You can return it.": "", "Sie können es zurückgeben, wenn Sie den Beleg haben.": "", "42": "",
	} {
		if v := analyze(t, DefaultPolicy(), &audit.Interaction{Prompt: "Kan jag lämna tillbaka det?", Response: text}, found); v.Status != audit.Done || v.Reason != reason || len(v.Findings) != 1 {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

// A call that failed has a prompt and no response: its prompt is looked at, and it counts in no rate.
func TestWithoutResponseIsSkippedNotClean(t *testing.T) {
	found := says("f", Safety, audit.Finding{Kind: "safety.pii_leakage", Rule: "c", Severity: audit.High, Score: 600_000, Side: audit.Input})
	for _, blank := range []string{" \n\n ", "\u200b", "\ufeff\t\u00a0"} {
		if v := analyze(t, DefaultPolicy(), &audit.Interaction{Prompt: "hello", Response: blank}, found); v.Status != audit.Skipped || v.Reason != "no_response" {
			t.Errorf("%q: %+v", blank, v)
		}
	}
	v := analyze(t, DefaultPolicy(), &audit.Interaction{Prompt: "hello", Status: "error"}, found)
	if v.Status != audit.Skipped || v.Reason != "no_response" || len(v.Findings) != 1 || v.Detected {
		t.Errorf("%+v", v)
	}
	failing := &fake{id: "e", family: Bias, detect: func(context.Context, *Input) ([]audit.Finding, error) { return nil, errors.New("away") }}
	if v := analyze(t, DefaultPolicy(), &audit.Interaction{Prompt: "hello"}, failing); v.Status != audit.Failed {
		t.Errorf("%+v: what could not be looked at is tried again", v)
	}
}

func TestPolicyMakesActions(t *testing.T) {
	sex := func(s audit.Severity, side audit.Side) Detector {
		return says("bias", Bias, charter("r", audit.Sex, s, side, 0))
	}
	unsafe := says("safety", Safety, audit.Finding{Kind: "safety.violence", Rule: "v", Severity: audit.High, Score: 600_000, Side: audit.Output})
	card := says("safety", Safety, audit.Finding{Kind: "safety.pii_leakage", Rule: "c", Severity: audit.High, Score: 600_000, Side: audit.Output, Entity: "CREDIT_CARD"})
	gate := says("gate", Gates, audit.Finding{Kind: "gate.financial", Rule: "financial", Side: audit.Output})
	term := says("terms", Terms, audit.Finding{Kind: "terms.gender", Rule: "terms.gender.x", Side: audit.Output})
	strict := DefaultPolicy()
	zero := audit.Score(0)
	strict.BiasThreshold, strict.BiasAction = &zero, audit.Block
	logOnly := DefaultPolicy()
	logOnly.SafetyMode = audit.Log
	for _, tc := range []struct {
		name   string
		policy Policy
		ds     []Detector
		want   string // detected flagged unsafe gated action mitigation
	}{
		{"clean", DefaultPolicy(), []Detector{says("bias", Bias)}, "false false false false none "},
		{"MEDIUM is at the general threshold, not above", DefaultPolicy(), []Detector{sex(audit.Medium, audit.Output)}, "true false false false none REPHRASE_RESPONSE"},
		{"HIGH is above", DefaultPolicy(), []Detector{sex(audit.High, audit.Output)}, "true true false false warn BLOCK_RESPONSE"},
		{"the prompt stays out of the sum", DefaultPolicy(), []Detector{sex(audit.High, audit.Input)}, "false false false false none "},
		{"an override is stricter", strict, []Detector{sex(audit.Medium, audit.Output)}, "true true false false block REPHRASE_RESPONSE"},
		{"safety blocks by default", DefaultPolicy(), []Detector{unsafe}, "false false true false block BLOCK_RESPONSE"},
		{"safety may only log", logOnly, []Detector{unsafe}, "false false true false log BLOCK_RESPONSE"},
		{"personal data is to be masked", logOnly, []Detector{card}, "false false true false log REDACT_PII"},
		{"a gate asks for a person", DefaultPolicy(), []Detector{gate}, "false false false true gate HUMAN_APPROVAL"},
		{"the strongest action wins", DefaultPolicy(), []Detector{sex(audit.High, audit.Output), gate}, "true true false true gate BLOCK_RESPONSE"},
		{"terms are bias without a sum", DefaultPolicy(), []Detector{term}, "true false false false none REPHRASE_RESPONSE"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := analyze(t, tc.policy, text, tc.ds...)
			if got := fmt.Sprint(v.Detected, " ", v.Flagged, " ", v.Unsafe, " ", v.Gated, " ", v.Action, " ", v.Mitigation); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestScoresAreCappedAndSumsAreNot(t *testing.T) {
	fs := []audit.Finding{charter("a", audit.Race, audit.Critical, audit.Output, 0), charter("b", audit.Sex, audit.High, audit.Output, 5)}
	fs[0].Abusive = true
	v := analyze(t, DefaultPolicy(), text, says("bias", Bias, fs...))
	if v.BiasSum != 1_600_000 || v.Score(audit.ScoreBias) != audit.One || v.Score("charter.sex") != 600_000 || v.Score(audit.ScoreToxicity) != audit.One {
		t.Errorf("sum %v, scores %v", v.BiasSum, v.Scores)
	}
	if v.MaxSeverity != 4 || v.Confidence != 900_000 || !slices.Equal(v.BiasTypes, []string{"charter.race", "charter.sex"}) {
		t.Errorf("%+v", v)
	}
}

func TestHitsGoToTheirOwnersOnce(t *testing.T) {
	rule := func(id string, patterns ...string) *rules.Rule {
		return &rules.Rule{ID: id, Expanded: patterns, Pack: &rules.Pack{}}
	}
	var got string
	reader := func(id string, rs ...*rules.Rule) *fake {
		return &fake{id: id, family: Bias, rules: rs, detect: func(_ context.Context, in *Input) ([]audit.Finding, error) {
			got += fmt.Sprint(id, in.Hits(id, audit.Output), in.Hits(id, audit.Input), ";")
			return nil, nil
		}}
	}
	analyze(t, DefaultPolicy(), &audit.Interaction{Response: "alpha beta", Prompt: "beta"},
		reader("x", rule("a", `\balpha\b`, `\balph\w+`), rule("b", `\bbeta\b`)), reader("y", rule("c", `\bbeta\b`)), reader("z"))
	// The two patterns of rule a match at one place: one hit.
	if want := "x[{0 0 5} {1 6 10}] [{1 0 4}];y[{0 6 10}] [{0 0 4}];z[] [];"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestARuleOfTwoDetectorsIsScannedOnce(t *testing.T) {
	shared := &rules.Rule{ID: "a", Expanded: []string{`\balpha\b`}, Pack: &rules.Pack{}}
	own := &rules.Rule{ID: "b", Expanded: []string{`\bbeta\b`}, Pack: &rules.Pack{}}
	x := &fake{id: "x", family: Bias, rules: []*rules.Rule{shared}}
	y := &fake{id: "y", family: Bias, rules: []*rules.Rule{own, shared}}
	a, err := NewAnalyzer(DefaultPolicy(), x, y)
	if err != nil {
		t.Fatal(err)
	}
	in := a.Prepare(&audit.Interaction{Response: "alpha beta"})
	if got, want := fmt.Sprint(in.Hits("x", audit.Output), in.Hits("y", audit.Output)), "[{0 0 5}] [{0 6 10} {1 0 5}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := a.scans[normalForm].scanner.Patterns(); n != 2 {
		t.Errorf("%d patterns, want 2", n)
	}
}

func TestPolicyFaultsAreReportedAtOnce(t *testing.T) {
	two := audit.Score(2_000_000)
	_, err := NewAnalyzer(Policy{BiasThreshold: &two, BiasAction: "shout", SafetyThreshold: -1, SafetyMode: "x"})
	if audit.KindOf(err) != audit.KindInvalid {
		t.Fatal(err)
	}
	for _, key := range []string{"detect.bias_threshold", "detect.bias_action", "detect.safety_threshold", "detect.safety_mode", "classifier.action", "detect.timeout"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("the error does not name %s: %v", key, err)
		}
	}
	if _, err := NewAnalyzer(DefaultPolicy(), says("a", Bias), says("a", Safety)); err == nil {
		t.Error("an id may be used once")
	}
}

// measurer finds nothing or something, and measures.
type measurer struct {
	*fake
	scores []audit.NamedScore
}

func (m *measurer) DetectScored(ctx context.Context, in *Input) ([]audit.Finding, []audit.NamedScore, error) {
	fs, err := m.detect(ctx, in)
	return fs, m.scores, err
}

func (m *measurer) Advice() map[string]audit.Advice {
	return map[string]audit.Advice{"w": {Type: audit.MitigationReplace}}
}

// Wording and measures stand in the verdict and change nothing of bias; of two scores of one name the higher holds.
func TestWordingStandsOutsideBias(t *testing.T) {
	word := audit.Finding{Kind: "idiom", Rule: "w", Severity: audit.Low, Score: 100_000, Side: audit.Output}
	m := &measurer{says("linguistic", Linguistic, word), []audit.NamedScore{{Name: "idiom", Value: 50_000}, {Name: "representation_score", Value: 0}}}
	v := analyze(t, DefaultPolicy(), text, m)
	if v.Detected || v.Flagged || v.BiasSum != 0 || len(v.Findings) != 1 || v.Mitigation != audit.MitigationReplace || v.Action != audit.NoAction {
		t.Errorf("%+v", v)
	}
	if want := []audit.NamedScore{{Name: "idiom", Value: 100_000}, {Name: "representation_score", Value: 0}}; !slices.Equal(v.Scores, want) {
		t.Errorf("%v, want %v", v.Scores, want)
	}
	v = analyze(t, DefaultPolicy(), text, m, says("bias", Bias, charter("r", audit.Sex, audit.High, audit.Output, 0)))
	if !v.Detected || v.BiasSum != 600_000 || v.Mitigation != audit.MitigationBlock {
		t.Errorf("beside bias: %+v", v)
	}
}
