package pipeline

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func values(n int) (vs []string) {
	for i := range n {
		vs = append(vs, fmt.Sprint("v", i))
	}
	return vs
}

func TestEveryOffsetIsCoveredOnce(t *testing.T) {
	w := newWorld()
	w.produce(0, values(23)...)
	w.produce(1, "a", "hole", "bad1", "hole", "hole", "b", "bad2", "hole")
	w.run(t)
	w.tiles(t, 0, 0, 0)
	w.tiles(t, 0, 1, 0)
	if len(w.rows) != 25 || len(w.rejected) != 2 || len(w.published) != 25 || len(w.letters) != 2 {
		t.Errorf("rows %d, rejected %d, published %d, letters %d", len(w.rows), len(w.rejected), len(w.published), len(w.letters))
	}
	for i, what := range w.order { // marker → dead letters → publish → commit, always
		if want := []string{"marker", "dead", "publish", "commit"}[i%4]; what != want {
			t.Fatalf("order %v", w.order)
		}
	}
}

func TestAnyLogIsTiled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		for p := range rapid.IntRange(1, 3).Draw(rt, "partitions") {
			w.produce(p, rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "bad", "hole"}), 1, 40).Draw(rt, "log")...)
		}
		w.run(t)
		for p := range w.end {
			w.tiles(t, 0, p, 0)
		}
	})
}

func TestTheEndOfAGenerationLeavesTheRestOfAChunk(t *testing.T) {
	for range 10 { // the chunk behind the one that is left waits already: it must not come next
		w := newWorld()
		w.chunk, w.config = 3*portion, func(c *Config) { c.BatchRows, c.BatchAge = 10*portion, time.Minute }
		w.produce(0, values(6*portion)...)
		w.done = func(*world) bool { return false }
		w.analyzing = func(*audit.Interaction) { w.stop() } // detectors may need many seconds for a chunk
		w.runUntilDone(t)
		if got := w.committed[0]; got != portion {
			t.Errorf("%d messages are committed, want the portion that was begun: %d", got, portion)
		}
		w.analyzing, w.config, w.chunk = nil, nil, 6*portion
		w.run(t)
		w.tiles(t, 0, 0, 0)
		if got := len(w.rows); got != 6*portion {
			t.Fatalf("%d messages of %d are stored", got, 6*portion)
		}
	}
}

func TestNothingFollowsWhatIsLeftOfAChunk(t *testing.T) {
	w := newWorld()
	w.chunk, w.config = 3*portion, func(c *Config) { c.BatchRows = 10 * portion }
	w.produce(0, values(6*portion)...)
	chunks := make(chan sources.Chunk, 2)
	for next := int64(0); next < 6*portion; {
		ch, err := w.Fetch(t.Context(), 0, next, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		chunks <- ch // the second was fetched as the generation ended
		next = ch.Next
	}
	close(chunks)
	ended, end := context.WithCancel(t.Context())
	end()
	batches := make(chan *batch, 10)
	p := w.build(t)
	s := &session{p: p, g: w, places: map[int]place{0: {}}, pos: map[int]int64{0: 0}, held: newBudget(p.cfg.BufferBytes)}
	s.fill(t.Context(), ended, chunks, batches)
	close(batches)
	for b := range batches {
		if m := b.Markers[0]; m.Lo != 0 || m.Hi != portion-1 || m.Rows != portion || m.Skipped != 0 {
			t.Errorf("[%d,%d] with %d rows, %d skipped", m.Lo, m.Hi, m.Rows, m.Skipped)
		}
	}
}

func TestABatchThatIsOldEnoughDoesNotWaitForTheChunk(t *testing.T) {
	w := newWorld()
	const age = 10 * time.Millisecond
	w.chunk, w.config = 3*portion, func(c *Config) { c.BatchRows, c.BatchAge, c.Workers = 10*portion, age, 1 }
	w.produce(0, values(3*portion)...)
	n := 0
	w.analyzing = func(*audit.Interaction) {
		if n++; n == portion {
			<-time.After(2 * age)
		}
	}
	w.run(t)
	w.tiles(t, 0, 0, 0)
	if got := w.markers[0].Hi; got != portion-1 {
		t.Errorf("the first batch ends at %d, not with the first portion at %d", got, portion-1)
	}
}

func TestACommitLostAfterItsMarkerIsSkippedAndPublishedAgain(t *testing.T) {
	w := newWorld()
	w.chunk = 5 // one batch, however slow the machine
	w.produce(0, values(5)...)
	w.commitFails = true
	w.done = func(*world) bool { return false }
	w.runUntilDone(t)
	if len(w.rows) != 5 || len(w.markers) != 1 || w.committed[0] != 0 {
		t.Fatalf("rows %d, markers %v, committed %v", len(w.rows), w.markers, w.committed)
	}
	w.commitFails = false
	w.produce(0, "more")
	w.run(t)
	w.tiles(t, 0, 0, 0)
	if len(w.markers) != 2 || w.skippedN != 1 || len(w.published) != 11 {
		t.Errorf("markers %d, skipped %d, published %d", len(w.markers), w.skippedN, len(w.published))
	}
}

func TestAReplacedLogIsWrittenWhole(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    int // records of the new log; the old one had 10
	}{{"shorter", 4}, {"as long", 10}, {"longer", 17}} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld()
			w.produce(0, values(10)...)
			w.run(t)
			var fresh []string
			for i := range tc.n {
				fresh = append(fresh, fmt.Sprint("new", i))
			}
			w.recreate(0, fresh...)
			w.committed[0] = 10 // the group's position outlives the topic
			w.done = func(w *world) bool { return len(w.rows) == 10+tc.n }
			w.runUntilDone(t)
			w.tiles(t, 1, 0, 0)
			if !slices.Equal(w.replacedAt, []int32{1}) {
				t.Errorf("replaced %v", w.replacedAt)
			}
		})
	}
}

