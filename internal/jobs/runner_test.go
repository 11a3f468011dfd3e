package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

// alone is a group of one member: its only generation lasts as long as Run.
type alone struct{}

func (alone) Run(ctx context.Context, serve func(context.Context, sources.Generation) error) error {
	return serve(ctx, nil)
}

// book is a journal in memory.
type book struct {
	mu      sync.Mutex
	entries []Entry
	down    int       // how often Last fails first
	shut    time.Time // until when Add fails
}

func (b *book) Last(context.Context) (map[string]Last, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down > 0 {
		b.down--
		return nil, audit.E("book", audit.KindUnavailable, errors.New("away"))
	}
	out := map[string]Last{}
	for _, e := range b.entries {
		l := out[e.Job]
		l.Entry = e
		if e.Status != Canceled {
			l.Slot = e.Slot
		}
		if e.Status == Done {
			l.Success = e.Finished
			if !e.Result.Watermark.IsZero() {
				l.Watermark = e.Result.Watermark
			}
		}
		out[e.Job] = l
	}
	return out, nil
}

func (b *book) Add(_ context.Context, e Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.shut) {
		return audit.E("book", audit.KindUnavailable, errors.New("away"))
	}
	b.entries = append(b.entries, e)
	return nil
}

// lines are "status trigger HH:MM:SS" of the runs.
func (b *book) lines() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.entries {
		out = append(out, fmt.Sprintf("%s %s %s", e.Status, e.Trigger, e.Started.Format("15:04:05")))
	}
	return strings.Join(out, ", ")
}

// led are the events of an observer.
type led struct {
	silent
	mu      sync.Mutex
	skipped int
}

func (l *led) JobSkipped(string) { l.mu.Lock(); l.skipped++; l.mu.Unlock() }

