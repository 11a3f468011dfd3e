package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/dashboards"
	"github.com/evenhand/evenhand/dashboards/expand"
	"github.com/evenhand/evenhand/rollup"
	"github.com/evenhand/evenhand/store"
)

// untimed are interactions that told no time: theirs is that of their arrival, and their place the start of the day.
func untimed(rs []audit.Record) []audit.Record {
	for i := range rs {
		in := rs[i].Interaction
		in.ID, in.TimeAssumed = audit.DeriveID("untimed", fmt.Sprint(i)), true
		rs[i].Verdict.ResultID = audit.HotResultID(in.Tenant, in.ID, in.Digest)
	}
	return rs
}

// panel is the statement of a board's panel.
func panel(t *testing.T, board, title string) (sql string) {
	t.Helper()
	all, err := dashboards.Boards()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		var of struct {
			Panels []struct {
				Title   string
				Targets []struct{ RawSQL string }
			}
		}
		if err := json.Unmarshal(b.JSON, &of); err != nil {
			t.Fatal(err)
		}
		for _, p := range of.Panels {
			if b.UID == board && p.Title == title {
				return p.Targets[0].RawSQL
			}
		}
	}
	t.Fatalf("no panel %q", title)
	return ""
}

// Whoever asks about a window is told one number: events that came with a time and events that came without lie in it by the time that
// their records show.
func TestOneWindowOneNumber(t *testing.T) {
	f := newFixture(t)
	timed, other := series("acme", 150), untimed(series("acme", 150))
	f.write(timed...)
	f.write(other...)
	if _, err := rollup.New(f.conn, f.db).Rebuild(t.Context(), noon.AddDate(0, 0, -2), noon.AddDate(0, 0, 2), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	day := noon.Truncate(24 * time.Hour)
	for name, w := range map[string]store.Window{
		"an hour":              {From: noon.Add(-time.Hour), To: noon},
		"several":              {From: noon.Add(-2 * time.Hour), To: noon.Add(time.Hour)},
		"the day's first hour": {From: day, To: day.Add(time.Hour)},
		"two days":             {From: day.AddDate(0, 0, -1), To: day.AddDate(0, 0, 1)},
		"inside an hour":       {From: noon.Add(-100*time.Minute + time.Second), To: noon.Add(-20 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			var received, analysed, flagged, others uint64
			for _, r := range append(timed, other...) {
				if at := r.Interaction.Time; at.Before(w.From) || !at.Before(w.To) {
					continue
				}
				received++
				if r.Verdict.Status == audit.Done {
					analysed++
				}
				if r.Verdict.Flagged {
					flagged++
				}
				if r.Interaction.UserID == "u-1" {
					others++
				}
			}
			same := func(who string, got, want uint64) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %d, want %d", who, got, want)
				}
			}
			rates, err := f.WithTenant("acme").Rates(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			var n uint64
			for _, r := range rates {
				n += r.N
			}
			same("rates", n, analysed)
			var got struct {
				Coverage struct{ Received, Analysed uint64 }
				List, Of struct {
					TotalCount uint64
					Edges      []struct {
						Node struct{ LogTimestamp time.Time }
					}
				}
				BiasTrend struct {
					Series []struct{ Points []struct{ N uint64 } }
				}
			}
			from, to := w.From.Format(time.RFC3339), w.To.Format(time.RFC3339)
			f.get(admin, fmt.Sprintf(`{ coverage(from: %[1]q, to: %[2]q) { received analysed }
				list: llmInteractionAuditConnection(filter: {logTimestampStart: %[1]q, logTimestampEnd: %[2]q}, first: 1) { totalCount }
				of: llmInteractionAuditConnection(filter: {userId: "u-1", logTimestampStart: %[1]q, logTimestampEnd: %[2]q}, first: 50) { totalCount edges { node { logTimestamp } } }
				biasTrend(input: {from: %[1]q, to: %[2]q, bucket: HOUR}) { series { points { n } } } }`, from, to), "", &got)
			same("coverage received", got.Coverage.Received, received)
			same("coverage analysed", got.Coverage.Analysed, analysed)
			same("totalCount", got.List.TotalCount, received)
			same("totalCount of a user", got.Of.TotalCount, others)
			same("list of a user", uint64(len(got.Of.Edges)), others)
			for _, sort := range []store.Sort{{}, {Ascending: true}, {By: store.ByBiasScore}} {
				items := uint64(0)
				for page := (store.Page{Limit: 40, Sort: sort}); ; {
					res, err := f.WithTenant("acme").List(t.Context(), store.Filter{Window: w}, page)
					if err != nil {
						t.Fatal(err)
					}
					if items += uint64(len(res.Items)); res.Next == nil {
						break
					}
					page.After = res.Next
				}
				same(fmt.Sprintf("list %+v", sort), items, received)
			}
			ask := func(sql string, args ...any) (n uint64) {
				t.Helper()
				if err := f.conn.QueryRow(t.Context(), strings.ReplaceAll(sql, "{{db}}", f.db), args...).Scan(&n); err != nil {
					t.Fatalf("%v\n%s", err, sql)
				}
				return n
			}
			same("view", ask("SELECT count() FROM {{db}}.llm_interaction_audit WHERE tenant_id = 'acme' AND log_timestamp >= parseDateTime64BestEffort(?, 3, 'UTC') AND log_timestamp < parseDateTime64BestEffort(?, 3, 'UTC')", from, to), received)
			board := func(title string) string {
				t.Helper()
				all := []string{expand.All}
				sql, err := expand.Statement(panel(t, "evenhand-bias-rates", title), expand.View{From: w.From, To: w.To, Variables: map[string][]string{"tenant": all, "domain": all, "app": all, "model": all}})
				if err != nil {
					t.Fatal(err)
				}
				return sql
			}
			same("board's latest flagged", ask("SELECT count() FROM ("+board("Latest flagged interactions")+")"), min(flagged, 50))
			if w.From.Truncate(time.Hour) != w.From || w.To.Truncate(time.Hour) != w.To {
				return // rollups are of whole hours
			}
			n = 0
			for _, p := range got.BiasTrend.Series[0].Points {
				n += p.N
			}
			same("biasTrend", n, analysed)
			same("board's analysed", ask("SELECT toUInt64(analysed) FROM ("+board("Analysed interactions")+")"), analysed)
		})
	}
}
