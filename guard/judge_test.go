package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
)

// opinions is a judge that says the same of everything.
type opinions struct {
	says  string
	err   error
	hangs bool
	grey  bool
	asked int
}

func (j *opinions) Grey(*audit.Interaction, *audit.Verdict) bool { return j.grey }

func (j *opinions) Judge(ctx context.Context, _ *audit.Interaction) (*guard.Opinion, error) {
	j.asked++
	if j.hangs {
		<-ctx.Done()
		return nil, audit.E("test", audit.KindUnavailable, ctx.Err())
	}
	if j.err != nil {
		return nil, j.err
	}
	return &guard.Opinion{
		Assessment: j.says, Confidence: audit.ScoreOf(0.9), Summary: "As it is.", Scores: []audit.NamedScore{{Name: "judge", Value: audit.ScoreOf(0.6)}},
		Findings: []audit.Finding{{Kind: "judge.stereotype", Rule: "judge.stereotype.age", Side: audit.Output, Span: audit.Span{End: 5}}},
		Rewrites: []guard.Rewrite{{Issue: "age", Excerpt: "Maria", Span: audit.Span{End: 5}, Rewrite: "She"}},
	}, nil
}

func TestJudgeInLine(t *testing.T) {
	away := audit.E("test", audit.KindUnavailable, errors.New("away"))
	spent := audit.E("test", audit.KindOverloaded, errors.New("spent"))
	block := func(j *guard.Judging) { j.Action = audit.Block }
	open := func(j *guard.Judging) { j.Action, j.FailOpen = audit.Block, true }
	for _, tc := range []struct {
		name     string
		judge    opinions
		ask      string
		change   func(*guard.Judging)
		options  string
		response string
		want     string // action, reasons, judgement, questions
	}{
		{"off", opinions{says: guard.NonCompliant}, guard.AskNever, nil, `{}`, clean, "allow [] - 0"},
		{"in no doubt", opinions{says: guard.NonCompliant}, guard.AskGrey, nil, `{}`, clean, "allow [] - 0"},
		{"in doubt", opinions{says: guard.NonCompliant, grey: true}, guard.AskGrey, nil, `{}`, clean, "warn [judge] done 1"},
		{"all", opinions{says: guard.NonCompliant}, guard.AskAll, nil, `{}`, clean, "warn [judge] done 1"},
		{"may block", opinions{says: guard.NonCompliant}, guard.AskAll, block, `{}`, clean, "block [judge] done 1"},
		{"for people", opinions{says: guard.NeedsReview}, guard.AskAll, block, `{}`, clean, "warn [judge_review] done 1"},
		{"agrees", opinions{says: guard.Compliant}, guard.AskAll, block, `{}`, clean, "allow [] done 1"},
		{"is never milder", opinions{says: guard.Compliant}, guard.AskAll, block, `{"domain":"hr"}`, emotion, "warn [bias] done 1"},
		{"is not asked about a block", opinions{says: guard.Compliant}, guard.AskAll, block, `{"domain":"hr","biasAction":"block"}`, emotion, "block [bias] - 0"},
		{"a block is stronger than the gate", opinions{says: guard.NonCompliant}, guard.AskAll, block, `{"hitlGate":true}`, transfer, "block [judge hitl_gate] done 1"},
		{"a gate is stronger than a warning", opinions{says: guard.NonCompliant}, guard.AskAll, nil, `{"hitlGate":true}`, transfer, "gate [judge hitl_gate] done 1"},
		{"nothing to read", opinions{says: guard.NonCompliant}, guard.AskAll, block, `{}`, "", "allow [no_text] - 0"},
		{"the prompt is not its affair", opinions{says: guard.NonCompliant}, guard.AskAll, block, `{"check":"prompt"}`, clean, "allow [no_text] - 0"},
		{"away, only warns", opinions{err: away}, guard.AskAll, nil, `{"domain":"hr"}`, emotion, "warn [bias] failed/unavailable 1"},
		{"away, may block", opinions{err: away}, guard.AskAll, block, `{}`, clean, "the judge did not answer"},
		{"away, may block, open", opinions{err: away}, guard.AskAll, open, `{}`, clean, "allow [not_judged] failed/unavailable 1"},
		{"spent", opinions{err: spent}, guard.AskAll, open, `{}`, clean, "allow [not_judged] failed/budget 1"},
		{"no verdict", opinions{err: audit.E("test", audit.KindInvalid, errors.New("no"))}, guard.AskAll, open, `{}`, clean, "allow [not_judged] failed/failed 1"},
		{"too slow", opinions{hangs: true}, guard.AskAll, open, `{}`, clean, "allow [not_judged] failed/timeout 1"},
		{"too slow, closed", opinions{hangs: true}, guard.AskAll, block, `{}`, clean, "the judge did not answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := guard.Judging{Judge: &tc.judge, Ask: tc.ask, Action: audit.Warn, Timeout: 100 * time.Millisecond}
			if tc.change != nil {
				tc.change(&j)
			}
			if err := j.Validate("guard"); err != nil {
				t.Fatal(err)
			}
			in := detectortest.Interaction("", tc.response)
			d, err := guard.New(guardtest.Current(t), guard.Config{Judging: j}).Decide(t.Context(), in, options(t, tc.options))
			if err != nil {
				if !errors.Is(err, guard.ErrNotJudged) || audit.KindOf(err) != audit.KindUnavailable || !strings.Contains(err.Error(), tc.want) {
					t.Error(err)
				}
				return
			}
			a := d.Answer(in, audit.ID{}, true, 0)
			said := "-"
			if a.Judge != nil {
				said = strings.TrimSuffix(string(a.Judge.Status)+"/"+a.Judge.Reason, "/")
			}
			if got := fmt.Sprint(d.Action, " ", d.Reasons, " ", said, " ", tc.judge.asked); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if d.Action == guard.Block && d.Reasons[0] == guard.Judged && (a.Error == nil || a.Error.Name != "NonCompliantError" || a.Judge.Rewrites[0].Rewrite != "She") {
				t.Errorf("%+v", a.Error)
			}
		})
	}
}

