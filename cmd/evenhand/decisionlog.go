package main

import (
	"context"
	"iter"
	"sync"

	"github.com/evenhand/evenhand/internal/arbiter"
)

// decisionLog is the process's one arbiter: opened when it is first wanted, and anew once it has given
// up. It is safe for concurrent use.
type decisionLog struct {
	open func(context.Context) (*arbiter.Kafka, error)

	mu sync.Mutex
	a  *arbiter.Kafka
}

// get gives the arbiter, which stays the log's.
func (l *decisionLog) get(ctx context.Context) (*arbiter.Kafka, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.a != nil && l.a.Err() == nil {
		return l.a, nil
	}
	if l.a != nil {
		_ = l.a.Close(ctx)
		l.a = nil
	}
	a, err := l.open(ctx)
	if err == nil {
		l.a = a
	}
	return a, err
}

// Propose has something decided.
func (l *decisionLog) Propose(ctx context.Context, p arbiter.Proposal) (arbiter.Decision, error) {
	a, err := l.get(ctx)
	if err != nil {
		return arbiter.Decision{}, err
	}
	return a.Propose(ctx, p)
}

// History gives all decisions of a key.
func (l *decisionLog) History(ctx context.Context, key arbiter.Key) ([]arbiter.Decision, error) {
	a, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return a.History(ctx, key)
}

// Watch gives decisions above after and waits for more, until ctx ends or an error.
func (l *decisionLog) Watch(ctx context.Context, after uint64) iter.Seq2[arbiter.Decision, error] {
	return func(yield func(arbiter.Decision, error) bool) {
		a, err := l.get(ctx)
		if err != nil {
			yield(arbiter.Decision{}, err)
			return
		}
		a.Watch(ctx, after)(yield)
	}
}

// close closes the arbiter when there is one.
func (l *decisionLog) close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.a == nil {
		return nil
	}
	err := l.a.Close(ctx)
	l.a = nil
	return err
}
