package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// Destination takes events to a running Evenhand: see [NewHTTP] and [NewKafka]. It is called by one goroutine at a time.
type Destination interface {
	// Send returns nil once all events are taken. What is invalid (audit.KindOf) is tried once more event by event and
	// then given up; all else is tried until it works.
	Send(ctx context.Context, es []Encoded) error
	Close() error
}

// EmitterOptions bound an emitter. Start from DefaultEmitterOptions.
type EmitterOptions struct {
	Events     int           // at most so many wait in memory. Default 10,000
	Bytes      int64         // and so many bytes. Default 32 MiB
	EventBytes int           // of one event; larger ones are refused. Default 900,000, what Evenhand's doors take
	Linger     time.Duration // an event waits so long for others, that they go together. Default 50 ms

	// Spool keeps events on disk until they are taken; nil keeps them in memory only.
	Spool *SpoolOptions
	// Redact may change what leaves the application. It is called by Emit, before anything is kept; an event for which it
	// panics is dropped.
	Redact func(*Event)
	// OnDrop is told of events that will not arrive, and why: one of the Dropped reasons. It must not block.
	OnDrop func(reason string, n int)
	// Logger is told when events cannot be sent, without any text; nil logs nothing.
	Logger *slog.Logger
}

// DefaultEmitterOptions gives the defaults.
func DefaultEmitterOptions() EmitterOptions {
	return EmitterOptions{Events: 10_000, Bytes: 32 << 20, EventBytes: 900_000, Linger: 50 * time.Millisecond}
}

// Reasons why events are dropped.
const (
	DroppedFull    = "full"    // the buffer (and the spool, where there is one) has no room
	DroppedLarge   = "large"   // the event has more than EventBytes
	DroppedBad     = "bad"     // the event is no JSON, or Redact panicked
	DroppedRefused = "refused" // the destination refuses it for good
	DroppedUnsent  = "unsent"  // the emitter was closed before it was taken, or spooled
)

// EmitterStats are counts since the start.
type EmitterStats struct {
	Emitted uint64            // events that Emit took
	Sent    uint64            // that the destination took; again after a crash
	Dropped map[string]uint64 // by reason

	Waiting, WaitingBytes int64 // in memory now
	SpoolBytes            int64 // on disk now
}

// Emitter brings events to a running Evenhand behind the application's back. It is safe for concurrent use. Close it.
type Emitter struct {
	o     EmitterOptions
	dest  Destination
	queue *guard.Queue[Encoded]
	spool *spool // nil without one

	refused bool // the event under way; used by the queue's goroutine only
	sent    atomic.Uint64

	mu         sync.Mutex
	dropped    map[string]uint64
	taken, out uint64 // by Emit; out of memory since: sent, spooled or dropped, in order
	waiters    []waiter
}

// waiter waits until so many events are out of memory.
type waiter struct {
	until uint64
	done  chan struct{}
}

