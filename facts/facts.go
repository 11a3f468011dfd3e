// Package facts adds what people and outside analyzers say about an interaction after the hot path: a
// verdict, a review, feedback, a reveal. Each is a row of its own that overwrites nothing; then the read
// model is rewritten and, for verdicts, bias.audit.stream told.
//
// A fact is stored before it is shown and shown before it is published. A process that ends in between
// leaves the rest to others: the repair shows what is stored, and the job that retries verdicts publishes
// later facts a second time, when no call can still be about to publish them. So once the fact is stored the
// call succeeds; what failed after it is logged and counted. What is answered is built from the fact just
// written. Two calls are two facts, even when they say the same; a write of unknown outcome is made again
// under the same id.
//
// Left out keeps what the same caller said last, null takes it back. Calls of one process on one interaction
// go one after the other; of two processes at the same moment each keeps what it saw.
//
// Faults of the caller are of audit.KindInvalid and name the field. Permissions are the caller's affair.
// Cost is about ten small statements a call; a process shows facts on one interaction together.
package facts

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// Parts are what a Writer works with.
type Parts struct {
	Store *store.Store
	// Rows is where facts are stored: a sink of package sinks/clickhouse.
	Rows Rows
	// Current is the read model: a repair.Repairer.
	Current interface {
		Follow(ctx context.Context, keys ...store.Key) error
	}
	// Stream and Opinions are topics: a publisher of package sinks/stream.
	Stream interface {
		Publish(ctx context.Context, events []audit.StreamEvent) error
	}
	Opinions interface {
		Opinions(ctx context.Context, os []audit.Opinion) error
	}
	// TextsGo says when the texts of a tenant's events of a day reach their limit; from then on no text is
	// taken for them, for it would come back after it was dropped. nil: never.
	TextsGo func(ctx context.Context, tenant string, day time.Time) (time.Time, error)
	// Told hears of each verdict that is stored, with the interaction's trace and span; it must not wait. nil: nobody.
	Told func(*audit.Record)
	// RevealsPerHour is how often a caller may reveal, over all processes.
	RevealsPerHour int

	Observer interface {
		// Fact counts what became of a call: kind verdict, review, feedback, reveal or taxonomy; outcome stored,
		// refused, failed, or unshown and unpublished of those that were stored.
		Fact(kind, outcome string)
	}
	Logger *slog.Logger
	Now    func() time.Time // nil is time.Now
}

// Rows stores facts; writing one again changes nothing.
type Rows interface {
	OutsideVerdict(ctx context.Context, r audit.Record, said []string, texts []clickhouse.FactText) error
	Reviews(ctx context.Context, rs []clickhouse.Review) error
	Feedback(ctx context.Context, f clickhouse.Fact, helped *bool) error
	Reveal(ctx context.Context, f clickhouse.Fact, granted bool) error
	Texts(ctx context.Context, f clickhouse.Fact) error
	TaxonomyEntry(ctx context.Context, id uint32, key, description string, severity uint8, version uint64) error
}

// Writer adds facts. It is safe for concurrent use by many processes.
type Writer struct {
	Parts
	words   *Vocabulary
	saying  keyed[callerKey, said] // what a caller says of an interaction, one after the other
	showing keyed[store.Key, shown]
	asking  keyed[callerKey, said] // reveals of a caller
	sitting keyed[callerKey, said] // reviews of many interactions by a caller
	asked   reveals
}

// said is nothing: those who speak one after the other share no result.
type said = struct{}

// shown is an interaction after its row was written, and what the stream is told of it.
type shown struct {
	item  *store.Item
	event audit.StreamEvent
}

// callerKey names a caller and an interaction, or a caller alone.
type callerKey struct {
	store.Key
	subject string
}

// New makes a writer.
func New(p Parts) (*Writer, error) {
	const op = "facts: new"
	if p.Store == nil || p.Rows == nil || p.Current == nil || p.Stream == nil || p.Opinions == nil {
		return nil, audit.E(op, audit.KindInternal, errors.New("a part is missing"))
	}
	if p.RevealsPerHour < 0 {
		return nil, audit.E(op, audit.KindInvalid, errors.New("reveal.per_hour: is negative"))
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Observer == nil {
		p.Observer = silent{}
	}
	words := NewVocabulary(p.Store, p.Rows)
	words.now = p.Now
	return &Writer{Parts: p, words: words}, nil
}

type silent struct{}

func (silent) Fact(string, string) {}

// Kinds of facts, as they are counted.
const (
	kindVerdict  = "verdict"
	kindReview   = "review"
	kindFeedback = "feedback"
	kindReveal   = "reveal"
	kindTaxonomy = "taxonomy"
)

var errCaller = errors.New("caller: has no tenant or no name")

// tenant checks the caller and gives what it may read.
func (w *Writer) tenant(op string, by *auth.Principal) (*store.Tenant, error) {
	if by == nil || by.Tenant == "" || by.Subject == "" {
		return nil, audit.E(op, audit.KindInvalid, errCaller)
	}
	return w.Store.WithTenant(by.Tenant), nil
}

// begin checks the caller and finds the interaction.
func (w *Writer) begin(ctx context.Context, op string, by *auth.Principal, id audit.ID) (*store.Tenant, *store.Item, error) {
	t, err := w.tenant(op, by)
	if err != nil {
		return nil, nil, err
	}
	it, err := t.Find(ctx, id)
	return t, it, err
}

// beginOf is begin for what a person says of a text: where several contents came under the id, result, that of our verdict
// ([store.Item.ResultID]), tells which is meant, and none is guessed.
func (w *Writer) beginOf(ctx context.Context, op string, by *auth.Principal, id, result audit.ID) (*store.Tenant, *store.Item, error) {
	t, err := w.tenant(op, by)
	if err != nil {
		return nil, nil, err
	}
	items, err := t.Contents(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if result != (audit.ID{}) {
		if at := slices.IndexFunc(items, func(it store.Item) bool { return it.ResultID() == result }); at >= 0 {
			return t, &items[at], nil
		}
		return nil, nil, audit.E(op, audit.KindInvalid, errors.New("resultId: no content of this interaction has it"))
	}
	if slices.ContainsFunc(items, func(it store.Item) bool { return it.Digest != items[0].Digest }) {
		return nil, nil, audit.E(op, audit.KindInvalid, errors.New("id: it came with several contents; say by resultId, as the record has it, which is meant"))
	}
	return t, &items[0], nil
}

// now is the time of a new fact: after the one before, whatever the clock says.
func (w *Writer) now(before time.Time) time.Time {
	now := w.Now().UTC().Truncate(time.Millisecond)
	if next := before.UTC().Add(time.Millisecond); now.Before(next) && !before.IsZero() {
		return next
	}
	return now
}

// fact begins the row of a fact by a person.
func fact(by *auth.Principal, it *store.Item, at time.Time) clickhouse.Fact {
	k := it.Key()
	return clickhouse.Fact{ID: audit.NewID(at), Tenant: k.Tenant, Day: k.Day, Event: k.ID, Digest: k.Digest, By: by.Subject, At: at}
}

// counted counts what became of a call.
func (w *Writer) counted(kind string, err error) {
	switch {
	case err == nil:
		w.Observer.Fact(kind, "stored")
	case audit.KindOf(err) == audit.KindInvalid, audit.KindOf(err) == audit.KindOverloaded:
		w.Observer.Fact(kind, "refused")
	default:
		w.Observer.Fact(kind, "failed")
	}
}
