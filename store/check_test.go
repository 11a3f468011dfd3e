package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// sound writes 20 events over two partitions with their markers, one rejected message and one control
// record: nothing is wrong with it.
func sound(f *fixture) []event {
	es := series("acme", 20)
	for i := range es {
		es[i].part, es[i].offset = int32(i%2), int64(i/2)
	}
	f.write(es...)
	f.reject(0, 10)
	f.mark(0, 1, 0, 5, 6, 0)
	f.mark(0, 1, 6, 11, 4, 1) // offset 11 is a control record
	f.mark(1, 1, 0, 9, 10, 0)
	return es
}

func (f *fixture) reject(part int32, offset int64) {
	f.insert("rejected", row{"topic": "llm.interactions", "partition": part, "offset": offset, "version": uint64(1), "broker_ts": noon,
		"tenant_id": "acme", "event_day": noon, "reason": "json", "detail": "line 1: unexpected end"})
}

func (f *fixture) check() *store.Report {
	f.Helper()
	r, err := f.Check(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return r
}

func codes(r *store.Report) string {
	var out []string
	for _, x := range r.Faults {
		out = append(out, string(x.Code))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func TestCheckOfASoundStore(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	es := sound(f)
	r := f.check()
	if !r.OK() || r.Rows != 20 || r.Interactions != 20 || r.Current != 20 || r.Verdicts != 20 || r.Rejected != 1 || r.Duplicates != 0 {
		t.Fatalf("%+v", r)
	}

	// A range written twice, as after a crash before its marker, changes nothing.
	f.write(es...)
	if r := f.check(); !r.OK() || r.Interactions != 20 || r.Duplicates != 0 {
		t.Errorf("written twice: %+v", r)
	}
	// The same event at another place is a duplicate, not a fault.
	again := es[3]
	again.part, again.offset, again.broker = 1, 10, again.broker.Add(time.Hour)
	f.write(again)
	f.mark(1, 1, 10, 10, 1, 0)
	if r := f.check(); !r.OK() || r.Duplicates != 1 || r.Rows != 21 || r.Interactions != 20 {
		t.Errorf("delivered twice: %+v", r)
	}
	// Other content under the same id is counted as a conflict.
	other := es[4]
	other.content, other.part, other.offset = "other", 1, 11
	f.write(other)
	f.mark(1, 2, 11, 11, 1, 0)
	if r := f.check(); !r.OK() || r.IDConflicts != 1 || r.Duplicates != 1 || r.Interactions != 21 {
		t.Errorf("id conflict: %+v", r)
	}
	// What no marker covers yet is in flight, and may lack what follows.
	late := sample("acme", 50)
	late.part, late.offset = 0, 12
	f.insert("interactions", late.factRow())
	if r := f.check(); !r.OK() || r.InFlight != 1 {
		t.Errorf("in flight: %+v", r)
	}
	// A second generation wrote a part again: the highest wins and the rest is counted from the tables.
	f.mark(1, 3, 4, 7, 4, 0)
	if r := f.check(); !r.OK() || r.Rows != 22 || !r.Partitions[1].Recounted {
		t.Errorf("generations: %+v", r)
	}
	// Offsets that the log no longer held are covered by a marker that says so.
	f.insert("ingest_batches", row{"topic": "llm.interactions", "partition": int32(1), "lo": int64(12), "hi": int64(19), "generation": int32(3), "reason": "gap"})
	if r := f.check(); !r.OK() || r.Partitions[1].Lost != 8 {
		t.Errorf("lost offsets: %+v", r)
	}
	b, err := json.Marshal(r)
	if err != nil || strings.Contains(string(b), "women") {
		t.Errorf("report %s, %v", b, err)
	}
}

func TestCheckFindsEachFault(t *testing.T) {
	for _, tc := range []struct {
		name  string
		plant func(f *fixture, es []event)
		want  store.FaultCode
		count uint64
	}{
		{"gap", func(f *fixture, _ []event) { f.mark(1, 1, 15, 15, 0, 0) }, store.FaultGap, 5},
		{"overlap inside a generation", func(f *fixture, _ []event) { f.mark(0, 1, 11, 14, 0, 0) }, store.FaultOverlap, 1},
		{"marker that does not add up", func(f *fixture, _ []event) {
			f.insert("ingest_batches", row{"topic": "llm.interactions", "partition": int32(1), "lo": int64(10), "hi": int64(12), "generation": int32(1), "rows": uint32(1)})
		}, store.FaultMarkerSum, 1},
		{"more rows than the marker says", func(f *fixture, _ []event) { f.mark(1, 2, 0, 9, 9, 0) }, store.FaultRowsMissing, 1},
		{"rejected message without its row", func(f *fixture, _ []event) { f.mark(1, 1, 10, 10, 0, 1) }, store.FaultRejectedMissing, 1},
		{"offset stored and rejected", func(f *fixture, es []event) {
			e := sample("acme", 30)
			e.part, e.offset = 0, 10
			f.write(e)
			f.mark(0, 2, 10, 11, 1, 1)
		}, store.FaultOffsetTwice, 1},
		{"verdict missing", func(f *fixture, es []event) {
			f.exec("DELETE FROM {{db}}.verdicts WHERE event_id = ?", es[5].id.String())
		}, store.FaultVerdictMissing, 1},
		{"wrong verdict", func(f *fixture, es []event) {
			wrong := es[1]
			wrong.flagged, wrong.broker = true, wrong.broker.Add(-time.Second)
			f.insert("verdicts", wrong.verdictRow())
		}, store.FaultCurrentUnequal, 1},
		{"flat row missing", func(f *fixture, es []event) {
			f.exec("DELETE FROM {{db}}.audit_current WHERE event_id = ?", es[5].id.String())
		}, store.FaultCurrentMissing, 1},
		{"flat row without facts", func(f *fixture, _ []event) {
			r := sample("acme", 40).flatRow()
			r["written_at"] = time.Now().Add(-time.Hour)
			f.insert("audit_current", r)
		}, store.FaultCurrentOrphan, 1},
		{"verdict without facts", func(f *fixture, _ []event) {
			r := sample("acme", 40).verdictRow()
			r["written_at"] = time.Now().Add(-time.Hour)
			f.insert("verdicts", r)
		}, store.FaultVerdictOrphan, 1},
		{"flat row unequal", func(f *fixture, es []event) {
			wrong := es[2]
			wrong.facts, wrong.model, wrong.flagged = 2, "another", true
			f.insert("audit_current", wrong.flatRow())
		}, store.FaultCurrentUnequal, 1},
		{"flat row of another delivery", func(f *fixture, es []event) {
			r := es[2].flatRow()
			wrong := es[2]
			wrong.facts, wrong.offset = 2, 9
			r["version"], r["offset"] = wrong.origin().CurrentVersion(2), int64(9)
			f.insert("audit_current", r)
		}, store.FaultCurrentUnequal, 1},
		{"flat row whose place is not the one of its version", func(f *fixture, es []event) {
			r := es[2].flatRow()
			r["version"], r["partition"] = es[2].origin().CurrentVersion(2), int32(1)
			f.insert("audit_current", r)
		}, store.FaultCurrentUnequal, 1},
		{"flat row of another day", func(f *fixture, es []event) {
			r := es[2].flatRow()
			r["event_ts"], r["version"] = es[2].at.Add(24*time.Hour), audit.Origin{}.CurrentVersion(9)
			f.insert("audit_current", r)
		}, store.FaultKeyWrong, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			es := sound(f)
			tc.plant(f, es)
			r := f.check()
			i := slices.IndexFunc(r.Faults, func(x store.Fault) bool { return x.Code == tc.want })
			if i < 0 {
				t.Fatalf("found %q, want %s", codes(r), tc.want)
			}
			if x := r.Faults[i]; x.Count != tc.count {
				t.Errorf("%s counted %d, want %d: %+v", tc.want, x.Count, tc.count, x)
			}
			columns := map[string]string{"flat row unequal": "flagged model", "flat row of another delivery": "offset version",
				"flat row whose place is not the one of its version": "topic partition offset"}
			if want := columns[tc.name]; want != "" && strings.Join(r.Faults[i].Columns, " ") != want {
				t.Errorf("columns %v, want %s", r.Faults[i].Columns, want)
			}
		})
	}
}

// rolled writes the rollups of the days before today as the job does, with its watermark.
func rolled(f *fixture) {
	days, err := f.Rollups(f.Context(), noon.AddDate(0, 0, -30), noon.AddDate(0, 0, 1))
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range days {
		for _, hours := range d.Shares {
			columns, sql, args := f.HourlyCells(d, hours)
			f.exec("INSERT INTO {{db}}.rollup_hourly ("+columns+") "+sql, args...)
		}
		columns, sql, args := f.DailyCells(d)
		f.exec("INSERT INTO {{db}}.rollup_daily ("+columns+") "+sql, args...)
	}
	f.insert("job_runs", row{"job": store.JobRollup, "started_at": time.Now(), "run_id": audit.NewID(time.Now()).String(), "status": "done", "watermark": time.Now().Add(time.Hour)})
}

// What a clock that was ahead noted is no watermark before that time has come: nothing would be dirty until then.
func TestWatermarkOfAClockThatWasAhead(t *testing.T) {
	f := newFixture(t)
	mark := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Minute)
	for i, at := range []time.Time{mark.Add(-time.Hour), mark, mark.AddDate(0, 1, 0)} {
		f.insert("job_runs", row{"job": store.JobRollup, "started_at": at, "run_id": audit.DeriveID(fmt.Sprint(i)).String(), "status": "done", "watermark": at})
		if got, err := f.RollupWatermark(t.Context()); err != nil || !got.Equal([]time.Time{at, at, mark}[i]) {
			t.Errorf("after %s: %s %v", at, got, err)
		}
	}
}

func TestCheckOfRollups(t *testing.T) {
	const wrong = "INSERT INTO {{db}}.rollup_%[1]s SELECT * REPLACE (version + 1 AS version, %[2]s) FROM {{db}}.rollup_%[1]s FINAL WHERE %[3]s"
	older := sample("acme", 0)
	older.id, older.content, older.at = audit.DeriveID("older"), "older", noon.AddDate(0, 0, -20)
	older.broker, older.offset = older.at, 50
	for _, tc := range []struct {
		name string
		opt  store.CheckOptions
		do   func(f *fixture)
		want string // code count: cells, of each fault
	}{
		{"sound", store.CheckOptions{}, func(*fixture) {}, ""},
		{"an hour has a wrong figure", store.CheckOptions{}, func(f *fixture) {
			f.exec(fmt.Sprintf(wrong, "hourly", "k + 1 AS k", "dim = 'bias' AND hour = toStartOfHour(toDateTime(?, 'UTC')) LIMIT 1"), noon.Unix())
		}, "rollup_unequal 1: " + noon.Format("2006-01-02T15:00Z") + " bias charter.sex; rollup_daily_unequal 1: " + noon.Format(time.DateOnly) + " bias charter.sex"},
		{"an hour has cells of nothing", store.CheckOptions{}, func(f *fixture) {
			f.exec("INSERT INTO {{db}}.rollup_hourly (tenant_id, dim, hour, value, version, k) SELECT 'none', 'kind', toStartOfHour(toDateTime(?, 'UTC')), 'charter.age', 1, 5", noon.Unix())
		}, "rollup_unequal 1: " + noon.Format("2006-01-02T15:00Z") + " kind charter.age; rollup_daily_unequal 1: " + noon.Format(time.DateOnly) + " kind charter.age"},
		{"a day is not the sum of its hours", store.CheckOptions{}, func(f *fixture) {
			f.exec(fmt.Sprintf(wrong, "daily", "n - 1 AS n", "dim = 'all' AND day = toDate(?) LIMIT 1"), noon.Format(time.DateOnly))
		}, "rollup_daily_unequal 1: " + noon.Format(time.DateOnly) + " all"},
		{"an older day", store.CheckOptions{}, func(f *fixture) {
			f.exec("DELETE FROM {{db}}.rollup_hourly WHERE hour < now() - INTERVAL 15 DAY AND dim = 'all'")
		}, ""},
		{"an older day is asked for", store.CheckOptions{AllRollups: true}, func(f *fixture) {
			f.exec("DELETE FROM {{db}}.rollup_hourly WHERE hour < now() - INTERVAL 15 DAY AND dim = 'all'")
		}, "rollup_unequal 1: " + older.at.Format("2006-01-02T15:00Z") + " all; rollup_daily_unequal 1: " + older.at.Format(time.DateOnly) + " all"},
		{"what was written since waits", store.CheckOptions{AtRest: true}, func(f *fixture) {
			f.exec("INSERT INTO {{db}}.job_runs SELECT * REPLACE (now64(3) - INTERVAL 1 HOUR AS watermark, version + 1 AS version) FROM {{db}}.job_runs FINAL")
			f.exec("DELETE FROM {{db}}.rollup_hourly WHERE dim = 'all'")
		}, ""},
		{"what is frozen has no rows", store.CheckOptions{AtRest: true}, func(f *fixture) {
			f.exec("INSERT INTO {{db}}.rollup_frozen (tenant_id, month, version) SELECT DISTINCT 'acme', toStartOfMonth(toDate(hour)), 1 FROM {{db}}.rollup_hourly")
			f.exec("DELETE FROM {{db}}.rollup_hourly WHERE dim = 'all'")
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			sound(f)
			f.write(older)
			rolled(f)
			tc.do(f)
			r, err := f.CheckWith(t.Context(), tc.opt)
			if err != nil || r.Rollups == nil || r.Rollups.Days == 0 && tc.name != "what is frozen has no rows" {
				t.Fatalf("%+v %v", r, err)
			}
			var got []string
			for _, x := range r.Faults {
				if x.Cells != nil {
					got = append(got, fmt.Sprint(x.Code, " ", x.Count, ": ", strings.Join(x.Cells, ", ")))
				}
			}
			if s := strings.Join(got, "; "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

// Two deliveries of one millisecond: both versions pick the same one, unless their 14 bits agree.
func TestBothVersionsPickTheSameDelivery(t *testing.T) {
	place := func(offset int64) audit.Origin {
		return audit.Origin{Topic: "llm.interactions", Partition: 3, Offset: offset, BrokerTime: noon}
	}
	ties := 0
	for i := range int64(100_000) {
		a, b := place(i), place(i+1)
		if a.CurrentVersion(1) == b.CurrentVersion(1) {
			ties++
		} else if (a.Version() > b.Version()) != (a.CurrentVersion(1) > b.CurrentVersion(1)) {
			t.Fatalf("offsets %d and %d", i, i+1)
		}
	}
	if ties > 100 {
		t.Errorf("%d ties in 100000 pairs", ties)
	}
}

// Where the 14 bits agree either may stand in audit_current, and check says nothing.
func TestCheckAllowsATie(t *testing.T) {
	f := newFixture(t)
	first := sample("acme", 1)
	first.offset = 0
	second := first
	for second.offset = 1; second.origin().CurrentVersion(1) != first.origin().CurrentVersion(1); second.offset++ {
	}
	f.insert("interactions", first.factRow())
	f.insert("verdicts", first.verdictRow())
	f.insert("audit_current", second.flatRow())
	f.mark(0, 1, 0, 0, 1, 0)
	if r := f.check(); !r.OK() || r.Interactions != 1 {
		t.Errorf("%+v", r)
	}
}

func TestCheckTellsItsProgress(t *testing.T) {
	f := newFixture(t)
	sound(f)
	var steps []string
	if _, err := f.CheckWith(t.Context(), store.CheckOptions{Progress: func(step string, i, n int) { steps = append(steps, fmt.Sprint(step, " ", i, "/", n)) }}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(steps, ", "); got != "log 1/2, log 2/2, offsets 1/2, offsets 2/2, days 1/1" {
		t.Errorf("progress %s", got)
	}
}

func TestCheckOfAnEmptyStore(t *testing.T) {
	if r := newFixture(t).check(); !r.OK() || len(r.Partitions) != 0 {
		t.Errorf("%+v", r)
	}
}

// Every id is in one part, and parts are alike, whichever way ids are made but by version 1.
func TestPartsOfALargeDay(t *testing.T) {
	f := newFixture(t)
	const each = 4000
	ids := fmt.Sprintf("(SELECT arrayJoin([generateUUIDv4(number), generateUUIDv7(number), toUUID(UUIDNumToString(toFixedString(concat(substring(MD5(toString(number)), 1, 8), unhex('80'), substring(MD5(toString(number)), 10, 7)), 16)))]) AS event_id FROM numbers(%d)"+
		" UNION ALL SELECT arrayJoin([toUUID('00000000-0000-0000-0000-000000000000'), toUUID('ffffffff-ffff-ffff-ffff-ffffffffffff'), toUUID('00000000-0000-0000-8000-000000000000'), toUUID('ffffffff-ffff-4fff-bfff-ffffffffffff'), toUUID('00000000-0000-0000-9000-000000000000')]))", each)
	for _, parts := range []uint64{2, 3, 7, 40} {
		conds := store.PartsOfIDs(parts)
		var in []string
		for _, c := range conds {
			in = append(in, "toUInt8("+c+")")
		}
		if n := f.count("SELECT countIf(arraySum([" + strings.Join(in, ", ") + "]) != 1) FROM " + ids); n != 0 {
			t.Errorf("%d ids are in none or several of %d parts", n, parts)
		}
		for i, c := range conds[:1] {
			if n := f.count("SELECT count() FROM (SELECT generateUUIDv4(number) AS event_id FROM numbers(40000)) WHERE " + c); n*parts < 40000*8/10 || n*parts > 40000*12/10 {
				t.Errorf("part %d of %d has %d of 40,000", i, parts, n)
			}
		}
	}
}
