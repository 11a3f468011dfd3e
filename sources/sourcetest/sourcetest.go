// Package sourcetest is the contract that every source keeps: the same tests run on the embedded
// broker and on a real Kafka.
//
// A test of a source fills a [Log] and calls [Run]. Each case works on topics and groups of its own,
// so that cases do not see each other.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/sources"
)

// Log is a partitioned log and a way to consume it.
type Log struct {
	// Source builds a consumer of a topic in a group.
	Source func(t *testing.T, topic, group string) sources.Source
	// Create makes a topic whose records bear the time of their append.
	Create func(t *testing.T, topic string, partitions int)
	// Append writes records to a partition and returns after the acknowledgement. The producer's own
	// time on them is years old.
	Append func(t *testing.T, topic string, partition int, values ...string)
	// Trim deletes the records before an offset.
	Trim func(t *testing.T, topic string, partition int, before int64)
}

// Run checks a source against its contract.
func Run(t *testing.T, log Log) {
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"all records once and in order", allInOrder},
		{"without a commit everything comes again", redelivery},
		{"a commit is where the next generation starts", commitResumes},
		{"two members share and lose nothing", rebalance},
		{"a batch under way is committed while partitions move", commitWhileMoving},
		{"an offset outside the log is told with its bounds", outOfRange},
		{"a topic may come after its consumer", lateTopic},
		{"an ended generation refuses", endedRefuses},
		{"an error of serve ends Run", serveFails},
		{"closing is prompt", promptClose},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("contract.%s.%d", strings.ReplaceAll(tc.name, " ", "-"), time.Now().UnixNano())
			tc.run(t, &bench{Log: log, topic: name, group: name})
		})
	}
}

const patience = 40 * time.Second // for what takes a second or two on a quiet machine

type bench struct {
	Log
	topic, group string
}

// seen is what a consumer read of one partition.
type seen struct {
	mu     sync.Mutex
	values map[int][]string
	total  int
}

func (s *seen) add(c sources.Chunk) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[int][]string{}
	}
	for _, r := range c.Records {
		s.values[c.Partition] = append(s.values[c.Partition], string(r.Value))
	}
	s.total += len(c.Records)
	return s.total
}

// consume runs a source until enough says so. It reads every claim from its committed position, and
// commits what it read when commit is set.
func (b *bench) consume(t *testing.T, commit bool, on func(sources.Chunk) (enough bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := b.Source(t, b.topic, b.group).Run(ctx, func(gctx context.Context, g sources.Generation) error {
		return drain(gctx, g, commit, func(c sources.Chunk) bool {
			if on(c) {
				cancel()
				return true
			}
			return false
		})
	})
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("not enough was read within %v", patience)
	}
}

// drain reads the claims of a generation in turn until enough or its end.
func drain(ctx context.Context, g sources.Generation, commit bool, on func(sources.Chunk) bool) error {
	next := map[int]int64{}
	for _, c := range g.Claims() {
		next[c.Partition] = max(c.Committed, 0)
	}
	for ctx.Err() == nil {
		for _, c := range g.Claims() {
			chunk, err := g.Fetch(ctx, c.Partition, next[c.Partition], 1<<20)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			enough := on(chunk)
			if chunk.Next != next[c.Partition] && commit {
				next[c.Partition] = chunk.Next
				// The generation's own context may be over: a commit still counts until the group moved on.
				if err := g.Commit(context.WithoutCancel(ctx), map[int]int64{c.Partition: chunk.Next}); err != nil {
					return err
				}
			}
			next[c.Partition] = chunk.Next
			if enough {
				return nil
			}
		}
	}
	return nil
}

func numbered(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("record %d", i))
	}
	return out
}

func allInOrder(t *testing.T, b *bench) {
	const partitions, each = 3, 400
	b.Create(t, b.topic, partitions)
	before := time.Now().Add(-5 * time.Second)
	for p := range partitions {
		for from := 0; from < each; from += 100 {
			b.Append(t, b.topic, p, numbered(from, from+100)...)
		}
	}
	var got seen
	var faults []string
	b.consume(t, true, func(c sources.Chunk) bool {
		for i, r := range c.Records {
			switch {
			case r.Offset < c.From || r.Offset >= c.Next:
				faults = append(faults, fmt.Sprintf("offset %d outside the chunk [%d,%d)", r.Offset, c.From, c.Next))
			case i > 0 && r.Offset <= c.Records[i-1].Offset:
				faults = append(faults, fmt.Sprintf("offset %d after %d", r.Offset, c.Records[i-1].Offset))
			case r.Time.Before(before) || r.Time.After(time.Now().Add(5*time.Second)) || r.Time.Location() != time.UTC || r.Time.Nanosecond()%1e6 != 0:
				faults = append(faults, fmt.Sprintf("time %v is not that of the append in UTC milliseconds", r.Time))
			}
		}
		return got.add(c) >= partitions*each
	})
	if len(faults) > 0 {
		t.Fatalf("%d faults, the first: %s", len(faults), faults[0])
	}
	for p := range partitions {
		if !slices.Equal(got.values[p], numbered(0, each)) {
			t.Errorf("partition %d: %d records, not the %d appended in order", p, len(got.values[p]), each)
		}
	}
}