// lead runs the jobs for d of the bubble's time, which begins on 2000-01-01 at midnight UTC.
func lead(t *testing.T, opt Options, d time.Duration, list ...Job) {
	t.Helper()
	if opt.Source == nil {
		opt.Source = alone{}
	}
	r, err := New(opt, list...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Lead(ctx); err != nil {
		t.Error(err)
	}
}

func nothing(context.Context, Run) (Result, error) { return Result{}, nil }

// served is a journal in which a job's slot was served.
func served(job string, at time.Time) *book {
	return &book{entries: []Entry{{Job: job, Slot: at, Started: at, Finished: at, Status: Done}}}
}

var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestSchedule(t *testing.T) {
	for _, tc := range []struct {
		name, schedule, zone string
		served               time.Duration // before midnight
		lead                 time.Duration
		want                 string
	}{
		{"every ten minutes", "*/10 * * * *", "UTC", time.Minute, 25 * time.Minute, "done catch_up 00:00:00, done schedule 00:10:00, done schedule 00:20:00"},
		{"nothing missed", "30 0 * * *", "UTC", time.Minute, time.Hour, "done schedule 00:30:00"},
		{"missed while nobody led", "30 23 * * *", "UTC", 2 * time.Hour, time.Hour, "done catch_up 00:00:00"},
		{"missed many times, run once", "@hourly", "UTC", 100 * time.Hour, 30 * time.Minute, "done catch_up 00:00:00"},
		{"the zone of all", "30 1 * * *", "Europe/Paris", time.Minute, time.Hour, "done schedule 00:30:00"},
		{"a zone of its own", "CRON_TZ=Asia/Kolkata 45 5 * * *", "Europe/Paris", time.Minute, time.Hour, "done schedule 00:15:00"},
		{"a slot of another zone", "CRON_TZ=Asia/Kolkata 15 5 * * *", "UTC", 30 * time.Minute, time.Minute, "done catch_up 00:00:00"},
		{"off", "off", "UTC", 100 * time.Hour, 48 * time.Hour, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			zone, err := time.LoadLocation(tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				b := served("a", midnight.Add(-tc.served))
				lead(t, Options{Journal: b, Zone: zone}, tc.lead, Job{Name: "a", Schedule: tc.schedule, Timeout: time.Minute, Run: nothing})
				b.entries = b.entries[1:]
				if got := b.lines(); got != tc.want {
					t.Errorf("ran %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestAJobThatNeverRanCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{down: 3} // and waits for the journal
		lead(t, Options{Journal: b, jitter: func(d time.Duration) time.Duration { return d }}, time.Hour, Job{Name: "a", Schedule: "0 3 * * *", Timeout: time.Minute, Run: nothing})
		if got := b.lines(); got != "done catch_up 00:00:07" { // 1 + 2 + 4 s of back-off
			t.Error(got)
		}
	})
}

func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := served("a", midnight)
		lead(t, Options{Journal: b, jitter: func(most time.Duration) time.Duration { return most - time.Second }}, time.Hour,
			Job{Name: "a", Schedule: "30 0 * * *", Timeout: time.Minute, Jitter: time.Minute, Run: nothing})
		if got := b.entries[len(b.entries)-1]; got.Started != midnight.Add(30*time.Minute+59*time.Second) || got.Slot != midnight.Add(30*time.Minute) {
			t.Errorf("slot %v, started %v", got.Slot, got.Started)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a run that waits for its jitter is not begun when the lead ends
		b := served("a", midnight)
		lead(t, Options{Journal: b, jitter: func(most time.Duration) time.Duration { return most }}, 30*time.Minute+time.Second,
			Job{Name: "a", Schedule: "30 0 * * *", Timeout: time.Minute, Jitter: time.Minute, Run: nothing})
		if len(b.entries) != 1 || time.Since(midnight) != 30*time.Minute+time.Second {
			t.Errorf("%s after %v", b.lines(), time.Since(midnight))
		}
	})
}

func TestJitterStaysBeforeTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, o := served("a", midnight), &led{}
		lead(t, Options{Journal: b, Observer: o, jitter: func(most time.Duration) time.Duration { return most }}, 3*time.Minute+time.Second,
			Job{Name: "a", Schedule: "* * * * *", Timeout: time.Minute, Jitter: time.Hour, Run: nothing})
		if got := b.lines(); got != "done  00:00:00, done schedule 00:01:30, done schedule 00:02:30" || o.skipped != 0 {
			t.Errorf("%s, %d skipped", got, o.skipped)
		}
	})
}

func TestSkipWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, o := served("slow", midnight), &led{}
		lead(t, Options{Journal: b, Observer: o}, 35*time.Minute, Job{Name: "slow", Schedule: "*/10 * * * *", Timeout: time.Hour, Run: func(ctx context.Context, _ Run) (Result, error) {
			wait.For(ctx, 15*time.Minute)
			return Result{}, ctx.Err()
		}})
		if got := b.lines(); got != "done  00:00:00, done schedule 00:10:00, canceled schedule 00:30:00" || o.skipped != 1 {
			t.Errorf("%s, %d skipped", got, o.skipped)
		}
	})
}

func TestPanicFailureAndTimeoutEndOneRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := served("a", midnight)
		n := 0
		lead(t, Options{Journal: b, Logger: slog.New(slog.NewTextHandler(&log, nil))}, 45*time.Minute, Job{Name: "a", Schedule: "*/10 * * * *", Timeout: time.Minute, Run: func(ctx context.Context, _ Run) (Result, error) {
			switch n++; n {
			case 1:
				panic("words of people")
			case 2:
				return Result{}, audit.E("store: x", audit.KindUnavailable, errors.New("away"))
			case 3:
				<-ctx.Done()
				return Result{Figures: map[string]int64{"half": 1}}, ctx.Err()
			}
			return Result{Figures: map[string]int64{"rows": 7}}, nil
		}})
		b.entries = b.entries[1:]
		if got := b.lines(); got != "panic schedule 00:10:00, failed schedule 00:20:00, timeout schedule 00:30:00, done schedule 00:40:00" {
			t.Error(got)
		}
		if d := b.entries[0].Detail; d != "panic of type string" || b.entries[1].Detail != "store: x: away" || b.entries[2].Result.Figures["half"] != 1 {
			t.Errorf("%q %q %v", d, b.entries[1].Detail, b.entries[2].Result)
		}
		if strings.Contains(log.String(), "words of people") || !strings.Contains(log.String(), "map[rows:7]") {
			t.Error(log.String())
		}
	})
}

