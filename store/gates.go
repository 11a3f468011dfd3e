package store

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// GateFilter says which gates a list shows; zero fields do not restrict.
type GateFilter struct{ State audit.GateState }

// ErrNoGate says that the tenant has no such gate. Another tenant's looks the same.
var ErrNoGate = audit.E("store: gate", audit.KindInvalid, fmt.Errorf("no such gate"))

// Gates lists the tenant's gates as they are stored, newest first. after is the cursor of the page before, ""
// for the first; next is "" when there are no more. limit is as of List.
func (t *Tenant) Gates(ctx context.Context, f GateFilter, limit int, after string) (gs []audit.HumanGate, next string, err error) {
	const op = "store: gates"
	if limit, err = pageLimit(limit); err != nil {
		return nil, "", audit.E(op, audit.KindInvalid, err)
	}
	of := f.hash(t.tenant)
	q := t.from("gates").current()
	if f.State != "" {
		q.and("state = ?", string(f.State))
	}
	if after != "" {
		at, id, err := parseBreachCursor(after, of)
		if err != nil {
			return nil, "", audit.E(op, audit.KindInvalid, err)
		}
		q.and("(opened_at, gate_id) < ("+instant+", toUUID(?))", at.UnixMilli(), id.String())
	}
	gs, err = t.gates(ctx, op, q, fmt.Sprintf("ORDER BY opened_at DESC, gate_id DESC LIMIT %d", limit+1))
	if err != nil {
		return nil, "", err
	}
	if len(gs) > limit {
		gs = gs[:limit]
		last := &gs[limit-1]
		next = breachCursor(&audit.Breach{ID: last.ID, Changed: last.Opened}, of)
	}
	return gs, next, t.gateTexts(ctx, gs)
}

// Gate reads one gate; ErrNoGate when the tenant has none of the id.
func (t *Tenant) Gate(ctx context.Context, id audit.ID) (*audit.HumanGate, error) {
	return t.gate(ctx, t.from("gates").current().and(anyID("gate_id", []audit.ID{id})))
}

// GatesSince reads gates whose rows were written after a time of the store's clock, oldest first, and gives
// that clock. Rows may appear later than the time they bear says. At most MaxLimit are given.
func (t *Tenant) GatesSince(ctx context.Context, from time.Time) (gs []audit.HumanGate, now time.Time, err error) {
	const op = "store: gates since"
	if err := t.one(ctx, op, "SELECT now64(3, 'UTC')", nil, &now); err != nil {
		return nil, now, err
	}
	// A gate is answered within two days of its opening: older ones do not change.
	q := t.from("gates").current().and("event_day >= toDate(?)", day(from.AddDate(0, 0, -2))).and("written_at > "+instant, from.UnixMilli())
	if gs, err = t.gates(ctx, op, q, fmt.Sprintf("ORDER BY written_at, gate_id LIMIT %d", MaxLimit)); err != nil {
		return nil, now, err
	}
	return gs, now.UTC(), t.gateTexts(ctx, gs)
}

// Gate reads a gate of any tenant.
func (s *Store) Gate(ctx context.Context, id audit.ID) (*audit.HumanGate, error) {
	all := s.AllTenants().scope
	return all.gate(ctx, all.from("gates").current().and(anyID("gate_id", []audit.ID{id})))
}

// OpenGates reads the gates of all tenants that no row says to be decided, oldest first, without their texts.
func (s *Store) OpenGates(ctx context.Context, limit int) ([]audit.HumanGate, error) {
	all := s.AllTenants().scope
	return all.gates(ctx, "store: open gates", all.from("gates").current().and("state = ?", string(audit.GateOpen)), fmt.Sprintf("ORDER BY opened_at, gate_id LIMIT %d", limit))
}

// GateNote reads the words that came with a proposal, "" when there are none.
func (s *Store) GateNote(ctx context.Context, g *audit.HumanGate, proposal audit.ID) (string, error) {
	one := []audit.HumanGate{*g}
	one[0].Proposal = proposal
	err := s.AllTenants().of(g.Tenant).gateTexts(ctx, one)
	return one[0].Note, err
}

func (s scope) gate(ctx context.Context, q *query) (*audit.HumanGate, error) {
	gs, err := s.gates(ctx, "store: gate", q, "LIMIT 1")
	if err == nil && len(gs) == 0 {
		err = ErrNoGate
	}
	if err != nil {
		return nil, err
	}
	return &gs[0], s.of(gs[0].Tenant).gateTexts(ctx, gs)
}

var gateColumns = strings.Join(columnsOf[gateRow](), ", ")

