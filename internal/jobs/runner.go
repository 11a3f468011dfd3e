package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// Options is what the program sets.
type Options struct {
	// Zone is the time zone of schedules that name none; nil is UTC.
	Zone *time.Location
	// Source is the group whose generations with a claim lead; Lead needs it, RunNow and List do not.
	Source  sources.Source
	Journal Journal
	// Host names this process in the journal.
	Host     string
	Observer Observer     // nil: nobody looks
	Logger   *slog.Logger // nil is quiet
	// Drain is how long running jobs may go on when the lead or the process ends. 0 is 10 s.
	Drain time.Duration

	jitter func(most time.Duration) time.Duration // for tests; nil is random
}

const (
	defaultDrain = 10 * time.Second
	addTimeout   = 10 * time.Second // of writing one entry, which outlives the run's own context
	settleEvery  = time.Minute      // entries that the journal did not take are tried again
	mostDetail   = 300              // bytes of an error that are kept
)

// Runner holds the jobs of one process.
type Runner struct {
	opt  Options
	jobs []*job

	mu   sync.Mutex
	owed map[string]Entry // by job; what the journal has not taken yet
}

// job is a Job with its parsed schedule.
type job struct {
	Job
	schedule cron.Schedule // nil: off
	busy     sync.Mutex    // held while it runs

	mu        sync.Mutex
	watermark time.Time
}

// Off is the schedule of a job that runs on demand only.
const Off = "off"

// ParseSchedule reads a schedule; an error says what is wrong with it.
func ParseSchedule(s string) (cron.Schedule, error) {
	if s == Off {
		return nil, nil
	}
	p := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	schedule, err := p.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not a schedule: %w; write five fields (minute hour day month weekday), @every 10m, or off", s, err)
	}
	return schedule, nil
}

// New checks the jobs; every fault is reported, with its key.
func New(opt Options, list ...Job) (*Runner, error) {
	if opt.Zone == nil {
		opt.Zone = time.UTC
	}
	if opt.Observer == nil {
		opt.Observer = silent{}
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Drain == 0 {
		opt.Drain = defaultDrain
	}
	if opt.jitter == nil {
		opt.jitter = func(most time.Duration) time.Duration { return rand.N(most) }
	}
	r := &Runner{opt: opt, owed: map[string]Entry{}}
	var errs []error
	for _, j := range list {
		s, err := ParseSchedule(j.Schedule)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("jobs.%s.schedule: %w", j.Name, err))
		case r.find(j.Name) != nil:
			errs = append(errs, fmt.Errorf("jobs.%s: the name is used twice", j.Name))
		case j.Timeout <= 0 || j.Run == nil:
			errs = append(errs, fmt.Errorf("jobs.%s: needs a timeout and something to run", j.Name))
		}
		r.jobs = append(r.jobs, &job{Job: j, schedule: s})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, audit.E("jobs: new", audit.KindInvalid, err)
	}
	return r, nil
}

func (r *Runner) find(name string) *job {
	for _, j := range r.jobs {
		if j.Name == name {
			return j
		}
	}
	return nil
}

// Names lists the names of the jobs in their order.
func (r *Runner) Names() (names []string) {
	for _, j := range r.jobs {
		names = append(names, j.Name)
	}
	return names
}

// Listed is one job as List shows it.
type Listed struct {
	Name     string     `json:"name"`
	Title    string     `json:"title"`
	Schedule string     `json:"schedule"`
	Zone     string     `json:"time_zone"`
	Timeout  string     `json:"timeout"`
	Next     *time.Time `json:"next,omitempty"` // of the leader's schedule, without jitter; nil when off
	Success  *time.Time `json:"last_success,omitempty"`
	Last     *Entry     `json:"last,omitempty"`
}

