package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/alarm"
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/retention"
	"github.com/evenhand/evenhand/retry"
	"github.com/evenhand/evenhand/rollup"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/evaluations"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/sources/kafka"
	"github.com/evenhand/evenhand/store"
)

// Names of the jobs, as settings, rows and metrics have them.
const (
	jobRetry  = "verdict_retry"
	jobRepair = "audit_current_repair"
	jobReport = "duplicate_report"
	jobTrim   = "broker_trim"
	jobRollup = store.JobRollup
	jobAlarms = "alarms"

	jobRetention   = "retention"
	jobRemediation = "remediation"
	jobGates       = "gates"
	jobJudge       = "judge_sweep"
)

// firstRepair is how far back the first repair looks; the report finds older conflicts.
const firstRepair = 31 * 24 * time.Hour

// jobParts are what the jobs work with.
type jobParts struct {
	settings    settings
	conn        driver.Conn
	database    string
	sink        clickhouse.Options // of later facts
	analyze     func(ctx context.Context, in *audit.Interaction) *audit.Verdict
	publisher   *stream.Publisher   // nil where jobs are only listed
	evaluations *evaluations.Sender // nil: nothing is sent
	decisions   *decisionLog
	embedded    bool           // the broker is ours: then there is something to trim
	broker      *broker.Broker // in this process, else nil
	remedy      *remedy        // nil: no tracker is set up
	gates       *gates.Service // nil where this process serves none
	judge       *judgeEnd      // nil: no judging model is set up
}

// jobList lists the jobs: this is the one place that knows them all.
func jobList(p jobParts) ([]jobs.Job, error) {
	st, mend, s := store.New(p.conn, p.database), repair.New(p.conn, p.database), p.settings.Jobs
	again, err := retry.New(p.settings.retryConfig(), retry.Parts{
		Store: st, Analyze: p.analyze, Results: clickhouse.New(p.conn, p.database, p.sink), Current: mend, Publisher: p.publisher, Opinions: p.publisher,
		Told: p.evaluations.Records,
	})
	if err != nil {
		return nil, &settingsError{err}
	}
	policies, err := p.settings.alarmPolicies()
	if err != nil {
		return nil, &settingsError{err}
	}
	keep, err := retention.New(p.conn, p.database, p.settings.Retention.config(), retention.Options{Cluster: p.settings.ClickHouse.Cluster, Seal: p.sink.Seal})
	if err != nil {
		return nil, &settingsError{err}
	}
	alarms := alarm.NewRunner(alarm.NewTables(p.conn, p.database), policies, p.decisions, time.Now)
	list := []jobs.Job{{
		Name: jobRetry, Title: "Analyse again what failed, from the stored texts", Schedule: s.VerdictRetry.Schedule,
		Timeout: retry.Timeout, Jitter: 5 * time.Second, Run: retryJob(again),
	}, {
		Name: jobRepair, Title: "Rewrite rows of audit_current that do not say what the facts say", Schedule: s.AuditCurrentRepair.Schedule,
		Timeout: time.Hour, Jitter: time.Minute, Run: repairJob(st, mend),
	}, {
		Name: jobRollup, Title: "Count the hours and days again whose interactions were written", Schedule: s.Rollup.Schedule,
		Timeout: 3 * time.Hour, Jitter: 5 * time.Second, Run: rollupJob(rollup.New(p.conn, p.database)),
	}, {
		Name: jobReport, Title: "Count what was delivered again and ids that came with other content", Schedule: s.DuplicateReport.Schedule,
		Timeout: time.Hour, Jitter: 5 * time.Minute, Run: reportJob(st, mend),
	}, {
		Name: jobAlarms, Title: "Compare the last day's rates with their baselines and have breaches opened and resolved", Schedule: s.Alarms.Schedule,
		Timeout: 10 * time.Minute, Jitter: 5 * time.Second, Run: alarmsJob(alarms),
	}, {
		Name: jobRetention, Title: "Drop texts past their limit, and rows once their rollups are proved and frozen", Schedule: s.Retention.Schedule,
		Timeout: 3 * time.Hour, Jitter: 2 * time.Minute, Run: retentionJob(keep),
	}}
	if p.embedded {
		trim := jobs.Job{
			Name: jobTrim, Title: "Delete from the embedded broker's log what nobody waits for; it also does so by itself", Schedule: s.BrokerTrim.Schedule,
			Timeout: time.Minute, Jitter: 10 * time.Second, Run: trimJob(p.broker),
		}
		if p.broker == nil {
			trim.Elsewhere = "the log belongs to the running 'evenhand up', which trims it every 30 seconds"
		}
		list = append(list, trim)
	}
	gate, err := gatesJob(p)
	if err != nil {
		return nil, err
	}
	return append(list, remediationJob(p.settings, p.remedy), gate, judgeJob(p.settings, st, p.judge)), nil
}

