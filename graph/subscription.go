package graph

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph/model"
	"github.com/evenhand/evenhand/store"
)

// Feed tells subscribers what was flagged. Of each tenant one poller reads the store for all of its
// subscribers, and none while there are none.
//
// A row may appear after rows that bear a later time. So every look goes back by more than an insert takes,
// and what was told already is known by its content: nothing is missed, and what has changed is told again.
type Feed struct {
	read FlaggedReader
	cfg  Config
	log  *slog.Logger

	mu      sync.Mutex
	tenants map[string]*poller
	open    int // subscribers of all tenants
	closed  bool
	running sync.WaitGroup
}

// FlaggedReader gives a tenant's flagged interactions that were written after from, oldest first, about
// limit, and up to where it looked by the store's clock; for a zero from only that.
type FlaggedReader func(ctx context.Context, tenant string, from time.Time, limit int) ([]store.Item, time.Time, error)

// FlaggedIn reads a store, whatever time interactions bear.
func FlaggedIn(s *store.Store) FlaggedReader {
	return func(ctx context.Context, tenant string, from time.Time, limit int) ([]store.Item, time.Time, error) {
		return s.WithTenant(tenant).FlaggedSince(ctx, store.Filter{}, from, limit)
	}
}

// NewFeed makes a feed; log may be nil.
func NewFeed(read FlaggedReader, c Config, log *slog.Logger) *Feed {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Feed{read: read, cfg: c, log: log, tenants: map[string]*poller{}}
}

const (
	// overlap is how far each look goes back: longer than an insert takes from its time to its appearance.
	overlap = 10 * time.Second
	// flaggedPage is how much is read at once.
	flaggedPage = 500
	// failing is for how long the store may be out of reach before streams end.
	failing = time.Minute
)

// flagged is one subscription. Items are closed at its end; why then says whether it ended early.
type flagged struct {
	items       chan store.Item
	domain      audit.Domain // "" for all
	minSeverity uint8
	why         *gqlerror.Error // set before items are closed
	leave       func()          // ends it; may be called twice
}

func (s *flagged) wants(it *store.Item) bool {
	return (s.domain == "" || s.domain == it.Domain) && it.MaxSeverity >= s.minSeverity
}

// subscribe returns once the poller has looked at what is there: what is flagged from then on is told.
func (f *Feed) subscribe(ctx context.Context, tenant string, domain audit.Domain, minSeverity uint8) (*flagged, error) {
	if f == nil {
		return nil, refuse(Unavailable, "this process has no stream of flagged interactions")
	}
	s := &flagged{items: make(chan store.Item, f.cfg.StreamBuffer), domain: domain, minSeverity: minSeverity}
	p, err := f.join(tenant, s) //nolint:contextcheck // a poller outlives the subscriber that it was started for
	if err != nil {
		return nil, err
	}
	select {
	case <-p.primed:
	case <-ctx.Done():
		s.leave()
		return nil, ctx.Err()
	}
	if p.failed != nil {
		s.leave()
		return nil, p.failed
	}
	return s, nil
}

// join adds a subscriber to its tenant's poller, which is started for the first one.
func (f *Feed) join(tenant string, s *flagged) (*poller, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.tenants[tenant]
	switch {
	case f.closed:
		return nil, errGoingDown()
	case f.open >= f.cfg.ServedAtOnce || p != nil && len(p.subs) >= f.cfg.Subscribers || f.cfg.Subscribers == 0:
		return nil, refuse(Overloaded, "too many streams at once (graphql.subscribers, graphql.served_at_once)")
	case p == nil:
		ctx, cancel := context.WithCancel(context.Background())
		p = &poller{feed: f, tenant: tenant, cancel: cancel, subs: map[*flagged]struct{}{}, primed: make(chan struct{}), seen: map[store.Key]uint64{}}
		f.tenants[tenant] = p
		f.running.Go(func() { p.run(ctx) })
	}
	p.subs[s] = struct{}{}
	f.open++
	s.leave = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		p.remove(s, nil)
	}
	return p, nil
}

func errGoingDown() *gqlerror.Error {
	return refuse(Unavailable, "this server is going down; subscribe again")
}

// Close ends every stream and waits for the pollers.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	for _, p := range f.tenants {
		p.end(errGoingDown())
	}
	f.mu.Unlock()
	f.running.Wait()
}

