package graph_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

// sorts are the orders, each with the value that it goes by.
var sorts = map[string]func(*audit.Record) int64{
	"LOG_TIMESTAMP":         func(r *audit.Record) int64 { return r.Interaction.Time.UnixMilli() },
	"BIAS_SCORE":            func(r *audit.Record) int64 { return int64(r.Verdict.BiasSum) },
	"BIAS_CONFIDENCE_SCORE": func(r *audit.Record) int64 { return int64(r.Verdict.Confidence) },
	"SEVERITY":              func(r *audit.Record) int64 { return int64(r.Verdict.MaxSeverity) },
	"FINDINGS":              func(r *audit.Record) int64 { return int64(len(r.Verdict.Findings)) },
	"SAFETY":                func(r *audit.Record) int64 { return int64(r.Verdict.SafetySum) },
	"TOXICITY":              func(r *audit.Record) int64 { return int64(r.Verdict.Score(audit.ScoreToxicity)) },
	"PII":                   func(r *audit.Record) int64 { return int64(r.Verdict.Score(audit.ScorePII)) },
	"HALLUCINATION":         func(r *audit.Record) int64 { return int64(r.Verdict.Score(audit.ScoreHallucination)) },
}

const pageOp = `query($first: Int, $after: String, $order: AuditOrder, $f: LlmInteractionAuditFilterInput) {
	llmInteractionAuditConnection(first: $first, after: $after, orderBy: $order, filter: $f) { edges { cursor node { id } } pageInfo { hasNextPage endCursor } }
}`

// page is a page of a connection.
type page struct {
	LlmInteractionAuditConnection struct {
		Edges []struct {
			Cursor string
			Node   struct{ ID string }
		}
		PageInfo struct {
			HasNextPage bool
			EndCursor   *string
		}
	}
}

// turn reads the page behind a cursor.
func (f *fixture) turn(first int, after *string, order map[string]string) (ids []string, p page) {
	f.Helper()
	vars, err := json.Marshal(map[string]any{"first": first, "after": after, "order": order})
	if err != nil {
		f.Fatal(err)
	}
	f.get(admin, pageOp, string(vars), &p)
	for _, e := range p.LlmInteractionAuditConnection.Edges {
		ids = append(ids, e.Node.ID)
	}
	return ids, p
}

