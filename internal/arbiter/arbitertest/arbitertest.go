// Package arbitertest is the contract that every arbiter keeps: the same tests run on the embedded
// broker and on a real Kafka. Each case works on a log of its own.
package arbitertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
)

// Log is a log to decide on. Its arbiters know the kinds of [Rules].
type Log struct {
	// Create makes an empty log.
	Create func(t *testing.T, name string)
	// Open starts an arbiter, which the contract closes.
	Open func(t *testing.T, name, proposer string) (a arbiter.Arbiter, done func())
	// Append writes any record.
	Append func(t *testing.T, name, key, value string)
}

// Rules are the kinds of the contract: once, alarm (open → ticketed → resolved) and lease (1 h).
func Rules() *arbiter.Rules {
	r, err := arbiter.NewRules(arbiter.Once("once"), arbiter.Lease("lease", time.Hour),
		arbiter.States("alarm", map[string][]string{"": {"open"}, "open": {"ticketed", "resolved"}, "ticketed": {"resolved"}}))
	if err != nil {
		return nil
	}
	return r
}

const patience = time.Minute // for what takes milliseconds on a quiet machine

type bench struct {
	Log
	name string
	ctx  context.Context
}

// Run checks arbiters on a log against their contract.
func Run(t *testing.T, log Log) {
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"the first one holds and everybody is told so", firstHolds},
		{"all racers agree, later readers too", racersAgree},
		{"a key goes through its states in order", states},
		{"one racer makes each step of a key", stepsRace},
		{"a holder keeps others out", lease},
		{"copies of a proposal count once", copies},
		{"watchers see all decisions in order", watch},
		{"what others write counts for nothing", foreign},
		{"what cannot be right is refused", invalid},
		{"an ended context is told as unavailable", ended},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			b := &bench{Log: log, name: fmt.Sprintf("arbiter.%s.%d", strings.ReplaceAll(strings.ReplaceAll(tc.name, ",", ""), " ", "-"), time.Now().UnixNano()), ctx: ctx}
			b.Create(t, b.name)
			tc.run(t, b)
		})
	}
}

func (b *bench) open(t *testing.T, proposer string) arbiter.Arbiter {
	t.Helper()
	a, done := b.Open(t, b.name, proposer)
	t.Cleanup(done)
	return a
}

func once(id string) arbiter.Key { return arbiter.Key{Kind: "once", ID: id} }

func value(format string, args ...any) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(format, args...))
}

func (b *bench) decide(t *testing.T, a arbiter.Arbiter, k arbiter.Key, v json.RawMessage) arbiter.Decision {
	t.Helper()
	d, err := a.Decide(b.ctx, k, v)
	if err != nil {
		t.Errorf("%s: %v", k, err)
	}
	return d
}

func firstHolds(t *testing.T, b *bench) {
	one, two := b.open(t, "one"), b.open(t, "two")
	if _, ok, err := two.Winner(b.ctx, once("a")); ok || err != nil {
		t.Errorf("before: %t %v", ok, err)
	}
	d := b.decide(t, one, once("a"), value(`{ "x": "<1>" }`))
	if string(d.Value) != `{"x":"<1>"}` || d.Seq != 1 || d.N != 1 || d.Proposer != "one" || d.Key != once("a") || time.Since(d.Time).Abs() > time.Hour {
		t.Errorf("%+v", d)
	}
	for _, a := range []arbiter.Arbiter{two, one, b.open(t, "three")} {
		if got := b.decide(t, a, once("a"), value(`{"x":2}`)); got.Proposal != d.Proposal || string(got.Value) != string(d.Value) || got.Offset != d.Offset || got.N != 1 {
			t.Errorf("%+v", got)
		}
		if got, ok, err := a.Winner(b.ctx, once("a")); !ok || err != nil || got.Proposal != d.Proposal {
			t.Errorf("%+v %t %v", got, ok, err)
		}
	}
	if got := b.decide(t, two, once("b"), value(`2`)); got.N != 2 || got.Proposer != "two" {
		t.Errorf("another key: %+v", got)
	}
}

