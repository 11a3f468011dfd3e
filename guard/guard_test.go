package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clean    = "Maria has led two teams for six years and meets every requirement."
	emotion  = "Women are too emotional to be good executives."
	cards    = "Her card is 4111 1111 1111 1111, her other one 5555 5555 5555 4444."
	transfer = "I will transfer $5,000 to account 7."
)

// options overlays JSON on the defaults, as the doors do.
func options(t testing.TB, raw string) guard.Options {
	t.Helper()
	o, faults := guard.DefaultOptions().With([]byte(raw))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return o
}

func TestDecide(t *testing.T) {
	g := guard.New(guardtest.Current(t), guard.Config{})
	for _, tc := range []struct {
		name, options, prompt, response string
		want                            string // action and reasons
	}{
		{"clean", `{}`, "", clean, "allow []"},
		{"biased, warned by default", `{}`, "", emotion, "allow []"},
		{"biased, stricter by domain", `{"domain":"hr"}`, "", emotion, "warn [bias]"},
		{"biased, stricter by threshold", `{"biasThreshold":0.1}`, "", emotion, "warn [bias]"},
		{"the threshold is strict", `{"biasThreshold":0.3}`, "", emotion, "allow []"},
		{"the threshold of the request is above the domain's", `{"domain":"hr","biasThreshold":0.9}`, "", emotion, "allow []"},
		{"biased, blocked", `{"domain":"hr","biasAction":"block"}`, "", emotion, "block [bias]"},
		{"the prompt is not checked", `{"domain":"hr","biasAction":"block"}`, emotion, clean, "allow []"},
		{"the prompt is", `{"domain":"hr","biasAction":"block","check":"prompt"}`, emotion, clean, "block [bias]"},
		{"only the prompt is", `{"domain":"hr","biasAction":"block","check":"prompt"}`, clean, emotion, "allow []"},
		{"both are", `{"domain":"hr","biasAction":"block","check":"both"}`, emotion, clean, "block [bias]"},
		{"both are summed", `{"biasThreshold":0.5,"check":"both"}`, "Disabled people are a burden.", emotion, "warn [bias]"},
		{"safety is off", `{}`, "", cards, "allow []"},
		{"safety blocks by default", `{"safetyFilter":true}`, "", cards, "block [safety]"},
		{"safety warns", `{"safetyFilter":true,"safetyMode":"warn"}`, "", cards, "warn [safety]"},
		{"safety logs", `{"safetyFilter":true,"safetyMode":"log"}`, "", cards, "allow [safety]"},
		{"safety, looser", `{"safetyFilter":true,"safetyThreshold":1}`, "", cards, "allow []"},
		{"the gate is off", `{}`, "", transfer, "allow []"},
		{"the gate asks", `{"hitlGate":true}`, "", transfer, "gate [hitl_gate]"},
		{"not in the prompt", `{"hitlGate":true}`, transfer, clean, "allow []"},
		{"a block is stronger than the gate", `{"hitlGate":true,"domain":"hr","biasAction":"block"}`, "", emotion + " " + transfer, "block [bias hitl_gate]"},
		{"the gate is stronger than a warning", `{"hitlGate":true,"domain":"hr"}`, "", emotion + " " + transfer, "gate [bias hitl_gate]"},
		{"own rules replace", `{"hitlGate":true,"hitlGateRules":[{"id":"launch","description":"d","pattern":"/\\blaunch\\b/i","category":"c"}]}`, "", transfer, "allow []"},
		{"and match", `{"hitlGate":true,"hitlGateRules":[{"id":"launch","description":"d","pattern":"/\\blaunch\\b/i","category":"c"}]}`, "", "Launch it.", "gate [hitl_gate]"},
		{"extra rules add", `{"hitlGate":true,"hitlGateExtraRules":[{"id":"launch","description":"d","pattern":"launch","category":"c"}]}`, "", transfer, "gate [hitl_gate]"},
		{"nothing said", `{}`, "hello", "", "allow [no_text]"},
		{"nothing asked", `{"check":"prompt"}`, "", emotion, "allow [no_text]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, only := range []bool{false, true} {
				o := options(t, tc.options)
				o.CheckedOnly = only
				d, err := g.Decide(t.Context(), detectortest.Interaction(tc.prompt, tc.response), o)
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(d.Action, d.Reasons); got != strings.ReplaceAll(tc.want, " [", "[") && got != tc.want {
					t.Errorf("got %s, want %s; bias %v above %v, safety %v", got, tc.want, d.BiasSum, d.BiasThreshold, d.SafetySum)
				}
				for _, f := range d.Verdict.Findings {
					if checked := o.Check == guard.Both || (o.Check == guard.Prompt) == (f.Side == audit.Input); only && !checked {
						t.Errorf("%s was found in what is not checked", f.Rule)
					}
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	g := guard.New(guardtest.Current(t), guard.Config{})
	decide := func(raw, response string) (*guard.Decision, *audit.Interaction) {
		in := detectortest.Interaction("", response)
		d, err := g.Decide(t.Context(), in, options(t, raw))
		if err != nil {
			t.Fatal(err)
		}
		return d, in
	}
	d, in := decide(`{"domain":"hr","biasAction":"block"}`, "é "+emotion)
	var bias *guard.BiasDetectedError
	if err := d.Err(in); !errors.As(err, &bias) || bias.Findings[0].Characteristic != "sex" || bias.Findings[0].Score != bias.Score || !strings.HasPrefix(bias.Findings[0].Evidence, "Women are too emotional") ||
		strings.Contains(err.Error(), "emotional") {
		t.Errorf("%+v", d.Err(in))
	}
	d, in = decide(`{"safetyFilter":true}`, cards)
	var safety *guard.SafetyViolationError
	if err := d.Err(in); !errors.As(err, &safety) || safety.Findings[0].Category != "pii_leakage" || safety.Findings[0].Evidence != "4111 1111 1111 1111" || strings.Contains(err.Error(), "4111") {
		t.Errorf("%+v", d.Err(in))
	}
	d, in = decide(`{"hitlGate":true,"domain":"hr"}`, emotion+" "+transfer)
	if d.Err(in) != nil {
		t.Errorf("a waiting text is an error: %v", d.Err(in))
	}
	r := d.Request(in, "guard", time.UnixMilli(1))
	if r.Rule.ID != "financial" || r.Rule.Description == "" || r.Rule.Category == "" || r.Rule.Pattern == "" || r.MatchedText != "transfer $5,000" || r.Timeout != 5*time.Minute {
		t.Errorf("%+v", r)
	}
	// Of what one rule finds at one place the longest is shown: a person decides by it.
	for text, want := range map[string]string{
		"I will transfer $4,999,999.50 now.": "transfer $4,999,999.50", "Wire the full amount of $3 million today.": "Wire the full amount of $3 million", "Run DROP TABLE orders;": "DROP TABLE orders",
	} {
		d, in := decide(`{"hitlGate":true}`, text)
		if r := d.Request(in, "guard", time.UnixMilli(1)); r.MatchedText != want || len(r.Matches) != 1 {
			t.Errorf("%q: %q %+v", text, r.MatchedText, r.Matches)
		}
	}
	again := *d
	again.Decided(guard.GateDecision{Approved: true})
	if again.Action != guard.Warn || again.Err(in) != nil || !again.Answer(in, audit.ID{}, true, 0).HITLGateTriggered {
		t.Errorf("approved: %+v", again)
	}
	d.Decided(guard.GateDecision{Reason: guard.Timeout})
	var denied *guard.HumanGateDeniedError
	if err := d.Err(in); d.Action != guard.Block || !errors.As(err, &denied) || denied.Reason != "timeout" || denied.Rule != "financial" {
		t.Errorf("denied: %+v", d.Err(in))
	}
}

// Findings of a filter that is off, of rules that are replaced and of texts that are not checked stay out of the answer.
func TestFindingsShown(t *testing.T) {
	g := guard.New(guardtest.Current(t), guard.Config{})
	in := detectortest.Interaction(emotion, emotion+" "+cards+" "+transfer+" Launch it.")
	for raw, want := range map[string]string{
		`{}`: "charter", `{"safetyFilter":true}`: "charter safety", `{"hitlGate":true}`: "charter gate.financial",
		`{"safetyFilter":true,"safetyMode":"log"}`:                                                                     "charter",
		`{"hitlGate":true,"hitlGateRules":[{"id":"launch","description":"d","pattern":"launch","category":"c"}]}`:      "charter gate.launch",
		`{"hitlGate":true,"hitlGateExtraRules":[{"id":"launch","description":"d","pattern":"launch","category":"c"}]}`: "charter gate.financial gate.launch",
	} {
		d, err := g.Decide(t.Context(), in, options(t, raw))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range d.Answer(in, audit.ID{}, true, 0).Findings {
			kind := f.Kind
			if !strings.HasPrefix(kind, "gate.") {
				kind, _, _ = strings.Cut(kind, ".")
			}
			if f.Side != audit.Output {
				t.Errorf("%s: a finding of the prompt", raw)
			}
			if f.Evidence != f.Span.Slice(in.Response) || f.Evidence == "" {
				t.Errorf("%s: %+v", raw, f)
			}
			if kind != "pii" && (len(got) == 0 || got[len(got)-1] != kind) {
				got = append(got, kind)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", raw, got, want)
		}
	}
}

func TestOptionFaults(t *testing.T) {
	for raw, want := range map[string]string{
		`[]`: ": wants an object", `{"domian":"hr"}`: "domian: is not an option (did you mean domain?)", `{"nonsense":"hr"}`: "nonsense: is not an option", `{"domain":"hospital"}`: "domain: wants one of general, hr, finance, healthcare, education",
		`{"biasThreshold":1.5}`: "biasThreshold: wants 0..1, lower is stricter", `{"biasThreshold":"low"}`: "biasThreshold: wants a number", `{"biasAction":"stop"}`: "biasAction: wants warn or block",
		`{"safetyFilter":1}`: "safetyFilter: wants true or false", `{"safetyMode":"gate"}`: "safetyMode: wants block, warn or log", `{"safetyThreshold":-1}`: "safetyThreshold: wants 0..1, lower is stricter",
		`{"hitlGateTimeoutMs":0}`: "hitlGateTimeoutMs: wants 1 to 86400000", `{"hitlGateTimeoutMs":9e18}`: "hitlGateTimeoutMs: wants a whole number", `{"check":"all"}`: "check: wants response, prompt or both",
		`{"hitlGateRules":[{"id":"a","description":"d","pattern":"` + strings.Repeat("x", 513) + `","category":"c"}]}`: "hitlGateRules[0].pattern: has more than 512 bytes",
		`{"hitlGateRules":[` + strings.Repeat(`{},`, 32) + `{}]}`:                                                      "hitlGateRules: wants at most 32 rules, hitlGateExtraRules included",
	} {
		_, faults := guard.DefaultOptions().With([]byte(raw))
		if len(faults) != 1 || faults[0].Field+": "+faults[0].Message != want {
			t.Errorf("%s: %v, want %s", raw, faults, want)
		}
	}
	if _, faults := guard.DefaultOptions().With([]byte(`{"domain":null,"biasThreshold":null}`)); len(faults) > 0 {
		t.Errorf("null is as if it were not there: %v", faults)
	}
	g := guard.New(guardtest.Current(t), guard.Config{})
	_, err := g.Decide(t.Context(), detectortest.Interaction("", clean), options(t, `{"hitlGate":true,
		"hitlGateRules":[{"id":"ok","description":"d","pattern":"x","category":"c"},{"id":"ahead","description":"d","pattern":"a(?=b)","category":"c"}],
		"hitlGateExtraRules":[{"id":"ok","description":"","pattern":"y","category":"c"}]}`))
	var faulty *guard.OptionError
	if !errors.As(err, &faulty) || audit.KindOf(err) != audit.KindInvalid || len(faulty.Faults) != 3 || faulty.Faults[0].Field != "hitlGateRules[1].pattern" || faulty.Faults[1].Field != "hitlGateExtraRules[0].description" {
		t.Fatalf("%v", err)
	}
	if _, err = g.Decide(t.Context(), detectortest.Interaction("", clean), options(t, `{"hitlGate":true,"hitlGateExtraRules":[{"id":"financial","description":"d","pattern":"y","category":"c"}]}`)); err == nil {
		t.Error("an extra rule takes the id of a built-in one")
	}
}

// broken is a detector of bias that cannot look.
type broken struct{}

func (broken) Info() detectors.Info { return detectors.Info{ID: "bias", Family: detectors.Bias} }
func (broken) Detect(context.Context, *detectors.Input) ([]audit.Finding, error) {
	return nil, errors.New("no")
}

type fine struct{}

func (fine) Info() detectors.Info                                              { return detectors.Info{ID: "other", Family: detectors.Terms} }
func (fine) Detect(context.Context, *detectors.Input) ([]audit.Finding, error) { return nil, nil }

func TestWhatCannotBeLookedAt(t *testing.T) {
	a, err := detectors.NewAnalyzer(detectors.DefaultPolicy(), broken{}, fine{})
	if err != nil {
		t.Fatal(err)
	}
	long := detectortest.Interaction("", clean)
	long.Truncated, long.ResponseChars = true, 1_000_000
	prompted := detectortest.Interaction("p", clean)
	prompted.Truncated, prompted.PromptChars, prompted.ResponseChars = true, 1_000_000, uint32(len(clean))
	for _, tc := range []struct {
		name    string
		current *detectors.Current
		in      *audit.Interaction
		err     error
		kind    audit.Kind
		reason  guard.Reason
	}{
		{"the analysis fails", detectors.NewCurrent(a), detectortest.Interaction("", clean), guard.ErrNotAnalysed, audit.KindUnavailable, guard.NotAnalysed},
		{"the answer is cut", guardtest.Current(t), long, guard.ErrTextCut, audit.KindInvalid, guard.TextCut},
		{"the prompt is cut, which is not checked", guardtest.Current(t), prompted, nil, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := guard.New(tc.current, guard.Config{}).Decide(t.Context(), tc.in, guard.DefaultOptions())
			if !errors.Is(err, tc.err) || tc.err != nil && audit.KindOf(err) != tc.kind {
				t.Errorf("closed: %v", err)
			}
			d, err := guard.New(tc.current, guard.Config{FailOpen: true}).Decide(t.Context(), tc.in, guard.DefaultOptions())
			if err != nil || d.Action != guard.Allow || (tc.reason != "") != (len(d.Reasons) == 1 && d.Reasons[0] == tc.reason) {
				t.Errorf("open: %+v %v", d, err)
			}
		})
	}
}

// Mode log tells where and how severe, and no text.
func TestSafetyLog(t *testing.T) {
	var out bytes.Buffer
	g := guard.New(guardtest.Current(t), guard.Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
	if _, err := g.Decide(t.Context(), detectortest.Interaction("", cards), options(t, `{"safetyFilter":true,"safetyMode":"log"}`)); err != nil {
		t.Fatal(err)
	}
	var line struct {
		Category, Severity, Side string
		Score                    float64
		Start, End               int
	}
	first, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	if err := json.Unmarshal(first, &line); err != nil || line.Category != "pii_leakage" || line.Severity == "" || line.Score == 0 || line.Start != 12 || line.End != 31 || strings.Contains(out.String(), "4111") {
		t.Errorf("%v %s", err, out.String())
	}
}

func TestConcurrentDecisions(t *testing.T) {
	current := guardtest.Current(t)
	g := guard.New(current, guard.Config{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				o := guard.DefaultOptions()
				o.HITLGate = true
				o.HITLGateRules = []gate.Custom{{ID: "r", Description: "d", Category: "c", Pattern: fmt.Sprintf("launch %d", (i*j)%40)}}
				d, err := g.Decide(t.Context(), detectortest.Interaction("", fmt.Sprintf("launch %d.", (i*j)%40)), o)
				if err != nil || d.Action != guard.Gate {
					t.Errorf("%+v %v", d, err)
				}
				current.Use(current.Analyzer())
			}
		})
	}
	wg.Wait()
}

// FuzzOptions: whatever options come, they are refused with faults or lead to a decision.
func FuzzOptions(f *testing.F) {
	for _, s := range []string{`{}`, `{"domain":"HR","biasThreshold":0.1}`, `{"hitlGate":true,"hitlGateRules":[{"id":"a","description":"d","pattern":"/a+/i","category":"c"}]}`, `{"check":"both","safetyFilter":true,"safetyMode":"log"}`, `[1]`} {
		f.Add([]byte(s))
	}
	g := guard.New(guardtest.Light(f), guard.Config{})
	in := detectortest.Interaction(emotion, cards+transfer)
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, faults := guard.DefaultOptions().With(raw)
		if len(faults) > 0 {
			return
		}
		d, err := g.Decide(t.Context(), in, o)
		if err != nil {
			var faulty *guard.OptionError
			if !errors.As(err, &faulty) || len(faulty.Faults) == 0 {
				t.Fatal(err)
			}
			return
		}
		if _, err := json.Marshal(d.Answer(in, audit.ID{}, true, 0)); err != nil || (d.Action == guard.Block) != (d.Err(in) != nil) {
			t.Fatalf("%v %+v", err, d)
		}
	})
}

