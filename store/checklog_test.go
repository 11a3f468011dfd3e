package store_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// fakeLog is what brokers hold in a test.
type fakeLog struct {
	deliveries []store.Delivery
	results    []audit.ID
	since      time.Time
	positions  map[int32]int64
	behind     int64 // how far the log goes on beyond each
}

func (l *fakeLog) Deliveries(_ context.Context, f func(store.Delivery)) error {
	for _, d := range l.deliveries {
		f(d)
	}
	return nil
}

func (l *fakeLog) Positions(_ context.Context, f func(topic string, partition int32, next, waiting int64)) error {
	for place, next := range l.positions {
		f("llm.interactions", place, next, l.behind)
	}
	return nil
}

func (l *fakeLog) Results(_ context.Context, f func(audit.ID)) (time.Time, error) {
	for _, id := range l.results {
		f(id)
	}
	return l.since, nil
}

func (e event) result() audit.ID { return audit.HotResultID(e.tenant, e.id, e.digest()) }

// logOf is the log that gave the events, and the stream that they gave.
func logOf(es []event) *fakeLog {
	l := &fakeLog{}
	for _, e := range es {
		l.deliveries = append(l.deliveries, store.Delivery{Topic: "llm.interactions", Partition: e.part, Offset: e.offset, Result: e.result()})
		l.results = append(l.results, e.result())
	}
	l.deliveries = append(l.deliveries, store.Delivery{Topic: "llm.interactions", Partition: 0, Offset: 10}) // the rejected one
	slices.SortFunc(l.deliveries, func(a, b store.Delivery) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return l
}

func (f *fixture) checkAtRest(l store.Log) *store.Report {
	f.Helper()
	r, err := f.CheckWith(f.Context(), store.CheckOptions{Log: l, AtRest: true})
	if err != nil {
		f.Fatal(err)
	}
	return r
}

func TestCheckWithASoundLog(t *testing.T) {
	f := newFixture(t)
	es := sound(f)
	r := f.checkAtRest(logOf(es))
	if !r.OK() || r.Log == nil || r.Log.Messages != 21 || r.Log.Results != 20 || r.Log.Judged != 20 {
		t.Fatalf("%+v %+v", r, r.Log)
	}
	// A producer's duplicate, published twice: counted, nothing is wrong.
	again := es[3]
	again.part, again.offset, again.broker = 1, 10, again.broker.Add(time.Hour)
	f.write(again)
	f.mark(1, 1, 10, 10, 1, 0)
	if r := f.checkAtRest(logOf(append(slices.Clone(es), again))); !r.OK() || r.Log.Redeliver != 1 || r.Log.Repeated != 1 || r.Duplicates != 1 || r.Lost+r.Double != 0 {
		t.Errorf("delivered twice: %+v %+v", r, r.Log)
	}
	// What the group has not taken in, and what the stream dropped by age, is not judged.
	part := logOf(es)
	part.deliveries = slices.DeleteFunc(part.deliveries, func(d store.Delivery) bool { return d.Offset > 4 })
	part.results = part.results[:10]
	part.positions, part.behind = map[int32]int64{0: 5}, 7
	if r := f.checkAtRest(part); !r.OK() || r.Log.Judged != 10 || r.Log.Waiting != 7 {
		t.Errorf("half taken in: %+v %+v", r, r.Log)
	}
	old := logOf(es)
	old.results, old.since = nil, time.Now().Add(time.Hour)
	if r := f.checkAtRest(old); !r.OK() || r.Log.Judged != 0 {
		t.Errorf("a stream that dropped everything: %+v %+v", r, r.Log)
	}
	// Decoded otherwise today, found by its place.
	other := logOf(es)
	other.deliveries[2].Result = audit.DeriveID("another default tenant")
	if r := f.checkAtRest(other); !r.OK() {
		t.Errorf("decoded otherwise: %+v", r)
	}
}

// Each planted fault is found, by its code, and counted where the summary counts.
func TestCheckFindsPlantedFaults(t *testing.T) {
	gone := func(f *fixture, e event) { // as if the row had never been written
		for _, table := range []string{"interactions", "verdicts", "audit_current", "interaction_texts", "interaction_users"} {
			f.exec("DELETE FROM {{db}}."+table+" WHERE event_id = ?", e.id.String())
		}
	}
	for _, tc := range []struct {
		name         string
		plant        func(f *fixture, es []event, l *fakeLog)
		want         string // fault codes
		count        uint64
		lost, double uint64
	}{
		{"a lost row", func(f *fixture, es []event, _ *fakeLog) { gone(f, es[6]) }, "delivery_missing", 1, 1, 0},
		{"a lost range behind its marker", func(f *fixture, es []event, _ *fakeLog) {
			for _, e := range es[8:14] {
				gone(f, e)
			}
		}, "delivery_missing delivery_missing", 3, 6, 0},
		{"a lost dead letter", func(f *fixture, _ []event, _ *fakeLog) {
			f.exec("DELETE FROM {{db}}.rejected WHERE 1")
		}, "delivery_missing rejected_missing", 1, 1, 0},
		{"a doubled row on another day", func(f *fixture, es []event, _ *fakeLog) {
			twice := es[2]
			twice.at, twice.offset, twice.part = twice.at.Add(-48*time.Hour), 10, 1
			f.write(twice)
			f.mark(1, 1, 10, 10, 1, 0)
		}, "doubled", 1, 0, 1},
		{"a text without its interaction", func(f *fixture, _ []event, _ *fakeLog) {
			f.insert("interaction_texts", sample("acme", 77).textRows()...)
		}, "text_orphan", 1, 0, 0},
		{"a text of another content", func(f *fixture, es []event, _ *fakeLog) {
			other := es[3]
			other.content = "other"
			f.insert("interaction_texts", other.textRows()...)
		}, "text_orphan", 1, 0, 0},
		{"a user without an interaction", func(f *fixture, _ []event, _ *fakeLog) {
			e := sample("acme", 78)
			f.insert("interaction_users", row{"tenant_id": "acme", "user_id": e.user, "event_day": e.at, "event_id": e.id.String(), "version": e.origin().Version()})
		}, "user_orphan", 1, 0, 0},
		{"a rejected text without its row", func(f *fixture, _ []event, _ *fakeLog) {
			f.insert("interaction_texts", row{"tenant_id": "acme", "event_day": noon, "event_id": sample("acme", 79).id.String(), "kind": "rejected",
				"source_id": strings.Repeat("\x00", 32), "version": sample("acme", 79).origin().Version(), "text": "{}"})
		}, "text_orphan", 1, 0, 0},
		{"a verdict without its interaction, just written", func(f *fixture, _ []event, _ *fakeLog) {
			f.insert("verdicts", sample("acme", 40).verdictRow())
		}, "verdict_orphan", 1, 0, 0},
		{"two hot verdicts", func(f *fixture, es []event, _ *fakeLog) {
			r := es[5].verdictRow()
			r["result_id"] = audit.DeriveID("another").String()
			f.insert("verdicts", r)
		}, "verdict_twice", 1, 0, 0},
		{"a missing publish", func(_ *fixture, es []event, l *fakeLog) {
			l.results = slices.DeleteFunc(l.results, func(id audit.ID) bool { return id == es[7].result() || id == es[8].result() })
		}, "result_unpublished", 2, 0, 0},
		{"an overlapping range", func(f *fixture, _ []event, _ *fakeLog) {
			f.mark(0, 1, 11, 14, 0, 0)
		}, "overlap", 1, 0, 0},
		{"a missing range", func(f *fixture, _ []event, _ *fakeLog) { f.mark(1, 1, 15, 15, 0, 0) }, "gap", 5, 5, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			es := sound(f)
			l := logOf(es)
			tc.plant(f, es, l)
			r := f.checkAtRest(l)
			var got []string
			for _, x := range r.Faults {
				got = append(got, string(x.Code))
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tc.want {
				t.Fatalf("found %v, want %s: %+v", got, tc.want, r.Faults)
			}
			first, _, _ := strings.Cut(tc.want, " ")
			i := slices.IndexFunc(r.Faults, func(x store.Fault) bool { return string(x.Code) == first })
			if x := r.Faults[i]; x.Count != tc.count {
				t.Errorf("counted %d, want %d: %+v", x.Count, tc.count, x)
			}
			if r.Lost != tc.lost || r.Double != tc.double {
				t.Errorf("lost %d, double %d; want %d and %d", r.Lost, r.Double, tc.lost, tc.double)
			}
		})
	}
}

func TestConflictsAreNamed(t *testing.T) {
	f := newFixture(t)
	es := sound(f)
	other := es[4]
	other.content, other.part, other.offset = "other", 1, 10
	f.write(other)
	f.mark(1, 1, 10, 10, 1, 0)
	r := f.checkAtRest(nil)
	if !r.OK() || r.IDConflicts != 1 || !slices.Equal(r.Conflicts, []string{es[4].id.String()}) {
		t.Errorf("%+v", r)
	}
	b, err := json.Marshal(r)
	var s store.Summary
	if err != nil || json.Unmarshal(b, &s) != nil || s != (store.Summary{Events: 21}) {
		t.Errorf("%s %v", b, err)
	}
}
