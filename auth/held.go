package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// held keeps the last answer of a service that may be away: an issuer's keys, the API keys of the store.
// It is fetched when it is asked for and old, never by a clock. Attempts run in one goroutine at a time,
// which close waits for, and are gap apart, so that no caller can make us hammer the service.
type held[T any] struct {
	fetch    func(context.Context) (T, error)
	fresh    time.Duration // up to this age it is given as it is; beyond, it is fetched beside the request
	stale    time.Duration // beyond this age the request waits for the attempt, at most for patience
	hold     time.Duration // beyond this age it is given no more
	gap      time.Duration // between the end of an attempt and the next one
	limit    time.Duration // of one attempt
	patience time.Duration
	now      func() time.Time
	// changed is told when attempts begin to fail, and, with nil, when they work again.
	changed func(error)

	mu     sync.Mutex
	value  T
	n      int       // of the attempt that gave value; 0 before the first
	at     time.Time // when that attempt began
	tried  time.Time // when the last attempt ended
	err    error     // of the last attempt
	flight chan struct{}
	cancel context.CancelFunc
	closed bool
}

var errClosed = errors.New("closed")

// get gives the value and its number, or the error of the last attempt when there is none that may still be used.
func (h *held[T]) get(ctx context.Context) (T, int, error) {
	h.mu.Lock()
	age := h.age()
	if age <= h.fresh {
		defer h.mu.Unlock()
		return h.value, h.n, nil
	}
	flight := h.begin(ctx)
	h.mu.Unlock()
	if flight != nil && age > h.stale {
		h.await(ctx, flight, age <= h.hold)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.age() <= h.hold {
		return h.value, h.n, nil
	}
	var none T
	switch {
	case h.err != nil:
		return none, 0, h.err
	case ctx.Err() != nil:
		return none, 0, ctx.Err()
	}
	return none, 0, errClosed
}

// start begins an attempt, so that the first request need not wait for it.
func (h *held[T]) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(ctx)
}

// newer gives a value of a higher number, fetched now if that may be. ok is false when there is none; err is
// then the last attempt's.
func (h *held[T]) newer(ctx context.Context, than int) (v T, ok bool, err error) {
	h.mu.Lock()
	if h.n <= than {
		if flight := h.begin(ctx); flight != nil {
			h.mu.Unlock()
			h.await(ctx, flight, false)
			h.mu.Lock()
		}
	}
	defer h.mu.Unlock()
	return h.value, h.n > than, h.err
}

// age is that of the value; more than anything where there is none.
func (h *held[T]) age() time.Duration {
	if h.n == 0 {
		return 1<<63 - 1
	}
	return h.now().Sub(h.at)
}

// begin starts an attempt or joins the one under way; nil when it is too soon. h.mu is held.
func (h *held[T]) begin(ctx context.Context) chan struct{} {
	switch {
	case h.flight != nil:
		return h.flight
	case h.closed, !h.tried.IsZero() && h.now().Sub(h.tried) < h.gap:
		return nil
	}
	flight := make(chan struct{})
	// The attempt serves others too: it does not end with the request that began it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.limit)
	h.flight, h.cancel = flight, cancel
	go func() {
		defer close(flight)
		defer cancel()
		began := h.now()
		v, err := h.attempt(ctx)
		h.mu.Lock()
		was := h.err
		if h.err = err; err == nil {
			h.value, h.at = v, began
			h.n++
		}
		h.tried, h.flight = h.now(), nil
		told := !h.closed
		h.mu.Unlock()
		if (was == nil) != (err == nil) && told && h.changed != nil {
			h.changed(err)
		}
	}()
	return flight
}

// attempt turns a panic over what a stranger sent into an error.
func (h *held[T]) attempt(ctx context.Context) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked over the answer (%T)", p)
		}
	}()
	return h.fetch(ctx)
}

// await waits for an attempt, only for patience where there is something to fall back on.
func (h *held[T]) await(ctx context.Context, flight chan struct{}, fallback bool) {
	if fallback {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.patience)
		defer cancel()
	}
	select {
	case <-flight:
	case <-ctx.Done():
	}
}

// close breaks the attempt under way off and waits for its end; nothing is fetched after it.
func (h *held[T]) close() {
	h.mu.Lock()
	h.closed = true
	flight := h.flight
	if flight != nil {
		h.cancel()
	}
	h.mu.Unlock()
	if flight != nil {
		<-flight
	}
}
