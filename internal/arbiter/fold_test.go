package arbiter

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

func rules(t testing.TB) *Rules {
	t.Helper()
	r, err := NewRules(Once("once"), Lease("lease", 10*time.Second),
		States("alarm", map[string][]string{"": {"open"}, "open": {"ticketed", "resolved"}, "ticketed": {"resolved"}}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// foldOf folds a log, as a follower does, and gives the decisions in order.
func foldOf(t testing.TB, log []sources.Record) (*fold, []Decision) {
	t.Helper()
	won := map[int64]Decision{}
	f := newFold(rules(t), func(offset int64) (Decision, error) {
		d, ok := won[offset]
		if !ok {
			return d, fmt.Errorf("offset %d is no decision", offset)
		}
		return d, nil
	})
	var list []Decision
	for i := range log {
		o, err := f.judge(&log[i])
		if err != nil {
			t.Fatal(err)
		}
		if o.won && !o.genesis {
			won[o.decision.Offset] = o.decision
			list = append(list, o.decision)
		}
		f.commit(&o, log[i].Offset)
	}
	return f, list
}

var logs = []audit.ID{audit.DeriveID("log", "1"), audit.DeriveID("log", "2")}

func record(offset int64, at time.Time, key string, w wire) sources.Record {
	b, _ := encode(w)
	return sources.Record{Offset: offset, Time: at, Key: []byte(key), Value: b}
}

// draw makes a log of few keys, values and proposal ids, so that everything collides; what is drawn
// is also given plainly, for the model.
func draw(t *rapid.T) []sources.Record {
	at := time.UnixMilli(1_800_000_000_000).UTC()
	var offset int64
	var log []sources.Record
	for range rapid.IntRange(0, 60).Draw(t, "records") {
		offset += rapid.Int64Range(1, 3).Draw(t, "step") // holes
		at = at.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "seconds")) * time.Second)
		id := logs[min(rapid.IntRange(0, 9).Draw(t, "log")/9, 1)].String()
		switch rapid.IntRange(0, 11).Draw(t, "what") {
		case 0:
			log = append(log, sources.Record{Offset: offset, Time: at, Key: []byte("once/a"), Value: []byte(rapid.SampledFrom([]string{"", "x", "{}", `{"v":1}`}).Draw(t, "junk"))})
		case 1:
			log = append(log, record(offset, at, genesisKey, wire{Log: id}))
		default:
			kind := rapid.SampledFrom([]string{"once", "lease", "alarm", "strange"}).Draw(t, "kind")
			value := fmt.Sprintf(`{"state":%q,"holder":%q,"released":%t}`, rapid.SampledFrom([]string{"open", "ticketed", "resolved"}).Draw(t, "state"),
				rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "holder"), rapid.Bool().Draw(t, "released"))
			log = append(log, record(offset, at, kind+"/"+rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), wire{
				Log: id, Proposal: audit.DeriveID("p", fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "proposal"))).String(),
				Seq: uint32(rapid.IntRange(1, 5).Draw(t, "seq")), By: "x", Value: json.RawMessage(value)}))
		}
	}
	return log
}

// model says the same as the fold in the plainest way: a key's decisions are a list, and a record is
// held against the whole list.
func model(r *Rules, log []sources.Record) []Decision {
	var id audit.ID
	keys := map[Key][]Decision{}
	var all []Decision
	for i := range log {
		p, err := parse(&log[i])
		if err != nil {
			continue
		}
		if p.genesis {
			if id.IsZero() {
				id = p.log
			}
			continue
		}
		kind, known := r.kinds[p.decision.Key.Kind]
		before := keys[p.decision.Key]
		if id.IsZero() || p.log != id || !known || int(p.decision.Seq) != len(before)+1 {
			continue
		}
		var prev *Decision
		if len(before) > 0 {
			prev = &before[len(before)-1]
		}
		if kind.Follows(prev, &p.decision) != nil {
			continue
		}
		d := p.decision
		d.N = uint64(len(all)) + 1
		keys[d.Key], all = append(before, d), append(all, d)
	}
	return all
}

func same(a, b []Decision) bool {
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

func TestFoldEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := draw(rt)
		f, got := foldOf(t, log)
		want := model(rules(t), log)
		if !same(got, want) {
			rt.Fatalf("got %+v\nwant %+v", got, want)
		}
		var sum uint64
		for i := range got {
			sum += mark(&got[i])
			h := f.heads[placeOf(got[i].Key)]
			if h.at(got[i].Seq) != got[i].Offset || f.nth(got[i].Offset) != got[i].N {
				rt.Fatalf("decision %d is not found at its place", i+1)
			}
		}
		if c := f.counts; sum != f.sum || c.Decisions != uint64(len(got)) {
			rt.Fatalf("sum or counts are wrong: %+v", c)
		}
	})
}