// poller looks for one tenant. The feed's lock guards its subscribers; the rest is its own.
type poller struct {
	feed   *Feed
	tenant string
	cancel context.CancelFunc
	subs   map[*flagged]struct{}
	primed chan struct{} // closed once the first look is done
	failed error         // of the first look; set before primed is closed

	from time.Time            // where the next look begins
	seen map[store.Key]uint64 // content of what the next look may find again
}

// remove takes a subscriber out; with the last one the poller ends. The lock is held.
func (p *poller) remove(s *flagged, why *gqlerror.Error) {
	if _, in := p.subs[s]; !in {
		return
	}
	delete(p.subs, s)
	p.feed.open--
	s.why = why
	close(s.items)
	if len(p.subs) == 0 {
		p.cancel()
		if p.feed.tenants[p.tenant] == p {
			delete(p.feed.tenants, p.tenant)
		}
	}
}

// end takes all subscribers out. The lock is held.
func (p *poller) end(why *gqlerror.Error) {
	for s := range p.subs {
		p.remove(s, why)
	}
}

func (p *poller) run(ctx context.Context) {
	p.failed = p.begin(ctx)
	close(p.primed)
	tick := time.NewTicker(p.feed.cfg.StreamPoll)
	defer tick.Stop()
	for good := time.Now(); p.failed == nil; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := p.look(ctx, p.tell)
		if err == nil || ctx.Err() != nil {
			good = time.Now()
			continue
		}
		p.feed.log.Warn("flagged interactions cannot be read", "tenant", p.tenant, "kind", string(audit.KindOf(err)))
		if time.Since(good) > failing {
			p.feed.mu.Lock()
			p.end(refuse(Unavailable, "the store does not answer; subscribe again"))
			p.feed.mu.Unlock()
			return
		}
	}
}

// begin takes what is there as told.
func (p *poller) begin(ctx context.Context) error {
	_, now, err := p.feed.read(ctx, p.tenant, time.Time{}, 1)
	if err != nil {
		return err
	}
	p.from = now.Add(-overlap)
	return p.look(ctx, func(store.Item) {})
}

// look reads what was written since the last look and hands on what is new or has changed. After an error
// the next look begins where this one did.
func (p *poller) look(ctx context.Context, tell func(store.Item)) error {
	_, until, err := p.feed.read(ctx, p.tenant, time.Time{}, 1)
	if err != nil {
		return err
	}
	found := map[store.Key]uint64{}
	for from := p.from; from.Before(until); {
		items, through, err := p.feed.read(ctx, p.tenant, from, flaggedPage)
		if err != nil {
			return err
		}
		for i := range items {
			key, sum := items[i].Key(), content(&items[i])
			if known, seen := p.seen[key]; !seen || known != sum {
				tell(items[i])
			}
			p.seen[key], found[key] = sum, sum
		}
		if !through.After(from) {
			break
		}
		from = through
	}
	if back := until.Add(-overlap); back.After(p.from) {
		p.from = back
	}
	p.seen = found
	return nil
}

// content tells versions of an interaction apart.
func content(it *store.Item) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%+v", *it)
	return h.Sum64()
}

// tell hands an interaction to whom it concerns. Who is too slow is sent away: the others and the poller
// wait for nobody.
func (p *poller) tell(it store.Item) {
	p.feed.mu.Lock()
	defer p.feed.mu.Unlock()
	for s := range p.subs {
		if !s.wants(&it) {
			continue
		}
		select {
		case s.items <- it:
		default:
			p.remove(s, refuse(Overloaded, "the stream's reader was too slow and interactions were lost; read them by llmInteractionAuditConnection and subscribe again"))
		}
	}
}

// follow answers the subscription flagged; every interaction is a page of its own, masked like those of queries.
func (r *Resolver) follow(ctx context.Context, domain *string, minSeverity *audit.Severity) (<-chan *model.Audit, error) {
	var of audit.Domain
	if domain != nil {
		if of = audit.Domain(*domain); !of.Known() {
			return nil, invalid("domain", "wants one of %s", audit.List(audit.Domains))
		}
	}
	var least uint8
	if minSeverity != nil {
		least = minSeverity.Level()
	}
	s, err := r.Feed.subscribe(ctx, auth.From(ctx).Tenant, of, least)
	if err != nil {
		return nil, err
	}
	out := make(chan *model.Audit)
	go func() { // ends with the request, whose handler waits until out is closed
		defer close(out)
		defer s.leave()
		for {
			select {
			case it, more := <-s.items:
				if !more {
					endStream(ctx, s.why)
					return
				}
				select {
				case out <- r.Audits(ctx, []store.Item{it})[0]:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
