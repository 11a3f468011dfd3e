package graph_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/rollup"
)

// breach stores a transition.
func (f *fixture) breach(id audit.ID, seq uint32, state audit.BreachState, changed time.Time, events ...audit.ID) {
	f.Helper()
	var ids []uuid.UUID
	for _, e := range events {
		ids = append(ids, uuid.UUID(e))
	}
	confirmed := time.Unix(0, 0)
	if seq > 1 {
		confirmed = noon
	}
	f.run("INSERT INTO {{db}}.breaches (tenant_id, breach_id, seq, version, state, reason, policy, tier, domain, kind, generation, opened_at, changed_at, window_from, window_to, n, k, rate, lower, upper, baseline, severity, rule_set, `top_rules.rule`, `top_rules.interactions`, event_ids, confirmed_at, `split.of`, `split.value`, `split.interactions`) "+
		"VALUES ('acme', ?, ?, 1, ?, 'breached', 'default', 'ticket', 'hr', 'charter.sex', 1, ?, ?, ?, ?, 100, 7, 0.07, 0.03, 0.14, 0.01, 3, 'r1', ['sex.capability'], [7], ?, ?, ['model'], ['m-1'], [6])",
		uuid.UUID(id), seq, string(state), noon, changed, noon.Add(-time.Hour), noon, ids, confirmed)
}

const breachFields = `id state reason policy tier domain kind openedAt changedAt windowFrom windowTo n k rate lower upper baseline severity ruleSet confirmedAt split { of value interactions }
	topRules { rule interactions } interactions { id originalQuery findings { evidence } } history { seq state reason at n k rate } tickets { id target action state attempts key url createdAt sentAt }`

