package model

import (
	"context"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/store"
)

// GateSource reads the interactions of gates: *store.Tenant.
type GateSource interface {
	Source
	Items(ctx context.Context, ids []audit.ID) ([]store.Item, error)
}

// gatePage is gates that were read together.
type gatePage struct {
	src   GateSource
	sight Sight
	ids   []audit.ID // of their interactions

	found load[map[audit.ID]*Audit]
}

// Gate is a gate as the caller may see it.
type Gate struct {
	g     audit.HumanGate
	shown gates.Gate
	page  *gatePage
}

// GateRequest is what a gate asks about.
type GateRequest struct {
	gates.Asked
	at time.Time
}

// GateMatch is one of the matches.
type GateMatch struct{ gates.Matched }

// GateDecision is a gate's answer.
type GateDecision struct{ gates.Decision }

// Gates makes a page; texts says whether matched texts and people's words are shown.
func Gates(src GateSource, sight Sight, texts bool, gs []audit.HumanGate) []*Gate {
	p := &gatePage{src: src, sight: sight}
	out := make([]*Gate, len(gs))
	for i := range gs {
		out[i] = &Gate{gs[i], gates.Show(&gs[i], texts), p}
		if id := gs[i].Event; !id.IsZero() && !slices.Contains(p.ids, id) {
			p.ids = append(p.ids, id)
		}
	}
	return out
}

func (g *Gate) ID() string                  { return g.g.ID.String() }
func (g *Gate) State() audit.GateState      { return g.g.State }
func (g *Gate) Request() *GateRequest       { return &GateRequest{g.shown.Request, g.g.At} }
func (g *Gate) TraceID() *string            { return ptr(g.g.TraceID) }
func (g *Gate) Model() *string              { return ptr(g.g.Model) }
func (g *Gate) Application() *string        { return ptr(g.g.Application) }
func (g *Gate) Requester() *string          { return ptr(g.g.Requester) }
func (g *Gate) OpenedAt() time.Time         { return g.g.Opened }
func (g *Gate) ExpiresAt() time.Time        { return g.g.Expires }
func (r *GateRequest) Timestamp() time.Time { return r.at }

// Decision is null while the gate is open.
func (g *Gate) Decision() *GateDecision {
	if g.shown.Decision == nil {
		return nil
	}
	return &GateDecision{*g.shown.Decision}
}

// Interaction is the audit record, read for all gates of the page.
func (g *Gate) Interaction(ctx context.Context) (*Audit, error) {
	all, err := g.page.found.get(func() (map[audit.ID]*Audit, error) {
		items, err := g.page.src.Items(ctx, g.page.ids)
		byID := map[audit.ID]*Audit{}
		for _, a := range NewPage(g.page.src, g.page.sight, items) {
			byID[a.Item.EventID] = a
		}
		return byID, err
	})
	return all[g.g.Event], err
}

// Matches are all that matched.
func (r *GateRequest) Matches() []*GateMatch {
	out := make([]*GateMatch, len(r.Rules))
	for i := range r.Rules {
		out[i] = &GateMatch{r.Rules[i]}
	}
	return out
}

func (m *GateMatch) Start() int { return int(m.Matched.Start) }
func (m *GateMatch) End() int   { return int(m.Matched.End) }

func (d *GateDecision) Reason() string       { return string(d.Decision.Reason) }
func (d *GateDecision) Detail() *string      { return ptr(d.Decision.Detail) }
func (d *GateDecision) DecidedBy() *string   { return ptr(d.By) }
func (d *GateDecision) DecidedAt() time.Time { return d.At }