func retryJob(r *retry.Retrier) func(context.Context, jobs.Run) (jobs.Result, error) {
	return func(ctx context.Context, run jobs.Run) (jobs.Result, error) {
		o, err := r.Run(ctx, run.Watermark, run.Progress)
		return jobs.Result{Watermark: o.Through, Figures: map[string]int64{
			"analysed": int64(o.Analysed), "mended": int64(o.Mended), "abandoned": int64(o.Abandoned), "waiting": int64(o.Waiting), "published_again": int64(o.Again),
		}}, err
	}
}

func repairJob(st *store.Store, r *repair.Repairer) func(context.Context, jobs.Run) (jobs.Result, error) {
	return func(ctx context.Context, run jobs.Run) (jobs.Result, error) {
		from := run.Watermark
		if from.IsZero() {
			now, err := st.Now(ctx)
			if err != nil {
				return jobs.Result{}, err
			}
			from = now.Add(-firstRepair)
		}
		o, err := r.Since(ctx, from, run.Progress)
		return jobs.Result{Watermark: o.Through, Figures: map[string]int64{"looked": int64(o.Looked), "rewritten": int64(o.Rewritten)}}, err
	}
}

func rollupJob(r *rollup.Roller) func(context.Context, jobs.Run) (jobs.Result, error) {
	return func(ctx context.Context, run jobs.Run) (jobs.Result, error) {
		o, err := r.Since(ctx, run.Watermark, run.Progress)
		return jobs.Result{Watermark: o.Through, Figures: rollupFigures(o)}, err
	}
}

func reportJob(st *store.Store, r *repair.Repairer) func(context.Context, jobs.Run) (jobs.Result, error) {
	return func(ctx context.Context, _ jobs.Run) (jobs.Result, error) {
		d, err := st.Duplicates(ctx)
		if err == nil {
			err = r.Rewrite(ctx, d.Unseen, true)
		}
		return jobs.Result{Events: d.Events, Figures: map[string]int64{
			"deliveries": int64(d.Rows), "interactions": int64(d.Interactions), "delivered_again": int64(d.Again), "id_conflicts": int64(d.Conflicts),
			"other_days": int64(d.OtherDays), "in_flight": int64(d.InFlight), "lost_offsets": int64(d.Lost), "newly_shown": int64(len(d.Unseen)),
		}}, err
	}
}

func trimJob(b *broker.Broker) func(context.Context, jobs.Run) (jobs.Result, error) {
	return func(ctx context.Context, _ jobs.Run) (jobs.Result, error) {
		err := b.Trim(ctx)
		full := int64(0)
		if b.Full() {
			full = 1
		}
		return jobs.Result{Figures: map[string]int64{"log_bytes": b.Size(), "cap_bytes": b.Cap(), "full": full}}, err
	}
}