func redelivery(t *testing.T, b *bench) {
	b.Create(t, b.topic, 1)
	b.Append(t, b.topic, 0, numbered(0, 50)...)
	for range 2 {
		var got seen
		b.consume(t, false, func(c sources.Chunk) bool { return got.add(c) >= 50 })
		if !slices.Equal(got.values[0], numbered(0, 50)) {
			t.Fatalf("read %d records, want all 50", got.total)
		}
	}
}

func commitResumes(t *testing.T, b *bench) {
	b.Create(t, b.topic, 1)
	b.Append(t, b.topic, 0, numbered(0, 50)...)
	var got seen
	b.consume(t, true, func(c sources.Chunk) bool { return got.add(c) >= 50 })
	b.Append(t, b.topic, 0, numbered(50, 60)...)
	var more seen
	b.consume(t, true, func(c sources.Chunk) bool { return more.add(c) >= 10 })
	if !slices.Equal(more.values[0], numbered(50, 60)) {
		t.Fatalf("after a commit at 50 the next generation read %q", more.values[0])
	}
}

// rebalance runs one member, then a second, then takes the first away while records keep coming.
func rebalance(t *testing.T, b *bench) {
	const partitions, each, step = 2, 600, 20
	b.Create(t, b.topic, partitions)
	var got seen
	member := func() (stop func(), alone chan struct{}) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		done, claimed := make(chan struct{}), make(chan struct{})
		var once sync.Once
		src := b.Source(t, b.topic, b.group)
		go func() {
			defer close(done)
			err := src.Run(ctx, func(gctx context.Context, g sources.Generation) error {
				once.Do(func() { close(claimed) })
				return drain(gctx, g, true, func(c sources.Chunk) bool { got.add(c); return false })
			})
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		}()
		return func() { cancel(); <-done }, claimed
	}
	feed := func(from, to int) {
		for i := from; i < to; i += step {
			for p := range partitions {
				b.Append(t, b.topic, p, numbered(i, i+step)...)
			}
		}
	}
	stop1, claimed1 := member()
	await(t, claimed1)
	feed(0, 200)
	stop2, claimed2 := member()
	defer stop2()
	await(t, claimed2)
	feed(200, 400)
	stop1()
	feed(400, each)
	deadline := time.Now().Add(patience)
	for {
		missing := 0
		got.mu.Lock()
		for p := range partitions {
			have := map[string]bool{}
			for _, v := range got.values[p] {
				have[v] = true
			}
			missing += each - len(have)
		}
		got.mu.Unlock()
		if missing == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d records were never read", missing)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// commitWhileMoving: a member that needs a moment after its context ended may still commit, and the
// next owner starts there.
func commitWhileMoving(t *testing.T, b *bench) {
	b.Create(t, b.topic, 1)
	b.Append(t, b.topic, 0, numbered(0, 30)...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	claimed, done := make(chan struct{}), make(chan error, 1)
	src := b.Source(t, b.topic, b.group)
	go func() {
		first := true
		done <- src.Run(ctx, func(gctx context.Context, g sources.Generation) error {
			if !first { // whoever gets the partition now must not read below 30
				for _, c := range g.Claims() {
					if c.Committed != 30 {
						t.Errorf("the position is %d after a commit of 30", c.Committed)
					}
				}
				<-gctx.Done()
				return nil
			}
			first = false
			close(claimed)
			<-gctx.Done()
			<-time.After(time.Second) // the batch is being written
			if err := g.Commit(context.WithoutCancel(gctx), map[int]int64{0: 30}); err != nil {
				t.Errorf("Commit within the rebalance: %v", err)
			}
			return nil
		})
	}()
	await(t, claimed)
	second, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	other := make(chan error, 1)
	go func() {
		other <- b.Source(t, b.topic, b.group).Run(second, func(gctx context.Context, g sources.Generation) error {
			for _, c := range g.Claims() {
				if c.Committed != 30 {
					t.Errorf("the position is %d after a commit of 30", c.Committed)
				}
			}
			stop()
			return nil
		})
	}()
	<-time.After(3 * time.Second) // both have joined; one of them has the partition
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := <-other; err != nil { // alone now, so it is served if it was not before
		t.Errorf("Run: %v", err)
	}
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no partitions were assigned within %v", patience)
	}
}

func outOfRange(t *testing.T, b *bench) {
	b.Create(t, b.topic, 1)
	for i := range 5 { // batches of their own, so that the log can be cut between them
		b.Append(t, b.topic, 0, numbered(10*i, 10*i+10)...)
	}
	b.Trim(t, b.topic, 0, 20)
	b.generation(t, func(ctx context.Context, g sources.Generation) {
		start, end, err := g.Bounds(ctx, 0)
		if err != nil || start != 20 || end != 50 {
			t.Errorf("Bounds: [%d,%d) %v, want [20,50)", start, end, err)
		}
		for _, asked := range []int64{3, 999} {
			_, err := g.Fetch(ctx, 0, asked, 1<<20)
			var out *sources.OutOfRangeError
			if !errors.As(err, &out) || *out != (sources.OutOfRangeError{Asked: asked, Start: 20, End: 50}) {
				t.Errorf("Fetch(%d): %v, want it told to be outside [20,50)", asked, err)
			}
		}
		if c, err := g.Fetch(ctx, 0, 50, 1<<20); err != nil || len(c.Records) != 0 || c.From != 50 || c.Next != 50 || c.End != 50 {
			t.Errorf("Fetch at the end: %+v %v, want an empty chunk", c, err)
		}
		if c, err := g.Fetch(ctx, 0, 25, 1<<20); err != nil || len(c.Records) == 0 || c.Records[0].Offset != 25 || c.End != 50 {
			t.Errorf("Fetch inside a batch does not start at the asked record: %v", err)
		}
	})
}

// generation runs f inside the first generation.
func (b *bench) generation(t *testing.T, f func(context.Context, sources.Generation)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ran := false
	err := b.Source(t, b.topic, b.group).Run(ctx, func(gctx context.Context, g sources.Generation) error {
		f(gctx, g)
		ran = true
		cancel()
		return nil
	})
	if err != nil || !ran {
		t.Fatalf("Run: %v, served %t", err, ran)
	}
}

func lateTopic(t *testing.T, b *bench) {
	var got seen
	go func() {
		<-time.After(time.Second)
		b.Create(t, b.topic, 2)
		b.Append(t, b.topic, 0, numbered(0, 10)...)
		b.Append(t, b.topic, 1, numbered(0, 10)...)
	}()
	b.consume(t, true, func(c sources.Chunk) bool { return got.add(c) >= 20 })
}

func endedRefuses(t *testing.T, b *bench) {
	b.Create(t, b.topic, 1)
	var kept sources.Generation
	b.generation(t, func(_ context.Context, g sources.Generation) { kept = g })
	if err := kept.Commit(t.Context(), map[int]int64{0: 0}); !errors.Is(err, sources.ErrGenerationEnded) {
		t.Errorf("Commit after the end: %v", err)
	}
	if _, err := kept.Fetch(t.Context(), 0, 0, 1<<20); !errors.Is(err, sources.ErrGenerationEnded) {
		t.Errorf("Fetch after the end: %v", err)
	}
}

func serveFails(t *testing.T, b *bench) {
	b.Create(t, b.topic, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	broken := errors.New("broken")
	err := b.Source(t, b.topic, b.group).Run(ctx, func(context.Context, sources.Generation) error { return broken })
	if !errors.Is(err, broken) {
		t.Fatalf("Run: %v, want serve's own error", err)
	}
}

func promptClose(t *testing.T, b *bench) {
	b.Create(t, b.topic, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var asked time.Time
	err := b.Source(t, b.topic, b.group).Run(ctx, func(gctx context.Context, g sources.Generation) error {
		time.AfterFunc(300*time.Millisecond, func() { asked = time.Now(); cancel() })
		return drain(gctx, g, true, func(sources.Chunk) bool { return false })
	})
	if took := time.Since(asked); err != nil || took > 6*time.Second {
		t.Fatalf("Run ended %v after its context with %v", took, err)
	}
}
