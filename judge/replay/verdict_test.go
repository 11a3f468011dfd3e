package replay

import (
	"fmt"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

const bad = `{"overall":{"assessment":"non_compliant","confidence":0.9,"summary":"Ageist."},
"bias":{"score":70,"risk":"high","findings":[{"type":"stereotype","target":"group","protected_class":"age","excerpt":"too old","span":[0,7],"rationale":"age is no reason"},
	{"type":"othering","target":"group","protected_class":null,"excerpt":"them","span":[9,13],"rationale":"sets apart"}]},
"dei":{"score":20,"risk":"high","violations":[{"guideline":"inclusive_language","excerpt":"manpower","span":[20,28],"issue":"gendered","recommendation":"say staff"}]},
"offensive_language":{"score":10,"severity":"low","categories":["profanity"],"instances":[{"category":"profanity","excerpt":"damn","span":[30,34],"severity":"low","rationale":"coarse"}]},
"protected_classes_mentioned":[],"red_flags":["hiring"],
"suggested_remediations":[{"issue":"age","original_excerpt":"too old","span":[0,7],"suggested_rewrite":"not yet trained"}],
"meta":{"version":"1.0","evaluated_at":"2026-11-22T18:00:00Z","input_length":40}}`

func TestVerdictsOfTheComplianceEvaluator(t *testing.T) {
	for _, tc := range []struct{ name, doc, want string }{
		{"all sections", bad, "failed 0.2 [{bias, stereotype, age: age is no reason too old not yet trained} {bias, othering: sets apart them } " +
			"{offensive language, profanity: coarse damn } {inclusive language, inclusive_language: gendered manpower say staff}]"},
		{"clean", `{"overall":{"assessment":"compliant","summary":"Fine."},"bias":{"score":0},"dei":{"score":100},"offensive_language":{"score":0}}`, "passed 1 []"},
		{"the empty text, whose scores are all 0", `{"overall":{"assessment":"compliant"},"bias":{"score":0},"dei":{"score":0},"offensive_language":{"score":0}}`, "passed 1 []"},
		{"no place is named", `{"overall":{"assessment":"needs_review","summary":"Unclear."},"bias":{"score":30},"red_flags":["irony"]}`, "review 0.7 [{Unclear.  } {irony  }]"},
		{"no assessment", `{"overall":{"assessment":"fine"}}`, "replay: the verdict has no assessment"},
		{"no verdict", `[]`, "replay: the verdict is not seed 004's JSON"},
	} {
		c, err := FromVerdict([]byte(tc.doc))
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(c.Outcome, " ", c.Score, " ", c.Notes)
		} else if audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %s", tc.name, audit.KindOf(err))
		}
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func FuzzVerdict(f *testing.F) {
	f.Add([]byte(bad))
	f.Add([]byte(`{"overall":{"assessment":"compliant"},"bias":{"score":1e308}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := FromVerdict(doc)
		if err != nil {
			return
		}
		if len((Feedback{Notes: c.Notes}).Message()) > 200_000 {
			t.Error("too much is told")
		}
		if c.Score < 0 || c.Score > audit.One {
			t.Errorf("score %v", c.Score)
		}
	})
}