// What one request asks for is not left in the defaults of the next.
func TestOptionsLeaveTheDefaultsAlone(t *testing.T) {
	d := guard.DefaultOptions()
	threshold := audit.ScoreOf(0.4)
	d.BiasThreshold, d.HITLGateRules = &threshold, []gate.Custom{{ID: "own.a", Description: "d", Pattern: "a", Category: "c"}}
	o, faults := d.With([]byte(`{"biasThreshold":0.9,"hitlGateRules":[{"id":"own.b","description":"d","pattern":"b","category":"c"}]}`))
	if len(faults) > 0 || *o.BiasThreshold != audit.ScoreOf(0.9) || o.HITLGateRules[0].ID != "own.b" {
		t.Fatal(faults, o)
	}
	if *d.BiasThreshold != audit.ScoreOf(0.4) || d.HITLGateRules[0].ID != "own.a" {
		t.Errorf("%v %v", *d.BiasThreshold, d.HITLGateRules)
	}
	if o, faults := d.With([]byte(`{"biasThreshold":null}`)); len(faults) > 0 || *o.BiasThreshold != audit.ScoreOf(0.4) {
		t.Error(faults, o)
	}
}

// A caller's rules are refused where matching them could hold a core for long.
func TestCostlyRulesAreRefused(t *testing.T) {
	g := guard.New(guardtest.Current(t), guard.Config{})
	rule := func(i int, pattern string) string {
		return fmt.Sprintf(`{"id":"r%d","description":"d","category":"c","pattern":%q}`, i, pattern)
	}
	var many []string
	for i := range 32 {
		many = append(many, rule(i, fmt.Sprintf(`(?:a[\s\S]{0,30}b){1,30}zq[%d?]`, i)))
	}
	costly := `{"hitlGate":true,"hitlGateRules":[` + strings.Join(many, ",") + `]}`
	for _, tc := range []struct {
		options string
		bytes   int
		refused bool
	}{{costly, 100_000, true}, {costly, 1_000, false}, {`{"hitlGate":true,"hitlGateRules":[` + rule(0, `/\b(?:export|dump)\s+(?:all\s+)?(?:users?|customers?)\b/i`) + `]}`, 1 << 20, false}} {
		_, err := g.Decide(t.Context(), detectortest.Interaction("", strings.Repeat("a word ", tc.bytes/7)), options(t, tc.options))
		var faulty *guard.OptionError
		if tc.refused != errors.As(err, &faulty) || tc.refused && faulty.Faults[0].Field != "hitlGateRules" {
			t.Errorf("%d bytes: %v", tc.bytes, err)
		}
	}
}

