package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/jobs"
)

// testAlarmsCommands has a rate rise in the rollups of a running stack and ends the breach by hand.
func testAlarmsCommands(t *testing.T, dir string, conn driver.Conn) {
	hour := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour).Unix()
	for _, sql := range []string{
		"SELECT 'acme', 'all', toDateTime(?, 'UTC') - INTERVAL number HOUR, 'a', 'hr', 'm', 'r', '', 0, 1, 50, 50 FROM numbers(960)",
		"SELECT 'acme', 'bias', toDateTime(?, 'UTC') - INTERVAL number HOUR, 'a', 'hr', 'm', 'r', 'charter.sex', 3, 1, 0, if(number < 30, 8, number % 2) FROM numbers(960)",
	} {
		if err := conn.Exec(t.Context(), "INSERT INTO evenhand.rollup_hourly (tenant_id, dim, hour, app, domain, model, rule_set, value, severity, version, n, k) "+sql, hour); err != nil {
			t.Fatal(err)
		}
	}
	var e jobs.Entry
	if r := evenhand(t, "", "jobs", "run", jobAlarms, "--data-dir", dir, "--json"); r.code != 0 || json.Unmarshal([]byte(r.out), &e) != nil || e.Result.Figures["open_ticket"] != 1 || e.Result.Figures["cells"] != 1 {
		t.Fatalf("%+v", r)
	}
	var b audit.Breach
	if r := evenhand(t, "", "alarms", "list", "--state", "open", "--json", "--data-dir", dir); r.code != 0 || json.Unmarshal([]byte(r.out), &b) != nil || b.Kind != "charter.sex" || b.K < 100 || b.State != audit.BreachOpen {
		t.Fatalf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "list", "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, b.ID.String()) || !strings.Contains(r.out, "breached") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "decisions", "show", "breach/"+b.ID.String(), "--data-dir", dir); r.code != 0 && !strings.Contains(r.err, "not projected yet") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "resolve", b.ID.String(), "--reason", "noise", "--by", "ann", "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "is resolved (noise) by ann") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "resolve", b.ID.String(), "--reason", "fixed", "--data-dir", dir); r.code != 1 || !strings.Contains(r.err, "is resolved already (noise)") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "show", b.ID.String(), "--data-dir", dir); r.code != 0 || strings.Count(r.out, "charter.sex") != 2 || !strings.Contains(r.out, "by     2 resolved (noise): ann\n") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "show", audit.ID{1}.String(), "--data-dir", dir); r.code != 1 || !strings.Contains(r.err, "there is no breach") {
		t.Errorf("%+v", r)
	}
	from := time.Unix(hour, 0).UTC().AddDate(0, 0, -3).Format(time.RFC3339)
	var back backtested
	if r := evenhand(t, "", "alarms", "backtest", "--from", from, "--json", "--data-dir", dir); r.code != 0 || json.Unmarshal([]byte(r.out), &back) != nil || len(back.Episodes) != 1 || back.Episodes[0].Kind != "charter.sex" || back.Hours < 72 || back.Cells != 1 || back.Naive["rate > 2 x baseline"] == 0 {
		t.Errorf("%+v", r)
	}
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	write(t, strict, "version: 1\ndefaults: {off: true}\n")
	if r := evenhand(t, "", "alarms", "backtest", "--from", from, "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "\nBreaches: 1 in ") || !strings.Contains(r.out, "\nCells: 1 compared with a baseline, 0 still learning") {
		t.Errorf("%+v", r)
	}
	for _, empty := range [][]string{{"--from", from, "--policy", strict}, {"--from", "2025-01-01", "--to", "2025-02-01"}} {
		if r := evenhand(t, "", append([]string{"alarms", "backtest", "--data-dir", dir}, empty...)...); r.code != 0 || !strings.HasPrefix(r.out, "There was nothing to look at in ") || strings.Contains(r.out, "Breaches") {
			t.Errorf("%v: %+v", empty, r)
		}
	}
}