// gateRow is a row of gates as the client scans it.
type gateRow struct {
	TenantID     string    `ch:"tenant_id"`
	GateID       uuid.UUID `ch:"gate_id"`
	EventID      uuid.UUID `ch:"event_id"`
	Rules        []string  `ch:"rules.id"`
	Descriptions []string  `ch:"rules.description"`
	Patterns     []string  `ch:"rules.pattern"`
	Categories   []string  `ch:"rules.category"`
	Sides        []string  `ch:"rules.side"`
	Starts       []uint32  `ch:"rules.start"`
	Ends         []uint32  `ch:"rules.end"`
	Provider     string    `ch:"provider"`
	Method       string    `ch:"method"`
	TraceID      string    `ch:"trace_id"`
	Model        string    `ch:"model"`
	App          string    `ch:"app"`
	Requester    string    `ch:"requester"`
	AskedAt      time.Time `ch:"asked_at"`
	OpenedAt     time.Time `ch:"opened_at"`
	ExpiresAt    time.Time `ch:"expires_at"`
	State        string    `ch:"state"`
	Cause        string    `ch:"cause"`
	DecidedBy    string    `ch:"decided_by"`
	DecidedAt    time.Time `ch:"decided_at"`
	ProposalID   uuid.UUID `ch:"proposal_id"`
	WrittenAt    time.Time `ch:"written_at"`
}

func (r *gateRow) gate() audit.HumanGate {
	g := audit.HumanGate{
		ID: audit.ID(r.GateID), Tenant: r.TenantID, Event: audit.ID(r.EventID), Provider: r.Provider, Method: r.Method, TraceID: r.TraceID, Model: r.Model, Application: r.App,
		Requester: r.Requester, At: r.AskedAt.UTC(), Opened: r.OpenedAt.UTC(), Expires: r.ExpiresAt.UTC(), Written: r.WrittenAt.UTC(),
		State: audit.GateState(r.State), Cause: r.Cause, By: r.DecidedBy, Decided: set(r.DecidedAt), Proposal: audit.ID(r.ProposalID),
	}
	for i := range r.Rules {
		g.Matches = append(g.Matches, audit.GateMatch{
			Rule: audit.GateRule{ID: r.Rules[i], Description: r.Descriptions[i], Pattern: r.Patterns[i], Category: r.Categories[i]},
			Side: audit.Side(r.Sides[i]), Span: audit.Span{Start: r.Starts[i], End: r.Ends[i]},
		})
	}
	return g
}

func (s scope) gates(ctx context.Context, op string, q *query, rest string) (gs []audit.HumanGate, err error) {
	err = s.each(ctx, op, q.sql(gateColumns, rest), q.args, func(r driver.Rows) error {
		var row gateRow
		if err := r.ScanStruct(&row); err != nil {
			return err
		}
		gs = append(gs, row.gate())
		return nil
	})
	return gs, err
}

// gateTexts fills in what is still held of matched texts, users and notes, in one statement.
func (s scope) gateTexts(ctx context.Context, gs []audit.HumanGate) error {
	if len(gs) == 0 {
		return nil
	}
	asked, decided := map[audit.ID]*audit.HumanGate{}, map[audit.ID]*audit.HumanGate{}
	var events []string
	for i := range gs {
		g := &gs[i]
		asked[g.ID], decided[g.Proposal] = g, g
		events = append(events, "('"+day(g.Day())+"', '"+g.Subject().String()+"')")
	}
	q := s.from("interaction_texts").current()
	q.prewhere = "(event_day, event_id) IN (" + strings.Join(events, ", ") + ")" // see about
	q.and("kind IN ('gate', 'gate_note')")
	return s.each(ctx, "store: gate texts", q.sql("kind, source_id, text", ""), q.args, func(r driver.Rows) error {
		var kind, source, text string
		if err := r.Scan(&kind, &source, &text); err != nil {
			return err
		}
		if g := decided[sourceID(source)]; g != nil && kind == "gate_note" {
			g.Note = text
		}
		g := asked[sourceID(source)]
		if g == nil || kind != "gate" {
			return nil
		}
		var held struct {
			Matches []string
			User    string
		}
		if err := json.Unmarshal([]byte(text), &held); err != nil {
			return audit.E("store: gate texts", audit.KindInternal, fmt.Errorf("the texts of gate %s are not readable", g.ID))
		}
		g.User = held.User
		for i := range min(len(held.Matches), len(g.Matches)) {
			g.Matches[i].Text = held.Matches[i]
		}
		return nil
	})
}

// hash tells filters, and tenants, apart: a cursor holds in its own list only.
func (f GateFilter) hash(tenant string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "gates %q %q", tenant, f.State)
	return h.Sum64()
}