// What was decided stays decided, whatever comes behind it; and copies of what is in the log already
// decide nothing, unless their kind looks at the clock.
func TestFoldIsStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := draw(rt)
		_, all := foldOf(t, log)
		cut := rapid.IntRange(0, len(log)).Draw(rt, "cut")
		_, some := foldOf(t, log[:cut])
		if len(some) > len(all) || !same(some, all[:len(some)]) {
			rt.Fatalf("a prefix decides otherwise")
		}
		if len(log) == 0 {
			return
		}
		twice := append([]sources.Record(nil), log...)
		for i := range log {
			if p, err := parse(&log[i]); err != nil || p.genesis || p.decision.Key.Kind == "lease" {
				continue
			}
			if d, err := parse(&log[i]); err != nil || !decided(all, d.decision) {
				continue // an honest proposer has seen the decision before its own
			}
			r := log[i]
			r.Offset, r.Time = twice[len(twice)-1].Offset+1, twice[len(twice)-1].Time
			twice = append(twice, r)
		}
		if _, again := foldOf(t, twice); !same(again, all) {
			rt.Fatalf("copies decide something")
		}
	})
}

// decided tells whether the key has a decision of that number.
func decided(all []Decision, d Decision) bool {
	for i := range all {
		if all[i].Key == d.Key && all[i].Seq == d.Seq {
			return true
		}
	}
	return false
}

// A fold that starts from the projection of any prefix ends like one that read everything.
func TestFoldResumes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := draw(rt)
		whole, all := foldOf(t, log)
		cut := rapid.IntRange(0, len(log)).Draw(rt, "cut")
		first, some := foldOf(t, log[:cut])
		if len(some) == 0 {
			return
		}
		snap := snapshot{log: first.log, rows: some}
		var sum uint64
		for i := range some {
			sum += mark(&some[i])
			snap.sums, snap.rules = append(snap.sums, sum), append(snap.rules, 7)
		}
		if hole := rapid.IntRange(-1, len(some)-1).Draw(rt, "hole"); hole >= 0 {
			short := snapshot{
				rows: append(append([]Decision(nil), some[:hole]...), some[hole+1:]...),
				sums: append(append([]uint64(nil), snap.sums[:hole]...), snap.sums[hole+1:]...), rules: snap.rules[1:],
			}
			if n := len(short.usable(7)); n != hole {
				rt.Fatalf("with a hole at %d of %d, %d rows are used", hole, len(some), n)
			}
		}
		if len(snap.usable(8)) != 0 || len(snap.usable(7)) != len(some) {
			rt.Fatalf("usable: %d and %d of %d", len(snap.usable(8)), len(snap.usable(7)), len(some))
		}
		won := map[int64]Decision{}
		for _, d := range all {
			won[d.Offset] = d
		}
		f := newFold(rules(t), func(offset int64) (Decision, error) { return won[offset], nil })
		f.log = snap.log
		for i := range some {
			f.push(placeOf(some[i].Key), some[i].Offset)
			f.sum += mark(&some[i])
		}
		for i := range log {
			if log[i].Offset <= some[len(some)-1].Offset {
				continue
			}
			o, err := f.judge(&log[i])
			if err != nil {
				rt.Fatal(err)
			}
			f.commit(&o, log[i].Offset)
		}
		if f.sum != whole.sum || fmt.Sprint(f.winners) != fmt.Sprint(whole.winners) {
			rt.Fatalf("the resumed fold differs")
		}
	})
}

func TestANewerRecordStopsTheFold(t *testing.T) {
	f := newFold(rules(t), nil)
	if _, err := f.judge(&sources.Record{Key: []byte("once/a"), Value: []byte(`{"v":2}`)}); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
}

func TestLease(t *testing.T) {
	kind := Lease("lease", 10*time.Second)
	at := func(s int, v string) *Decision {
		return &Decision{Time: time.Unix(int64(s), 0), Value: json.RawMessage(v)}
	}
	for _, tc := range []struct {
		name       string
		prev, next *Decision
		ok         bool
	}{
		{"free", nil, at(0, `{"holder":"ann"}`), true},
		{"held", at(0, `{"holder":"ann"}`), at(9, `{"holder":"bob"}`), false},
		{"run out", at(0, `{"holder":"ann"}`), at(10, `{"holder":"bob"}`), true},
		{"renewed", at(0, `{"holder":"ann"}`), at(9, `{"holder":"ann"}`), true},
		{"given back by another", at(0, `{"holder":"ann"}`), at(9, `{"holder":"bob","released":true}`), false},
		{"given back", at(0, `{"holder":"ann","released":true}`), at(1, `{"holder":"bob"}`), true},
		{"nobody", nil, at(0, `{}`), false},
	} {
		if err := kind.Follows(tc.prev, tc.next); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	for i := range int64(3000) {
		c.put(Decision{Offset: i, Value: make(json.RawMessage, MaxValue)})
	}
	_, oldest := c.get(0)
	_, newest := c.get(2999)
	if c.size > maxCached || oldest || !newest || len(c.at) != c.order.Len() {
		t.Errorf("%d bytes, oldest %t, newest %t", c.size, oldest, newest)
	}
}
