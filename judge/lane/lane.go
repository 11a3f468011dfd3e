// Package lane is the judge's way beside the hot path: what is chosen (package judge) is asked for on evenhand.judge, and a
// router of watermill answers each request with a verdict of its own, analyzer judge.
//
// A request is a reference. The [Lane] reads the texts from the store, asks the evaluator, unless an equal text was answered
// by the same model and prompt before, and stores the verdict; that answers it. Then the read model follows and
// bias.audit.stream is told, of many verdicts at once. The verdict's id is made of the request, so what comes twice is answered
// once, also while it is being answered. A process that ends before a verdict is shown or published leaves that to others: the repair shows what is stored, and the
// job that retries verdicts publishes later facts a second time. The judge's words, its JSON
// with excerpts, reasons and rewrites, lie with the interaction's texts and go with them.
//
// Nothing that goes wrong takes anything from an interaction. A text that the judge cannot answer gets a verdict that
// failed, with a reason; [Sweep], a job, asks again, ever more rarely, until it is abandoned. A budget that
// is spent gives one that was skipped, and the next day another attempt. Neither is current, and coverage counts
// both. While the model itself is away, no text is to blame: a harmless sentence is asked first, and as long as that is not answered
// requests wait where they are. Sweep also asks for what was chosen and never asked for.
//
// Cost: seven small statements a request beside the model's time. A process answers Config.Concurrency requests at once. It looks
// [Ahead] in the topic and takes what it sees by turns of the tenants, so that nobody waits for all that another one sent before.
package lane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/places"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Votes are asked for where the rules are in doubt, and the majority holds; one elsewhere. Default 3; odd, 1..9.
	Votes int
	// PerSecond bounds requests handled by a process. Default 5; 1..10,000.
	PerSecond int
	// Concurrency is how many requests a process answers at once, shared between tenants as package places does. Default 5; 1..1024.
	Concurrency int
	// Timeout bounds the answer to one request, all votes together. Default 3m; 1s..10m.
	Timeout time.Duration
	// Attempts after which a text is given up. Default 5; 1..100.
	Attempts int
	// Backoff is the wait before the second attempt; each later one waits four times as long, at most a day. Default 1m;
	// 10s..6h.
	Backoff time.Duration
	// Days back, by event day, are asked again for. Default 7; 1..90.
	Days int
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{Votes: 3, PerSecond: 5, Concurrency: 5, Timeout: 3 * time.Minute, Attempts: 5, Backoff: time.Minute, Days: 7}
}

// Validate reports every fault, keys as an operator writes them.
func (c Config) Validate() error {
	var errs []error
	for _, n := range []struct {
		key             string
		value, low, top int
	}{{"votes", c.Votes, 1, 9}, {"per_second", c.PerSecond, 1, 10_000}, {"concurrency", c.Concurrency, 1, 1024}, {"attempts", c.Attempts, 1, 100}, {"days", c.Days, 1, 90}} {
		if n.value < n.low || n.value > n.top {
			errs = append(errs, fmt.Errorf("judge.lane.%s: %d is not in %d..%d", n.key, n.value, n.low, n.top))
		}
	}
	if c.Votes%2 == 0 {
		errs = append(errs, fmt.Errorf("judge.lane.votes: %d is even; a majority needs an odd number", c.Votes))
	}
	if c.Timeout < time.Second || c.Timeout > 10*time.Minute {
		errs = append(errs, fmt.Errorf("judge.lane.timeout: %v is not in 1s..10m", c.Timeout))
	}
	if c.Backoff < 10*time.Second || c.Backoff > 6*time.Hour {
		errs = append(errs, fmt.Errorf("judge.lane.backoff: %v is not in 10s..6h", c.Backoff))
	}
	return errors.Join(errs...)
}

// Evaluator judges a text: a compliance.Evaluator. Errors of audit.KindUnavailable and KindInvalid may be about the model
// or about the text; llm.ErrBudget says that the tenant's budget is spent.
type Evaluator interface {
	Evaluate(ctx context.Context, in compliance.Input) (*compliance.Result, error)
}

