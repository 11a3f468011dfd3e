// Package join makes one native event of each call of a model that clients of other formats tell.
//
// A [Writer] takes parts (package call) from doors and foreign topics. A part that tells a whole call becomes an event
// at once. The others go to the topic evenhand.calls, keyed by their group; a [Joiner] reads it, holds each group until
// nothing came for a window, puts together what belongs together and hands the events to llm.interactions. A [Reader]
// reads a foreign topic through a format's decoder.
//
// Nothing is lost and nothing told twice with other content. A position is committed up to the oldest part of an open
// group only, after the events of all groups before it were acknowledged. Where that cuts through the parts of a group
// that was told, a mark in the same partition says so: whoever reads on leaves those parts out. An event's id and bytes
// follow from its parts, so a group that is told again before its mark is in is the same event to the store.
//
// Memory is bounded (Config): the oldest group is closed early when there are too many. Cost: some ten microseconds and
// the bytes of its record a part. Errors hold no text of people.
package join

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Window is how long a group waits after its last part. Default 30s; 1s..60s. After 60 s it waits no longer, whatever comes;
	// after 15 minutes where its answer still grows, or where the model was asked and the tenant's clients tell how such calls end.
	Window time.Duration
	// Groups and MemoryBytes bound the groups that wait, of all partitions together. Default 20,000 and 64 MiB.
	Groups      int
	MemoryBytes int64
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{Window: 30 * time.Second, Groups: 20_000, MemoryBytes: 64 << 20}
}

const (
	longest  = time.Minute      // that a group is open
	growing  = 15 * time.Minute // the same, of a group whose answer is told while it comes, or is awaited
	awaiting = time.Hour        // that answers are awaited after one came
	memory   = 10 * time.Minute // that a told group is remembered
	firstTry = 100 * time.Millisecond
)

// Validate reports every fault, with the key as the operator writes it.
func (c Config) Validate() error {
	var errs []error
	if c.Window < time.Second || c.Window > longest {
		errs = append(errs, fmt.Errorf("join.window: %v is not in 1s..60s", c.Window))
	}
	if c.Groups < 1 || c.Groups > 10_000_000 {
		errs = append(errs, fmt.Errorf("join.groups: %d is not in 1..10000000", c.Groups))
	}
	if c.MemoryBytes < 1<<20 || c.MemoryBytes > 64<<30 {
		errs = append(errs, fmt.Errorf("join.memory_mb: %d is not in 1..65536", c.MemoryBytes>>20))
	}
	return errors.Join(errs...)
}

// DeadLetters keeps what cannot become an event, and returns once it is kept.
type DeadLetters func(ctx context.Context, rs []audit.Rejected) error

// Joiner reads evenhand.calls and makes events. Run may be called once at a time.
type Joiner struct {
	*events
	cfg    Config
	source sources.Source
	log    Log
	dead   DeadLetters

	waiting, waitingBytes atomic.Int64 // groups
}

// NewJoiner makes a joiner of the source of evenhand.calls; log writes to that topic.
func NewJoiner(cfg Config, o Options, source sources.Source, log Log, dead DeadLetters) (*Joiner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, audit.E("join: new", audit.KindInvalid, err)
	}
	e, err := newEvents(o)
	if err != nil {
		return nil, err
	}
	return &Joiner{events: e, cfg: cfg, source: source, log: log, dead: dead}, nil
}

// Run consumes until ctx ends. What waits then waits in the topic.
func (j *Joiner) Run(ctx context.Context) error { return j.source.Run(ctx, j.serve) }

// Open tells how many groups wait, and their bytes. It is safe for concurrent use.
func (j *Joiner) Open() (groups, bytes int64) { return j.waiting.Load(), j.waitingBytes.Load() }

// retry tries a step until it works or final says that it never will; the end of ctx is an error of KindUnavailable.
func (e *events) retry(ctx context.Context, step string, try func(context.Context) error, final func(error) bool) error {
	for fails := 1; ; fails++ {
		err := try(ctx)
		if err == nil || final(err) {
			return err
		}
		if ctx.Err() == nil {
			e.Observer.Retried(step, audit.KindOf(err))
			e.Logger.Warn("joining calls: a step failed and is tried again", "step", step, "error", err.Error())
		}
		if !wait.For(ctx, wait.Backoff(firstTry, fails)) {
			return audit.E("join: "+step, audit.KindUnavailable, context.Cause(ctx))
		}
	}
}

func never(error) bool { return false }

// ended tells of errors after which a generation is simply over.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, sources.ErrGenerationEnded)
}
