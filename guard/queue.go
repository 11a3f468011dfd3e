package guard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

// QueueConfig bounds a queue. Start from DefaultQueueConfig.
type QueueConfig struct {
	Items  int           // at most so many wait. Default 10,000
	Bytes  int64         // and so many bytes. Default 64 MiB
	Linger time.Duration // an item waits so long for others, that they go together. Default 5 ms
}

// DefaultQueueConfig gives the defaults.
func DefaultQueueConfig() QueueConfig {
	return QueueConfig{Items: 10_000, Bytes: 64 << 20, Linger: 5 * time.Millisecond}
}

// QueueOptions say what a queue does with its items. Send is needed.
type QueueOptions[T any] struct {
	// Send gives items to the log, in order; a nil error says that all of them are there. What is unavailable or
	// overloaded is tried again until it works; what is invalid is tried once more item by item.
	Send func(context.Context, []T) error
	Size func(T) int // bytes; nil counts none
	// Fits says what the log will never take, with an error of KindInvalid that Put hands on; it must not wait. Nil takes all.
	Fits func(T) error
	// Key and Fold put items of one key together while they wait; "" and nil keep all apart.
	Key  func(T) string
	Fold func(a, b T) T
	// Count is told what became of items: sent, lost (the log refuses them for good, or the process ended), refused (the queue was full),
	// too_large (they do not fit, and their callers know).
	Count  func(outcome string, n int)
	Logger *slog.Logger
}

// Outcomes of items.
const (
	Sent    = "sent"
	Lost    = "lost"
	Refused = "refused"
	Large   = "too_large"
)

// quiet is how long the next item that does not fit is not worth a line in the log.
const quiet = time.Minute

// Queue lets callers go on before the log has acknowledged what they leave. It is bounded: Put refuses what has no
// room, and nothing else is dropped without being counted and logged. It is safe for concurrent use. Close it.
type Queue[T any] struct {
	cfg  QueueConfig
	opts QueueOptions[T]

	mu     sync.Mutex
	items  []entry[T]
	at     map[string]int // by key, in items
	bytes  int64          // of items and of what is under way
	flying int
	closed bool
	said   time.Time // that an item does not fit

	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}

	lingering context.Context // ends when the queue is closed: then nothing waits for company
	hurry     context.CancelFunc
}

type entry[T any] struct {
	item T
	key  string
	size int64
}

// maxBatch is sent at once.
const maxBatch = 500