// An approval holds for the text that was shown: other text under the same id is another gate, and the rest of a stream is not.
func TestGatesAreOfTexts(t *testing.T) {
	g := guard.New(guardtest.Current(t), guard.Config{})
	under := func(method, response, asked string) audit.ID {
		in := detectortest.Interaction("Pay him.", response)
		in.ID = audit.DeriveID("event")
		d, err := g.Decide(t.Context(), in, options(t, asked))
		if err != nil || d.Action != guard.Gate {
			t.Fatalf("%+v %v", d, err)
		}
		return d.Request(in, method, time.Time{}).ID
	}
	ids := func(method, response string) audit.ID { return under(method, response, `{"hitlGate":true}`) }
	// A caller's own rule of the same id matches something harmless of the same text: who approves that has not seen the rest.
	lunch := "Lunch money. " + transfer
	if ids("guard", lunch) == under("guard", lunch, `{"hitlGate":true,"hitlGateRules":[{"id":"financial","description":"Lunch","pattern":"lunch money","category":"x"}]}`) {
		t.Error("what a person did not see is approved")
	}
	for _, tc := range []struct {
		method, text, other string
		same                bool
	}{
		{"guard", transfer, transfer, true},
		{"guard", transfer, "I will transfer $5,000 to account 8.", false},
		{"guard", transfer, "I will run DROP TABLE users and transfer $5,000 to account 7.", false},
		{guard.MethodLiteLLM, transfer, transfer, true},
		{guard.MethodLiteLLM, transfer, transfer + " Then I will say so.", true},
		{guard.MethodLiteLLM, transfer, transfer + " Then I will transfer $6,000 to account 8.", false},
		{guard.MethodLiteLLM, transfer, "They will transfer $5,000 to account 7.", false},
	} {
		if got := ids(tc.method, tc.text) == ids(tc.method, tc.other); got != tc.same {
			t.Errorf("%s: %q and %q share a gate: %v", tc.method, tc.text, tc.other, got)
		}
	}
}