func racersAgree(t *testing.T, b *bench) {
	const racers, keys = 8, 25
	said := make([][]audit.ID, racers)
	var wg sync.WaitGroup
	for i := range racers {
		a := b.open(t, fmt.Sprint("racer ", i))
		said[i] = make([]audit.ID, keys)
		wg.Go(func() {
			for k := range keys {
				said[i][k] = b.decide(t, a, once(fmt.Sprint(k)), value("%d", i)).Proposal
			}
		})
	}
	wg.Wait()
	late := b.open(t, "late")
	for k := range keys {
		d, ok, err := late.Winner(b.ctx, once(fmt.Sprint(k)))
		if !ok || err != nil {
			t.Fatalf("key %d: %t %v", k, ok, err)
		}
		for i := range racers {
			if said[i][k] != d.Proposal {
				t.Errorf("key %d: racer %d was told another winner", k, i)
			}
		}
	}
}

func states(t *testing.T, b *bench) {
	a, other := b.open(t, "one"), b.open(t, "two")
	k := arbiter.Key{Kind: "alarm", ID: "a"}
	propose := func(a arbiter.Arbiter, seq uint32, state string) (arbiter.Decision, error) {
		return a.Propose(b.ctx, arbiter.Proposal{Key: k, Seq: seq, Value: value(`{"state":%q}`, state)})
	}
	var refused *arbiter.Refused
	if _, err := propose(a, 1, "ticketed"); !errors.As(err, &refused) || audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("ticketed first: %v", err)
	}
	if _, err := propose(a, 2, "open"); err == nil || errors.As(err, &refused) || audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("the second before the first: %v", err)
	}
	for i, state := range []string{"open", "ticketed", "resolved"} {
		d, err := propose([]arbiter.Arbiter{a, other}[i%2], uint32(i+1), state)
		if err != nil || d.Seq != uint32(i+1) || d.N != uint64(i+1) {
			t.Errorf("%s: %+v %v", state, d, err)
		}
	}
	if d, err := propose(a, 2, "resolved"); err != nil || string(d.Value) != `{"state":"ticketed"}` {
		t.Errorf("a stale number is told who was first: %s %v", d.Value, err)
	}
	if _, err := propose(other, 4, "open"); !errors.As(err, &refused) {
		t.Errorf("after the last state: %v", err)
	}
	for _, x := range []arbiter.Arbiter{a, b.open(t, "three")} {
		h, err := x.History(b.ctx, k)
		if err != nil || len(h) != 3 || string(h[1].Value) != `{"state":"ticketed"}` || h[2].Seq != 3 {
			t.Errorf("history %+v %v", h, err)
		}
	}
}

func stepsRace(t *testing.T, b *bench) {
	const racers, keys = 6, 10
	var wg sync.WaitGroup
	for i := range racers {
		a := b.open(t, fmt.Sprint(i))
		wg.Go(func() {
			for k := range keys {
				key := arbiter.Key{Kind: "alarm", ID: fmt.Sprint(k)}
				for seq, state := range []string{"open", "ticketed", "resolved"} {
					d, err := a.Propose(b.ctx, arbiter.Proposal{Key: key, Seq: uint32(seq + 1), Value: value(`{"state":%q,"by":%d}`, state, i)})
					if err != nil || d.Seq != uint32(seq+1) || !strings.Contains(string(d.Value), state) {
						t.Errorf("%s %s: %s %v", key, state, d.Value, err)
					}
				}
			}
		})
	}
	wg.Wait()
	late := b.open(t, "late")
	for k := range keys {
		if h, err := late.History(b.ctx, arbiter.Key{Kind: "alarm", ID: fmt.Sprint(k)}); err != nil || len(h) != 3 {
			t.Errorf("key %d: %d decisions, %v", k, len(h), err)
		}
	}
}

func lease(t *testing.T, b *bench) {
	a := b.open(t, "one")
	k := arbiter.Key{Kind: "lease", ID: "review"}
	propose := func(seq uint32, v string) error {
		_, err := a.Propose(b.ctx, arbiter.Proposal{Key: k, Seq: seq, Value: json.RawMessage(v)})
		return err
	}
	var refused *arbiter.Refused
	if err := propose(1, `{"holder":"ann"}`); err != nil {
		t.Error(err)
	}
	if err := propose(2, `{"holder":"bob"}`); !errors.As(err, &refused) {
		t.Errorf("bob takes what ann holds: %v", err)
	}
	if err := errors.Join(propose(2, `{"holder":"ann"}`), propose(3, `{"holder":"ann","released":true}`), propose(4, `{"holder":"bob"}`)); err != nil {
		t.Error(err)
	}
}

