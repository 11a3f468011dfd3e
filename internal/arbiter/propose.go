package arbiter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

const opPropose = "arbiter: propose"

// Decide implements [Arbiter].
func (a *Kafka) Decide(ctx context.Context, key Key, value json.RawMessage) (Decision, error) {
	return a.Propose(ctx, Proposal{Key: key, Seq: 1, Value: value})
}

// Propose implements [Arbiter]. What is decided already is answered without writing: decisions never
// change, so what was folded at any time holds.
func (a *Kafka) Propose(ctx context.Context, p Proposal) (Decision, error) {
	if err := a.opt.Rules.check(&p); err != nil {
		return Decision{}, audit.E(opPropose, audit.KindInvalid, err)
	}
	have := a.offsets(p.Key)
	if int(p.Seq) > len(have)+1 { // the caller saw what is not folded here yet
		if err := a.barrier(ctx); err != nil {
			return Decision{}, classed(opPropose, err)
		}
		have = a.offsets(p.Key)
	}
	switch {
	case int(p.Seq) <= len(have):
		d, err := a.at(ctx, have[p.Seq-1])
		return d, classed(opPropose, err)
	case int(p.Seq) > len(have)+1:
		return Decision{}, audit.E(opPropose, audit.KindInvalid, fmt.Errorf("it is decision %d of a key that has %d", p.Seq, len(have)))
	}
	if p.ID.IsZero() {
		p.ID = audit.NewID(time.Now())
	}
	if err := a.send(ctx, &p); err != nil {
		var refused *Refused
		if errors.As(err, &refused) {
			return Decision{}, audit.E(opPropose, audit.KindInvalid, refused)
		}
		return Decision{}, classed(opPropose, err)
	}
	d, err := a.at(ctx, a.offsets(p.Key)[p.Seq-1])
	return d, classed(opPropose, err)
}

// send writes the proposal, again and again while it is not known whether it arrived, until it is
// seen in the log and judged. The record is the same each time, so copies count once.
func (a *Kafka) send(ctx context.Context, p *Proposal) error {
	value, err := encode(wire{Log: a.id().String(), Proposal: p.ID.String(), Seq: p.Seq, By: a.opt.Proposer, Value: p.Value})
	if err != nil {
		return err
	}
	judged, err := a.await(p.ID)
	if err != nil {
		return err
	}
	defer a.forget(p.ID, judged)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for fails := 1; ; fails++ {
		sent := make(chan error, 1)
		go func() {
			sent <- a.opt.produce(ctx, []kafkago.Message{{Topic: a.opt.Topic, Key: []byte(p.Key.String()), Value: value}})
		}()
		select {
		case err := <-judged: // maybe before the acknowledgement
			cancel()
			<-sent
			return err
		case err = <-sent:
		}
		patience := time.Duration(-1) // until it is judged
		if err != nil {
			if k := audit.KindOf(err); ctx.Err() != nil || k != audit.KindUnavailable {
				return err
			}
			a.opt.OnError("produce", err)
			patience = wait.Backoff(firstWait, fails)
		}
		if err, ok := receive(ctx, judged, patience); ok {
			return err
		}
	}
}

// receive waits for an answer, at most for d when that is not negative; ok is false when it was.
func receive(ctx context.Context, from <-chan error, d time.Duration) (err error, ok bool) {
	var late <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		late = t.C
	}
	select {
	case err := <-from:
		return err, true
	case <-ctx.Done():
		return ctx.Err(), true
	case <-late:
		return nil, false
	}
}

// await registers for the judgement of a proposal.
func (a *Kafka) await(id audit.ID) (chan error, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	w := make(chan error, 1)
	a.waiting[id] = append(a.waiting[id], w)
	return w, nil
}

func (a *Kafka) forget(id audit.ID, w chan error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := slices.DeleteFunc(a.waiting[id], func(x chan error) bool { return x == w })
	if len(list) == 0 {
		delete(a.waiting, id)
		return
	}
	a.waiting[id] = list
}
