// Package retry analyses again what could not be analysed: interactions whose current verdict is failed
// or partial because a detector panicked, timed out or erred.
//
// The texts come from the store, so an attempt needs no broker record. Each attempt is a verdict of its
// own beside the first one (analyzer hot, analyzer_version retry-N), with an id made of event, content
// and attempt: two processes that make the same attempt write one row. The newest is current. Attempts
// wait longer each time; when the last one still fails the status is abandoned, which coverage counts.
// An attempt never makes a record poorer: where it could look at nothing, findings of an earlier
// partial verdict are kept. When the texts are gone, the verdict is abandoned at once.
//
// An attempt is stored, then the read model rewritten, then published. A process that ends in between
// leaves the rest to others: the repair finds the row, and a later run publishes all results of the
// interaction a second time, when no process that stored an attempt can still be about to publish it. It
// does the same for what outside analyzers and people said since (package facts).
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/store"
)

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Attempts after which a verdict is abandoned. Default 5; 1..100.
	Attempts int
	// Backoff is the wait before the first attempt; each later one waits four times as long, at most a
	// day. Default 1m; 1s..6h.
	Backoff time.Duration
}

// DefaultConfig tries after 1, 4, 16, 64 and 256 minutes.
func DefaultConfig() Config { return Config{Attempts: 5, Backoff: time.Minute} }

// Validate reports every fault, keys as an operator writes them.
func (c Config) Validate() error {
	var errs []error
	if c.Attempts < 1 || c.Attempts > 100 {
		errs = append(errs, fmt.Errorf("jobs.verdict_retry.attempts: %d is not in 1..100", c.Attempts))
	}
	if c.Backoff < time.Second || c.Backoff > 6*time.Hour {
		errs = append(errs, fmt.Errorf("jobs.verdict_retry.backoff: %v is not in 1s..6h", c.Backoff))
	}
	return errors.Join(errs...)
}

// Parts are what a retrier works with.
type Parts struct {
	Store   *store.Store
	Analyze func(ctx context.Context, in *audit.Interaction) *audit.Verdict
	Results interface { // where verdicts go
		Results(ctx context.Context, rs []audit.Record) error
	}
	Current interface { // the read model
		Rewrite(ctx context.Context, keys []store.Key, conflict bool) error
	}
	Publisher sinks.Publisher
	// Opinions is the topic of what people said; nil leaves them out.
	Opinions interface {
		Opinions(ctx context.Context, os []audit.Opinion) error
	}

	// Told hears of the attempts' verdicts once they are published; it must not wait. nil: nobody.
	Told func([]audit.Record)

	now func() time.Time // for tests; nil is time.Now
}

// Retrier makes attempts. It is safe for concurrent use.
type Retrier struct {
	cfg Config
	Parts
}

// New checks the configuration; a fault is of KindInvalid.
func New(cfg Config, p Parts) (*Retrier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, audit.E("retry: new", audit.KindInvalid, err)
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.Told == nil {
		p.Told = func([]audit.Record) {}
	}
	return &Retrier{cfg, p}, nil
}

const (
	atOnce = 200            // interactions whose texts are held together
	most   = 24 * time.Hour // between two attempts

	// Timeout bounds a run. Publishing again starts where no run that stored a row can still be about to
	// publish it.
	Timeout = 10 * time.Minute
	settled = Timeout + 5*time.Minute
)

// Outcome counts what a run did.
type Outcome struct {
	Analysed  int       // attempts made
	Mended    int       // of them, those after which nothing is missing
	Abandoned int       // given up, for want of attempts or of texts
	Waiting   uint64    // still failed or partial, due or not
	Again     int       // results and opinions published a second time
	Through   time.Time // up to where later facts were published again, by the store's clock
}

