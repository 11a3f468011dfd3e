package mend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
	"github.com/evenhand/evenhand/judge/replay"
)

func TestMending(t *testing.T) {
	for _, tc := range []struct {
		name   string
		rounds int
		says   []llmtest.Reply
		want   string // outcome, mended, best, stop, rounds, events
	}{
		{"improves on round one", 3, []llmtest.Reply{llmtest.Say("Ask the team.")}, "passed true 1 passed 2 1"},
		{"improves on round two", 3, []llmtest.Reply{llmtest.Say("She is too old."), llmtest.Say("Ask the team.")}, "passed true 2 passed 3 2"},
		{"never improves", 3, []llmtest.Reply{llmtest.Say("They are too old and too emotional.")}, "failed false 0 no_improvement 2 1"},
		{"gets worse", 3, []llmtest.Reply{llmtest.Say("Too bad: too old, too emotional, born lazy.")}, "failed false 0 no_improvement 2 1"},
		{"gets better, not good enough", 1, []llmtest.Reply{llmtest.Say("She is too old.")}, "failed false 1 rounds 2 1"},
		{"says the same", 3, []llmtest.Reply{llmtest.Say(first)}, "failed false 0 repeated 2 1"},
		{"refuses", 3, []llmtest.Reply{llmtest.Refuse("No.")}, "failed false 0 call_failed 2 1"},
		{"is away", 3, []llmtest.Reply{llmtest.Fail(http.StatusServiceUnavailable)}, "failed false 0 call_failed 2 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Rounds = 3
			w := newWorld(t, cfg, judges, tc.says...)
			in := stored()
			res, err := w.Mend(t.Context(), in, Wish{Rounds: tc.rounds})
			if err != nil {
				t.Fatal(err)
			}
			made := w.log.interactions(t)
			if got := fmt.Sprint(res.Outcome, " ", res.Mended, " ", res.Best, " ", res.Stop, " ", len(res.Rounds), " ", len(made)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if len(w.origin.Asked()) != len(tc.says) {
				t.Errorf("the model was asked %d times", len(w.origin.Asked()))
			}
			for i, e := range made {
				r := res.Rounds[i+1]
				if e.ID != *r.ID || e.GivenID != replay.RoundID(in.ID, res.Run, r.Round, r.Outcome) || e.Response != r.Response || e.Tenant != "acme" || e.TraceID != in.TraceID || e.UserID != "u-7" || e.Domain != audit.HR || e.DecisionID != "d-1" {
					t.Errorf("round %d: %+v", i+1, e)
				}
				var m struct{ Replay replay.RoundNote }
				if err := json.Unmarshal([]byte(e.Metadata), &m); err != nil || m.Replay.Of != in.ID || m.Replay.Round != i+1 || m.Replay.Outcome != r.Outcome {
					t.Errorf("round %d: %s", i+1, e.Metadata)
				}
				if (e.Status == "error") != (r.Response == "") {
					t.Errorf("round %d: status %s", i+1, e.Status)
				}
			}
		})
	}
}

// The original call is made again as it was, with the findings behind it.
func TestTheOriginalCall(t *testing.T) {
	w := newWorld(t, DefaultConfig(), judges, llmtest.Say("Ask the team."))
	if _, err := w.Mend(t.Context(), stored(), Wish{}); err != nil {
		t.Fatal(err)
	}
	a := w.origin.Asked()[0]
	if a.Model != "gpt-x" || len(a.Messages) != 3 || a.System() != "Be brief." || a.Messages[1].Content != "Who should lead?" || !strings.Contains(a.Last(), `"excerpt":"too emotional"`) {
		t.Errorf("%+v", a.Messages)
	}
	if j := w.judge.Asked(); len(j) != 2 || strings.Contains(j[1].Last(), "too old") {
		t.Errorf("the judge was asked %d times, or saw what was found before", len(j))
	}
}

// Rules that flag a response fail it, whatever the judge says; the judge does not learn of it.
func TestRulesFailAResponse(t *testing.T) {
	w := newWorld(t, DefaultConfig(), judges, llmtest.Say("Ask the team."))
	w.Validator.Analyze = func(_ context.Context, in *audit.Interaction) *audit.Verdict {
		v := &audit.Verdict{Status: audit.Done}
		if strings.HasPrefix(in.Response, "Men lead") {
			v.Flagged, v.BiasSum = true, audit.ScoreOf(0.6)
			v.Findings = []audit.Finding{{Rule: "sex.role", Kind: "charter.sex", Side: audit.Output, Score: audit.ScoreOf(0.6), Span: audit.Span{End: 8}}}
		}
		return v
	}
	in := stored()
	in.Response = "Men lead best."
	res, err := w.Mend(t.Context(), in, Wish{})
	if err != nil || !res.Mended || res.Rounds[0].Outcome != "failed" || res.Rounds[0].Score.Float() != 0.4 || len(res.Rounds[0].Notes) != 1 || res.Rounds[0].Notes[0].Excerpt != "Men lead" {
		t.Errorf("%+v %v", res, err)
	}
	w.Validator.Analyze = func(context.Context, *audit.Interaction) *audit.Verdict { return &audit.Verdict{Status: audit.Failed} }
	if _, err := w.Mend(t.Context(), in, Wish{}); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("rules that cannot look: %v", err)
	}
}

