package lane

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge"
)

// flaky is a publisher that brokers refuse while it is away.
type flaky struct {
	Publisher
	away atomic.Bool
}

func (p *flaky) Publish(topic string, ms ...*message.Message) error {
	if p.away.Load() {
		return audit.E("flaky", audit.KindUnavailable, errors.New("away"))
	}
	return p.Publisher.Publish(topic, ms...)
}

// 1,000 interactions. The model goes away in the middle and comes back; a lane ends and another takes over; some requests
// are lost, others come twice. In the end all are judged or failed with a reason, and each was answered once.
func TestAnOutageLosesNothing(t *testing.T) {
	const batch, bad = 50, 97
	total := 1000
	if testing.Short() {
		total = 800 // the steps below need as many
	}
	c := tuned()
	c.Backoff = 6 * time.Hour // nothing is due while the test runs, however slowly
	f := newFixture(t, c, all())
	pub := &flaky{Publisher: f.asker.Publisher}
	f.asker.Publisher = pub
	stop := f.run(f.lane)
	var rs []audit.Record
	for b := range total / batch {
		texts := make([]string, batch)
		for i := range texts {
			n := b*batch + i
			if texts[i] = fmt.Sprintf("fine words, number %d", n); n%7 == 0 {
				texts[i] = fmt.Sprintf("a stereotype, number %d", n)
			}
			if n%bad == 0 {
				texts[i] = fmt.Sprintf("garbage, number %d", n)
			}
		}
		switch b {
		case 5:
			f.until("some answers", func() bool { return f.tally.of("done") > 50 })
			f.model.set(func() { f.model.down = true })
		case 9:
			pub.away.Store(true)
		case 10:
			pub.away.Store(false)
		case 12: // asked for twice
			for _, r := range rs[:batch] {
				if err := f.asker.Send(t.Context(), judge.Of(r.Interaction, judge.Sample)); err != nil {
					t.Fatal(err)
				}
			}
		case 15:
			f.until("the outage to be noticed", func() bool { return f.tally.of("waiting") > 20 })
			stop()
			stop = f.run(f.newLane(c, "gpt/1"))
		}
		rs = append(rs, f.hot(true, audit.General, texts...)...)
	}
	if n := f.tally.of("lost"); n != batch {
		t.Errorf("%d requests were lost", n)
	}
	before := f.count("verdicts FINAL WHERE analyzer = 'judge'")
	if n := f.count("verdicts FINAL WHERE analyzer = 'judge' AND reason IN ('unavailable', 'timeout')"); n != 0 || before > uint64(total/2) {
		t.Errorf("an outage gave %d verdicts, %d in all", n, before)
	}
	f.model.set(func() { f.model.down = false })
	done := func(n uint64) func() bool {
		return func() bool { return f.count("verdicts FINAL WHERE analyzer = 'judge'") == n }
	}
	f.until("all that was asked for", done(uint64(total-batch)))
	f.exec("INSERT INTO {db}.audit_current SELECT * REPLACE (written_at - INTERVAL 16 MINUTE AS written_at) FROM {db}.audit_current FINAL")
	f.swept(&Sweeper{Config: c, Store: f.store, Asker: f.asker}, batch, 0)
	f.until("all", done(uint64(total)))
	f.until("messages", func() bool { return f.paper.published() == total-total/bad-1 })

	if got := f.count("verdicts FINAL WHERE analyzer = 'judge' AND status = 'failed' AND reason = 'unreadable'"); got != uint64(total/bad+1) {
		t.Errorf("%d failed", got)
	}
	if got := f.count("(SELECT event_id FROM {db}.verdicts FINAL WHERE analyzer = 'judge' GROUP BY event_id HAVING count() = 1)"); got != uint64(total) {
		t.Errorf("%d interactions have one verdict of the judge", got)
	}
	for _, r := range rs {
		n, want := f.model.given[r.Interaction.Response], 1
		if len(r.Interaction.Response) > 7 && r.Interaction.Response[:7] == "garbage" {
			want = 0
		}
		if n != want {
			t.Errorf("%s: answered %d times", r.Interaction.Response, n)
		}
	}
	f.checked()
}