// A breach of tier policy is of findings, not of a rate: what it has not is no zero.
func TestBreachesWithoutRate(t *testing.T) {
	at := time.Date(2026, 4, 11, 12, 0, 0, 0, time.UTC)
	list := []audit.Breach{
		{ID: audit.ID{1}, Seq: 1, Tier: audit.TierPolicy, State: audit.BreachOpen, Reason: "breached", Tenant: "acme", Domain: audit.HR, Kind: "charter.sex", Opened: at, Changed: at, K: 1},
		{ID: audit.ID{2}, Seq: 1, Tier: audit.TierRate, State: audit.BreachOpen, Reason: "breached", Tenant: "acme", Domain: audit.HR, Kind: "charter.age", Opened: at, Changed: at, N: 100, Baseline: 0.01},
		{ID: audit.ID{3}, Seq: 1, Tier: audit.TierMitigation, State: audit.BreachOpen, Reason: "breached", Tenant: "acme", Domain: audit.HR, Kind: "charter.age", Opened: at, Changed: at, N: 100, K: 6, Rate: 0.06, Baseline: 0.02},
		{ID: audit.ID{4}, Seq: 1, Tier: audit.TierBlind, State: audit.BreachOpen, Reason: "breached", Tenant: "acme", Domain: audit.HR, Opened: at, Changed: at, N: 120, K: 23, Rate: 23. / 120, Baseline: 0.1},
	}
	var table, lines bytes.Buffer
	if err := errors.Join(printBreaches(&table, list, false, false), printBreaches(&lines, list, true, false)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1    open   breached  policy      acme    hr      charter.sex   2026-04-11 12:00  2026-04-11 12:00  1      –    –        –              –\n",
		"1    open   breached  ticket      acme    hr      charter.age   2026-04-11 12:00  2026-04-11 12:00  0      100  0.00 %   0.00 – 0.00 %  1.00 %\n",
		"1    open   breached  mitigation  acme    hr      charter.age   2026-04-11 12:00  2026-04-11 12:00  6      100  6.00 %   0.00 – 0.00 %  2.00 % (limit)\n",
		"1    open   breached  blind       acme    hr      not analysed  2026-04-11 12:00  2026-04-11 12:00  23     120  19.17 %  0.00 – 0.00 %  10.00 % (limit)\n", " BASELINE OR LIMIT\n",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%s\nwant %s", table.String(), want)
		}
	}
	d := json.NewDecoder(&lines)
	for i, want := range []map[string]any{
		{"n": nil, "k": 1.0, "rate": nil, "lower": nil, "upper": nil, "baseline": nil, "baseline_n": nil, "p_value": nil, "kind": "charter.sex"},
		{"n": 100.0, "k": 0.0, "rate": 0.0, "lower": 0.0, "upper": 0.0, "baseline": 0.01, "baseline_n": 0.0, "p_value": 0.0, "kind": "charter.age"},
	} {
		var got map[string]any
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if has, ok := got[key]; !ok || has != value {
				t.Errorf("line %d: %s is %v, want %v", i, key, has, value)
			}
		}
	}
}

func TestAlarmPolicyCommands(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	write(t, good, "version: 1\npolicies: [{name: hr, domain: hr, ticket: {q: 0.05}}]\n")
	write(t, bad, "version: 1\ndefaults: {ticket: {q: 2}, nonsense: 1}\n")
	if r := evenhand(t, "", "alarms", "lint", good); r.code != 0 || !strings.Contains(r.out, "OK: policies: 12 and the default") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "lint", bad); r.code != 3 || strings.Count(r.out, "FAULT "+bad) != 2 || !strings.Contains(r.out, "line 2: defaults.ticket.q: 2 is not in above 0..0.5") {
		t.Errorf("%+v", r)
	}
	r := evenhand(t, "", "alarms", "policy", "--set", "alarms.policy_file="+good)
	if r.code != 0 || !strings.Contains(r.out, "name: hr") || !strings.Contains(r.out, "  ticket:\n    q: 0.01\n") {
		t.Errorf("%+v", r)
	}
	printed := filepath.Join(dir, "printed.yaml")
	if err := os.WriteFile(printed, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := evenhand(t, "", "alarms", "lint", printed); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "policy", "--set", "alarms.policy_file="+bad); r.code != 2 || !strings.Contains(r.err, "alarms.policy_file: "+bad) || !strings.Contains(r.err, "defaults.nonsense: unknown key") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "alarms", "policy", "--set", "alarms.policy_file=/nowhere.yaml"); r.code != 2 || !strings.Contains(r.err, "alarms.policy_file: open /nowhere.yaml") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--from", "soon"}, {"--from", "2026-10-02", "--to", "2026-10-01"}} {
		cmd := alarmsBacktestCmd{From: args[1]}
		if len(args) > 2 {
			cmd.To = args[3]
		}
		if _, _, err := cmd.window(time.Now()); err == nil || !strings.HasPrefix(err.Error(), "--from: ") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// BY is the person where one decided; what processes do by themselves is theirs.
