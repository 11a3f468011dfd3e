package jobs

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

// Lead takes part in the group until ctx ends and runs the schedule while this process owns the
// partition. What runs when that ends may go on for the drain time; then its context ends. Lead
// returns when all jobs have; errors are those of the source.
func (r *Runner) Lead(ctx context.Context) error {
	return r.opt.Source.Run(ctx, func(ctx context.Context, _ sources.Generation) error {
		r.serve(ctx)
		return nil
	})
}

// serve runs the schedule until ctx ends.
func (r *Runner) serve(ctx context.Context) {
	last, ok := r.recall(ctx)
	if !ok {
		return
	}
	r.opt.Observer.JobsLead(true)
	defer r.opt.Observer.JobsLead(false)
	r.opt.Logger.Info("this process runs the jobs", "host", r.opt.Host)

	working, cancel := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx by the drain time
	defer cancel()
	var scheduled []*job
	var missed sync.WaitGroup
	for _, j := range r.jobs {
		known, ran := last[j.Name]
		if ran {
			j.setWatermark(known.Watermark)
			r.opt.Observer.JobKnown(j.Name, string(known.Status), known.Finished, known.Success, known.Result.Figures)
		}
		if j.schedule == nil || j.Elsewhere != "" {
			continue
		}
		scheduled = append(scheduled, j)
		if r.missed(j, known.Slot) {
			missed.Go(func() { r.due(ctx, working, j, CatchUp) })
		}
	}
	begin := func() *cron.Cron {
		c := cron.New(cron.WithLocation(r.opt.Zone), cron.WithLogger(cron.DiscardLogger))
		for _, j := range scheduled {
			c.Schedule(j.schedule, cron.FuncJob(func() { r.due(ctx, working, j, Scheduled) }))
		}
		c.Start()
		return c
	}
	c := begin()
	again := time.NewTicker(settleEvery)
	defer again.Stop()
	for leads := true; leads; {
		select {
		case <-again.C:
			_ = r.settle(ctx) // what is still owed is tried again
			if setBack(c.Entries(), time.Now().In(r.opt.Zone)) {
				r.opt.Logger.Warn("the clock was set back: the schedule of the jobs begins anew")
				before := c.Stop()
				missed.Go(func() { <-before.Done() })
				c = begin()
			}
		case <-ctx.Done():
			leads = false
		}
	}
	drain := time.AfterFunc(r.opt.Drain, cancel)
	defer drain.Stop()
	<-c.Stop().Done()
	missed.Wait()
}

// setBack tells whether the clock was set back since the schedule was made, which waits until it has come again: an hour,
// where a clock that ran on local time was set right.
func setBack(entries []cron.Entry, now time.Time) bool {
	return slices.ContainsFunc(entries, func(e cron.Entry) bool { return e.Next.After(e.Schedule.Next(now).Add(time.Minute)) })
}

// missed tells whether a slot passed since the one that was served last. A job that never ran has
// missed one: a machine that is switched off at night would never run its nightly jobs.
func (r *Runner) missed(j *job, served time.Time) bool {
	return served.IsZero() || !j.schedule.Next(served.In(r.opt.Zone)).After(time.Now())
}

// due runs a job whose slot has come, unless it still runs.
func (r *Runner) due(leading, working context.Context, j *job, why Trigger) {
	if !j.busy.TryLock() {
		r.opt.Observer.JobSkipped(j.Name)
		r.opt.Logger.Warn("a job still runs when it is due again", "job", j.Name)
		return
	}
	defer j.busy.Unlock()
	slot := time.Now()
	// Waiting must not reach into the next slot, however close it is.
	most := min(j.Jitter, j.schedule.Next(slot.In(r.opt.Zone)).Sub(slot)/2)
	if most > 0 && !wait.For(leading, r.opt.jitter(most)) {
		return // not begun: the next leader finds the slot missed
	}
	if leading.Err() != nil {
		return
	}
	_, _ = r.run(working, j, why, slot, nil) // the entry and the log have the error
}

// recall reads the journal until it answers; false when ctx ended first.
func (r *Runner) recall(ctx context.Context) (map[string]Last, bool) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		last, err := r.opt.Journal.Last(ctx)
		if err == nil {
			return last, true
		}
		if ctx.Err() != nil {
			return nil, false
		}
		r.opt.Logger.Warn("the last runs of the jobs cannot be read", "kind", string(audit.KindOf(err)), "error", err.Error())
		if !wait.For(ctx, pause/2+r.opt.jitter(pause/2)) {
			return nil, false
		}
	}
}
