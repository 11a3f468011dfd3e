package evaluations

import (
	"context"
	"errors"
	"net/url"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/evenhand/evenhand/internal/wait"
)

// Outcomes of events.
const (
	Sent    = "sent"
	Dropped = "dropped" // the queue was full
	Lost    = "lost"    // the backend did not take them
)

const (
	maxBatch = 500              // records of a request
	linger   = time.Second      // a record waits so long for others
	patience = 30 * time.Second // while the backend cannot be reached; what it answers itself the exporter retries for a minute
)

// queue is a log processor that does not wait, and counts what it drops: the SDK's own drops in silence.
type queue struct {
	Options
	exporter sdklog.Exporter
	records  chan *sdklog.Record
	linger   time.Duration
	ctx      context.Context // of exports; stop ends it
	stop     context.CancelFunc
	done     chan struct{}
}

var _ sdklog.Processor = (*queue)(nil)

func newQueue(e sdklog.Exporter, size int, o Options) *queue {
	q := &queue{Options: o, exporter: e, records: make(chan *sdklog.Record, size), linger: linger, done: make(chan struct{})}
	q.ctx, q.stop = context.WithCancel(context.Background())
	go q.run()
	return q
}

// Enabled implements sdklog.Processor.
func (q *queue) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// OnEmit implements sdklog.Processor.
func (q *queue) OnEmit(_ context.Context, r *sdklog.Record) error {
	kept := r.Clone()
	select {
	case q.records <- &kept:
	default:
		q.Count(Dropped, 1)
	}
	return nil
}

// ForceFlush implements sdklog.Processor; nobody needs it.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdklog.Processor. The provider calls it once and lets no record in any more.
func (q *queue) Shutdown(context.Context) error {
	close(q.records)
	return nil
}

// drain waits after Shutdown until all is sent; when ctx ends, what is left is lost.
func (q *queue) drain(ctx context.Context) error {
	defer q.stop()
	var err error
	select {
	case <-q.done:
	case <-ctx.Done():
		err = ctx.Err()
		q.stop()
		<-q.done
	}
	return errors.Join(err, q.exporter.Shutdown(context.WithoutCancel(ctx)))
}

// run sends until the queue is closed and empty.
func (q *queue) run() {
	defer close(q.done)
	failing := false
	for r := range q.records {
		batch := q.gather(r)
		err := q.send(batch)
		if err == nil {
			q.Count(Sent, len(batch))
			failing = false
			continue
		}
		q.Count(Lost, len(batch))
		if !failing { // said once; the rest is counted
			q.Logger.Warn("evaluation events are lost: the OTLP endpoint does not take them", "error", err)
		}
		failing = true
	}
}

// gather takes what comes with the first record, and a little later.
func (q *queue) gather(first *sdklog.Record) []sdklog.Record {
	batch := append(make([]sdklog.Record, 0, 16), *first)
	t := time.NewTimer(q.linger)
	defer t.Stop()
	for len(batch) < maxBatch {
		select {
		case r, ok := <-q.records:
			if !ok {
				return batch
			}
			batch = append(batch, *r)
		case <-t.C:
			return batch
		}
	}
	return batch
}

// send exports a batch, and tries again while nobody answers: a collector that restarts refuses connections,
// which the exporter does not retry.
func (q *queue) send(batch []sdklog.Record) error {
	until := time.Now().Add(patience)
	for fails := 1; ; fails++ {
		err := q.exporter.Export(q.ctx, batch)
		var unreached *url.Error
		if !errors.As(err, &unreached) || time.Now().After(until) || !wait.For(q.ctx, wait.Backoff(100*time.Millisecond, fails)) {
			return err
		}
	}
}
