// Package pipeline is the hot path: it reads ranges of the log, decodes each message once, runs the
// detectors, writes the store in order and then publishes and commits.
//
// Delivery is effectively once by idempotent writes: every key and version comes from the log record
// alone, and a range counts as written when its marker is in the store. A range without a marker is
// written again, a range with one is only published again. Positions are committed inside the
// generation that fetched, after store, stream and dead letters.
//
// At most two batches are in flight: one fills while one is written. One budget bounds the bytes of
// all messages that were fetched and not committed: when the write stage is slow or the store is
// away, nothing more is fetched, and the log is the queue. A failure that may pass is tried again for
// ever; Run ends with its context and nothing else. The package imports seams only.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sources"
)

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Workers is the number of goroutines that decode and detect. Default GOMAXPROCS; 1..256.
	Workers int
	// BatchRows, BatchBytes (of undecoded messages) and BatchAge cut a batch, whichever comes first; twice
	// as many rows and bytes when eight event days or more are mixed in it. One that is old enough
	// grows while the one before it is written.
	// Defaults 10,000, 16 MiB, 1 s.
	BatchRows  int
	BatchBytes int64
	BatchAge   time.Duration
	// FetchBytes is about how much one fetch of one partition brings. Default 2 MiB; less when many
	// partitions share BufferBytes.
	FetchBytes int
	// BufferBytes bounds the messages, unpacked, that were fetched and are not committed, over all
	// partitions; at least twice BatchBytes. Default 256 MiB.
	BufferBytes int64
	// DrainTimeout bounds the last write after the generation or the program ends. Default 10 s.
	DrainTimeout time.Duration
}

// maxDays cuts a batch: an insert over more than 100 partitions is refused by the store.
const maxDays = 90

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{Workers: runtime.GOMAXPROCS(0), BatchRows: 10_000, BatchBytes: 16 << 20, BatchAge: time.Second, FetchBytes: 2 << 20, BufferBytes: 256 << 20, DrainTimeout: 10 * time.Second}
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var errs []error
	between := func(key string, v, lo, hi int64) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("pipeline.%s: %d is not in %d..%d", key, v, lo, hi))
		}
	}
	between("workers", int64(c.Workers), 1, 256)
	between("batch_rows", int64(c.BatchRows), 1, 100_000)
	between("batch_bytes", c.BatchBytes, 1<<16, 256<<20)
	between("fetch_bytes", int64(c.FetchBytes), 1<<16, 64<<20)
	between("buffer_bytes", c.BufferBytes, 1<<20, 64<<30)
	if c.BufferBytes < 2*c.BatchBytes {
		errs = append(errs, fmt.Errorf("pipeline.buffer_bytes: %d is less than twice pipeline.batch_bytes (%d): one batch fills while one is written", c.BufferBytes, c.BatchBytes))
	}
	if c.BatchAge < 10*time.Millisecond || c.BatchAge > time.Minute {
		errs = append(errs, fmt.Errorf("pipeline.batch_age: %v is not in 10ms..1m", c.BatchAge))
	}
	if c.DrainTimeout < time.Second || c.DrainTimeout > 5*time.Minute {
		errs = append(errs, fmt.Errorf("pipeline.drain_timeout: %v is not in 1s..5m", c.DrainTimeout))
	}
	return errors.Join(errs...)
}

// Parts are the seams the pipeline is made of.
type Parts struct {
	Source sources.Source
	// Decode turns a message into an interaction or says why it cannot be one. It must be safe for
	// concurrent use and keep no reference to the record's bytes in an interaction.
	Decode    func(r sources.Record, o audit.Origin) (*audit.Interaction, *audit.Rejected)
	Analyze   func(ctx context.Context, in *audit.Interaction) *audit.Verdict
	Keep      func(ctx context.Context, r audit.Record) audit.Record // what is kept of a record; nil: all of it
	Store     sinks.Store
	Publisher sinks.Publisher
	// Ask is given what a batch stored, while its verdicts are published, and asks others for more (a judge).
	// What it misses is made up for elsewhere: it holds nothing up, and must return soon. nil asks for nothing.
	Ask      func(ctx context.Context, rs []audit.Record)
	Observer Observer // nil: nobody looks
	Logger   *slog.Logger
}

// Observer is told what happens; its methods must be fast and safe for concurrent use.
type Observer interface {
	// Written tells a batch that is stored, published and committed.
	Written(b *sinks.Batch, s Stats)
	// Retried tells that a stage ("store", "publish", "dead_letter", "recover") failed and is tried again.
	Retried(stage string, kind audit.Kind)
	// Gap tells offsets that the log no longer held before they were read.
	Gap(partition int, from, to int64)
	// LogReplaced tells that the log is not the one the store remembers.
	LogReplaced(partition int, epoch int32)
	// Skipped tells a range that was in the store already and was only published again.
	Skipped(partition int, lo, hi int64)
}

// Stats are the times of one batch.
type Stats struct {
	Oldest               time.Time     // broker time of the oldest record; zero when the batch holds none
	Fill, Write, Publish time.Duration // from first record to cut; store; stream and dead letters
}

// Pipeline runs the hot path.
type Pipeline struct {
	cfg Config
	Parts
	track tracker
}

// Progress tells how far the pipeline is, for readiness and metrics. It is safe for concurrent use.
func (p *Pipeline) Progress() Progress { return p.track.progress() }

// New checks the configuration; a fault is of KindInvalid.
func New(cfg Config, p Parts) (*Pipeline, error) {
	if err := cfg.Validate(); err != nil {
		return nil, audit.E("pipeline: new", audit.KindInvalid, err)
	}
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Observer == nil {
		p.Observer = silent{}
	}
	return &Pipeline{cfg: cfg, Parts: p}, nil
}

// Run consumes until ctx ends; then what was read is written, bounded by DrainTimeout, and Run
// returns nil.
func (p *Pipeline) Run(ctx context.Context) error {
	return p.Source.Run(ctx, p.serve)
}

// serve owns the claims of one generation until it ends.
func (p *Pipeline) serve(ctx context.Context, g sources.Generation) error {
	claims := g.Claims()
	defer p.track.leave()
	for ctx.Err() == nil {
		s, err := p.open(ctx, g, claims)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, sources.ErrGenerationEnded) {
				return nil
			}
			return err
		}
		err = s.run(ctx)
		var out *sources.OutOfRangeError
		if !errors.As(err, &out) {
			return err
		}
		// The log no longer holds the position: look again at what it is, from where we are.
		claims = s.claims()
	}
	return nil
}

type silent struct{}

func (silent) Written(*sinks.Batch, Stats) {}
func (silent) Retried(string, audit.Kind)  {}
func (silent) Gap(int, int64, int64)       {}
func (silent) LogReplaced(int, int32)      {}
func (silent) Skipped(int, int64, int64)   {}
