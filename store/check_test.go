package store_test

import (
	"encoding/json"
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
			if tc.name == "flat row unequal" && strings.Join(r.Faults[i].Columns, " ") != "flagged model" {
				t.Errorf("columns %v", r.Faults[i].Columns)
			}
		})
	}
}

func TestCheckOfAnEmptyStore(t *testing.T) {
	if r := newFixture(t).check(); !r.OK() || len(r.Partitions) != 0 {
		t.Errorf("%+v", r)
	}
}
