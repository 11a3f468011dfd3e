package obs

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/sinks"
)

// What the judge did is counted by why it was asked; replays by their ids, of which producers cannot make new series.
func TestJudgeMetrics(t *testing.T) {
	m := NewMetrics(nil)
	m.Judged("grey", "done", "", time.Second)
	m.Judged("again", "failed", "timeout", time.Second)
	oldest := time.Time{}
	m.FollowJudge(func() time.Time { return oldest })
	for _, want := range []string{"\nevenhand_judge_oldest_waiting_seconds 0\n", "\nevenhand_judge_oldest_waiting_seconds 72"} {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q", want)
		}
		oldest = time.Now().Add(-2 * time.Hour)
	}
	b := &sinks.Batch{}
	for _, id := range []string{"replay/a/b/1/failed", "replay/a/b/2/passed", "replay/a/c/1/passed", "replay/a/c/99/passed", "replay/a/c/1/secret", "replay/secret", "order-7"} {
		b.Records = append(b.Records, audit.Record{Interaction: &audit.Interaction{GivenID: id}, Verdict: &audit.Verdict{Status: audit.Done, Action: audit.NoAction}})
	}
	m.Written(b, pipeline.Stats{})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	page := w.Body.String()
	for _, want := range []string{
		`evenhand_judge_answers_total{outcome="done",reason="",why="grey"} 1`, `evenhand_judge_answers_total{outcome="failed",reason="timeout",why="again"} 1`,
		`evenhand_replays_total{outcome="failed",round="1"} 1`, `evenhand_replays_total{outcome="passed",round="1"} 1`, `evenhand_replays_total{outcome="passed",round="2"} 1`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Count(page, "evenhand_replays_total{") != mostRounds*len(replayOutcomes) || strings.Contains(page, "secret") {
		t.Error("series that producers made")
	}
}