// Parts are what a lane works with.
type Parts struct {
	Store     *store.Store
	Evaluator Evaluator
	// Version names model and prompt: what answered under another one is no answer to an equal text.
	Version  string
	Selector *judge.Selector
	// Rows is where verdicts go: a sink of package sinks/clickhouse.
	Rows interface {
		Judged(ctx context.Context, r audit.Record, j clickhouse.Judging) error
	}
	// Current is the read model: a repair.Repairer.
	Current interface {
		Rewrite(ctx context.Context, keys []store.Key, conflict bool) error
	}
	// Stream is bias.audit.stream: a publisher of package sinks/stream.
	Stream interface {
		Publish(ctx context.Context, events []audit.StreamEvent) error
	}
	// Bury keeps messages that will never be answered, where people find them and may send them again. Doing so twice changes nothing.
	Bury func(context.Context, []audit.Rejected) error
	// TextsGo says when the texts of a tenant's events of a day reach their limit; nil: never.
	TextsGo func(ctx context.Context, tenant string, day time.Time) (time.Time, error)
	// Told hears of each verdict that is stored, those that did not come about too, with the interaction's trace, span and
	// metadata; it must not wait. nil: nobody.
	Told     func(*audit.Record)
	Observer Observer         // nil: nobody looks
	Logger   *slog.Logger     // nil is quiet
	Now      func() time.Time // nil is time.Now
}

// Observer is told what happens; its methods must be fast and safe for concurrent use.
type Observer interface {
	// Judged tells what became of a request that was made for why (a judge.Reason, or other): done, cached (an equal text was answered before), repeated, skipped,
	// failed, abandoned, gone (there is no such interaction, or it has no response), waiting (the model is away), or error, with the reason of
	// a verdict that did not come about.
	Judged(why, outcome, reason string, took time.Duration)
	// JudgeSpent tells what an answer took.
	JudgeSpent(calls, tokensIn, tokensOut int, usd float64)
	// JudgeOdd counts what was odd about answers: unverified_quote, repaired (its JSON had to be asked for again), injection (the text
	// addressed the judge), leaked (thrown away, for it held what only the judge is told), split (votes differed).
	JudgeOdd(what string, n int)
	// JudgeAgainst compares with the rules: whether they and the judge found bias.
	JudgeAgainst(rules, judge bool)
}

type silent struct{}

func (silent) Judged(string, string, string, time.Duration) {}
func (silent) JudgeSpent(int, int, int, float64)            {}
func (silent) JudgeOdd(string, int)                         {}
func (silent) JudgeAgainst(bool, bool)                      {}

// Lane answers requests. It is safe for concurrent use.
type Lane struct {
	cfg Config
	Parts
	quick   time.Duration // before the two attempts that follow a first one at once
	probe   probe
	unshown unshown
	room    *places.Places
	running running
	owed    owed
	logged  logged
}

// New checks the configuration; a fault is of KindInvalid.
func New(cfg Config, p Parts) (*Lane, error) {
	const op = "judge/lane: new"
	if err := cfg.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if p.Store == nil || p.Evaluator == nil || p.Version == "" || p.Selector == nil || p.Rows == nil || p.Current == nil || p.Stream == nil || p.Bury == nil {
		return nil, audit.E(op, audit.KindInternal, errors.New("a part is missing"))
	}
	if p.Told == nil {
		p.Told = func(*audit.Record) {}
	}
	if p.Observer == nil {
		p.Observer = silent{}
	}
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	return &Lane{cfg: cfg, Parts: p, quick: 500 * time.Millisecond, unshown: unshown{wake: make(chan struct{}, 1)}, room: places.New(cfg.Concurrency)}, nil
}

// probe remembers whether the model answered lately.
type probe struct {
	mu   sync.Mutex // held while it is asked
	last atomic.Pointer[probed]
}

type probed struct {
	at time.Time
	ok bool
}

// lately is what the probe said, if that still holds.
func (p *probe) lately(now time.Time) *probed {
	if x := p.last.Load(); x != nil && now.Sub(x.at) < probeEvery && !now.Before(x.at) {
		return x
	}
	return nil
}
