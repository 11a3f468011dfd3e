package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// sink is a log that can be away.
type sink struct {
	mu    sync.Mutex
	got   []string
	sends int
	err   func(items []string) error
}

func (s *sink) send(_ context.Context, items []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends++
	if s.err != nil {
		if err := s.err(items); err != nil {
			return err
		}
	}
	s.got = append(s.got, items...)
	return nil
}

func (s *sink) queue(c guard.QueueConfig, counts map[string]int) *guard.Queue[string] {
	var mu sync.Mutex
	return guard.NewQueue(c, guard.QueueOptions[string]{
		Send: s.send, Size: func(t string) int { return len(t) },
		Key:  func(t string) string { k, _, _ := strings.Cut(t, "="); return k },
		Fold: func(a, b string) string { return a + "+" + b },
		Count: func(outcome string, n int) {
			mu.Lock()
			defer mu.Unlock()
			counts[outcome] += n
		},
	})
}

// What the log never takes is refused before it waits, counted, and said once a minute.
func TestQueueRefusesWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, counts, said := &sink{}, map[string]int{}, &strings.Builder{}
		var mu sync.Mutex
		q := guard.NewQueue(guard.DefaultQueueConfig(), guard.QueueOptions[string]{
			Send: s.send, Logger: slog.New(slog.NewTextHandler(said, nil)),
			Count: func(outcome string, n int) { // the queue counts what it sent, callers what they leave
				mu.Lock()
				defer mu.Unlock()
				counts[outcome] += n
			},
			Fits: func(t string) error {
				if len(t) > 3 {
					return audit.E("test", audit.KindInvalid, errors.New("at most 3"))
				}
				return nil
			},
		})
		put := func(item string, kind audit.Kind) {
			if err := q.Put(item); (err == nil) != (kind == "") || err != nil && audit.KindOf(err) != kind {
				t.Errorf("%s: %v", item, err)
			}
		}
		put("fit", "")
		put("large", audit.KindInvalid)
		put("large", audit.KindInvalid)
		time.Sleep(2 * time.Minute)
		put("large", audit.KindInvalid)
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if counts[guard.Large] != 3 || counts[guard.Sent] != 1 || len(s.got) != 1 {
			t.Errorf("%v %q", counts, s.got)
		}
		if n := strings.Count(said.String(), "the log takes no audit event of this size"); n != 2 || strings.Contains(said.String(), "large ") {
			t.Errorf("said %d times:\n%s", n, said)
		}
	})
}

func TestQueueSendsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, counts := &sink{}, map[string]int{}
		q := s.queue(guard.DefaultQueueConfig(), counts)
		for _, item := range []string{"a", "b", "c"} {
			if err := q.Put(item); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := q.Close(t.Context()); err != nil || !slices.Equal(s.got, []string{"a", "b", "c"}) || counts[guard.Sent] != 3 {
			t.Errorf("%v %v %v", err, s.got, counts)
		}
		if err := q.Put("d"); audit.KindOf(err) != audit.KindOverloaded {
			t.Errorf("after the end: %v", err)
		}
	})
}

// What is of one key goes out as one while it waits.
func TestQueueFolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		q := s.queue(guard.QueueConfig{Items: 2, Bytes: 100, Linger: time.Second}, map[string]int{})
		for _, item := range []string{"a=1", "b=1", "a=2", "a=3"} {
			if err := q.Put(item); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !slices.Equal(s.got, []string{"a=1+a=2+a=3", "b=1"}) || s.sends != 1 {
			t.Errorf("%v in %d", s.got, s.sends)
		}
		if n, bytes := q.Len(); n != 0 || bytes != 0 {
			t.Errorf("%d items, %d bytes are left", n, bytes)
		}
		_ = q.Close(t.Context())
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := true
		s, counts := &sink{}, map[string]int{}
		s.err = func([]string) error {
			if away {
				return audit.E("test", audit.KindUnavailable, errors.New("away"))
			}
			return nil
		}
		q := s.queue(guard.QueueConfig{Items: 3, Bytes: 20}, counts)
		for i, item := range []string{"a=1", "b=1", "c=1", "d=1", "b=22222222222222222"} {
			err := q.Put(item)
			if full := i >= 3; full != (audit.KindOf(err) == audit.KindOverloaded && err != nil) {
				t.Errorf("%d: %v", i, err)
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		away = false
		s.mu.Unlock()
		if err := q.Close(t.Context()); err != nil || len(s.got) != 3 || counts[guard.Sent] != 3 || counts[guard.Refused] != 2 || counts[guard.Lost] != 0 {
			t.Errorf("%v %v %v", err, s.got, counts)
		}
	})
}

// A log that refuses one event for good gets the others all the same, and the loss is counted.
func TestQueueCountsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, counts := &sink{}, map[string]int{}
		s.err = func(items []string) error {
			if slices.Contains(items, "bad") {
				return audit.E("test", audit.KindInvalid, errors.New("too large"))
			}
			return nil
		}
		q := s.queue(guard.QueueConfig{Items: 10, Bytes: 100, Linger: time.Second}, counts)
		for _, item := range []string{"a", "bad", "c"} {
			if err := q.Put(item); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !slices.Equal(s.got, []string{"a", "c"}) || counts[guard.Lost] != 1 {
			t.Errorf("%v %v", s.got, counts)
		}
		s.err = func([]string) error { return audit.E("test", audit.KindUnavailable, errors.New("away")) }
		for _, item := range []string{"x", "y"} {
			if err := q.Put(item); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := q.Close(ctx); err == nil || counts[guard.Lost] != 3 || counts[guard.Sent] != 2 {
			t.Errorf("%v %v", err, counts)
		}
		if err := q.Close(t.Context()); err == nil {
			t.Error("the second Close forgets what was lost")
		}
	})
}

// Who closes a queue does not wait until those that linger have had company.
func TestCloseEndsLingering(t *testing.T) {
	for range 200 {
		var sent atomic.Int32
		q := guard.NewQueue(guard.QueueConfig{Items: 10, Bytes: 1 << 10, Linger: time.Hour}, guard.QueueOptions[int]{
			Send: func(_ context.Context, items []int) error { sent.Add(int32(len(items))); return nil },
		})
		if err := q.Put(1); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
		if err := q.Close(t.Context()); err != nil || sent.Load() != 1 {
			t.Fatal(err, sent.Load())
		}
	}
}