// NewEmitter makes an emitter, which owns dest from now on. A spool goes on with what an earlier process left in it.
func NewEmitter(dest Destination, o EmitterOptions) (*Emitter, error) {
	const op = "client: new emitter"
	var errs []error
	if o.Events < 1 || o.Bytes < 1 || o.EventBytes < 1 || o.Linger < 0 {
		errs = append(errs, errors.New("limits: Events, Bytes and EventBytes want at least 1, Linger at least 0"))
	}
	if o.Spool != nil {
		errs = append(errs, o.Spool.validate(o.EventBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Emitter{o: o, dest: dest, dropped: map[string]uint64{}}
	send := e.watched(dest.Send)
	if o.Spool != nil {
		s, err := openSpool(*o.Spool, send, e)
		if err != nil {
			return nil, audit.E(op, audit.KindUnavailable, err)
		}
		e.spool, send = s, s.append
	}
	e.queue = guard.NewQueue(guard.QueueConfig{Items: o.Events, Bytes: o.Bytes, Linger: o.Linger}, guard.QueueOptions[Encoded]{
		Send: func(ctx context.Context, es []Encoded) error {
			err := send(ctx, es)
			e.refused = audit.KindOf(err) == audit.KindInvalid
			return err
		},
		Size:  func(x Encoded) int { return x.size() },
		Count: e.settled,
	})
	return e, nil
}

// Emit leaves an event and does not wait. It gives the event's id, by which a repeated event is known. An event that is
// not taken is an error, counted, and told to OnDrop.
func (e *Emitter) Emit(ev Event) (id string, err error) {
	const op = "client: emit"
	if !e.redact(&ev) {
		e.drop(DroppedBad, 1)
		return "", audit.E(op, audit.KindInternal, errors.New("the redaction panicked"))
	}
	x, err := ev.encode(time.Now())
	if err != nil {
		e.drop(DroppedBad, 1)
		return "", err
	}
	if x.size() > e.o.EventBytes {
		e.drop(DroppedLarge, 1)
		return "", audit.E(op, audit.KindInvalid, fmt.Errorf("the event has %d bytes; at most %d are taken", x.size(), e.o.EventBytes))
	}
	if err := e.queue.Put(x); err != nil {
		e.drop(DroppedFull, 1)
		return "", audit.E(op, audit.KindOverloaded, errors.New("the buffer is full, or the emitter is closed"))
	}
	e.mu.Lock()
	e.taken++
	e.mu.Unlock()
	return x.ID, nil
}

// emitCall leaves the event of a call, whose texts are cut where it would be too large.
func (e *Emitter) emitCall(ev Event) {
	if n := len(ev.Response) + ev.promptSize(); n > e.o.EventBytes/6 { // as JSON a character has six bytes at most
		if x, err := ev.encode(time.Now()); err == nil && x.size() > e.o.EventBytes {
			ev.shorten()
		}
	}
	_, _ = e.Emit(ev) // counted
}

// redact gives false for a panic: what may not leave the application stays.
func (e *Emitter) redact(ev *Event) (ok bool) {
	if e.o.Redact == nil {
		return true
	}
	defer func() { ok = recover() == nil }()
	e.o.Redact(ev)
	return true
}

// Flush waits until all that was taken before is out of memory: taken by the destination, or in the spool.
func (e *Emitter) Flush(ctx context.Context) error {
	w := waiter{done: make(chan struct{})}
	e.mu.Lock()
	if w.until = e.taken; e.out >= w.until {
		e.mu.Unlock()
		return nil
	}
	e.waiters = append(e.waiters, w)
	e.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return audit.E("client: flush", audit.KindUnavailable, ctx.Err())
	}
}

// Close takes no more events and sends what is there until ctx ends. What was not sent by then stays in the spool, or
// is lost and counted. It closes the destination.
func (e *Emitter) Close(ctx context.Context) error {
	err := e.queue.Close(ctx)
	if e.spool != nil {
		err = errors.Join(err, e.spool.close(ctx))
	}
	if err = errors.Join(err, e.dest.Close()); err != nil {
		return audit.E("client: close emitter", audit.KindUnavailable, err)
	}
	return nil
}

// Stats counts.
func (e *Emitter) Stats() EmitterStats {
	s := EmitterStats{Sent: e.sent.Load(), Dropped: map[string]uint64{}}
	n, bytes := e.queue.Len()
	s.Waiting, s.WaitingBytes = int64(n), bytes
	if e.spool != nil {
		s.SpoolBytes = e.spool.size()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Emitted = e.taken
	maps.Copy(s.Dropped, e.dropped)
	return s
}

// Dropped is how many events will not arrive.
func (e *Emitter) Dropped() (n uint64) {
	for _, d := range e.Stats().Dropped {
		n += d
	}
	return n
}

// watched says once that a destination does not take events, and once that it does again.
func (e *Emitter) watched(send func(context.Context, []Encoded) error) func(context.Context, []Encoded) error {
	failing := false
	return func(ctx context.Context, es []Encoded) error {
		err := send(ctx, es)
		if bad := err != nil && audit.KindOf(err) != audit.KindInvalid; bad != failing {
			failing = bad
			if bad {
				e.o.Logger.Warn("audit events wait", "kind", string(audit.KindOf(err)), "events", len(es), "error", err.Error())
			} else {
				e.o.Logger.Info("audit events go on")
			}
		}
		return err
	}
}

// settled hears from the queue what became of events.
func (e *Emitter) settled(outcome string, n int) {
	switch outcome {
	case guard.Sent:
		if e.spool == nil {
			e.sent.Add(uint64(n))
		}
	case guard.Lost:
		reason := DroppedUnsent
		if e.refused && n == 1 {
			reason = DroppedRefused
		}
		e.drop(reason, n)
	case guard.Refused: // Emit says so
		return
	}
	e.passed(n)
}

func (e *Emitter) drop(reason string, n int) {
	e.mu.Lock()
	e.dropped[reason] += uint64(n)
	e.mu.Unlock()
	if reason == DroppedRefused {
		e.o.Logger.Error("audit events are refused for good", "events", n)
	}
	if e.o.OnDrop != nil {
		e.o.OnDrop(reason, n)
	}
}

// passed counts events that are out of memory and wakes who waits for them.
func (e *Emitter) passed(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out += uint64(n)
	e.waiters = slices.DeleteFunc(e.waiters, func(w waiter) bool {
		if e.out < w.until {
			return false
		}
		close(w.done)
		return true
	})
}
