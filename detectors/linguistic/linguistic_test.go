package linguistic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/rules"
)

// TestPacks runs every pack's own sentences and the lint rules.
func TestPacks(t *testing.T) {
	n := 0
	for _, p := range load(t) {
		t.Run(p.ID, func(t *testing.T) {
			one := []*rules.Pack{p}
			for _, f := range append(rules.Lint(one), rules.Test(one)...) {
				t.Error(f)
			}
		})
		n += len(p.Rules)
	}
	if n < 150 {
		t.Errorf("%d rules; want at least 150", n)
	}
}

// TestShippedSentences runs the first sentences of every rule through the common scanner, as the pipeline does.
func TestShippedSentences(t *testing.T) {
	d := mustNew(t)
	detectortest.Sentences(t, d, d.rules[:d.inPacks])
}

func TestContract(t *testing.T) {
	d := mustNew(t)
	var firing []string
	for i, r := range d.rules[:d.inPacks] {
		if i%7 == 0 { // tables have hundreds of rules of one form
			firing = append(firing, r.Match[0])
		}
	}
	detectortest.Run(t, d, append(firing, divided, coded)...)
}

const (
	divided = "Women are excellent and reliable leaders. Women are smart, honest and kind. Men are lazy and rude. Men are dishonest, violent and stupid."
	coded   = "We are looking for a driven, ambitious, competitive and fearless lead. Responsibilities: dominate the market and challenge others. " +
		"Requirements: an assertive, decisive analyst. Apply now."
)

// show writes findings and scores in one line: "rule"word" … name=0.5 …".
func show(text string, fs []audit.Finding, scores []audit.NamedScore) string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%s%q", f.Rule, f.Span.Slice(text)))
	}
	for _, s := range scores {
		out = append(out, fmt.Sprintf("%s=%.2f", s.Name, s.Value.Float()))
	}
	return strings.Join(out, " ")
}

func TestGolden(t *testing.T) {
	look := looker(t, mustNew(t))
	for _, tc := range []struct {
		name   string
		domain audit.Domain
		text   string
		want   string
	}{
		{"plain", audit.General, "The report has three pages.", ""},
		{"term", audit.General, "The chairman opened the meeting.", `gendered_language.role.chairman"chairman"`},
		{"a person whose sex is known", audit.General, "Sam Colt was an American businessman.", ""},
		{"the word itself", audit.General, `The word "chairman" is outdated.`, ""},
		{"typographic apostrophe", audit.General, "It is an old wives’ tale.", `gendered_language.belittling.old_wives_tale"old wives’ tale"`},
		{"a female engineer is no finding", audit.General, "She is a female engineer.", ""},
		{"slight", audit.General, "You are so articulate for a black man.", `microaggression.praise_for_a"You are so articulate for a black man"`},
		{"reported slight", audit.General, "People keep asking me where are you really from.", ""},
		{"advert wording outside an advert", audit.General, "He needs a thick skin.", ""},
		{"advert wording in hiring", audit.HR, "He needs a thick skin.", `job_advert_wording.phrase.thick_skinned"thick skin"`},
		{"insult", audit.General, "You are an idiot.", `toxicity.you_are"You are an idiot"`},
		{"look-alikes of insults", audit.General, "This is damn good. Shit happens. The code is garbage-collected. Kill the process.", ""},
		{"roles apart", audit.General, "The men are engineers and managers. The women are secretaries and nurses.", "representation_score=1.00 sentiment_divergence=0.00"},
		{"roles shared", audit.General, "The men are engineers and nurses. The women are engineers and nurses.", "representation_score=0.00 sentiment_divergence=0.00"},
		{"one group", audit.General, "The women are engineers and managers. The women are great.", ""},
		{"persons, not groups", audit.General, "He was a terrible thief. She was a kind nurse. He stole. She helped.", "representation_score=1.00"},
		{"tone apart", audit.General, divided, `sentiment.divergence"Men are dishonest, violent and stupid." sentiment_divergence=0.81`},
		{"one sentence each is no finding", audit.General, "Women are excellent. Men are horrible.", "sentiment_divergence=0.61"},
		{"German", audit.General, "Krankenschwester gesucht.", `gendered_language.rolle.krankenschwester"Krankenschwester" job_advert_wording.de_title"Krankenschwester gesucht"`},
		{"German with (m/w/d)", audit.General, "Elektriker (m/w/d) gesucht.", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fs, scores := look(tc.domain, tc.text)
			if got := show(tc.text, fs, scores); got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// What groups are measured to be is measured of the response alone; wording is found on both sides.
func TestSides(t *testing.T) {
	d := mustNew(t)
	a := detectortest.Analyzer(t, d)
	fs, scores, err := d.DetectScored(t.Context(), a.Prepare(detectortest.Interaction(divided+" Ask the chairman.", "Fine.")))
	if err != nil || len(scores) > 0 || len(fs) != 1 || fs[0].Side != audit.Input {
		t.Errorf("%v %v %v", detectortest.Describe(fs), scores, err)
	}
}

// TestVerdict holds what wording means for the verdict: findings and scores, and neither bias nor a flag.
func TestVerdict(t *testing.T) {
	a := detectortest.Analyzer(t, mustNew(t))
	v := a.Analyze(t.Context(), detectortest.Interaction("", "The chairman said: you are an idiot."))
	if v.Detected || v.Flagged || v.BiasSum != 0 || len(v.BiasTypes) > 0 || v.Action != audit.NoAction {
		t.Errorf("wording set bias: %+v", v)
	}
	if len(v.Findings) != 2 || v.Score("gendered_language") != 100_000 || v.Score(audit.ScoreToxicity) != 300_000 || v.MaxSeverity != audit.Medium.Level() {
		t.Errorf("%d findings, %v", len(v.Findings), v.Scores)
	}
	if v.Mitigation != audit.MitigationRephrase {
		t.Errorf("mitigation %q", v.Mitigation)
	}
	v = a.Analyze(t.Context(), detectortest.Interaction("", "The chairman is here."))
	if v.Mitigation != audit.MitigationReplace {
		t.Errorf("mitigation %q", v.Mitigation)
	}
	if got, want := a.Advice(v.Findings[0].Rule), (audit.Advice{Type: audit.MitigationReplace, Term: "chairman", Replace: "chair or chairperson"}); got != want {
		t.Errorf("advice %+v", got)
	}
	if got, want := audit.MitigationDetails(v.Mitigation, a.Advice(v.Findings[0].Rule)), `Some terms should be replaced: "chairman" → chair or chairperson`; got != want {
		t.Errorf("details %q", got)
	}
}

func TestNewRefusesOtherPacks(t *testing.T) {
	if _, err := New(nil); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("no packs: %v", err)
	}
	if _, err := New([]*rules.Pack{{ID: "charter.sex.en", Ground: audit.Sex, Rules: []*rules.Rule{{ID: "sex.x"}}}}); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("a pack of a ground: %v", err)
	}
}

func TestEveryMeasuredRuleHasAdvice(t *testing.T) {
	d := mustNew(t)
	for _, rule := range []string{RuleDivergence, RuleMasculine, RuleFeminine} {
		if d.Advice()[rule].Type == "" {
			t.Errorf("%s has none", rule)
		}
	}
	var _ detectors.Scorer = d
	var _ detectors.Kinded = d
	var _ detectors.Adviser = d
}