func TestDecisionsShowPersons(t *testing.T) {
	at := time.Date(2026, 4, 11, 12, 0, 0, 0, time.UTC)
	value, err := json.Marshal(audit.Breach{ID: audit.ID{1}, State: audit.BreachResolved, Reason: "noise", By: "ann"})
	if err != nil || bytes.Contains(value, []byte("changed_at")) {
		t.Errorf("a decision says when it fell before it did: %s %v", value, err)
	}
	var list []arbiter.Listed
	for _, v := range []string{string(value), `{"state":"open"}`, `{"approved":true,"state":"approved","by":"ron"}`, `7`, `{"by":7}`} {
		list = append(list, arbiter.Listed{Key: "k/1", Decision: arbiter.Decision{Seq: 1, Value: json.RawMessage(v), Proposer: "vm/1", Time: at}})
	}
	var table, lines bytes.Buffer
	if err := errors.Join(printDecisions(&table, list, false), printDecisions(&lines, list, true)); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(table.String(), "\n")
	d := json.NewDecoder(&lines)
	for i, by := range []string{"ann", "", "ron", "", ""} {
		var got struct{ By, Proposer string }
		if err := d.Decode(&got); err != nil || got.By != by || got.Proposer != "vm/1" {
			t.Errorf("%d: %+v %v", i, got, err)
		}
		if by == "" {
			by = "–"
		}
		if f := strings.Fields(rows[1+i]); len(f) < 6 || f[4] != by || f[5] != "vm/1" {
			t.Errorf("%d: %s", i, rows[1+i])
		}
	}
}

// Imports are no hours without interactions: a backtest says what of its hours could not alarm.
func TestBacktestOfImports(t *testing.T) {
	from := time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	const late = "4800 analysed interactions of these hours came over 48 hours after they happened, as imports do: they are part of baselines and never alarm\n"
	for _, tc := range []struct {
		r          backtested
		want, lack string
	}{
		{backtested{Hours: 24, Late: 4800}, "There was nothing to look at in 24 hours: no analysed interaction came in time from 2026-04-11T00:00:00Z to 2026-04-12T00:00:00Z, or the policies switch their cells off\n" + late, "hold no"},
		{backtested{Hours: 24}, "There was nothing to look at in 24 hours: the rollups hold no analysed interactions from", "48 hours"},
		{backtested{Hours: 24, Cells: 5, Late: 4800}, "Cells: 5 compared with a baseline, 0 still learning (the most in an hour)\n" + late + "\nThe same cells", "nothing to look at"},
		{backtested{Hours: 24, Cells: 5}, "Cells: 5 compared with a baseline, 0 still learning (the most in an hour)\n\nThe same cells", "48 hours"},
	} {
		tc.r.From, tc.r.To = from, from.AddDate(0, 0, 1)
		var out bytes.Buffer
		if printBacktest(&out, &tc.r); !strings.Contains(out.String(), tc.want) || strings.Contains(out.String(), tc.lack) {
			t.Errorf("%+v: %s", tc.r, out.String())
		}
	}
}
