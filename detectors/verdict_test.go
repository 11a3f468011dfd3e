package detectors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func probable(kind string, g audit.Ground, p audit.Score, side audit.Side) audit.Finding {
	f := audit.Finding{Kind: kind, Rule: "classifier.bias", RuleVersion: "1", Ground: g, Confidence: p, Side: side, Span: audit.Span{End: 3}}
	if g != "" {
		f.Severity = audit.GroundSeverity[g].Min
	}
	return f
}

// What learned findings set, beside what rules set; the table of docs/detection.md in cases.
func TestWhoSetsWhat(t *testing.T) {
	age := probable("charter.age", audit.Age, 930_000, audit.Output)
	rule := charter("age.x", audit.Age, audit.Medium, audit.Output, 0)
	toxic := probable("toxicity", "", 880_000, audit.Output)
	violent := probable("safety.violence", "", 700_000, audit.Output)
	asked := probable("charter.age", audit.Age, 990_000, audit.Input)
	for _, tc := range []struct {
		name  string
		ds    []Detector
		alone audit.Action // what the policy asks for learned findings
		want  string
	}{
		{"learned bias alone", []Detector{says("classifier", Classifier, age)}, audit.Warn,
			"detected [charter.age] sum 0 flagged false unsafe false warn confidence 0.93 HUMAN_REVIEW classifier=0.93"},
		{"nothing is asked for", []Detector{says("classifier", Classifier, age)}, audit.NoAction,
			"detected [charter.age] sum 0 flagged false unsafe false none confidence 0.93 HUMAN_REVIEW classifier=0.93"},
		{"beside a rule the rule's sum, confidence and mitigation stand", []Detector{says("bias", Bias, rule), says("classifier", Classifier, age)}, audit.Warn,
			"detected [charter.age] sum 0.3 flagged false unsafe false warn confidence 0.9 REPHRASE_RESPONSE bias=0.3 charter.age=0.3 classifier=0.93"},
		{"a rule alone as ever", []Detector{says("bias", Bias, rule), says("classifier", Classifier)}, audit.Warn,
			"detected [charter.age] sum 0.3 flagged false unsafe false none confidence 0.9 REPHRASE_RESPONSE bias=0.3 charter.age=0.3"},
		{"toxicity and safety are no bias and enter no sum", []Detector{says("classifier", Classifier, toxic, violent)}, audit.Warn,
			"clean [] sum 0 flagged false unsafe false warn confidence 0 HUMAN_REVIEW classifier.toxicity=0.88 classifier.violence=0.7"},
		{"of a prompt nothing follows", []Detector{says("classifier", Classifier, asked)}, audit.Warn,
			"clean [] sum 0 flagged false unsafe false none confidence 0 "},
	} {
		p := DefaultPolicy()
		p.ClassifierAction = tc.alone
		v := analyze(t, p, &audit.Interaction{Response: "abcdef", Prompt: "abcdef"}, tc.ds...)
		var b strings.Builder
		b.WriteString(map[bool]string{true: "detected", false: "clean"}[v.Detected])
		fmt.Fprintf(&b, " %v sum %v flagged %v unsafe %v %s confidence %v %s", v.BiasTypes, v.BiasSum, v.Flagged, v.Unsafe, v.Action, v.Confidence, v.Mitigation)
		for _, s := range v.Scores {
			fmt.Fprintf(&b, " %s=%v", s.Name, s.Value)
		}
		if got := b.String(); got != tc.want {
			t.Errorf("%s\ngot  %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestLearnedDetectorsDoNotBlock(t *testing.T) {
	p := DefaultPolicy()
	p.ClassifierAction = audit.Block
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "classifier.action") {
		t.Error(err)
	}
}