// startJobs makes the runner that takes part in leading the jobs.
func (st *stack) startJobs() error {
	if err := st.openJobs(); err != nil {
		return err
	}
	sink, err := st.sink()
	if err != nil {
		return err
	}
	list, err := jobList(jobParts{
		settings: st.settings, conn: st.jobsConn, database: st.chconfig.Database, sink: sink, analyze: st.analyze,
		publisher: st.publisher, evaluations: st.evaluations, decisions: st.decisions, embedded: st.broker != nil, broker: st.broker, remedy: st.remedy, gates: st.gates.Service, judge: st.judge,
	})
	if err != nil {
		return err
	}
	from := kafka.DefaultConfig()
	from.Topic, from.Group = kafkaconn.Jobs, kafkaconn.GroupOf(kafkaconn.Jobs)
	source, err := kafka.New(st.kafka, from, kafka.Options{Logger: st.log, OnError: func(op string, _ error) { st.metrics.BrokerError(op) }})
	if err != nil {
		return err
	}
	opt := st.settings.jobsOptions(st.conn, st.chconfig.Database)
	opt.Source, opt.Observer, opt.Logger = source, st.metrics, st.log
	st.jobs, err = jobs.New(opt, list...)
	return err
}

// jobsOptions are what leading and running on demand share.
func (s settings) jobsOptions(conn driver.Conn, database string) jobs.Options {
	zone, err := time.LoadLocation(s.Jobs.TimeZone)
	if err != nil { // validate has named it
		zone = time.UTC
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return jobs.Options{Zone: zone, Journal: jobs.NewRows(conn, database), Host: fmt.Sprintf("%s:%d", host, os.Getpid())}
}

type jobsCmd struct {
	List jobsListCmd `cmd:"" help:"List the jobs with their schedule and last run."`
	Run  jobsRunCmd  `cmd:"" help:"Run one job now, in this process."`
}

type jobsListCmd struct {
	storeFlags
	JSON bool `help:"Print JSON." name:"json"`
}

type jobsRunCmd struct {
	storeFlags
	Name string `arg:"" help:"Name of the job, see 'evenhand jobs list'."`
	JSON bool   `help:"Print the outcome as JSON." name:"json"`
}

func (jobsRunCmd) Help() string {
	return `Runs beside whatever the leader runs: jobs are idempotent. Exit status 1 when the job fails.

Examples:
  evenhand jobs run verdict_retry
  evenhand jobs run duplicate_report --json`
}

// runner opens the store and gives a runner without a group; the caller calls release. With work it
// also has what jobs need to run.
func (f storeFlags) runner(ctx context.Context, c *cli, work bool) (r *jobs.Runner, release func(), err error) {
	s, conn, err := f.open(c, engine.Writer)
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = conn.Close() }
	defer func() {
		if err != nil {
			done()
		}
	}()
	p := jobParts{settings: s, conn: conn, database: s.ClickHouse.Database}
	if len(s.Kafka.Brokers) == 0 {
		up, ok := findRunning(s.DataDir)
		p.embedded = ok
		switch {
		case ok:
			s.Kafka.Brokers = []string{up.Kafka}
		case work:
			return nil, nil, notUp(s.DataDir, "name its folder with --data-dir, or set kafka.brokers")
		}
	}
	if work {
		p.sink = s.sinkIn(conn, p.database)
		if p.sink.Seal, err = s.sealKeyHere(); err != nil {
			return nil, nil, err
		}
		analyzer, err := newAnalyzer(s)
		if err != nil {
			return nil, nil, err
		}
		publisher, err := stream.New(s.kafka(), stream.DefaultConfig(), stream.Options{Group: s.Kafka.Group})
		if err != nil {
			return nil, nil, err
		}
		p.decisions = &decisionLog{open: func(ctx context.Context) (*arbiter.Kafka, error) { return joinDecisions(ctx, s, conn) }}
		if p.evaluations, err = s.Evaluations.sender(ctx, nil, nil); err != nil {
			return nil, nil, err
		}
		p.analyze, p.publisher = analyzer.Analyze, publisher
		if p.remedy, err = newRemedy(s, conn, s.ClickHouse.Database, s.kafka(), nil, nil); err != nil { //nolint:contextcheck // closing a publisher has a limit of its own
			return nil, nil, err
		}
		if s.Judge.on() {
			if p.judge, err = newAsker(s, conn, s.ClickHouse.Database, s.kafka(), nil, slog.New(slog.DiscardHandler)); err != nil {
				return nil, nil, err
			}
		}
		done = func() {
			if p.judge != nil {
				_ = p.judge.close() //nolint:contextcheck // see above
			}
			if p.remedy != nil {
				_ = p.remedy.close() //nolint:contextcheck // see above
			}
			_ = p.decisions.close(context.WithoutCancel(ctx))
			_ = closeEvaluations(context.WithoutCancel(ctx), p.evaluations)
			_ = publisher.Close(context.WithoutCancel(ctx))
			_ = conn.Close()
		}
	}
	list, err := jobList(p)
	if err != nil {
		return nil, nil, err
	}
	r, err = jobs.New(s.jobsOptions(conn, s.ClickHouse.Database), list...)
	return r, done, err
}