func TestDrain(t *testing.T) {
	for _, tc := range []struct {
		needs time.Duration
		want  string
		ended time.Duration
	}{{4 * time.Second, "done", 64 * time.Second}, {time.Hour, "canceled", 70 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			b := served("a", midnight)
			// Begins at minute one, the lead ends with it.
			lead(t, Options{Journal: b}, time.Minute+time.Millisecond, Job{Name: "a", Schedule: "* * * * *", Timeout: 2 * time.Hour, Run: func(ctx context.Context, _ Run) (Result, error) {
				wait.For(ctx, tc.needs)
				return Result{}, ctx.Err()
			}})
			if e := b.entries[1]; string(e.Status) != tc.want || time.Since(midnight).Round(time.Second) != tc.ended {
				t.Errorf("%s after %v, want %s after %v", e.Status, time.Since(midnight), tc.want, tc.ended)
			}
			// What was broken off counts as missed, what ended in time does not.
			last, _ := b.Last(t.Context())
			if missed := !last["a"].Slot.After(midnight); missed != (tc.want == "canceled") {
				t.Errorf("slot %v", last["a"].Slot)
			}
		})
	}
}

func TestWatermarkGoesFromRunToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		var seen []time.Time
		marks := []time.Time{midnight, {}, midnight.Add(time.Hour), {}}
		job := Job{Name: "a", Schedule: "*/10 * * * *", Timeout: time.Minute, Run: func(_ context.Context, r Run) (Result, error) {
			seen = append(seen, r.Watermark)
			if len(seen) == 3 {
				return Result{Watermark: marks[2]}, errors.New("no") // a failed run does not move it
			}
			return Result{Watermark: marks[len(seen)-1]}, nil
		}}
		lead(t, Options{Journal: b}, 25*time.Minute, job)
		lead(t, Options{Journal: b}, 10*time.Minute, job)
		if want := []time.Time{{}, midnight, midnight, midnight}; !slices.Equal(seen, want) {
			t.Errorf("%v", seen)
		}
	})
}

// Runs that failed because the store went away are written down once it is back, of each job the newest, without another run.
func TestRunsAreWrittenDownLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := served("a", midnight.Add(-time.Minute))
		b.entries = append(b.entries, served("b", midnight.Add(-time.Minute)).entries...)
		known := len(b.entries)
		b.shut = midnight.Add(3*time.Hour + 30*time.Minute)
		away := func(context.Context, Run) (Result, error) { return Result{}, errors.New("the store is away") }
		lead(t, Options{Journal: b}, 4*time.Hour-time.Minute,
			Job{Name: "a", Schedule: "0 * * * *", Timeout: time.Minute, Run: away},
			Job{Name: "b", Schedule: "0 2 * * *", Timeout: time.Minute, Run: away})
		var got []string
		for _, e := range b.entries[known:] {
			got = append(got, fmt.Sprintf("%s %s %s", e.Job, e.Status, e.Started.Format("15:04")))
		}
		slices.Sort(got)
		if want := []string{"a failed 03:00", "b failed 02:00"}; !slices.Equal(got, want) {
			t.Errorf("written down: %q, want %q", got, want)
		}
	})
}

