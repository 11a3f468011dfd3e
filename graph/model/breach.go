package model

import (
	"context"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// BreachSource reads more about breaches: *store.Tenant.
type BreachSource interface {
	Source
	Items(ctx context.Context, ids []audit.ID) ([]store.Item, error)
	BreachHistory(ctx context.Context, ids []audit.ID) (map[audit.ID][]audit.Breach, error)
	Tickets(ctx context.Context, breaches []audit.ID) (map[audit.ID][]store.Ticket, error)
}

// breachPage is breaches that were read together.
type breachPage struct {
	src      BreachSource
	sight    Sight
	breaches []audit.Breach

	examples load[map[audit.ID]*Audit]
	past     load[map[audit.ID][]audit.Breach]
	tickets  load[map[audit.ID][]store.Ticket]
}

// Breach is a breach in its current state.
type Breach struct {
	audit.Breach
	page *breachPage
}

// Breaches makes a page.
func Breaches(src BreachSource, sight Sight, bs []audit.Breach) []*Breach {
	p := &breachPage{src: src, sight: sight, breaches: bs}
	out := make([]*Breach, len(bs))
	for i, b := range bs {
		out[i] = &Breach{b, p}
	}
	return out
}

func (p *breachPage) ids() []audit.ID {
	ids := make([]audit.ID, len(p.breaches))
	for i := range p.breaches {
		ids[i] = p.breaches[i].ID
	}
	return ids
}

func (b *Breach) ID() string                { return b.Breach.ID.String() }
func (b *Breach) State() string             { return string(b.Breach.State) }
func (b *Breach) Tier() string              { return string(b.Breach.Tier) }
func (b *Breach) Domain() string            { return string(b.Breach.Domain) }
func (b *Breach) OpenedAt() time.Time       { return b.Opened }
func (b *Breach) ChangedAt() time.Time      { return b.Changed }
func (b *Breach) WindowFrom() time.Time     { return b.From }
func (b *Breach) WindowTo() time.Time       { return b.To }
func (b *Breach) N() int                    { return number(b.Breach.N) }
func (b *Breach) K() int                    { return number(b.Breach.K) }
func (b *Breach) Severity() *audit.Severity { return severity(b.Breach.Severity.Level()) }

// BreachRule is in how many interactions a rule fired.
type BreachRule struct {
	Rule         string
	Interactions int
}

// TopRules are the rules that made the rate.
func (b *Breach) TopRules() []*BreachRule {
	out := []*BreachRule{}
	for _, r := range b.Breach.TopRules {
		out = append(out, &BreachRule{r.Rule, number(r.Interactions)})
	}
	return out
}

// Interactions are the examples that are still held, read for all breaches of the page, 200 at once.
func (b *Breach) Interactions(ctx context.Context) ([]*Audit, error) {
	all, err := b.page.examples.get(func() (map[audit.ID]*Audit, error) {
		var ids []audit.ID
		seen := map[audit.ID]bool{}
		for i := range b.page.breaches {
			for _, id := range b.page.breaches[i].Events {
				if !seen[id] {
					ids, seen[id] = append(ids, id), true
				}
			}
		}
		byID := map[audit.ID]*Audit{}
		for some := range slices.Chunk(ids, store.MaxLimit) {
			items, err := b.page.src.Items(ctx, some)
			if err != nil {
				return nil, err
			}
			for _, a := range NewPage(b.page.src, b.page.sight, items) {
				byID[a.Item.EventID] = a
			}
		}
		return byID, nil
	})
	out := []*Audit{}
	for _, id := range b.Events {
		if a := all[id]; a != nil {
			out = append(out, a)
		}
	}
	return out, err
}

// ConfirmedAt tells when a review confirmed the breach, nil where none did.
func (b *Breach) ConfirmedAt() *time.Time { return moment(b.Confirmed) }

// moment is nil for a time that was never set.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// BreachPart is in how many of a breach's interactions something took part.
type BreachPart struct {
	Of, Value    string
	Interactions int
}

// Split tells who was behind most of K.
func (b *Breach) Split() []*BreachPart {
	out := []*BreachPart{}
	for _, p := range b.Breach.Split {
		out = append(out, &BreachPart{p.Of, p.Value, number(p.Interactions)})
	}
	return out
}

// BreachTransition is one change of a breach.
type BreachTransition struct {
	Seq    int
	State  string
	Reason string
	At     time.Time
	N, K   int
	Rate   float64
}

// History are all changes, newest first.
func (b *Breach) History(ctx context.Context) ([]*BreachTransition, error) {
	all, err := b.page.past.get(func() (map[audit.ID][]audit.Breach, error) { return b.page.src.BreachHistory(ctx, b.page.ids()) })
	out := []*BreachTransition{}
	for _, s := range all[b.Breach.ID] {
		out = append(out, &BreachTransition{Seq: number(s.Seq), State: string(s.State), Reason: s.Reason, At: s.Changed, N: number(s.N), K: number(s.K), Rate: s.Rate})
	}
	return out, err
}

// Ticket is what was or will be said to a tracker.
type Ticket struct{ store.Ticket }

func (t *Ticket) ID() string           { return t.Ticket.ID.String() }
func (t *Ticket) Attempts() int        { return number(t.Ticket.Attempts) }
func (t *Ticket) Key() *string         { return ptr(t.Ticket.Key) }
func (t *Ticket) URL() *string         { return ptr(t.Ticket.URL) }
func (t *Ticket) CreatedAt() time.Time { return t.Created }

// SentAt is null before it was sent.
func (t *Ticket) SentAt() *time.Time { return moment(t.Sent) }

// Tickets are those of the breach, oldest first.
func (b *Breach) Tickets(ctx context.Context) ([]*Ticket, error) {
	all, err := b.page.tickets.get(func() (map[audit.ID][]store.Ticket, error) { return b.page.src.Tickets(ctx, b.page.ids()) })
	out := []*Ticket{}
	for _, t := range all[b.Breach.ID] {
		out = append(out, &Ticket{t})
	}
	return out, err
}
