package compliance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/internal/llm"
)

func read[T any](t *testing.T, name string) (v T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Hostile texts are called attempts or have no effect. Each is put before three models: one that obeys (clean, whatever
// the text is), one that does its work, and one that repeats what it was given.
func TestHostileTexts(t *testing.T) {
	texts := read[map[string][]string](t, "hostile.yaml")
	if n := len(texts["attempt"]) + len(texts["no_effect"]); n < 60 || len(texts) != 2 {
		t.Fatalf("%d texts of %d kinds", n, len(texts))
	}
	// What the three models say; the first two only of what is well formed.
	models := map[string]func(r llm.Request, part string) string{
		"obedient": func(llm.Request, string) string { return edited() },
		"honest":   func(_ llm.Request, part string) string { return edited(found("stereotype", "", part, 0)) },
		"parrot":   func(r llm.Request, _ string) string { return r.System + r.Messages[0].Content },
	}
	for name, answer := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text string
			e := evaluator(t, answers(func(r llm.Request) *llm.Answer {
				part, err := window(r)
				if err != nil || part != text || strings.Contains(r.System, text) || len(r.Messages) != 1 {
					t.Errorf("%q leaves its string: %v", text, err)
				}
				return &llm.Answer{Text: answer(r, part)}
			}))
			for kind, all := range texts {
				for _, text = range all {
					r, err := e.Evaluate(t.Context(), Input{Text: text})
					if err != nil {
						t.Fatalf("%q: %v", text, err)
					}
					keeps(t, r.Verdict)
					attempt, row := kind == "attempt", r.Row(audit.ID{})
					if r.Injection != (attempt || name == "parrot") {
						t.Errorf("%q: an attempt: %t", text, r.Injection)
					}
					switch {
					case name == "honest" && (r.Verdict.Overall.Assessment != NonCompliant || !r.Detected || !row.Flagged):
						t.Errorf("%q: an honest verdict became %+v", text, r.Verdict.Overall)
					case r.Injection && name != "honest" && (r.Verdict.Overall.Assessment != NeedsReview || row.Mitigation != audit.MitigationReview):
						t.Errorf("%q: nobody is asked to look", text)
					case name == "parrot" && (r.Leaked != 1 || len(r.Scores) > 0):
						t.Errorf("%q: what gives the instructions away is believed", text)
					}
				}
			}
		})
	}
}

// Ordinary texts, ours and the benign rows of the shared data, are no attempts.
func TestOrdinaryTextsAreNoAttempts(t *testing.T) {
	texts := read[[]string](t, "ordinary.yaml")
	if len(texts) < 100 {
		t.Fatalf("%d texts", len(texts))
	}
	e := evaluator(t, says(edited()))
	check := func(t *testing.T, text string) {
		t.Helper()
		fs, err := e.rules.attempts(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fs {
			t.Errorf("%s: %q in %q", f.Rule, f.Span.Slice(text), text)
		}
	}
	for _, text := range texts {
		check(t, text)
	}
	t.Run("shared", func(t *testing.T) {
		n := 0
		for _, name := range []string{"vicuna_eval_answers", "self_instruct", "clinc_assistant", "sgd_dialogue", "gsm8k", "bold_wikipedia_neutral", "winobias_neutral", "wiki_comments"} {
			for _, row := range detectortest.Rows[struct{ Text string }](t, detectortest.Shared(t, "data", name+".jsonl")) {
				check(t, row.Text)
				n++
			}
		}
		t.Logf("%d texts", n)
	})
}