// Run lists the jobs.
func (cmd *jobsListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	r, release, err := cmd.runner(ctx, c, false)
	if err != nil {
		return err
	}
	defer release()
	list, err := r.List(ctx)
	if err != nil {
		return err
	}
	if cmd.JSON {
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	}
	printJobs(std.out, list)
	return nil
}

func printJobs(out io.Writer, list []jobs.Listed) {
	const stamp = "2006-01-02 15:04:05 MST"
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tSCHEDULE\tZONE\tNEXT\tLAST RUN\tSTATUS\tRESULT")
	for _, l := range list {
		next, last, status, result := "off", "never", "", ""
		if l.Next != nil {
			next = l.Next.Format(stamp)
		}
		if e := l.Last; e != nil {
			last, status, result = e.Finished.In(time.UTC).Format(stamp), string(e.Status), figures(e.Result)
			if e.Detail != "" {
				result = strings.TrimSpace(e.Detail + "  " + result)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, l.Schedule, l.Zone, next, last, status, result)
	}
	_ = t.Flush()
}

// figures are a result's numbers that are not zero, in the order of their names.
func figures(r jobs.Result) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		if n := r.Figures[name]; n != 0 {
			out = append(out, fmt.Sprintf("%s %d", name, n))
		}
	}
	if len(out) == 0 && len(r.Figures) > 0 {
		return "nothing to do"
	}
	return strings.Join(out, ", ")
}

// step says how far a job is. That of retention goes on telling when all is dropped: it waits until the store has let go of the files.
func step(job string, done, total int) string {
	if job == jobRetention && done == total {
		return fmt.Sprintf("%d of %d done; waiting for old parts to leave the disk (some minutes)", done, total)
	}
	return fmt.Sprintf("%d of %d", done, total)
}

// Run runs one job.
func (cmd *jobsRunCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	r, release, err := cmd.runner(ctx, c, true)
	if err != nil {
		return err
	}
	defer release()
	shown, seen := time.Now(), onTerminal(std.err)
	e, err := r.RunNow(ctx, cmd.Name, func(done, total int) {
		if seen && time.Since(shown) > 2*time.Second {
			shown = time.Now()
			fmt.Fprintln(std.err, step(cmd.Name, done, total))
		}
	})
	if errors.Is(err, jobs.ErrUnknown) {
		return &settingsError{fmt.Errorf("there is no job %q: it is one of %s", cmd.Name, strings.Join(r.Names(), ", "))}
	}
	if e.Job == "" {
		return err
	}
	if cmd.JSON {
		if jerr := json.NewEncoder(std.out).Encode(e); err == nil {
			err = jerr
		}
	} else {
		fmt.Fprintf(std.out, "%s: %s in %s  %s\n", e.Job, e.Status, e.Finished.Sub(e.Started).Round(time.Millisecond), figures(e.Result))
		for _, id := range e.Result.Events {
			fmt.Fprintln(std.out, " ", id)
		}
	}
	return err
}
