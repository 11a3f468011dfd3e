package store_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

func TestFigures(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	es := series("acme", 40)
	es[1].status, es[2].status, es[3].status = audit.Failed, audit.Skipped, audit.Partial
	es[5].reason, es[6].reason, es[7].reason = audit.OtherLanguage, audit.OtherLanguage, "timeout"
	es[8].review, es[12].review, es[13].review = "dismissed", "confirmed", "confirmed" // 13 has no finding
	f.write(es...)
	f.write(es[:20]...) // a second write of the same range
	f.write(series("beta", 4)...)
	f.reject(0, 77)
	f.insert("rejected", row{"topic": "evenhand.judge", "tenant_id": "acme", "version": uint64(1), "broker_ts": noon, "event_day": noon, "reason": "judge_error"}) // no interaction
	week := store.Window{From: noon.Add(-3 * 24 * time.Hour), To: noon.Add(24 * time.Hour)}

	t.Run("rates", func(t *testing.T) {
		rates, err := f.WithTenant("acme").Rates(t.Context(), week)
		if err != nil {
			t.Fatal(err)
		}
		got := map[audit.Domain][3]uint64{}
		for _, r := range rates {
			var sex uint64
			for _, k := range r.Kinds {
				if k.Ground == audit.Sex {
					sex = k.K
				}
			}
			got[r.Domain] = [3]uint64{r.N, r.Detected.K, sex}
		}
		// 8 events a domain; every fourth event is biased; events 1 (hr) and 2 (finance) were not analysed,
		// and bias of event 8 (healthcare) was dismissed.
		want := map[audit.Domain][3]uint64{audit.General: {8, 2, 2}, audit.HR: {7, 2, 2}, audit.Finance: {7, 2, 2}, audit.Healthcare: {8, 1, 1}, audit.Education: {8, 2, 2}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("n, detected, sex (-want +got):\n%s", d)
		}
		if r := rates[0].Detected; r != store.RateOf(2, 8) {
			t.Errorf("rate %+v", r)
		}
		all, err := f.AllTenants().Rates(t.Context(), week)
		if err != nil || all[2].N != 9 {
			t.Errorf("all tenants: %+v, %v", all, err)
		}
		none, err := f.WithTenant("acme").Rates(t.Context(), store.Window{From: noon.Add(time.Hour), To: noon.Add(2 * time.Hour)})
		if err != nil || len(none) != 0 {
			t.Errorf("empty window: %+v, %v", none, err)
		}
	})
	t.Run("top findings", func(t *testing.T) {
		top, err := f.WithTenant("acme").TopFindings(t.Context(), week, 5)
		if err != nil || len(top) != 1 {
			t.Fatalf("%+v, %v", top, err)
		}
		if x := top[0]; x.Rule != "sex.capability" || x.Interactions != 9 || x.Findings != 9 || x.Severity != audit.High || x.Evidence != "women are ba" || x.Tenant != "acme" {
			t.Errorf("%+v", x)
		}
		edge, err := f.WithTenant("acme").TopFindings(t.Context(), store.Window{From: noon.Add(-7 * time.Minute), To: noon}, 5)
		if err != nil || len(edge) != 1 || edge[0].Interactions != 1 { // events 1 to 7: only the fourth is biased
			t.Errorf("inside a day: %+v, %v", edge, err)
		}
		if _, err := f.WithTenant("acme").TopFindings(t.Context(), week, 0); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("limit 0: %v", err)
		}
	})
	t.Run("coverage", func(t *testing.T) {
		c, err := f.WithTenant("acme").Coverage(t.Context(), week)
		want := store.Coverage{Received: 40, Analysed: 38, Partial: 1, Failed: 1, Skipped: 1, OtherLanguages: 2, Dismissed: 1, Unfound: 1, Rejected: 1}
		if err != nil || c != want {
			t.Errorf("got %+v, %v; want %+v", c, err, want)
		}
	})
}

