package join

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/sources"
)

type nowhere struct{}

func (nowhere) Produce(context.Context, []ingest.Message) error { return nil }

// BenchmarkJoin takes parts of calls that come in four pieces, some 300 bytes each, and makes their events.
func BenchmarkJoin(b *testing.B) {
	w := newWorld(b, 1)
	var pieces []sources.Record
	const n = 1000
	for i := range n {
		g, k := fmt.Sprintf("%032x", i+1), fmt.Sprintf("%016x", i+1)
		for _, p := range []call.Part{
			{Kind: call.Content, Key: k, Messages: user("Is the candidate with the gap in the curriculum fit for the post that we have to fill?")},
			{Kind: call.Content, Key: k, Answers: reply("The curriculum alone does not say so. Ask for the reason and judge by the skills that the post needs.")},
			{Kind: call.Model, Key: k, Parent: "app", Provider: "openai", Model: "m", TraceID: g, SpanID: k, Time: noon, Latency: time.Second},
			{Kind: call.Context, Key: "app", Claimed: "acme", Domain: "hr", Service: "desk", UserID: "u", Session: "s"},
		} {
			p.Format, p.Group = "otlp", g
			w.put(time.Microsecond, p)
		}
	}
	pieces = w.log[0]
	o := w.options()
	o.Producer = nowhere{}
	j, err := NewJoiner(w.cfg, o, w, callsLog{newWorld(b, 1)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p := &partition{open: map[groupID]*group{}, past: map[groupID]*past{}}
		s := &session{Joiner: j, g: w, parts: map[int]*partition{0: p}}
		f := fetched{sources.Chunk{Records: pieces, Next: int64(len(pieces)), End: int64(len(pieces))}, noon}
		if err := s.take(b.Context(), f); err != nil {
			b.Fatal(err)
		}
		s.committed = noon.Add(time.Hour) // positions are not what is measured
		if err := s.take(b.Context(), fetched{sources.Chunk{From: f.Next, Next: f.Next, End: f.Next}, noon.Add(time.Minute)}); err != nil {
			b.Fatal(err)
		}
		if s.open > 0 {
			b.Fatal(s.open)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(pieces)), "µs/part")
}

// BenchmarkWrite takes parts that tell whole calls.
func BenchmarkWrite(b *testing.B) {
	world := newWorld(b, 1)
	o := world.options()
	o.Producer = nowhere{}
	w, err := NewWriter(o, nil)
	if err != nil {
		b.Fatal(err)
	}
	var parts []call.Part
	for i := range 100 {
		parts = append(parts, call.Part{Format: "litellm", Kind: call.Model, Done: true, Group: "g", Key: fmt.Sprint(i), Time: noon, Model: "m", Provider: "openai",
			Messages: user("Is the candidate with the gap in the curriculum fit for the post that we have to fill?"), Answers: reply("Ask for the reason and judge by the skills that the post needs.")})
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Parts(b.Context(), parts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(parts)), "µs/part")
}
