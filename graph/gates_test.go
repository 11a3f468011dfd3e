package graph_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/graph"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
)

const gateFields = `id state request { rule { id description pattern category } matchedText provider method timestamp matches { rule { id } matchedText side start end } }
	decision { approved reason detail hitlGateTriggered decidedBy decidedAt } interaction { id originalQuery } traceId model application requester openedAt expiresAt`

// Gates are listed, shown with their interaction, and answered once; words by permission.
func TestGates(t *testing.T) {
	f := newFixture(t)
	r := sample("acme", 1)
	f.write(r)
	rows := sink.New(f.conn, f.db, sink.Options{})
	cfg := gates.DefaultConfig()
	cfg.Approvers = true
	s, err := gates.New(cfg, gates.Parts{Store: f.Store, Rows: rows, Log: &memory{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q := newAPI(t, graph.Parts{Store: f.Store, Gates: s})
	open := func(tenant string) audit.ID {
		id, err := s.Open(t.Context(), gates.Request{Tenant: tenant, Rule: gates.Rule{ID: "financial", Description: "d", Pattern: "p", Category: "c"}, MatchedText: "pay $5,000",
			Provider: "openai", Method: "m", Timestamp: time.UnixMilli(1_760_000_000_123), Interaction: r.Interaction.ID, Requester: "svc"})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id, foreign := open("acme"), open("beta")
	approver, bob := as(auth.Approver), as(auth.Approver)
	bob.Subject = "bob"
	one := func(id audit.ID) string { return fmt.Sprintf(`{ gate(id: %q) { %s } }`, id, gateFields) }
	for _, tc := range []struct {
		name        string
		by          *auth.Principal
		query       string
		want, lacks string // of data, or the code of the error
	}{
		{"a list", approver, `{ gates(state: OPEN, first: 5) { nodes { ` + gateFields + ` } pageInfo { hasNextPage endCursor } } }`, `"matchedText":"pay $5,000"`, foreign.String()},
		{"its interaction, masked", approver, one(id), `"interaction":{"id":"` + r.Interaction.ID.String() + `","originalQuery":"[masked]"}`, ""},
		{"to a viewer", as(auth.Viewer), one(id), `"matchedText":null`, "$5,000"},
		{"to a reviewer", as(auth.Reviewer), one(id), `"timestamp":"2025-10-09T08:53:20.123Z"`, ""},
		{"another tenant's", approver, one(foreign), `{"gate":null}`, ""},
		{"no id", approver, `{ gate(id: "x") { id } }`, "BAD_USER_INPUT", ""},
		{"a reviewer answers", as(auth.Reviewer), fmt.Sprintf(`mutation { decideGate(id: %q, decision: APPROVE) { id } }`, id), "FORBIDDEN", ""},
		{"who asked answers", &auth.Principal{Tenant: "acme", Subject: "svc", May: auth.Permissions, Verified: true}, fmt.Sprintf(`mutation { decideGate(id: %q, decision: APPROVE) { id } }`, id), "FORBIDDEN", ""},
		{"another tenant's is answered", approver, fmt.Sprintf(`mutation { decideGate(id: %q, decision: APPROVE) { id } }`, foreign), "NOT_FOUND", ""},
		{"a long note", approver, fmt.Sprintf(`mutation { decideGate(id: %q, decision: APPROVE, note: %q) { id } }`, id, strings.Repeat("x", 2001)), "BAD_USER_INPUT", ""},
		{"an answer", approver, fmt.Sprintf(`mutation { decideGate(id: %q, decision: APPROVE, note: "fine") { %s } }`, id, gateFields), `"decision":{"approved":true,"reason":"approved","detail":"fine","hitlGateTriggered":true,"decidedBy":"ann"`, ""},
		{"a late answer", admin, fmt.Sprintf(`mutation { decideGate(id: %q, decision: DENY, note: "late") { state decision { detail } } }`, id), `{"decideGate":{"state":"APPROVED","decision":{"detail":"fine"}}}`, ""},
		{"and told as such", admin, fmt.Sprintf(`mutation { decideGate(id: %q, decision: DENY) { state } }`, id), `{"decideGate":{"state":"APPROVED"}}CONFLICT`, ""},
		{"the same approval of another", bob, fmt.Sprintf(`mutation { decideGate(id: %q, decision: APPROVE) { state } }`, id), `{"decideGate":{"state":"APPROVED"}}CONFLICT`, ""},
		{"one's own once more", approver, fmt.Sprintf(`mutation { decideGate(id: %q, decision: APPROVE) { state } }`, id), `{"decideGate":{"state":"APPROVED"}}`, "CONFLICT"},
		{"answered, to a viewer", as(auth.Viewer), one(id), `"detail":null`, "fine"},
		{"by its state", approver, `{ gates(state: APPROVED) { nodes { id state } } }`, `"state":"APPROVED"`, ""},
	} {
		a := q.ask(tc.by, tc.query, "")
		if got := string(a.Data) + a.codes(); !strings.Contains(got, tc.want) || tc.lacks != "" && strings.Contains(got, tc.lacks) {
			t.Errorf("%s: %s %+v", tc.name, got, a.Errors)
		}
	}
	stored := newAPI(t, graph.Parts{Store: f.Store}) // a process that answers none
	if a := stored.ask(approver, one(id), ""); !strings.Contains(string(a.Data), `"state":"APPROVED"`) {
		t.Errorf("%s %+v", a.Data, a.Errors)
	}
	if a := stored.ask(approver, fmt.Sprintf(`mutation { decideGate(id: %q, decision: DENY) { id } }`, id), ""); a.codes() != "UNAVAILABLE" {
		t.Errorf("%+v", a.Errors)
	}
}
