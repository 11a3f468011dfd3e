// Package jobs runs recurring work on one of several processes.
//
// All processes with the jobs role are members of one consumer group on a topic with one partition;
// who owns the partition leads, runs the schedule and runs once what was missed while nobody led.
// Leadership is an optimisation: a process that was cut off may still run a job that another one has
// begun. So every job must be idempotent, and none may take the lead for a lock.
//
// A run is bounded by its job's timeout and recovered from panics; a slot that comes while the job
// still runs in this process is skipped. The outcome of each run is one entry of the [Journal]. A run
// that was broken off because the process stops leaves an entry too, but its slot counts as missed.
//
// Cost when idle: one heartbeat a second and a timer. The package knows no job; cmd lists them.
package jobs

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Job is one piece of recurring work.
type Job struct {
	// Name is lower_snake_case and stable: settings, rows and metrics carry it.
	Name string
	// Title says in one line what it does.
	Title string
	// Schedule is five cron fields or @hourly, @daily, @every 10m; a leading "CRON_TZ=Europe/Paris "
	// gives it a time zone of its own. "off" runs it on demand only.
	Schedule string
	// Timeout bounds one run; it must be positive.
	Timeout time.Duration
	// Jitter delays a scheduled run by a random part of it, so that installations do not act in step; at
	// most by half of the time to the next slot.
	Jitter time.Duration
	// Elsewhere says why this process cannot run it, "" when it can. A job that cannot be run here is
	// listed, never scheduled, and refused by RunNow.
	Elsewhere string
	// Run does the work. It must be idempotent and return soon after ctx ends. Errors hold no text of
	// people: they are stored.
	Run func(ctx context.Context, r Run) (Result, error)
}

// Run is what a job is told about one run.
type Run struct {
	Trigger Trigger
	// Watermark is the one that the last finished run returned, zero when there is none.
	Watermark time.Time
	// Progress tells that done of total things are done; total is 0 when not known. Never nil.
	Progress func(done, total int)
}

// Result is what a run has to say. Its JSON is stored with the run.
type Result struct {
	// Figures become gauges too.
	Figures map[string]int64 `json:"figures,omitempty"`
	// Watermark is up to where the job has looked; the next run is given it. Zero keeps the last one.
	Watermark time.Time `json:"watermark,omitzero"`
	// Events are up to ten ids as examples.
	Events []string `json:"events,omitempty"`
}

// Trigger says why a run began.
type Trigger string

// The triggers.
const (
	Scheduled Trigger = "schedule"
	CatchUp   Trigger = "catch_up" // a slot passed while nobody led
	Manual    Trigger = "manual"
)

// Status is how a run ended.
type Status string

// The ways a run ends. Canceled means that the process stopped or lost the lead: the slot is missed.
const (
	Done     Status = "done"
	Failed   Status = "failed"
	TimedOut Status = "timeout"
	Panicked Status = "panic"
	Canceled Status = "canceled"
)

// Entry is one run in the journal.
type Entry struct {
	Job      string    `json:"job"`
	ID       audit.ID  `json:"-"`
	Trigger  Trigger   `json:"trigger"`
	Slot     time.Time `json:"slot"` // when it was due; a manual run is due when it starts
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Status   Status    `json:"status"`
	Detail   string    `json:"detail,omitempty"` // of a run that is not done: class and operation, no text of people
	Host     string    `json:"host"`
	Result   Result    `json:"result"`
}

// Last is what the journal knows of a job.
type Last struct {
	Entry             // the newest run
	Slot    time.Time // the newest slot that was served: by any run but a canceled one
	Success time.Time // when the newest done run ended; zero when none
	// Watermark of the newest done run that gave one.
	Watermark time.Time
}

// Journal keeps the runs.
type Journal interface {
	// Last gives what is known of each job that ever ran.
	Last(ctx context.Context) (map[string]Last, error)
	Add(ctx context.Context, e Entry) error
}

// Observer is told what happens; its methods must be fast and safe for concurrent use.
type Observer interface {
	// JobsLead tells whether this process leads.
	JobsLead(leads bool)
	// JobKnown tells the newest run of a job that the journal holds when this process begins to lead.
	JobKnown(job, status string, finished, success time.Time, figures map[string]int64)
	JobStarted(job string)
	JobRan(job, status string, finished time.Time, took time.Duration, figures map[string]int64)
	// JobSkipped tells that a slot came while the job still ran.
	JobSkipped(job string)
}

type silent struct{}

func (silent) JobsLead(bool)                                                     {}
func (silent) JobKnown(string, string, time.Time, time.Time, map[string]int64)   {}
func (silent) JobStarted(string)                                                 {}
func (silent) JobRan(string, string, time.Time, time.Duration, map[string]int64) {}
func (silent) JobSkipped(string)                                                 {}