func TestJudgeIsLeftOut(t *testing.T) {
	j := &opinions{says: guard.NonCompliant}
	o := guard.DefaultOptions()
	o.RulesOnly = true
	if _, err := guard.New(guardtest.Current(t), guard.Config{Judging: guard.Judging{Judge: j, Ask: guard.AskAll, Action: audit.Block, Timeout: time.Second}}).Decide(t.Context(), detectortest.Interaction("", clean), o); err != nil || j.asked > 0 {
		t.Errorf("asked %d times, %v", j.asked, err)
	}
	if err := (guard.Judging{Ask: "sometimes"}).Validate("guard"); strings.Count(err.Error(), "guard.judge") != 3 {
		t.Error(err)
	}
}

// The note of a judgement has its place in every event: it is small and holds no text.
func TestJudgeNote(t *testing.T) {
	j := guard.Judgement{Status: audit.Done, Opinion: &guard.Opinion{Assessment: guard.NonCompliant, Summary: "a secret"}}
	for range 100 {
		j.Opinion.Findings = append(j.Opinion.Findings, audit.Finding{Kind: "judge.unequal_standards", Rule: "judge.unequal_standards.sexual_orientation", Span: audit.Span{Start: 100_000, End: 110_000}})
	}
	for _, s := range []string{"judge", "dei", "offensive"} {
		j.Opinion.Scores = append(j.Opinion.Scores, audit.NamedScore{Name: s, Value: 333_333})
	}
	b, err := json.Marshal(j.Note())
	if err != nil || len(b) > 1024 || strings.Contains(string(b), "secret") || !strings.Contains(string(b), `"found":100`) {
		t.Errorf("%d bytes, %v: %s", len(b), err, b)
	}
}