// A page of breaches costs the same number of statements however many there are, with all that belongs to them.
func TestBreaches(t *testing.T) {
	f := newFixture(t)
	records := series("acme", 30)
	f.write(records...)
	id := func(n int) audit.ID { return audit.DeriveID("breach", fmt.Sprint(n)) }
	for n := range 3 {
		f.breach(id(n), 1, audit.BreachOpen, noon.Add(time.Duration(n)*time.Minute), records[n].Interaction.ID, records[n+1].Interaction.ID, audit.NewID(noon))
	}
	f.breach(id(0), 2, audit.BreachMitigated, noon.Add(time.Hour), records[0].Interaction.ID)
	f.run("INSERT INTO {{db}}.tickets (tenant_id, breach_id, ticket_id, version, seq, target, action, state, attempts, remote_key, url, created_at, sent_at) VALUES ('acme', ?, ?, 1, 1, 'linear', 'create', 'sent', 1, 'BIAS-12', 'https://example.org/BIAS-12', ?, ?), ('acme', ?, ?, 1, 2, 'linear', 'comment', 'pending', 0, '', '', ?, 0)",
		uuid.UUID(id(0)), uuid.UUID(id(10)), noon, noon, uuid.UUID(id(0)), uuid.UUID(id(11)), noon.Add(time.Minute))

	type node struct {
		ID, State, ChangedAt, Severity string
		Rate                           float64
		TopRules                       []struct{ Interactions int }
		ConfirmedAt                    *string
		Split                          []struct {
			Of, Value    string
			Interactions int
		}
		Interactions []struct{ ID, OriginalQuery string }
		History      []struct {
			Seq   int
			State string
		}
		Tickets []struct {
			State    string
			Key, URL *string
			SentAt   *string
		}
	}
	var got struct {
		Breaches struct {
			Nodes    []node
			PageInfo struct {
				HasNextPage bool
				EndCursor   *string
			}
		}
		Breach *node
	}
	f.get(admin, `{ breaches { nodes { `+breachFields+` } pageInfo { hasNextPage endCursor } } }`, "", &got)
	ns := got.Breaches.Nodes
	if len(ns) != 3 || ns[0].ID != id(0).String() || ns[1].ID != id(2).String() || got.Breaches.PageInfo.HasNextPage || got.Breaches.PageInfo.EndCursor != nil {
		t.Fatalf("%+v", got)
	}
	if n := ns[0]; n.State != "mitigated" || n.ChangedAt != noon.Add(time.Hour).Format("2006-01-02T15:04:05.000Z") || n.Severity != "HIGH" || n.Rate != 0.07 || n.TopRules[0].Interactions != 7 ||
		len(n.Interactions) != 1 || n.Interactions[0].OriginalQuery != "Should we hire her?" || len(n.History) != 2 || n.History[0].Seq != 2 || n.History[1].State != "open" ||
		len(n.Tickets) != 2 || *n.Tickets[0].Key != "BIAS-12" || n.Tickets[0].SentAt == nil || n.Tickets[1].Key != nil || n.Tickets[1].SentAt != nil {
		t.Errorf("%+v", n)
	}
	if n := ns[0]; n.ConfirmedAt == nil || *n.ConfirmedAt != noon.Format("2006-01-02T15:04:05.000Z") || len(n.Split) != 1 || n.Split[0].Value != "m-1" || n.Split[0].Interactions != 6 || ns[1].ConfirmedAt != nil {
		t.Errorf("%+v", n)
	}
	if n := ns[1]; len(n.Interactions) != 2 || n.Interactions[0].ID != records[2].Interaction.ID.String() || len(n.Tickets) != 0 || len(n.History) != 1 {
		t.Errorf("examples that are gone are left out, the rest keeps its order: %+v", n)
	}
	one := f.statements(`{ breaches(first: 1) { nodes { ` + breachFields + ` } } }`)
	if three := f.statements(`{ breaches { nodes { ` + breachFields + ` } } }`); three != one {
		t.Errorf("%d statements for three breaches, %d for one", three, one)
	}
	if n := f.statements(`{ breaches { nodes { id state n k } } }`); n != 1 {
		t.Errorf("%d statements for what a breach holds itself", n)
	}
	f.get(admin, `{ breaches(state: OPEN, domain: "hr", kind: "charter.sex", first: 1) { nodes { id } pageInfo { hasNextPage endCursor } } }`, "", &got)
	if len(got.Breaches.Nodes) != 1 || got.Breaches.Nodes[0].ID != id(2).String() || !got.Breaches.PageInfo.HasNextPage {
		t.Fatalf("%+v", got.Breaches)
	}
	f.get(admin, `query($c: String) { breaches(state: OPEN, domain: "hr", kind: "charter.sex", first: 1, after: $c) { nodes { id } pageInfo { hasNextPage } } }`, fmt.Sprintf(`{"c":%q}`, *got.Breaches.PageInfo.EndCursor), &got)
	if len(got.Breaches.Nodes) != 1 || got.Breaches.Nodes[0].ID != id(1).String() || got.Breaches.PageInfo.HasNextPage {
		t.Errorf("%+v", got.Breaches)
	}
	if f.get(admin, `query($id: ID!) { breach(id: $id) { id state history { seq } interactions { id } } }`, fmt.Sprintf(`{"id":%q}`, id(0)), &got); got.Breach.State != "mitigated" || len(got.Breach.History) != 2 || len(got.Breach.Interactions) != 1 {
		t.Errorf("%+v", got.Breach)
	}
	if a := f.ask(admin, `{ breaches(after: "x") { nodes { id } } }`, ""); a.codes() != "BAD_USER_INPUT" {
		t.Errorf("%+v", a.Errors)
	}
}

