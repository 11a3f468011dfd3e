package clickhouse

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// GateTexts is the JSON of a text of kind KindGate.
type GateTexts struct {
	Matches []string `json:"matches"` // in the order of the gate's matches
	User    string   `json:"user,omitempty"`
}

// Gate stores a gate as it stands; one that is open with its texts, before its row.
func (s *Sink) Gate(ctx context.Context, g *audit.HumanGate) error {
	f := gateFact(g, g.ID)
	version := uint64(g.Decided.UnixMilli())
	if g.State == audit.GateOpen {
		version = 1
		t := GateTexts{User: g.User}
		for _, m := range g.Matches {
			t.Matches = append(t.Matches, m.Text)
		}
		b, err := json.Marshal(t)
		if err != nil {
			return audit.E("sinks/clickhouse: gate", audit.KindInternal, err)
		}
		f.Texts = []FactText{{KindGate, string(b)}}
	}
	t, rows := &table{name: "gates"}, []audit.HumanGate{*g}
	add(t, "version", rows, func(*audit.HumanGate) uint64 { return version })
	add(t, "tenant_id", rows, func(g *audit.HumanGate) string { return g.Tenant })
	add(t, "event_day", rows, func(g *audit.HumanGate) time.Time { return g.Day() })
	add(t, "gate_id", rows, func(g *audit.HumanGate) uuid.UUID { return uuid.UUID(g.ID) })
	add(t, "event_id", rows, func(g *audit.HumanGate) uuid.UUID { return uuid.UUID(g.Event) })
	matched(t, rows, "id", func(m *audit.GateMatch) string { return m.Rule.ID })
	matched(t, rows, "description", func(m *audit.GateMatch) string { return m.Rule.Description })
	matched(t, rows, "pattern", func(m *audit.GateMatch) string { return m.Rule.Pattern })
	matched(t, rows, "category", func(m *audit.GateMatch) string { return m.Rule.Category })
	matched(t, rows, "side", func(m *audit.GateMatch) string { return string(m.Side) })
	matched(t, rows, "start", func(m *audit.GateMatch) uint32 { return uint32(m.Span.Start) })
	matched(t, rows, "end", func(m *audit.GateMatch) uint32 { return uint32(m.Span.End) })
	add(t, "provider", rows, func(g *audit.HumanGate) string { return g.Provider })
	add(t, "method", rows, func(g *audit.HumanGate) string { return g.Method })
	add(t, "trace_id", rows, func(g *audit.HumanGate) string { return g.TraceID })
	add(t, "model", rows, func(g *audit.HumanGate) string { return g.Model })
	add(t, "app", rows, func(g *audit.HumanGate) string { return g.Application })
	add(t, "requester", rows, func(g *audit.HumanGate) string { return g.Requester })
	add(t, "asked_at", rows, func(g *audit.HumanGate) int64 { return g.At.UnixMilli() })
	add(t, "opened_at", rows, func(g *audit.HumanGate) int64 { return g.Opened.UnixMilli() })
	add(t, "expires_at", rows, func(g *audit.HumanGate) int64 { return g.Expires.UnixMilli() })
	add(t, "state", rows, func(g *audit.HumanGate) string { return string(g.State) })
	add(t, "cause", rows, func(g *audit.HumanGate) string { return g.Cause })
	add(t, "decided_by", rows, func(g *audit.HumanGate) string { return g.By })
	add(t, "decided_at", rows, func(g *audit.HumanGate) int64 { return max(g.Decided.UnixMilli(), 0) })
	add(t, "proposal_id", rows, func(g *audit.HumanGate) uuid.UUID { return uuid.UUID(g.Proposal) })
	return s.fact(ctx, f, t)
}

// GateNote stores the words that come with a proposal. It is written before anything is proposed: a decision
// never lacks its words.
func (s *Sink) GateNote(ctx context.Context, g *audit.HumanGate, proposal audit.ID, note string) error {
	f := gateFact(g, proposal)
	if at, ok := proposal.Time(); ok {
		f.At = at
	}
	f.Texts = []FactText{{KindGateNote, note}}
	return s.fact(ctx, f)
}

func gateFact(g *audit.HumanGate, id audit.ID) Fact {
	return Fact{ID: id, Tenant: g.Tenant, Day: g.Day(), Event: g.Subject(), At: g.Opened}
}

func matched[T any](t *table, rows []audit.HumanGate, name string, f func(*audit.GateMatch) T) {
	add(t, "rules."+name, rows, func(g *audit.HumanGate) []T { return each(g.Matches, f) })
}