// Every order holds over all pages, while rows come in that were not there at the first page.
func TestCursors(t *testing.T) {
	f := newFixture(t)
	records := series("acme", 61)
	f.write(records...)
	f.write(series("beta", 10)...)
	newer := 0
	for field, value := range sorts {
		for direction, sign := range map[string]int{"DESC": -1, "ASC": 1} {
			want := slices.Clone(records)
			slices.SortStableFunc(want, func(a, b audit.Record) int {
				if field == "LOG_TIMESTAMP" {
					return sign * a.Interaction.Time.Compare(b.Interaction.Time)
				}
				return cmp.Or(sign*cmp.Compare(value(&a), value(&b)), b.Interaction.Time.Compare(a.Interaction.Time))
			})
			var got []string
			var after *string
			for n := 0; ; n++ {
				ids, p := f.turn(20, after, map[string]string{"field": field, "direction": direction})
				got = append(got, ids...)
				info := p.LlmInteractionAuditConnection.PageInfo
				if after = info.EndCursor; !info.HasNextPage {
					break
				}
				if n == 0 && (field == "LOG_TIMESTAMP" || field == "BIAS_SCORE") && direction == "DESC" { // newer, so ahead of the cursor
					late := sample("acme", 1000+newer)
					late.Interaction.Time = noon.Add(time.Hour + time.Duration(newer)*time.Minute)
					late.Verdict.BiasSum = 3_000_000
					f.write(late)
					records, newer = append([]audit.Record{late}, records...), newer+1
				}
			}
			for i, r := range want {
				if i >= len(got) || got[i] != r.Interaction.ID.String() {
					t.Errorf("%s %s: place %d of %d, %d read", field, direction, i, len(want), len(got))
					break
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s %s: %d read, want %d", field, direction, len(got), len(want))
			}
		}
	}
}

// A page that ends with the list says so; each edge's cursor goes on behind it.
func TestPageInfo(t *testing.T) {
	f := newFixture(t)
	f.write(series("acme", 6)...)
	ids, p := f.turn(6, nil, nil)
	if info := p.LlmInteractionAuditConnection.PageInfo; len(ids) != 6 || info.HasNextPage || *info.EndCursor != p.LlmInteractionAuditConnection.Edges[5].Cursor {
		t.Errorf("%+v", p)
	}
	third := p.LlmInteractionAuditConnection.Edges[2].Cursor
	if behind, p := f.turn(2, &third, nil); !slices.Equal(behind, ids[3:5]) || !p.LlmInteractionAuditConnection.PageInfo.HasNextPage {
		t.Errorf("behind the third: %v of %v", behind, ids)
	}
	last := p.LlmInteractionAuditConnection.Edges[5].Cursor
	if none, p := f.turn(2, &last, nil); len(none) != 0 || p.LlmInteractionAuditConnection.PageInfo.HasNextPage || p.LlmInteractionAuditConnection.PageInfo.EndCursor != nil {
		t.Errorf("behind the last: %+v", p)
	}
	for _, other := range []string{`{"after":%q,"order":{"field":"SEVERITY"}}`, `{"after":%q,"f":{"flagged":true}}`} {
		if a := f.ask(admin, pageOp, fmt.Sprintf(other, third)); a.codes() != "BAD_USER_INPUT" {
			t.Errorf("a cursor of another list: %s %+v", a.Data, a.Errors)
		}
	}
	stranger := *admin
	stranger.Tenant = "beta"
	if a := f.ask(&stranger, pageOp, fmt.Sprintf(`{"after":%q}`, third)); a.codes() != "BAD_USER_INPUT" {
		t.Errorf("a cursor of another tenant: %s %+v", a.Data, a.Errors)
	}
}

// Offsets skip, newest first; nothing behind the end.
func TestOffsets(t *testing.T) {
	f := newFixture(t)
	records := series("acme", 60)
	f.write(records...)
	for _, tc := range []struct {
		pagination string
		from, to   int
	}{
		{"", 0, 50}, {"(pagination: {})", 0, 50}, {"(pagination: null)", 0, 50}, {"(pagination: {limit: null, offset: null})", 0, 50}, {"(pagination: {limit: 7})", 0, 7}, {"(pagination: {limit: 200})", 0, 60},
		{"(pagination: {offset: 13})", 13, 60}, {"(pagination: {limit: 10, offset: 45})", 45, 55}, {"(pagination: {offset: 60})", 60, 60}, {"(pagination: {offset: 10000})", 60, 60},
	} {
		var got struct{ LlmInteractionAudits []struct{ ID string } }
		f.get(as(auth.Viewer), "{ llmInteractionAudits"+tc.pagination+" { id } }", "", &got)
		want := records[tc.from:tc.to]
		if len(got.LlmInteractionAudits) != len(want) {
			t.Errorf("%s: %d, want %d", tc.pagination, len(got.LlmInteractionAudits), len(want))
			continue
		}
		for i, r := range want {
			if got.LlmInteractionAudits[i].ID != r.Interaction.ID.String() {
				t.Errorf("%s: another one at %d", tc.pagination, i)
			}
		}
	}
}

// Ends of the window are exact to the millisecond: the start belongs to it, the end does not.
func TestWindowEnds(t *testing.T) {
	f := newFixture(t)
	r := sample("acme", 0)
	f.write(r)
	at := r.Interaction.Time
	for _, tc := range []struct {
		from, to time.Duration
		want     int
	}{{0, time.Hour, 1}, {time.Nanosecond, time.Hour, 0}, {time.Millisecond, time.Hour, 0}, {-time.Hour, 0, 0}, {-time.Hour, time.Nanosecond, 1}, {-time.Hour, time.Millisecond, 1}, {0, 0, 0}} {
		var got struct{ LlmInteractionAudits []struct{ ID string } }
		f.get(admin, `query($f: LlmInteractionAuditFilterInput) { llmInteractionAudits(filter: $f) { id } }`,
			fmt.Sprintf(`{"f":{"logTimestampStart":%q,"logTimestampEnd":%q}}`, at.Add(tc.from).Format(time.RFC3339Nano), at.Add(tc.to).Format(time.RFC3339Nano)), &got)
		if len(got.LlmInteractionAudits) != tc.want {
			t.Errorf("[%v, %v): %d, want %d", tc.from, tc.to, len(got.LlmInteractionAudits), tc.want)
		}
	}
	old := r
	in := *r.Interaction
	in.ID, in.Time = audit.NewID(at), at.AddDate(0, 0, -10)
	old.Interaction = &in
	f.write(old)
	var got struct{ LlmInteractionAudits []struct{ ID string } }
	if f.get(admin, `{ llmInteractionAudits { id } }`, "", &got); len(got.LlmInteractionAudits) != 1 {
		t.Errorf("without a start the last seven days are shown, not %d", len(got.LlmInteractionAudits))
	}
}

// Who has no such interaction is told that there is none, whoever else has one.
func TestUnknown(t *testing.T) {
	f := newFixture(t)
	f.write(sample("beta", 0))
	for _, id := range []string{sample("beta", 0).Interaction.ID.String(), audit.NewID(noon).String()} {
		for _, query := range []string{`query($id: ID!) { llmInteractionAudit(id: $id) { id } }`, `query($id: ID!) { breach(id: $id) { id } }`} {
			a := f.ask(admin, query, fmt.Sprintf(`{"id":%q}`, id))
			if len(a.Errors) > 0 || string(a.Data) != `{"llmInteractionAudit":null}` && string(a.Data) != `{"breach":null}` {
				t.Errorf("%s: %s %+v", id, a.Data, a.Errors)
			}
		}
	}
}