func TestFigures(t *testing.T) {
	f := newFixture(t)
	records := series("acme", 70)
	for _, i := range []int{0, 5} { // of general
		records[i].Interaction.DomainGiven = "legal"
	}
	f.write(records...)
	f.write(series("beta", 3)...)
	if given := f.one(admin, records[0].Interaction.ID, "domain domainGiven"); given["domain"] != "general" || given["domainGiven"] != "legal" {
		t.Errorf("a domain of one's own: %v", given)
	}
	var analysed, failed, detected int
	for _, r := range records {
		if r.Verdict.Status == audit.Failed {
			failed++
		} else {
			analysed++
		}
		if r.Verdict.Detected {
			detected++
		}
	}
	var got struct {
		Coverage struct {
			From, To         string
			Analysed, Failed int
			Received         int
			Pending          int
			Abandoned        int
			WithoutResponse  int
			WithoutContent   int
			OtherLanguages   int
			OtherDomains     int
			Rejected         int
			Share            *float64
		}
		Empty     struct{ Share *float64 }
		BiasTrend struct {
			From, To string
			Series   []struct {
				Group  *string
				Points []struct {
					At    string
					N, K  int
					Rate  *float64
					Upper *float64
				}
			}
		}
		BiasTaxonomy []struct {
			ID            int
			BiasKey       string
			SeverityLevel int
		}
	}
	f.get(admin, `{ coverage { from to received analysed failed pending abandoned withoutResponse withoutContent otherLanguages otherDomains rejected share } empty: coverage(from: "2021-01-01T00:00:00Z", to: "2021-01-02T00:00:00Z") { share } biasTaxonomy { id biasKey severityLevel } }`, "", &got)
	if c := got.Coverage; c.Analysed != analysed || c.Failed != failed || *c.Share != float64(analysed)/70 || c.To <= c.From || got.Empty.Share != nil {
		t.Errorf("coverage %+v of %d, %d failed", c, analysed, failed)
	} else if c.OtherDomains != 2 {
		t.Errorf("%d of other domains, want 2", c.OtherDomains)
	} else if c.Received != c.Analysed+c.Failed+c.Pending+c.Abandoned+c.WithoutResponse+c.WithoutContent {
		t.Errorf("coverage %+v does not add up", c)
	}
	if len(got.BiasTaxonomy) < 16 {
		t.Errorf("%d keys in the taxonomy", len(got.BiasTaxonomy))
	}

	if _, err := rollup.New(f.conn, f.db).Rebuild(t.Context(), noon.AddDate(0, 0, -3), noon.AddDate(0, 0, 2), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	trend := func(input string) {
		t.Helper()
		f.get(admin, `query($in: BiasTrendInput!) { biasTrend(input: $in) { from to series { group points { at n k rate lower upper } } } }`, `{"in":`+input+`}`, &got)
	}
	from, to := noon.AddDate(0, 0, -2).Truncate(24*time.Hour), noon.AddDate(0, 0, 1).Truncate(24*time.Hour)
	ends := fmt.Sprintf(`"from":%q,"to":%q`, from.Format(time.RFC3339), to.Format(time.RFC3339))
	trend(`{` + ends + `}`)
	if s := got.BiasTrend.Series; len(s) != 1 || s[0].Group != nil || len(s[0].Points) != 3 || s[0].Points[2].N != analysed || s[0].Points[2].K != detected || s[0].Points[0].Rate != nil || *s[0].Points[2].Rate != float64(detected)/float64(analysed) {
		b, _ := json.Marshal(got.BiasTrend)
		t.Errorf("trend %s, want %d of %d", b, detected, analysed)
	}
	trend(`{` + ends + `,"groupBy":"DOMAIN","measure":"FLAGGED","bucket":"DAY"}`)
	if s := got.BiasTrend.Series; len(s) != len(audit.Domains) || s[0].Group == nil {
		t.Errorf("by domain: %+v", s)
	}
	trend(`{` + ends + `,"groupBy":"KIND"}`)
	if s := got.BiasTrend.Series; len(s) != 2 || *s[0].Group != "charter.sex" || s[0].Points[2].K != detected {
		t.Errorf("by kind: %+v", s)
	}
	for _, measure := range []string{"FLAGGED", "UNSAFE", "GATED"} { // would be said of what is something else
		if a := f.ask(admin, `{ biasTrend(input: {groupBy: KIND, measure: `+measure+`}) { series { group } } }`, ""); a.codes() != "BAD_USER_INPUT" {
			t.Errorf("%s by kind: %s", measure, a.codes())
		}
	}
}