func copies(t *testing.T, b *bench) {
	id := audit.NewID(time.Now())
	var wg sync.WaitGroup
	for i := range 4 {
		a := b.open(t, fmt.Sprint(i))
		wg.Go(func() {
			for range 3 {
				d, err := a.Propose(b.ctx, arbiter.Proposal{Key: once("a"), Seq: 1, Value: value("1"), ID: id})
				if err != nil || d.Proposal != id || d.N != 1 {
					t.Errorf("%+v %v", d, err)
				}
			}
		})
	}
	wg.Wait()
	if d := b.decide(t, b.open(t, "late"), once("b"), value("1")); d.N != 2 {
		t.Errorf("the next decision is number %d", d.N)
	}
}

func watch(t *testing.T, b *bench) {
	a := b.open(t, "one")
	const keys = 60
	all := make(chan []arbiter.Decision, 2)
	for range 2 {
		go func() {
			var list []arbiter.Decision
			for d, err := range a.Watch(b.ctx, 0) {
				if err != nil {
					t.Error(err)
				}
				if list = append(list, d); len(list) == keys {
					break
				}
			}
			all <- list
		}()
	}
	for k := range keys {
		b.decide(t, a, once(fmt.Sprint(k)), value("%d", k))
	}
	late := b.open(t, "late") // reads them from the log
	var tail []arbiter.Decision
	for d := range late.Watch(b.ctx, keys-10) {
		if tail = append(tail, d); len(tail) == 10 {
			break
		}
	}
	for range 2 {
		list := <-all
		for i, d := range list {
			if d.N != uint64(i+1) || i > 0 && d.Offset <= list[i-1].Offset || string(d.Value) != fmt.Sprint(i) {
				t.Errorf("watched %d: %+v", i, d)
			}
		}
		if len(tail) != 10 || len(list) != keys || tail[0].Proposal != list[keys-10].Proposal || tail[9].N != keys {
			t.Errorf("the tail is %+v", tail)
		}
	}
}

func foreign(t *testing.T, b *bench) {
	for _, v := range []string{"", "not JSON", "{}", `{"v":1}`, `{"v":0,"log":"x"}`, `[1]`} {
		b.Append(t, b.name, "once/a", v)
	}
	one := b.open(t, "one")
	other := audit.NewID(time.Now()).String()
	b.Append(t, b.name, "log", `{"v":1,"log":"`+other+`","by":"late"}`)
	b.Append(t, b.name, "once/a", `{"v":1,"log":"`+other+`","proposal":"`+other+`","seq":1,"by":"x","value":1}`)
	b.Append(t, b.name, "nobody/a", `{"v":1,"log":"`+other+`","proposal":"`+other+`","seq":1,"by":"x","value":1}`)
	d := b.decide(t, one, once("a"), value("2"))
	if string(d.Value) != "2" || d.N != 1 {
		t.Errorf("%+v", d)
	}
	if got := b.decide(t, b.open(t, "two"), once("a"), value("3")); got.Proposal != d.Proposal {
		t.Errorf("%+v", got)
	}
}

func invalid(t *testing.T, b *bench) {
	a := b.open(t, "one")
	for name, p := range map[string]arbiter.Proposal{
		"an unknown kind":   {Key: arbiter.Key{Kind: "other", ID: "a"}, Seq: 1, Value: value("1")},
		"no id":             {Key: once(""), Seq: 1, Value: value("1")},
		"no sequence":       {Key: once("a"), Value: value("1")},
		"no value":          {Key: once("a"), Seq: 1},
		"no JSON":           {Key: once("a"), Seq: 1, Value: value("{")},
		"too large a value": {Key: once("a"), Seq: 1, Value: value("%q", strings.Repeat("x", arbiter.MaxValue))},
		"too long a key":    {Key: once(strings.Repeat("x", 600)), Seq: 1, Value: value("1")},
	} {
		if _, err := a.Propose(b.ctx, p); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ended(t *testing.T, b *bench) {
	a := b.open(t, "one")
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := a.Decide(ctx, once("a"), value("1")); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("%v", err)
	}
	if _, _, err := a.Winner(ctx, once("a")); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("%v", err)
	}
	d := b.decide(t, a, once("a"), value("2")) // the first may be there or not
	if got := b.decide(t, b.open(t, "two"), once("a"), value("3")); got.Proposal != d.Proposal {
		t.Errorf("%+v, not %+v", got, d)
	}
}
