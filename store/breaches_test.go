package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

func (f *fixture) breach(tenant string, i int, seq uint32, state audit.BreachState, at time.Time) audit.ID {
	f.Helper()
	id := audit.DeriveID(tenant, fmt.Sprint("breach", i))
	f.insert("breaches", row{"tenant_id": tenant, "breach_id": id.String(), "seq": seq, "version": uint64(at.UnixMilli()), "state": string(state), "reason": "breached",
		"domain": []string{"hr", "finance"}[i%2], "kind": "charter.sex", "opened_at": noon, "changed_at": at, "window_from": noon, "window_to": noon.Add(time.Hour),
		"n": uint64(100), "k": uint64(20), "rate": 0.2, "severity": uint8(3), "top_rules.rule": []string{"sex.x"}, "top_rules.interactions": []uint64{7}, "event_ids": []string{id.String()}})
	return id
}

func TestBreaches(t *testing.T) {
	f := newFixture(t)
	var order []audit.ID // newest transition first
	for i := range 7 {
		id := f.breach("acme", i, 1, audit.BreachOpen, noon.Add(time.Duration(i)*time.Minute))
		order = append([]audit.ID{id}, order...)
	}
	f.breach("acme", 3, 2, audit.BreachMitigated, noon.Add(time.Hour))
	f.breach("acme", 3, 3, audit.BreachResolved, noon.Add(2*time.Hour))
	f.breach("acme", 1, 2, audit.BreachOpen, noon.Add(3*time.Minute)) // at the time of another
	f.breach("beta", 0, 1, audit.BreachOpen, noon)
	three := audit.DeriveID("acme", "breach3")
	ticket := audit.NewID(noon)
	for i, sent := range []time.Time{noon.Add(time.Hour), time.Unix(0, 0)} {
		f.insert("tickets", row{"tenant_id": "acme", "breach_id": three.String(), "ticket_id": audit.DeriveID("t", fmt.Sprint(i)).String(), "version": uint64(1), "target": "linear", "action": "create",
			"state": []string{"sent", "pending"}[i], "attempts": uint32(2), "remote_key": []string{"BIAS-1", ""}[i], "url": "", "created_at": noon.Add(time.Duration(i) * time.Minute), "sent_at": sent})
	}
	f.insert("tickets", row{"tenant_id": "beta", "breach_id": three.String(), "ticket_id": ticket.String(), "version": uint64(1), "created_at": noon})
	tenant := f.WithTenant("acme")

	turn := func(filter store.BreachFilter, limit int) (bs []audit.Breach) {
		t.Helper()
		for after := ""; ; {
			page, next, err := tenant.Breaches(t.Context(), filter, limit, after)
			if err != nil {
				t.Fatal(err)
			}
			if bs = append(bs, page...); next == "" {
				return bs
			}
			after = next
		}
	}
	whole := turn(store.BreachFilter{}, 200)
	if len(whole) != 7 || whole[0].ID != three || whole[0].State != audit.BreachResolved || whole[0].Seq != 3 || whole[0].TopRules[0].Interactions != 7 || whole[0].Severity != audit.High || len(whole[0].Events) != 1 {
		t.Fatalf("%+v", whole)
	}
	for _, limit := range []int{1, 2, 3, 7} {
		got := turn(store.BreachFilter{}, limit)
		if !slices.EqualFunc(got, whole, func(a, b audit.Breach) bool { return a.ID == b.ID && a.Seq == b.Seq }) {
			t.Errorf("limit %d: %d breaches", limit, len(got))
		}
	}
	for name, tc := range map[string]struct {
		f    store.BreachFilter
		want int
	}{
		"open": {store.BreachFilter{State: audit.BreachOpen}, 6}, "mitigated once": {store.BreachFilter{State: audit.BreachMitigated}, 0}, "finance": {store.BreachFilter{Domain: audit.Finance}, 3},
		"kind": {store.BreachFilter{Kind: "charter.sex", State: audit.BreachResolved}, 1}, "other": {store.BreachFilter{Kind: "charter.age"}, 0},
	} {
		if got := turn(tc.f, 2); len(got) != tc.want {
			t.Errorf("%s: %d, want %d", name, len(got), tc.want)
		}
	}
	_, next, _ := tenant.Breaches(t.Context(), store.BreachFilter{}, 2, "")
	for name, ask := range map[string]func() error{
		"cursor": func() error { _, _, err := tenant.Breaches(t.Context(), store.BreachFilter{}, 2, "x"); return err },
		"cursor of a filter": func() error {
			_, _, err := tenant.Breaches(t.Context(), store.BreachFilter{Kind: "a"}, 2, next)
			return err
		},
		"cursor of a tenant": func() error {
			_, _, err := f.WithTenant("beta").Breaches(t.Context(), store.BreachFilter{}, 2, next)
			return err
		},
		"limit":                func() error { _, _, err := tenant.Breaches(t.Context(), store.BreachFilter{}, 201, ""); return err },
		"more than may be ask": func() error { _, err := tenant.BreachHistory(t.Context(), make([]audit.ID, 201)); return err },
	} {
		if err := ask(); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	history, err := tenant.BreachHistory(t.Context(), []audit.ID{three, order[0], ticket})
	if err != nil || len(history) != 2 || len(history[three]) != 3 || history[three][0].Seq != 3 || history[three][2].State != audit.BreachOpen {
		t.Errorf("%+v, %v", history, err)
	}
	tickets, err := tenant.Tickets(t.Context(), []audit.ID{three, order[0]})
	if ts := tickets[three]; err != nil || len(tickets) != 1 || len(ts) != 2 || ts[0].Key != "BIAS-1" || ts[0].Sent.IsZero() || !ts[1].Sent.IsZero() || ts[1].State != "pending" || ts[0].Attempts != 2 {
		t.Errorf("%+v, %v", tickets, err)
	}
	if h, err := f.WithTenant("beta").BreachHistory(t.Context(), []audit.ID{three}); len(h) != 0 || err != nil {
		t.Errorf("another tenant's: %+v, %v", h, err)
	}
}