// List gives the jobs in their order with what the journal knows of them.
func (r *Runner) List(ctx context.Context) ([]Listed, error) {
	last, err := r.opt.Journal.Last(ctx)
	if err != nil {
		return nil, err
	}
	var out []Listed
	for _, j := range r.jobs {
		l := Listed{Name: j.Name, Title: j.Title, Schedule: j.Schedule, Zone: r.opt.Zone.String(), Timeout: j.Timeout.String()}
		if zone, rest, ok := strings.Cut(j.Schedule, " "); ok && (strings.HasPrefix(zone, "CRON_TZ=") || strings.HasPrefix(zone, "TZ=")) {
			l.Zone, l.Schedule = zone[strings.Index(zone, "=")+1:], rest
		}
		if j.schedule != nil {
			next := j.schedule.Next(time.Now().In(r.opt.Zone))
			l.Next = &next
		}
		if known, ok := last[j.Name]; ok {
			l.Last = &known.Entry
			if !known.Success.IsZero() {
				l.Success = &known.Success
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// ErrUnknown says that there is no job of that name.
var ErrUnknown = errors.New("no such job")

// RunNow runs a job in this process, whoever leads, and writes its entry. The error is the job's own
// or the journal's; the entry is complete in either case, but for an unknown name.
func (r *Runner) RunNow(ctx context.Context, name string, progress func(done, total int)) (Entry, error) {
	j := r.find(name)
	if j == nil {
		return Entry{}, audit.E("jobs: run", audit.KindInvalid, fmt.Errorf("%w: %s", ErrUnknown, name))
	}
	if j.Elsewhere != "" {
		return Entry{}, audit.E("jobs: run", audit.KindInvalid, fmt.Errorf("%s cannot be run here: %s", name, j.Elsewhere))
	}
	last, err := r.opt.Journal.Last(ctx)
	if err != nil {
		return Entry{}, err
	}
	j.setWatermark(last[name].Watermark)
	j.busy.Lock()
	defer j.busy.Unlock()
	return r.run(ctx, j, Manual, time.Now(), progress)
}

// run executes a job whose busy lock is held and writes the entry.
func (r *Runner) run(ctx context.Context, j *job, why Trigger, slot time.Time, progress func(done, total int)) (Entry, error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	r.opt.Observer.JobStarted(j.Name)
	began := stamp(time.Now())
	e := Entry{Job: j.Name, ID: audit.NewID(began), Trigger: why, Slot: stamp(slot), Started: began, Host: r.opt.Host}
	bounded, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	result, panicked, err := j.safely(bounded, Run{Trigger: why, Watermark: j.lastWatermark(), Progress: progress})
	e.Finished, e.Result = stamp(time.Now()), result
	switch {
	case err == nil:
		e.Status = Done
		j.setWatermark(result.Watermark)
	case panicked:
		e.Status = Panicked
	case ctx.Err() != nil:
		e.Status = Canceled
	case bounded.Err() != nil:
		e.Status = TimedOut
	default:
		e.Status = Failed
	}
	if err != nil {
		e.Detail = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), mostDetail)], "")
	}
	r.tell(ctx, e)
	// The entry of a run that was broken off is written all the same.
	if aerr := r.settle(context.WithoutCancel(ctx), e); aerr != nil {
		r.opt.Logger.Warn("the run of a job could not be written down yet", "job", j.Name, "error", aerr.Error())
		err = errors.Join(err, aerr)
	}
	return e, err
}

// settle writes entries down, and those that the journal did not take before: a run that failed because the store went away
// is told when it is back. Of each job the newest waits.
func (r *Runner) settle(ctx context.Context, entries ...Entry) (err error) {
	r.mu.Lock()
	for _, e := range r.owed {
		entries = append(entries, e)
	}
	r.owed = map[string]Entry{}
	r.mu.Unlock()
	ctx, done := context.WithTimeout(ctx, addTimeout)
	defer done()
	for i, e := range entries {
		if err = r.opt.Journal.Add(ctx, e); err != nil {
			r.owe(entries[i:])
			return err
		}
	}
	return nil
}

// owe keeps entries to be written later.
func (r *Runner) owe(entries []Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		if !r.owed[e.Job].Started.After(e.Started) {
			r.owed[e.Job] = e
		}
	}
}

// stamp is a time as the journal keeps it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// tell hands the outcome to metrics and log.
func (r *Runner) tell(ctx context.Context, e Entry) {
	took := e.Finished.Sub(e.Started)
	r.opt.Observer.JobRan(e.Job, string(e.Status), e.Finished, took, e.Result.Figures)
	level := slog.LevelInfo
	switch {
	case e.Status == Done && e.idle(): // a job of every minute would fill the log
		level = slog.LevelDebug
	case e.Status != Done && e.Status != Canceled:
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("job", e.Job), slog.String("status", string(e.Status)), slog.String("trigger", string(e.Trigger)), slog.Duration("took", took)}
	if e.Detail != "" {
		attrs = append(attrs, slog.String("error", e.Detail))
	}
	if len(e.Result.Figures) > 0 {
		attrs = append(attrs, slog.Any("figures", e.Result.Figures))
	}
	if len(e.Result.Events) > 0 {
		attrs = append(attrs, slog.Any("events", e.Result.Events))
	}
	r.opt.Logger.LogAttrs(ctx, level, "job ran", attrs...)
}

// idle tells that there was nothing to do: no figure differs from zero.
func (e *Entry) idle() bool {
	for _, n := range e.Result.Figures {
		if n != 0 {
			return false
		}
	}
	return true
}

// safely is the one call site of Run: a panic is an answer of its own here. The panic's value may
// quote anything, so only its type is kept.
func (j *job) safely(ctx context.Context, run Run) (res Result, panicked bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, panicked, err = Result{}, true, fmt.Errorf("panic of type %T", p)
		}
	}()
	res, err = j.Run(ctx, run)
	return res, false, err
}

func (j *job) lastWatermark() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.watermark
}

func (j *job) setWatermark(t time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !t.IsZero() {
		j.watermark = t
	}
}