// Figures say which rule sets they are of: what was not analysed was judged by none.
func TestRuleSetsOfFigures(t *testing.T) {
	f := newFixture(t)
	es := series("acme", 6)
	es[5].status = audit.Failed
	f.write(es...)
	f.write(series("beta", 2)...)
	f.exec("ALTER TABLE {{db}}.audit_current UPDATE rule_set = 'r2' WHERE tenant_id = 'acme' AND event_id = toUUID(?) SETTINGS mutations_sync = 2", es[1].id.String())
	all := store.Window{From: noon.Add(-24 * time.Hour), To: noon.Add(24 * time.Hour)}
	for name, tc := range map[string]struct {
		figures *store.Figures
		w       store.Window
		want    map[string]uint64
	}{
		"of a tenant":  {&f.WithTenant("acme").Figures, all, map[string]uint64{"r1": 4, "r2": 1}},
		"of all":       {f.AllTenants(), all, map[string]uint64{"r1": 6, "r2": 1}},
		"of one event": {&f.WithTenant("acme").Figures, store.Window{From: es[1].at, To: es[1].at.Add(time.Millisecond)}, map[string]uint64{"r2": 1}},
		"of none":      {f.AllTenants(), store.Window{From: noon.Add(time.Hour), To: noon.Add(2 * time.Hour)}, map[string]uint64{}},
	} {
		sets, err := tc.figures.RuleSets(t.Context(), tc.w)
		got := map[string]uint64{}
		for i, u := range sets {
			if got[u.RuleSet] = u.N; u.First.Before(tc.w.From) || u.Last.Before(u.First) || !u.Last.Before(tc.w.To) || i > 0 && u.First.Before(sets[i-1].First) {
				t.Errorf("%s: %+v", name, sets)
			}
		}
		if err != nil || !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

// Evidence of figures stands in reports: personal data in it is masked, whichever rule shows it.
func TestEvidenceOfFiguresIsMasked(t *testing.T) {
	f := newFixture(t)
	e := series("acme", 1)[0]
	e.response = "Zoë’s password: Winter-1987? Write to zoe@example.org, she is too old."
	at := func(part string) audit.Span {
		from := uint32(utf8.RuneCountInString(e.response[:strings.Index(e.response, part)]))
		return audit.Span{Start: from, End: from + uint32(utf8.RuneCountInString(part))}
	}
	secret, mail := at("Winter-1987?"), at("zoe@example.org")
	e.findings = []audit.Finding{
		{Kind: "safety.pii_leakage", Rule: "pii_leakage.password", Severity: audit.High, Side: audit.Output, Span: secret, Entity: "CREDENTIAL"},
		{Kind: "pii.email", Rule: "pii.email", Severity: audit.Low, Side: audit.Output, Span: mail, Entity: "EMAIL"},
		{Kind: "pii.other", Rule: "pii.other", Severity: audit.Low, Side: audit.Output, Span: audit.Span{Start: mail.Start + 4, End: mail.End}, Entity: "HOST"},
		{Kind: "pii.email", Rule: "pii.email", Severity: audit.Low, Side: audit.Input, Span: audit.Span{End: 9}, Entity: "EMAIL"}, // of the prompt
		{Kind: "pii.own", Rule: "pii.own", Severity: audit.Low, Side: audit.Output, Span: at("Zoë")},
		{Kind: "charter.age", Ground: audit.Age, Rule: "age.clause", Severity: audit.Medium, Side: audit.Output, Span: audit.Span{Start: at("password").Start, End: at("too old").End}},
	}
	f.write(e)
	top, err := f.WithTenant("acme").TopFindings(t.Context(), store.Window{From: noon.Add(-24 * time.Hour), To: noon.Add(24 * time.Hour)}, 10)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range top {
		got[x.Rule] = x.Evidence
	}
	want := map[string]string{"pii_leakage.password": "[CREDENTIAL]", "pii.email": "[EMAIL]", "pii.other": "[EMAIL]", "pii.own": "[PERSONAL_DATA]", "age.clause": "password: [CREDENTIAL] Write to [EMAIL], she is too old"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestSQL(t *testing.T) {
	f := newFixture(t)
	run := func(write func(b *bytes.Buffer) error) string {
		t.Helper()
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const query = `SELECT 'a\tb' AS s, 3 AS n, CAST(NULL AS Nullable(Int32)) AS no, CAST(7 AS Nullable(Int32)) AS yes, [1, 2]::Array(UInt8) AS small, ['x'] AS names,
		toDecimal64(0.86, 2) AS d, toUUID('01890000-0000-7000-8000-000000000001') AS id, toDateTime64('2026-01-02 03:04:05.678', 3, 'UTC') AS ts, true AS yep, unhex('ff00') AS raw;`
	got := run(func(b *bytes.Buffer) error { return store.WriteJSON(t.Context(), b, f.conn, query) })
	want := `{"s":"a\tb","n":3,"no":null,"yes":7,"small":[1,2],"names":["x"],"d":0.86,"id":"01890000-0000-7000-8000-000000000001","ts":"2026-01-02T03:04:05.678Z","yep":true,"raw":"ff00"}` + "\n"
	if got != want {
		t.Errorf("JSON\n%s\n%s", got, want)
	}
	const noNumbers = `SELECT 1 AS a, 0/0 AS r, -1/0 AS i, [0/0, 1.5] AS fs, CAST(0/0 AS Nullable(Float32)) AS n, map('x', 1/0, 'y', 2) AS m, [[1/0]] AS d, (0/0, 'u') AS t, [CAST(NULL AS Nullable(Float64)), 1/0] AS p,
		[toUUID('01890000-0000-7000-8000-000000000001')] AS ids, 2 AS z`
	got = run(func(b *bytes.Buffer) error { return store.WriteJSON(t.Context(), b, f.conn, noNumbers) })
	want = `{"a":1,"r":null,"i":null,"fs":[null,1.5],"n":null,"m":{"x":null,"y":2},"d":[[null]],"t":[null,"u"],"p":[null,null],"ids":["01890000-0000-7000-8000-000000000001"],"z":2}` + "\n"
	if got != want {
		t.Errorf("JSON of what is no number\n%s\n%s", got, want)
	}
	got = run(func(b *bytes.Buffer) error { return store.WriteTSV(t.Context(), b, f.conn, query) })
	want = "s\tn\tno\tyes\tsmall\tnames\td\tid\tts\tyep\traw\n" + `a\tb	3	\N	7	[1,2]	["x"]	0.86	01890000-0000-7000-8000-000000000001	2026-01-02T03:04:05.678Z	true	ff00` + "\n"
	if got != want {
		t.Errorf("TSV\n%s\n%s", got, want)
	}
	if err := store.SQL(t.Context(), f.conn, "SELEC 1", nil); err == nil || !strings.Contains(err.Error(), "store: sql") {
		t.Errorf("bad statement: %v", err)
	}
	stop := errors.New("enough")
	seen := 0
	err := store.SQL(t.Context(), f.conn, "SELECT number FROM system.numbers LIMIT 100000", func([]string, []any) error {
		if seen++; seen == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 3 {
		t.Errorf("after %d rows: %v", seen, err)
	}
}
