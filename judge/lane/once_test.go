package lane

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// row is what the judge's newest row on an interaction says of what it took, and of whom.
func (f *fixture) row(id audit.ID) string {
	f.Helper()
	var status, set string
	var calls uint16
	var in, out uint32
	var cost int64
	err := f.conn.QueryRow(f.Context(), "SELECT status, rule_set, calls, tokens_in, tokens_out, cost_micro_usd FROM "+f.db+".verdicts FINAL WHERE analyzer = 'judge' AND event_id = toUUID(?) ORDER BY analysis_ts DESC LIMIT 1",
		id.String()).Scan(&status, &set, &calls, &in, &out, &cost)
	if err != nil {
		f.Fatal(err)
	}
	return fmt.Sprintf("%s by %s: %d calls, %d in, %d out, %d", status, set, calls, in, out, cost)
}

// Who asks while a request is being answered gets its verdict, and nothing is paid for a second time.
func TestAskedWhileItIsAnswered(t *testing.T) {
	f := newFixture(t, tuned(), all())
	f.model.hold = make(chan struct{})
	f.run(f.lane)
	const text = "a stereotype"
	in := f.hot(false, audit.General, text)[0].Interaction
	for range 5 {
		if w, _, err := f.asker.Request(t.Context(), f.store.WithTenant("acme"), in.ID, "gpt/1", true); w != Requested || err != nil {
			t.Fatalf("%s %v", w, err)
		}
	}
	f.model.hold <- struct{}{}
	f.until("a verdict", func() bool { return f.tally.of("done") == 1 })
	close(f.model.hold)
	f.until("answers", func() bool { return f.tally.of("done")+f.tally.of("repeated") == 5 })
	if n := f.model.askedFor(text); n != 1 || f.tally.of("calls") != 1 {
		t.Errorf("asked %d times, %d calls", n, f.tally.of("calls"))
	}
	if got := f.judged(in.ID); got != "attempt-1 done" {
		t.Error(got)
	}
}

// What was spent stands in the row that comes about in the end: of a verdict that failed, of the votes before the one that failed,
// and of those before a pause.
func TestWhatWasSpent(t *testing.T) {
	f := newFixture(t, tuned(), all())
	f.run(f.lane)
	rs := f.hot(true, audit.General, "costly", "grey, relapse", "grey, falter", "fine words")
	f.until("answers", func() bool { return f.tally.of("failed unreadable") == 2 && f.tally.of("done") == 2 })
	for i, want := range []string{
		"failed by gpt/1: 2 calls, 200 in, 60 out, 400",
		"failed by gpt/1: 3 calls, 300 in, 110 out, 650",
		"done by gpt/1 as gpt: 3 calls, 300 in, 150 out, 750",
		"done by gpt/1 as gpt: 1 calls, 100 in, 50 out, 250",
	} {
		if got := f.row(rs[i].Interaction.ID); got != want {
			t.Errorf("%s: %s, want %s", rs[i].Interaction.Response, got, want)
		}
	}
	if calls, tokens := f.tally.of("calls"), f.tally.of("tokens"); calls != 9 || tokens != 1270 {
		t.Errorf("%d calls, %d tokens", calls, tokens)
	}
}

// While a server takes nobody, as with a key that was revoked, texts do not go to it again and again: it is looked at once in a while.
func TestARevokedKey(t *testing.T) {
	f := newFixture(t, tuned(), all())
	f.model.shut = true
	began := time.Now()
	f.lane.Now = func() time.Time { return began.Add(time.Duration(f.later.Load())) }
	f.run(f.lane)
	texts := make([]string, 40)
	for i := range texts {
		texts[i] = fmt.Sprintf("fine words, number %d", i)
	}
	f.hot(true, audit.General, texts...)
	f.until("waiting", func() bool { return f.tally.of("waiting") > 400 })
	asked := 0
	for _, text := range texts {
		asked += f.model.askedFor(text)
	}
	if n := f.model.askedFor(harmless); n != 1 || asked > tuned().Concurrency {
		t.Errorf("asked about texts %d times, %d times for us", asked, n)
	}
	f.model.set(func() { f.model.shut = false })
	f.later.Add(int64(probeEvery))
	f.until("answers", func() bool { return f.tally.of("done") == len(texts) })
	f.checked()
}
