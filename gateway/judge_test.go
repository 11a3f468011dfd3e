package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
)

// strict is a judge that finds everything non_compliant, or does not answer.
type strict struct {
	err   error
	asked []string
}

func (j *strict) Grey(*audit.Interaction, *audit.Verdict) bool { return true }

func (j *strict) Judge(_ context.Context, in *audit.Interaction) (*guard.Opinion, error) {
	j.asked = append(j.asked, in.Response)
	if j.err != nil {
		return nil, j.err
	}
	return &guard.Opinion{Assessment: guard.NonCompliant, Confidence: audit.One, Findings: []audit.Finding{{Kind: "judge.othering", Rule: "judge.othering", Side: audit.Output, Span: audit.Span{End: 3}}},
		Rewrites: []guard.Rewrite{{Issue: "i", Excerpt: "The", Rewrite: "A"}}}, nil
}

func judgedBy(t *testing.T, j *strict, more func(c *Config)) func(*Config, *Deps) {
	return func(c *Config, d *Deps) {
		c.Judge, c.JudgeAction, c.JudgeTimeout = guard.AskAll, "block", time.Minute
		if more != nil {
			more(c)
		}
		d.Guard = guard.New(guardtest.Current(t), guard.Config{Judging: c.Judging(j)})
	}
}

func TestJudge(t *testing.T) {
	away := audit.E("test", audit.KindUnavailable, errors.New("away"))
	t.Run("blocks", func(t *testing.T) {
		j := &strict{}
		s := start(t, newProvider(t, says(clean)).URL, judgedBy(t, j, nil))
		got := s.do(PathChat, prompt("hi", ""))
		e := gjson.Get(got.body, "error.evenhand")
		if got.status != 400 || e.Get("error.name").String() != "NonCompliantError" || e.Get("judge.rewrites.0.suggested_rewrite").String() != "A" || len(j.asked) != 1 {
			t.Fatalf("%d %s, %q", got.status, got.body, j.asked)
		}
		meta, _ := s.event()["metadata"].(map[string]any)
		own, _ := meta["gateway"].(map[string]any)
		if note, _ := own["judge"].(map[string]any); note["assessment"] != guard.NonCompliant {
			t.Errorf("%v", meta)
		}
	})
	t.Run("warns", func(t *testing.T) {
		s := start(t, newProvider(t, says(clean)).URL, judgedBy(t, &strict{}, func(c *Config) { c.JudgeAction = "warn" }))
		got := s.do(PathChat, prompt("hi", ""))
		if got.status != 200 || gjson.Get(got.body, "evenhand.reasons.0").String() != "judge" || gjson.Get(got.body, "evenhand.judge.status").String() != "done" {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("is away, closed", func(t *testing.T) {
		s := start(t, newProvider(t, says(clean)).URL, judgedBy(t, &strict{err: away}, nil))
		if got := s.do(PathChat, prompt("hi", "")); got.status != 503 || !strings.Contains(got.body, "evenhand_unchecked") {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("is away, open", func(t *testing.T) {
		s := start(t, newProvider(t, says(biased)).URL, judgedBy(t, &strict{err: away}, func(c *Config) { c.Fail = FailOpen }))
		got := s.do(PathChat, prompt("hi", ""))
		if got.status != 200 || got.header.Get("X-Evenhand-Action") != "warn" || gjson.Get(got.body, "evenhand.judge.reason").String() != "unavailable" || !strings.Contains(got.body, `"not_judged"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("that may block has streams held, or windows judged at their end", func(t *testing.T) {
		j := &strict{}
		s := start(t, "http://127.0.0.1:1", judgedBy(t, j, nil))
		o, f := s.g.options(nil, gjson.Result{})
		if f != nil || o.stream != StreamHold {
			t.Errorf("%s %v", o.stream, f)
		}
		c := open()
		c.BaseURL, c.Stream, c.Judge, c.JudgeAction = "https://api.example/v1", StreamPass, guard.AskAll, "block"
		if err := c.Validate(); err == nil {
			t.Error("streams pass unjudged")
		}
	})
}