// Run makes every attempt that is due. from is the Through of the last run, zero for the first.
// progress hears of attempts made of those that wait.
func (r *Retrier) Run(ctx context.Context, from time.Time, progress func(done, total int)) (out Outcome, err error) {
	now, err := r.Store.Now(ctx)
	if err != nil {
		return out, err
	}
	through := now.Add(-settled)
	if through.After(from) {
		if out.Again, err = r.again(ctx, store.Written{From: from, To: through}); err != nil {
			return out, err
		}
		out.Through = through
	}
	total, err := r.Store.Waiting(ctx)
	if err != nil {
		return out, err
	}
	if out.Waiting = total; total == 0 {
		return out, nil
	}
	for {
		due, err := r.Store.Unfinished(ctx, store.Due{Now: r.now(), First: r.cfg.Backoff, Most: most, Limit: atOnce})
		if err != nil {
			return out, err
		}
		if len(due) == 0 {
			break
		}
		if err := r.attempt(ctx, due, &out); err != nil {
			return out, err
		}
		progress(out.Analysed, max(int(total), out.Analysed))
	}
	out.Waiting, err = r.Store.Waiting(ctx)
	return out, err
}

// again publishes what was stored in a range a second time.
func (r *Retrier) again(ctx context.Context, w store.Written) (n int, err error) {
	events, err := r.Store.Retried(ctx, w)
	if err != nil {
		return 0, err
	}
	if err := r.Publisher.Publish(ctx, events); err != nil || r.Opinions == nil {
		return len(events), err
	}
	opinions, err := r.Store.Opinions(ctx, w)
	if err == nil && len(opinions) > 0 {
		err = r.Opinions.Opinions(ctx, opinions)
	}
	return len(events) + len(opinions), err
}

// attempt analyses some interactions and stores, shows and publishes what came of it.
func (r *Retrier) attempt(ctx context.Context, due []store.Unfinished, out *Outcome) error {
	var records []audit.Record
	var keys []store.Key
	var events []audit.StreamEvent
	for i := range due {
		v := r.verdict(ctx, &due[i])
		if ctx.Err() != nil { // what detectors said about a context that has ended is no verdict
			return audit.E("retry: analyse", audit.KindUnavailable, ctx.Err())
		}
		out.Analysed++
		switch v.Status {
		case audit.Done, audit.Skipped:
			out.Mended++
		case audit.Abandoned:
			out.Abandoned++
		}
		rec := due[i].Record
		rec.Verdict = v
		in := rec.Interaction
		records, events = append(records, rec), append(events, rec.Event())
		keys = append(keys, store.Key{Tenant: in.Tenant, Day: in.Day(), ID: in.ID, Digest: in.Digest})
	}
	if err := r.Results.Results(ctx, records); err != nil {
		return err
	}
	if err := r.Current.Rewrite(ctx, keys, false); err != nil {
		return err
	}
	if err := r.Publisher.Publish(ctx, events); err != nil {
		return err
	}
	r.Told(records)
	return nil
}

// verdict makes one attempt.
func (r *Retrier) verdict(ctx context.Context, u *store.Unfinished) *audit.Verdict {
	in, attempt := u.Interaction, u.Analyses
	var v *audit.Verdict
	if u.TextDropped {
		v = kept(u.Verdict, r.now(), "text_dropped", nil)
		v.Status = audit.Abandoned
	} else {
		v = r.Analyze(ctx, in)
		if v.Status == audit.Failed && u.Verdict.Status == audit.Partial {
			v = kept(u.Verdict, v.Time, v.Reason, v.FailedBy)
		}
		if v.Status != audit.Done && v.Status != audit.Skipped && attempt >= r.cfg.Attempts {
			v.Status = audit.Abandoned
		}
	}
	// The newest is current: a clock that went back must not leave the old one in its place.
	if after := u.Verdict.Time.UTC().Add(time.Millisecond); v.Time.Before(after) {
		v.Time = after
	}
	v.Attempt, v.ResultID = attempt, audit.RetryResultID(in.Tenant, in.ID, in.Digest, attempt)
	return v
}

// kept is an earlier verdict as the outcome of an attempt that could look at nothing.
func kept(old *audit.Verdict, at time.Time, reason string, failedBy []string) *audit.Verdict {
	v := *old
	v.Time, v.Duration, v.Reason = at.UTC().Truncate(time.Millisecond), 0, reason
	if failedBy != nil {
		v.FailedBy = failedBy
	}
	return &v
}