func TestWhatCannotBeMended(t *testing.T) {
	change := func(f func(in *audit.Interaction)) *audit.Interaction { in := stored(); f(in); return in }
	w := newWorld(t, DefaultConfig(), judges)
	for name, tc := range map[string]struct {
		in   *audit.Interaction
		wish Wish
		want error
	}{
		"tools": {change(func(in *audit.Interaction) {
			in.Messages = `[{"role":"user","content":"x"},{"role":"tool","content":"y"}]`
		}), Wish{}, ErrNotPlain},
		"tool calls":  {change(func(in *audit.Interaction) { in.Messages = `[{"role":"assistant","content":null,"tool_calls":[{}]}]` }), Wish{}, ErrNotPlain},
		"pictures":    {change(func(in *audit.Interaction) { in.Messages = `[{"role":"user","content":[{"type":"image_url"}]}]` }), Wish{}, ErrNotPlain},
		"no prompt":   {change(func(in *audit.Interaction) { in.Messages, in.Prompt = "", "" }), Wish{}, ErrNotPlain},
		"cut":         {change(func(in *audit.Interaction) { in.Truncated = true }), Wish{}, ErrTextsCut},
		"no response": {change(func(in *audit.Interaction) { in.Response = "" }), Wish{}, ErrNoResponse},
		"too much":    {stored(), Wish{Rounds: 9}, nil},
	} {
		_, err := w.Mend(t.Context(), tc.in, tc.wish)
		if audit.KindOf(err) != audit.KindInvalid || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(w.judge.Asked()) + len(w.log.ms); n > 0 {
		t.Errorf("%d calls and events all the same", n)
	}
}

func TestTheJudgeIsAway(t *testing.T) {
	down := func(int, llmtest.Asked) llmtest.Reply { return llmtest.Fail(http.StatusServiceUnavailable) }
	w := newWorld(t, DefaultConfig(), down)
	if _, err := w.Mend(t.Context(), stored(), Wish{}); audit.KindOf(err) != audit.KindUnavailable {
		t.Error(err)
	}
	// Down from the second question on: the first response stays.
	w = newWorld(t, DefaultConfig(), func(n int, a llmtest.Asked) llmtest.Reply {
		if n > 0 {
			return down(n, a)
		}
		return judges(n, a)
	}, llmtest.Say("Ask the team."))
	res, err := w.Mend(t.Context(), stored(), Wish{})
	if err != nil || res.Stop != "check_failed" || res.Best != 0 || res.Response != first || len(w.log.ms) != 1 {
		t.Errorf("%+v %v", res, err)
	}
	if in := w.log.interactions(t)[0]; !strings.HasSuffix(in.GivenID, "/1/unchecked") {
		t.Error(in.GivenID)
	}
}

func TestTimeLimit(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Timeout = time.Second
	w := newWorld(t, cfg, judges, llmtest.Hang())
	res, err := w.Mend(t.Context(), stored(), Wish{})
	if err != nil || res.Stop != "cancelled" || res.Best != 0 || len(res.Rounds) != 2 || len(w.log.ms) != 1 {
		t.Errorf("%+v %v", res, err)
	}
}

func TestBudgetSpent(t *testing.T) {
	w := newWorld(t, DefaultConfig(), judges, llmtest.Say("She is too old."))
	origin := client(t, w.origin, func(c *llm.Config) { c.BudgetCalls = 1 })
	w.Origin = func(*audit.Interaction, string) (llm.Model, string, error) { return origin, "gpt-x", nil }
	res, err := w.Mend(t.Context(), stored(), Wish{})
	if err != nil || res.Stop != "call_failed" || res.Best != 1 || !strings.Contains(res.Rounds[2].Error, llm.ErrBudget.Error()) {
		t.Errorf("%+v %v", res, err)
	}
}

// What the log does not take is not used.
func TestTheLogIsAway(t *testing.T) {
	w := newWorld(t, DefaultConfig(), judges, llmtest.Say("Ask the team."))
	w.log.err = audit.E("test", audit.KindUnavailable, errors.New("away"))
	res, err := w.Mend(t.Context(), stored(), Wish{})
	if err != nil || res.Stop != "record_failed" || res.Best != 0 || res.Mended || res.Rounds[1].ID != nil {
		t.Errorf("%+v %v", res, err)
	}
}

func TestOnlySoManyAtOnce(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Concurrency = 1
	began, leave := make(chan struct{}), make(chan struct{})
	w := newWorld(t, cfg, func(n int, a llmtest.Asked) llmtest.Reply {
		close(began)
		<-leave
		return llmtest.Say(verdict("nothing"))
	})
	done := make(chan error)
	go func() {
		_, err := w.Mend(t.Context(), stored(), Wish{})
		done <- err
	}()
	<-began
	if _, err := w.Mend(t.Context(), stored(), Wish{}); audit.KindOf(err) != audit.KindOverloaded {
		t.Error(err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Slow replays of one tenant leave a place to the next.
func TestATenantLeavesAPlaceToOthers(t *testing.T) {
	leave, began := make(chan struct{}), make(chan struct{}, 8)
	w := newWorld(t, DefaultConfig(), func(n int, a llmtest.Asked) llmtest.Reply {
		began <- struct{}{}
		<-leave
		return llmtest.Say(verdict("nothing"))
	})
	done := make(chan error)
	mend := func(tenant string) {
		in := *stored()
		in.Tenant = tenant
		_, err := w.Mend(t.Context(), &in, Wish{})
		done <- err
	}
	for range 4 {
		go mend("acme")
	}
	if err := <-done; audit.KindOf(err) != audit.KindOverloaded {
		t.Errorf("the last place went to acme: %v", err)
	}
	go mend("beta")
	for range 4 {
		<-began
	}
	close(leave)
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{}, Parts{}); audit.KindOf(err) != audit.KindInvalid || strings.Count(err.Error(), "replay.") != 3 {
		t.Error(err)
	}
}
