// Package sinktest is the contract that every store of record keeps: the same tests run on a file and
// on a real ClickHouse.
//
// A test of a store calls [Run] with a way to open an empty one. Each case works on a store of its
// own and looks at it only through the seam.
package sinktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Run checks a store against its contract.
func Run(t *testing.T, open func(t *testing.T) sinks.Store) {
	for _, tc := range []struct {
		name string
		run  func(*testing.T, sinks.Store)
	}{
		{"what is written comes back", comesBack},
		{"writing again changes nothing", again},
		{"writing in other cuts changes nothing", otherCuts},
		{"the first delivery wins", firstWins},
		{"other content under an id is kept", conflict},
		{"the newest epoch alone counts", epochs},
		{"the highest generation wins an overlap", generations},
		{"a broken-off write is made whole by the next", brokenOff},
		{"partitions are written side by side", sideBySide},
		{"an empty batch is none", empty},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, open(t)) })
	}
}

const topic = "llm.interactions"

var at = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// record is the delivery of an event with some content at a place; later offsets arrive later.
func record(event, content string, partition int, offset int64) audit.Record {
	in := &audit.Interaction{
		ID: audit.DeriveID("sinktest", event), Tenant: "acme", Time: at.Add(-time.Hour), Domain: audit.HR, Provider: "p", Model: "m", Status: "success",
		UserID: "u1", Prompt: "Who fits?", Response: content, PromptTokens: 3, ResponseTokens: audit.Unknown, ContainedPII: -1, ContainedProprietary: -1, ContainedCustomerData: 1,
		TraceID: strings.Repeat("ab", 16),
	}
	copy(in.Digest[:], fmt.Sprintf("%-32s", content))
	v := &audit.Verdict{
		ResultID: audit.HotResultID(in.Tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: "r1", Status: audit.Done, Detected: true,
		BiasTypes: []string{"charter.sex"}, BiasSum: 600_000, Threshold: 150_000, Flagged: true, Action: audit.Warn, Confidence: 800_000, MaxSeverity: 3,
		Scores: []audit.NamedScore{{Name: "bias", Value: 600_000}},
		Findings: []audit.Finding{{Kind: "charter.sex", Rule: "sex.a", RuleVersion: "1", Ground: audit.Sex, Severity: audit.High, Score: 600_000,
			Confidence: 800_000, Side: audit.Output, Span: audit.Span{Start: 0, End: 3}}},
		Time: at.Add(time.Second), Duration: 55 * time.Microsecond,
	}
	return audit.Record{Origin: audit.Origin{Topic: topic, Partition: partition, Offset: offset, BrokerTime: at.Add(time.Duration(offset) * time.Millisecond)}, Interaction: in, Verdict: v}
}

// batch is one range of a partition with the records' marker.
func batch(generation int32, rs ...audit.Record) *sinks.Batch {
	first, last := rs[0].Origin, rs[len(rs)-1].Origin
	return &sinks.Batch{Records: rs, Markers: []sinks.Marker{{
		Topic: topic, Partition: first.Partition, Epoch: first.Epoch, Lo: first.Offset, Hi: last.Offset, Rows: uint32(len(rs)),
		Skipped: uint32(int(last.Offset-first.Offset) + 1 - len(rs)), Generation: generation,
		First: sinks.Edge{Offset: first.Offset, Time: first.BrokerTime, Hash: 1<<63 + 7}, Last: sinks.Edge{Offset: last.Offset, Time: last.BrokerTime, Hash: 9},
		End: last.Offset + 5,
	}}}
}

func series(partition int, from, to int64) (rs []audit.Record) {
	for o := from; o < to; o++ {
		rs = append(rs, record(fmt.Sprint(partition, "/", o), fmt.Sprint("answer ", o), partition, o))
	}
	return rs
}

func write(t *testing.T, s sinks.Store, b *sinks.Batch) {
	t.Helper()
	p, err := s.Prepare(b)
	if err == nil {
		err = p.Send(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func markers(t *testing.T, s sinks.Store, partition int, from int64) ([]sinks.Marker, int32) {
	t.Helper()
	ms, epoch, err := s.Markers(t.Context(), topic, partition, from)
	if err != nil {
		t.Fatal(err)
	}
	return ms, epoch
}

// events are those of a range, one line each in a fixed order.
func events(t *testing.T, s sinks.Store, partition int, epoch int32, lo, hi int64) string {
	t.Helper()
	evs, err := s.Events(t.Context(), sinks.Marker{Topic: topic, Partition: partition, Epoch: epoch, Lo: lo, Hi: hi})
	if err != nil {
		t.Fatal(err)
	}
	return lines(evs)
}

func lines(evs []audit.StreamEvent) string {
	var out []string
	for _, e := range evs {
		out = append(out, fmt.Sprint(e))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func eventsOf(rs []audit.Record) string {
	var evs []audit.StreamEvent
	for i := range rs {
		evs = append(evs, rs[i].Event())
	}
	return lines(evs)
}

func comesBack(t *testing.T, s sinks.Store) {
	rs := series(0, 0, 5)
	b := batch(1, rs...)
	bad := audit.Rejected{Origin: audit.Origin{Topic: topic, Offset: 5, BrokerTime: at}, Tenant: "acme", Reason: "bad_json", Value: []byte("{\xff")}
	b.Rejected = append(b.Rejected, bad)
	b.Markers[0].Hi, b.Markers[0].Rejected = 6, 1
	b.Markers[0].Skipped = 1
	write(t, s, b)
	hole := sinks.Marker{Topic: topic, Lo: 7, Hi: 9, Skipped: 3, Generation: 1, Reason: "gap"}
	write(t, s, &sinks.Batch{Markers: []sinks.Marker{hole}})
	if ms, epoch := markers(t, s, 0, 0); epoch != 0 || len(ms) != 2 || ms[0] != b.Markers[0] || ms[1] != hole {
		t.Errorf("markers %+v, epoch %d", ms, epoch)
	}
	if ms, _ := markers(t, s, 0, 7); len(ms) != 1 || ms[0] != hole {
		t.Errorf("from 7: %+v", ms)
	}
	if ms, _ := markers(t, s, 1, 0); len(ms) != 0 {
		t.Errorf("another partition: %+v", ms)
	}
	if got, want := events(t, s, 0, 0, 0, 6), eventsOf(rs); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	if got, want := events(t, s, 0, 0, 1, 2), eventsOf(rs[1:3]); got != want {
		t.Errorf("events of a part\n%s\nwant\n%s", got, want)
	}
}

func again(t *testing.T, s sinks.Store) {
	b := batch(1, series(0, 0, 5)...)
	p, err := s.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the same Prepared, as after an unknown outcome
		if err := p.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s, b)
	if ms, _ := markers(t, s, 0, 0); len(ms) != 1 || ms[0] != b.Markers[0] {
		t.Errorf("markers %+v", ms)
	}
	if got, want := events(t, s, 0, 0, 0, 4), eventsOf(b.Records); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}

// otherCuts writes rows without markers, as the search for a refused row does, and then ranges that a
// crash had cut otherwise.
func otherCuts(t *testing.T, s sinks.Store) {
	rs := series(0, 0, 8)
	write(t, s, &sinks.Batch{Records: rs[:3]})
	write(t, s, &sinks.Batch{Records: rs[2:6]})
	if ms, _ := markers(t, s, 0, 0); len(ms) != 0 {
		t.Errorf("rows alone made markers: %+v", ms)
	}
	write(t, s, batch(2, rs[:5]...))
	write(t, s, batch(2, rs[5:]...))
	if ms, _ := markers(t, s, 0, 0); len(ms) != 2 || ms[0].Hi != 4 || ms[1].Lo != 5 {
		t.Errorf("markers %+v", ms)
	}
	if got, want := events(t, s, 0, 0, 0, 7), eventsOf(rs); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}

func firstWins(t *testing.T, s sinks.Store) {
	first, second := record("same", "text", 0, 0), record("same", "text", 0, 1)
	second.Verdict.RuleSet, second.Verdict.Detected, second.Verdict.BiasTypes = "r2", false, nil
	write(t, s, batch(1, second)) // the later delivery is written first
	write(t, s, batch(1, first))
	write(t, s, batch(1, second))
	if got, want := events(t, s, 0, 0, 0, 0), eventsOf([]audit.Record{first}); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}

func conflict(t *testing.T, s sinks.Store) {
	one, other := record("same", "text", 0, 0), record("same", "other text", 0, 1)
	write(t, s, batch(1, one, other))
	if got, want := events(t, s, 0, 0, 0, 1), eventsOf([]audit.Record{one, other}); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}

func epochs(t *testing.T, s sinks.Store) {
	write(t, s, batch(3, series(0, 0, 9)...))
	fresh := record("of the new log", "text", 0, 0)
	fresh.Origin.Epoch, fresh.Origin.BrokerTime = 1, at.Add(time.Hour)
	b := batch(1, fresh)
	write(t, s, b)
	if ms, epoch := markers(t, s, 0, 0); epoch != 1 || len(ms) != 1 || ms[0] != b.Markers[0] {
		t.Errorf("markers %+v, epoch %d", ms, epoch)
	}
	if got, want := events(t, s, 0, 1, 0, 8), eventsOf([]audit.Record{fresh}); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}

func generations(t *testing.T, s sinks.Store) {
	rs := series(0, 0, 10)
	old, current := batch(5, rs[2:9]...), batch(6, rs[4:]...)
	write(t, s, current)
	write(t, s, old) // a member that did not know yet
	write(t, s, batch(5, rs[:2]...))
	if ms, _ := markers(t, s, 0, 0); len(ms) != 2 || ms[0].Hi != 1 || ms[1] != current.Markers[0] {
		t.Errorf("markers %+v", ms)
	}
}

func brokenOff(t *testing.T, s sinks.Store) {
	b := batch(1, series(0, 0, 5)...)
	p, err := s.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Send(ended); err == nil || audit.KindOf(err) == audit.KindInvalid {
		t.Errorf("Send with an ended context: %v, want an error that is not about the data", err)
	}
	if ms, _ := markers(t, s, 0, 0); len(ms) != 0 {
		t.Errorf("a marker of what was broken off: %+v", ms)
	}
	if err := p.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ms, _ := markers(t, s, 0, 0); len(ms) != 1 {
		t.Errorf("markers %+v", ms)
	}
	if got, want := events(t, s, 0, 0, 0, 4), eventsOf(b.Records); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}

func sideBySide(t *testing.T, s sinks.Store) {
	const partitions = 4
	var all sync.WaitGroup
	errs := make([]error, partitions)
	for part := range partitions {
		all.Go(func() {
			for from := int64(0); from < 30 && errs[part] == nil; from += 10 {
				p, err := s.Prepare(batch(1, series(part, from, from+10)...))
				if err == nil {
					err = p.Send(t.Context())
				}
				errs[part] = err
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for part := range partitions {
		if ms, _ := markers(t, s, part, 0); len(ms) != 3 {
			t.Errorf("partition %d: %+v", part, ms)
		}
		if got, want := events(t, s, part, 0, 0, 29), eventsOf(series(part, 0, 30)); got != want {
			t.Errorf("partition %d: events\n%s\nwant\n%s", part, got, want)
		}
	}
}

func empty(t *testing.T, s sinks.Store) {
	write(t, s, &sinks.Batch{})
	if ms, epoch := markers(t, s, 0, 0); len(ms) != 0 || epoch != 0 {
		t.Errorf("markers %+v, epoch %d", ms, epoch)
	}
}