func TestARecreatedTopicWithoutCommitIsSeen(t *testing.T) {
	w := newWorld()
	w.produce(0, values(5)...)
	w.run(t)
	w.recreate(0, "new0", "new1")
	delete(w.committed, 0)
	w.run(t)
	w.tiles(t, 1, 0, 0)
	if len(w.rows) != 7 {
		t.Errorf("rows %d", len(w.rows))
	}
}

func TestAfterATrimOffsetsGoOn(t *testing.T) {
	w := newWorld()
	w.produce(0, values(10)...)
	w.run(t)
	w.trim(0, 9) // all but the last record
	w.produce(0, "after")
	w.run(t)
	w.tiles(t, 0, 0, 0)
	if len(w.rows) != 11 || len(w.replacedAt) != 0 || len(w.gaps) != 0 {
		t.Errorf("rows %d, replaced %v, gaps %v", len(w.rows), w.replacedAt, w.gaps)
	}
}

func TestAGapIsMarkedAndNeverSilent(t *testing.T) {
	w := newWorld()
	w.produce(0, values(5)...)
	w.run(t)
	w.produce(0, values(10)...)
	w.trim(0, 8)
	w.run(t)
	w.tiles(t, 0, 0, 0)
	if !slices.Equal(w.gaps, []string{"0:5-7"}) {
		t.Errorf("gaps %v", w.gaps)
	}
}

func TestAnEmptiedStoreIsFilledAgain(t *testing.T) {
	w := newWorld()
	w.produce(0, values(10)...)
	w.run(t)
	clear(w.rows)
	w.markers = nil
	w.produce(0, "more")
	w.run(t)
	w.tiles(t, 0, 0, 0)
	if len(w.rows) != 11 {
		t.Errorf("rows %d", len(w.rows))
	}
}

func TestTheStoreMayFailForAWhile(t *testing.T) {
	w := newWorld()
	w.produce(0, values(7)...)
	w.sendFails = 3
	w.run(t)
	w.tiles(t, 0, 0, 0)
}

func TestARefusedRowIsDeadLetteredAlone(t *testing.T) {
	w := newWorld()
	w.produce(0, "a", "b", "poison", "c", "d")
	w.refuse["poison"] = true
	w.run(t)
	w.tiles(t, 0, 0, 0)
	if len(w.rows) != 4 || len(w.rejected) != 1 || len(w.letters) != 1 || len(w.published) != 4 {
		t.Errorf("rows %d, rejected %d, letters %v, published %d", len(w.rows), len(w.rejected), w.letters, len(w.published))
	}
	for _, r := range w.rejected {
		if string(r.Value) != string(w.log[0][2].Value) {
			t.Errorf("the dead letter holds %q, not the message as it came", r.Value)
		}
	}
}

// What is kept of a record is what Keep leaves of it, and the verdict that goes with it.
func TestKeep(t *testing.T) {
	p := &Pipeline{Parts: Parts{
		Decode: decodeFake, Analyze: func(context.Context, *audit.Interaction) *audit.Verdict { return &audit.Verdict{RuleSet: "raw"} },
		Keep: func(_ context.Context, r audit.Record) audit.Record {
			in := *r.Interaction
			in.Response = "masked after " + r.Verdict.RuleSet
			r.Interaction = &in
			return r
		},
	}}
	items := p.decode(t.Context(), "t", 0, sources.Chunk{Records: []sources.Record{{Value: []byte("a")}}})
	if len(items) != 1 || items[0].record.Interaction == nil || items[0].record.Interaction.Response != "masked after raw" {
		t.Errorf("%+v", items)
	}
}

// What a batch stored is handed on to be asked about, each once, and only once it is stored; who asks may
// fail as it likes.
func TestMoreIsAskedForBesidePublishing(t *testing.T) {
	w := newWorld()
	w.produce(0, values(12)...)
	w.produce(1, "a", "bad1")
	asked := map[string]int{}
	w.ask = func(_ context.Context, rs []audit.Record) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, r := range rs {
			asked[r.Interaction.Response]++
		}
		if len(w.markers) == 0 {
			t.Error("asked before anything was stored")
		}
	}
	w.run(t)
	if len(asked) != 13 || asked["a"] != 1 {
		t.Errorf("asked %v", asked)
	}
}
