package lane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/store"
)

var nothing = slog.New(slog.DiscardHandler)

// The whole way: chosen, asked for, judged, stored, shown, published.
func TestTheWayOfARequest(t *testing.T) {
	f := newFixture(t, tuned(), all())
	f.run(f.lane)
	rs := f.hot(true, audit.General, "a stereotype of women", "fine words", "grey and a stereotype")
	f.until("answers", func() bool { return f.tally.of("done") == 3 })
	f.published(3)

	tenant := f.store.WithTenant("acme")
	for i, want := range []struct {
		detected bool
		types    []string
		review   string
	}{{true, []string{"charter.sex", "judge.stereotype"}, audit.MitigationRephrase}, {false, nil, ""}, {true, []string{"charter.age", "charter.sex", "judge.stereotype"}, audit.MitigationRephrase}} {
		in := rs[i].Interaction
		r, err := tenant.Get(t.Context(), in.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.BiasDetected != want.detected || !slices.Equal(r.BiasTypes, want.types) || r.Mitigation != want.review || r.AnalysisStatus != audit.Done || len(r.Verdicts) != 2 {
			t.Errorf("%s: %v %v %s %s, %d verdicts", in.Response, r.BiasDetected, r.BiasTypes, r.Mitigation, r.AnalysisStatus, len(r.Verdicts))
		}
		e := f.paper.newest(in.ID)
		if e.Detected != want.detected || !slices.Equal(e.BiasTypes, want.types) || e.TraceID != in.TraceID || e.ResultID != r.Verdicts[1].ResultID || e.Tenant != "acme" {
			t.Errorf("%s: %+v", in.Response, e)
		}
		words, err := tenant.JudgeWords(t.Context(), &r.Item, r.Verdicts[1].ResultID)
		if err != nil || !strings.Contains(words, `"assessment"`) {
			t.Errorf("words %q %v", words, err)
		}
	}
	if got := f.judged(rs[0].Interaction.ID); got != "attempt-1 done" {
		t.Error(got)
	}
	for _, r := range f.paper.told {
		in, v := r.Interaction, r.Verdict
		if len(f.paper.told) != 3 || v.Analyzer != audit.JudgeAnalyzer || v.Status != audit.Done || in.TraceID == "" || in.SpanID != "00f067aa0ba902b7" || in.Metadata != `{"gen_ai.response.id":"r1"}` || in.Response != "" {
			t.Errorf("told: %+v %+v", in, v)
		}
	}
	if f.tally.of("done for grey") != 1 || f.tally.of("done for sample") != 2 {
		t.Errorf("%v", f.tally.n)
	}
	if n := f.tally.of("calls"); n != 4 { // in the grey band two votes of three agree
		t.Errorf("%d calls", n)
	}
	if f.tally.of("rules false judge true") != 1 || f.tally.of("rules true judge true") != 1 || f.tally.of("rules false judge false") != 1 {
		t.Errorf("%v", f.tally.n)
	}
	f.checked()
	var w store.Window
	if c, err := tenant.Coverage(t.Context(), w); err != nil || c.Analysed != 3 {
		t.Errorf("%+v %v", c, err)
	}
}

// What a text brings about that the judge cannot answer: a verdict with a reason, and the rest goes on.
func TestEveryFault(t *testing.T) {
	c := tuned()
	c.Timeout = time.Second
	f := newFixture(t, c, all())
	f.model.spent = map[string]bool{}
	f.run(f.lane)
	rs := f.hot(true, audit.General, "garbage", "reject", "panic", "busy", "hang", "fine words")
	f.until("answers", func() bool {
		return f.tally.of("done") == 1 && f.tally.of("failed unreadable") == 1 && f.tally.of("failed refused") == 1 && f.tally.of("failed panic") == 1 && f.tally.of("failed unavailable") == 1 && f.tally.of("failed timeout") == 1
	})
	for i, want := range []string{"failed unreadable", "failed refused", "failed panic", "failed unavailable", "failed timeout", "done"} {
		if got := f.judged(rs[i].Interaction.ID); got != "attempt-1 "+want {
			t.Errorf("%s: %s, want %s", rs[i].Interaction.Response, got, want)
		}
		if got := f.paper.heard(rs[i].Interaction.ID); got != want {
			t.Errorf("%s: told %s, want %s", rs[i].Interaction.Response, got, want)
		}
		// The record stays what the rules made of it, and nobody is told.
		r, err := f.store.WithTenant("acme").Get(t.Context(), rs[i].Interaction.ID)
		if err != nil || r.AnalysisStatus != audit.Done {
			t.Errorf("%s: %s %v", rs[i].Interaction.Response, r.AnalysisStatus, err)
		}
	}
	f.published(1)
	if n := len(f.paper.events); n != 1 {
		t.Errorf("%d messages", n)
	}
	f.checked()
}

// A budget that is spent skips until the day turns; attempts grow rarer and end.
func TestSkippedFailedAbandoned(t *testing.T) {
	c := tuned()
	c.Attempts = 2
	f := newFixture(t, c, all())
	f.model.spent = map[string]bool{"acme": true}
	f.run(f.lane)
	id := f.hot(true, audit.General, "a stereotype")[0].Interaction.ID
	f.until("skipped", func() bool { return f.tally.of("skipped budget") == 1 })
	w := &Sweeper{Config: c, Store: f.store, Asker: f.asker}
	f.swept(w, 0, 0)
	f.aged("INTERVAL 1 DAY") // its row; the day has turned
	f.swept(w, 0, 1)
	f.until("skipped again", func() bool { return f.tally.of("skipped budget") == 2 })
	f.model.set(func() { f.model.spent = nil })
	f.aged("INTERVAL 1 DAY")
	f.swept(w, 0, 1)
	f.until("judged", func() bool { return f.tally.of("done for again") == 1 })
	if got := f.judged(id); got != "attempt-1 skipped budget, attempt-2 skipped budget, attempt-3 done" {
		t.Error(got)
	}

	id = f.hot(true, audit.General, "garbage")[0].Interaction.ID
	f.until("failed", func() bool { return f.tally.of("failed unreadable") == 1 })
	f.aged("INTERVAL 50 SECOND")
	f.swept(w, 0, 0)
	f.aged("INTERVAL 20 SECOND")
	f.swept(w, 0, 1)
	f.until("abandoned", func() bool { return f.tally.of("abandoned unreadable") == 1 })
	f.aged("INTERVAL 1 DAY")
	f.swept(w, 0, 0)
	if got := f.judged(id); got != "attempt-1 failed unreadable, attempt-2 abandoned unreadable" {
		t.Error(got)
	}
	want := store.JudgeCoverage{Judged: 1, Abandoned: 1, Calls: 1, CostUSD: 0.000_25}
	if c, err := f.store.WithTenant("acme").Judged(t.Context(), store.Window{}); err != nil || c != want {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := f.store.AllTenants().Judged(t.Context(), store.Window{}); err != nil || c != want {
		t.Errorf("%+v %v", c, err)
	}
	// A person may ask all the same.
	v, words, err := f.lane.Ask(t.Context(), "acme", id)
	if err != nil || v.Status != audit.Abandoned || words != "" {
		t.Errorf("%+v %q %v", v, words, err)
	}
	if _, _, err := f.lane.Ask(t.Context(), "other", id); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	f.checked()
}

// Whatever was chosen and never asked for is found.
func TestSweepFindsWhatWasLost(t *testing.T) {
	f := newFixture(t, tuned(), judge.Config{Domains: []audit.Domain{audit.HR}})
	rs := f.hot(false, audit.HR, "a stereotype", "fine words")
	f.hot(false, audit.General, "fine words")
	w := &Sweeper{Config: tuned(), Store: f.store, Asker: f.asker}
	f.swept(w, 0, 0) // they may still be asked for
	f.exec("INSERT INTO {db}.audit_current SELECT * REPLACE (written_at - INTERVAL 16 MINUTE AS written_at) FROM {db}.audit_current FINAL")
	f.swept(w, 2, 0)
	f.run(f.lane)
	f.until("judged", func() bool { return f.tally.of("done") == 2 })
	if got := f.judged(rs[1].Interaction.ID); got != "attempt-1 done" {
		t.Error(got)
	}
	f.swept(w, 0, 0)
}

// An equal text is answered without a call, by the same model and prompt and within the tenant.
func TestEqualTexts(t *testing.T) {
	f := newFixture(t, tuned(), all())
	stop := f.run(f.lane)
	f.hot(true, audit.General, "a stereotype")
	f.until("judged", func() bool { return f.tally.of("done") == 1 })
	id := f.hot(true, audit.General, "a stereotype")[0].Interaction.ID
	f.until("judged by the first", func() bool { return f.tally.of("cached") == 1 })
	if got := f.paper.heard(id); got != "done" {
		t.Errorf("told %q", got)
	}
	f.hot(true, audit.HR, "a stereotype") // another domain, another question
	f.until("judged", func() bool { return f.tally.of("done") == 2 })
	f.published(3)
	if n := f.model.askedFor("a stereotype"); n != 2 {
		t.Errorf("%d calls", n)
	}
	r, err := f.store.WithTenant("acme").Get(t.Context(), id)
	if err != nil || !r.BiasDetected || len(r.Verdicts) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if words, err := f.store.WithTenant("acme").JudgeWords(t.Context(), &r.Item, r.Verdicts[1].ResultID); err != nil || !strings.Contains(words, "non_compliant") {
		t.Errorf("%q %v", words, err)
	}
	stop()
	f.run(f.newLane(tuned(), "gpt/2"))
	f.hot(true, audit.General, "a stereotype")
	f.until("judged by another prompt", func() bool { return f.tally.of("done") == 3 })
	f.checked()
}

// A message that is no request is buried as it came, and what follows it is answered.
func TestPoison(t *testing.T) {
	f := newFixture(t, tuned(), all())
	rs := f.hot(false, audit.General, "fine words")
	m := message.NewMessage("x", []byte("no request"))
	m.Metadata.Set(bus.MetadataKey, rs[0].Interaction.ID.String())
	m.Metadata.Set("dlq_attempts", "2")
	if err := f.asker.Publisher.Publish(kafkaconn.Judge, m); err != nil {
		t.Fatal(err)
	}
	f.asker.Ask(t.Context(), rs)
	gone := judge.Of(rs[0].Interaction, judge.Sample)
	gone.ID = audit.DeriveID("nobody")
	if err := f.asker.Send(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	f.run(f.lane)
	f.until("all handled", func() bool {
		return f.tally.of("done") == 1 && f.tally.of("poison judge_request") == 1 && f.tally.of("gone") == 1
	})
	if d := f.paper.dead; len(d) != 1 || string(d[0].Value) != "no request" || string(d[0].Key) != rs[0].Interaction.ID.String() || d[0].Origin.Topic != kafkaconn.Judge || d[0].Reason != reasonRequest ||
		!slices.ContainsFunc(d[0].Header, func(h audit.Header) bool { return h.Key == "dlq_attempts" && string(h.Value) == "2" }) ||
		slices.ContainsFunc(d[0].Header, func(h audit.Header) bool { return strings.HasSuffix(h.Key, "_poisoned") }) {
		t.Errorf("%+v", d)
	}
}

// What could not be published is when the request comes again, without a call.
func TestCutShort(t *testing.T) {
	f := newFixture(t, tuned(), all())
	f.paper.down = true
	f.run(f.lane)
	in := f.hot(true, audit.General, "a stereotype")[0].Interaction
	f.until("given up", func() bool { return f.tally.of("unshown") > 0 })
	if got := f.judged(in.ID); got != "attempt-1 done" {
		t.Error(got)
	}
	f.paper.mu.Lock()
	f.paper.down = false
	f.paper.mu.Unlock()
	if err := f.asker.Send(t.Context(), judge.Of(in, judge.Sample)); err != nil {
		t.Fatal(err)
	}
	f.until("published", func() bool { return f.paper.newest(in.ID).Detected })
	if n := f.model.askedFor("a stereotype"); n != 1 {
		t.Errorf("%d calls", n)
	}
	if got := f.paper.heard(in.ID); got != "done" {
		t.Errorf("told %q", got)
	}
}

// Once the texts are dropped there is nothing to judge, and no words about them come to be.
func TestWithoutTexts(t *testing.T) {
	f := newFixture(t, tuned(), all())
	f.hot(true, audit.General, "a stereotype")
	f.exec("TRUNCATE TABLE {db}.interaction_texts")
	f.run(f.lane)
	f.until("abandoned", func() bool { return f.tally.of("abandoned text_dropped") == 1 })
	if n := f.count("interaction_texts"); n != 0 {
		t.Errorf("%d texts", n)
	}
}

// An import may be older than its tenant keeps texts: the judge, who could only give it up, is not asked.
func TestPastItsLimitIsNotChosen(t *testing.T) {
	f := newFixture(t, tuned(), all())
	limit := time.Now().Add(-time.Hour)
	f.asker.TextsGo = func(_ context.Context, tenant string, day time.Time) (time.Time, error) {
		switch tenant {
		case "strict":
			return limit, nil
		case "unknown":
			return time.Time{}, errors.New("the store is away")
		}
		return day.AddDate(0, 0, 180), nil
	}
	for _, f.tenant = range []string{"strict", "unknown", "acme"} {
		f.hot(true, audit.General, "fine words")
	}
	if n := f.tally.of("asked sample"); n != 2 {
		t.Errorf("%d asked for, want all but strict's", n)
	}
	f.exec("INSERT INTO {db}.audit_current SELECT * REPLACE (written_at - INTERVAL 16 MINUTE AS written_at) FROM {db}.audit_current FINAL")
	f.swept(&Sweeper{Config: tuned(), Store: f.store, Asker: f.asker}, 2, 0)
}

// Who sends one waits for its turn, not for all that another tenant sent before.
func TestTenantsAreJudgedByTurns(t *testing.T) {
	c := tuned()
	c.Concurrency = 1
	f := newFixture(t, c, all())
	f.model.hold = make(chan struct{})
	var crowd []string
	for i := range 30 {
		crowd = append(crowd, fmt.Sprint("fine words, number ", i))
	}
	f.hot(true, audit.General, crowd...)
	f.tenant = "beta"
	f.hot(true, audit.General, "words of another")
	f.run(f.lane)
	f.until("the first to be judged", func() bool { return f.model.total() == 1 })
	f.until("all to wait", func() bool { return f.lane.room.Waiting() == 30 })
	for range 3 {
		f.model.hold <- struct{}{}
	}
	f.until("the next turns", func() bool { return f.model.total() == 4 })
	if f.model.askedFor("words of another") != 1 {
		t.Errorf("beta was not among the first: %v", f.model.asked)
	}
	close(f.model.hold)
	f.until("all", func() bool { return f.tally.of("done") == 31 })
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	_, err := New(Config{Votes: 2}, Parts{})
	for _, key := range []string{"votes: 2 is even", "per_second", "concurrency", "timeout", "attempts", "backoff", "days"} {
		if audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "judge.lane."+key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