// NewQueue makes a queue and begins to send.
func NewQueue[T any](c QueueConfig, o QueueOptions[T]) *Queue[T] {
	if o.Count == nil {
		o.Count = func(string, int) {}
	}
	if o.Size == nil {
		o.Size = func(T) int { return 0 }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	q := &Queue[T]{cfg: c, opts: o, at: map[string]int{}, wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	q.lingering, q.hurry = context.WithCancel(ctx)
	go q.run(ctx)
	return q
}

var errFull = errors.New("the queue of audit events is full")

// Put leaves an item and does not wait. A full or closed queue is an error of KindOverloaded, an item that does not fit
// one of KindInvalid.
func (q *Queue[T]) Put(item T) error {
	if q.opts.Fits != nil {
		if err := q.opts.Fits(item); err != nil {
			return q.tooLarge(err)
		}
	}
	e := entry[T]{item: item}
	if q.opts.Key != nil {
		e.key = q.opts.Key(item)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i, like := q.at[e.key]
	if like = like && e.key != ""; like {
		e.item = q.opts.Fold(q.items[i].item, item)
	}
	e.size = int64(q.opts.Size(e.item))
	more := e.size
	if like {
		more -= q.items[i].size
	}
	if q.closed || q.bytes+more > q.cfg.Bytes || !like && len(q.items)+q.flying >= q.cfg.Items {
		q.opts.Count(Refused, 1)
		return audit.E("guard: queue", audit.KindOverloaded, errFull)
	}
	q.bytes += more
	if like {
		q.items[i] = e
		return nil
	}
	if e.key != "" {
		q.at[e.key] = len(q.items)
	}
	q.items = append(q.items, e)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// tooLarge counts an item that does not fit, and says so once in a while.
func (q *Queue[T]) tooLarge(err error) error {
	q.opts.Count(Large, 1)
	q.mu.Lock()
	again := time.Since(q.said) < quiet
	if !again {
		q.said = time.Now()
	}
	q.mu.Unlock()
	if !again {
		q.opts.Logger.Error("the log takes no audit event of this size", "error", err)
	}
	return audit.E("guard: queue", audit.KindInvalid, err)
}

// Len is how many items, and bytes of them, are not in the log yet.
func (q *Queue[T]) Len() (items int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) + q.flying, q.bytes
}

// Close takes no more and sends what is there until ctx ends; what is left then is counted as lost.
func (q *Queue[T]) Close(ctx context.Context) error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	q.mu.Unlock()
	q.hurry()
	if !again {
		close(q.wake)
	}
	defer q.stop()
	select {
	case <-q.done:
	case <-ctx.Done():
		q.stop()
		<-q.done
	}
	if n, _ := q.Len(); n > 0 {
		return audit.E("guard: queue", audit.KindUnavailable, errors.New("audit events were not acknowledged before the end"))
	}
	return nil
}

// run sends until the queue is closed and empty, or ctx ends.
func (q *Queue[T]) run(ctx context.Context) {
	defer close(q.done)
	for range q.wake {
		for q.some() {
			q.linger()
			if !q.send(ctx, q.take()) {
				q.abandon()
				return
			}
		}
	}
	for q.some() { // what came between the last wake and the end
		if !q.send(ctx, q.take()) {
			q.abandon()
			return
		}
	}
}

// abandon counts what the end of the process takes away.
func (q *Queue[T]) abandon() {
	n, _ := q.Len()
	q.opts.Count(Lost, n)
	q.opts.Logger.Error("audit events of the guard are lost: the log did not acknowledge them before the end", "events", n)
}

// linger lets others come, unless there is a batch already or the queue is to end.
func (q *Queue[T]) linger() {
	q.mu.Lock()
	skip := q.closed || q.cfg.Linger == 0 || len(q.items) >= maxBatch
	q.mu.Unlock()
	if !skip {
		wait.For(q.lingering, q.cfg.Linger)
	}
}

func (q *Queue[T]) some() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) > 0
}

// take gives the oldest items, which count until they are sent.
func (q *Queue[T]) take() []entry[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.items), maxBatch)
	batch := q.items[:n:n]
	if q.items = q.items[n:]; len(q.items) == 0 {
		q.items = nil
	}
	clear(q.at)
	for i := range q.items {
		if k := q.items[i].key; k != "" {
			q.at[k] = i
		}
	}
	q.flying = n
	return batch
}

// send gives a batch to the log, however long that takes; false when ctx ended first.
func (q *Queue[T]) send(ctx context.Context, batch []entry[T]) bool {
	items := make([]T, len(batch))
	for i := range batch {
		items[i] = batch[i].item
	}
	for fails := 1; ; fails++ {
		err := q.opts.Send(ctx, items)
		switch kind := audit.KindOf(err); {
		case err == nil:
			q.landed(Sent, batch)
			return true
		case ctx.Err() != nil:
			return false
		case kind == audit.KindInvalid && len(batch) > 1:
			for i := range batch {
				if !q.send(ctx, batch[i:i+1]) {
					return false
				}
			}
			return true
		case kind == audit.KindInvalid:
			q.landed(Lost, batch)
			q.opts.Logger.Error("an audit event of the guard is lost: the log refuses it", "error", err)
			return true
		case fails == 1:
			q.opts.Logger.Warn("audit events of the guard wait for the log", "kind", string(kind), "events", len(batch))
		}
		if !wait.For(ctx, wait.Backoff(100*time.Millisecond, fails)) {
			return false
		}
	}
}

// landed forgets a batch.
func (q *Queue[T]) landed(outcome string, batch []entry[T]) {
	q.opts.Count(outcome, len(batch))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flying -= len(batch)
	for i := range batch {
		q.bytes -= batch[i].size
	}
}