func TestRunNowAndList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := served("a", midnight.Add(-time.Hour))
		b.entries[0].Result.Watermark = midnight
		var told []int
		r, err := New(Options{Journal: b, Host: "here"},
			Job{Name: "a", Title: "does a", Schedule: "CRON_TZ=Europe/Paris 0 3 * * *", Timeout: time.Minute, Run: func(_ context.Context, run Run) (Result, error) {
				run.Progress(1, 2)
				if run.Watermark != midnight || run.Trigger != Manual {
					t.Errorf("%+v", run)
				}
				return Result{}, nil
			}}, Job{Name: "b", Schedule: Off, Timeout: time.Minute, Run: func(context.Context, Run) (Result, error) { return Result{}, errors.New("broken") }})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := r.RunNow(t.Context(), "a", func(done, total int) { told = append(told, done, total) }); err != nil || e.Status != Done || e.Host != "here" || !slices.Equal(told, []int{1, 2}) {
			t.Errorf("%+v %v %v", e, told, err)
		}
		if e, err := r.RunNow(t.Context(), "b", nil); err == nil || e.Status != Failed {
			t.Errorf("%+v %v", e, err)
		}
		if _, err := r.RunNow(t.Context(), "c", nil); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
		list, err := r.List(t.Context())
		if err != nil || len(list) != 2 {
			t.Fatal(err)
		}
		if a := list[0]; a.Zone != "Europe/Paris" || a.Schedule != "0 3 * * *" || !a.Next.Equal(midnight.Add(2*time.Hour)) || a.Last.Status != Done || !a.Success.Equal(midnight) {
			t.Errorf("%+v", a)
		}
		if l := list[1]; l.Next != nil || l.Success != nil || l.Last.Detail != "broken" {
			t.Errorf("%+v", l)
		}
	})
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := New(Options{}, Job{Name: "a", Schedule: "soon", Timeout: 1, Run: nothing}, Job{Name: "b", Schedule: "CRON_TZ=Moon/Base * * * * *", Timeout: 1, Run: nothing},
		Job{Name: "c", Schedule: "@daily", Run: nothing}, Job{Name: "a", Schedule: Off, Timeout: 1, Run: nothing})
	for _, want := range []string{"jobs.a.schedule: \"soon\" is not a schedule", "jobs.b.schedule: ", "Moon/Base", "jobs.c: needs a timeout", "jobs.a: the name is used twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if audit.KindOf(err) != audit.KindInvalid {
		t.Error(audit.KindOf(err))
	}
}

// A clock that is set back begins the schedule anew; cron alone would wait until its old next time has come again.
func TestScheduleOfAClockThatIsSetBack(t *testing.T) {
	at := time.Date(2026, 11, 30, 22, 26, 45, 0, time.UTC)
	for _, spec := range []string{"* * * * *", "@hourly", "17 3 * * *", "@every 10m"} {
		schedule, err := ParseSchedule(spec)
		if err != nil {
			t.Fatal(err)
		}
		made := []cron.Entry{{Schedule: schedule, Next: schedule.Next(at)}}
		for after, want := range map[time.Duration]bool{0: false, 10 * time.Second: false, -25 * time.Hour: true} {
			if got := setBack(made, at.Add(after)); got != want {
				t.Errorf("%s, %s later: %t", spec, after, got)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := served("a", midnight)
		r, err := New(Options{Journal: b, Source: alone{}}, Job{Name: "a", Schedule: "@hourly", Timeout: time.Minute, Run: nothing})
		if err != nil {
			t.Fatal(err)
		}
		s := &swung{}
		s.ahead.Store(true)
		r.jobs[0].schedule = s
		time.AfterFunc(10*time.Minute, func() { s.ahead.Store(false) })
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		if err := r.Lead(ctx); err != nil {
			t.Error(err)
		}
		b.entries = b.entries[1:]
		if got := b.lines(); got != "done schedule 01:00:00, done schedule 02:00:00" {
			t.Errorf("ran %q", got)
		}
	})
}

// swung is hourly by a clock that may be an hour ahead.
type swung struct{ ahead atomic.Bool }

func (s *swung) Next(t time.Time) time.Time {
	if s.ahead.Load() {
		t = t.Add(time.Hour)
	}
	return t.Truncate(time.Hour).Add(time.Hour)
}
