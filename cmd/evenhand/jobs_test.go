package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/store"
)

// flaky is a detector that panics until it is mended.
type flaky struct{ mended atomic.Bool }

func (f *flaky) Info() detectors.Info {
	return detectors.Info{ID: "flaky", Title: "Flaky", Family: detectors.Bias, Version: "1", Deterministic: true}
}

func (f *flaky) Detect(_ context.Context, in *detectors.Input) ([]audit.Finding, error) {
	if !f.mended.Load() {
		panic("out of order")
	}
	if !strings.Contains(in.Interaction.Response, "emotional") {
		return nil, nil
	}
	return []audit.Finding{{Kind: "charter.sex", Rule: "flaky.sex", Ground: audit.Sex, Severity: audit.High, Score: 600_000, Confidence: 800_000, Side: audit.Output, Span: audit.Span{Start: 0, End: 5}}}, nil
}

// TestAJobMendsWhatADetectorFailed: a detector panics, the interaction is stored as failed; once it works
// again, the jobs role of the same process analyses it from the stored text, and everyone hears of it.
func TestAJobMendsWhatADetectorFailed(t *testing.T) {
	s := defaultSettings()
	s.DataDir, s.Tenant.Default, s.HTTP.Addr = t.TempDir(), "acme", "127.0.0.1:0"
	s.Jobs.VerdictRetry = retrySettings{Schedule: "@every 1s", Attempts: 50, Backoff: time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, err := start(ctx, s, allRoles, true, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer st.close(context.WithoutCancel(ctx))
	detector := &flaky{}
	a, err := detectors.NewAnalyzer(s.policy(), detector)
	if err != nil {
		t.Fatal(err)
	}
	st.analyzer = detectors.NewCurrent(a) // before anything is consumed
	served := make(chan error, 1)
	go func() { served <- st.serve(ctx) }()
	base := "http://" + st.listener.Addr().String()
	runs(t, s.DataDir, running{PID: os.Getpid(), HTTP: base, Kafka: st.broker.Addr(), Started: time.Now()})
	file := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, file, fmt.Sprintf(`{"id":"a","trace_id":%q,"response":"Women are too emotional to lead."}
{"id":"b","response":"The weather is fine."}
`, trace))
	must(t, "", "emit", file, "--data-dir", s.DataDir, "--quiet")
	reader := store.New(st.conn, st.chconfig.Database).WithTenant("acme")
	coverage := func(what string, ok func(store.Coverage) bool) {
		t.Helper()
		eventually(t, what, func() error {
			c, err := reader.Coverage(t.Context(), store.Window{})
			if err == nil && !ok(c) {
				err = fmt.Errorf("%+v", c)
			}
			return err
		})
	}
	coverage("both failed", func(c store.Coverage) bool { return c.Failed == 2 && c.Analysed == 0 })
	detector.mended.Store(true)
	coverage("both analysed", func(c store.Coverage) bool { return c.Failed == 0 && c.Analysed == 2 })

	id := audit.DeriveID("acme", "a")
	rec, err := reader.Get(t.Context(), id)
	if err != nil || !rec.BiasDetected || len(rec.Verdicts) != 1 || rec.Verdicts[0].Status != audit.Done || rec.Evidence(rec.Verdicts[0].Findings[0]) != "Women" {
		t.Errorf("%+v %v", rec, err)
	}
	var results []string
	eventually(t, "both verdicts are on the stream", func() error {
		results = nil
		last := ""
		for _, m := range readTopic(t, st.broker.Addr(), kafkaconn.AuditStream) {
			if string(m.Key) != id.String() {
				continue
			}
			for _, h := range m.Headers {
				if h.Key == "result_id" && !slices.Contains(results, string(h.Value)) {
					results = append(results, string(h.Value))
				}
			}
			last = string(m.Value)
		}
		if len(results) < 2 || !strings.Contains(last, `"bias_detected":true`) || !strings.Contains(last, trace) {
			return fmt.Errorf("%v %s", results, last)
		}
		return nil
	})
	if results[0] != audit.HotResultID("acme", id, rec.Digest).String() || len(rec.Verdicts) == 1 && results[len(results)-1] != rec.Verdicts[0].ResultID.String() {
		t.Errorf("%v, current is %v", results, rec.Verdicts[0].ResultID)
	}
	if rep, err := store.New(st.conn, st.chconfig.Database).Check(t.Context()); err != nil || !rep.OK() {
		t.Errorf("%+v %v", rep, err)
	}
	eventually(t, "metrics", func() error {
		_, page := get(t, base+"/metrics")
		for _, want := range []string{"evenhand_jobs_leader 1", `evenhand_job_runs_total{job="verdict_retry",status="done"}`, `evenhand_job_figure{figure="waiting",job="verdict_retry"} 0`, `evenhand_job_last_ok{job="verdict_retry"} 1`} {
			if !strings.Contains(page, want) {
				return errors.New("no " + want)
			}
		}
		return nil
	})
	t.Run("commands", func(t *testing.T) { testJobsCommands(t, s.DataDir) })
	t.Run("alarms", func(t *testing.T) { testAlarmsCommands(t, s.DataDir, st.conn) })
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func testJobsCommands(t *testing.T, dir string) {
	r := evenhand(t, "", "jobs", "run", jobReport, "--data-dir", dir, "--json")
	var e jobs.Entry
	if err := json.Unmarshal([]byte(r.out), &e); err != nil || r.code != 0 || e.Status != jobs.Done || e.Trigger != jobs.Manual || e.Result.Figures["interactions"] != 2 || e.Result.Figures["delivered_again"] != 0 {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "jobs", "run", jobRepair, "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, jobRepair+": done in ") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "jobs", "run", jobTrim, "--data-dir", dir); r.code != 1 || !strings.Contains(r.err, "cannot be run here: the log belongs to the running 'evenhand up'") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "jobs", "run", "verdict_retri", "--data-dir", dir); r.code != 2 || !strings.Contains(r.err, "it is one of verdict_retry, audit_current_repair, rollup, duplicate_report, alarms, retention, broker_trim") {
		t.Errorf("%+v", r)
	}
	testRollupCommands(t, dir)
	var list []jobs.Listed
	if r := evenhand(t, "", "jobs", "list", "--json", "--data-dir", dir); r.code != 0 || json.Unmarshal([]byte(r.out), &list) != nil || len(list) != 10 {
		t.Fatalf("%+v", r)
	}
	for _, l := range list {
		if l.Next == nil || l.Zone != "UTC" || l.Name == jobReport && (l.Last == nil || l.Last.Status != jobs.Done || l.Success == nil) {
			t.Errorf("%+v", l)
		}
	}
	if r := evenhand(t, "", "jobs", "list", "--data-dir", dir, "--set", "jobs.time_zone=Europe/Paris", "--set", "jobs.broker_trim.schedule=off"); r.code != 0 ||
		!strings.Contains(r.out, "JOB") || !strings.Contains(r.out, "Europe/Paris") || !strings.Contains(r.out, "interactions 2") {
		t.Errorf("%+v", r)
	}
}

func testRollupCommands(t *testing.T, dir string) {
	if r := evenhand(t, "", "jobs", "run", jobRollup, "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, jobRollup+": done in ") || !strings.Contains(r.out, "hours ") {
		t.Errorf("%+v", r)
	}
	var st store.RollupStatus
	if r := evenhand(t, "", "rollups", "status", "--json", "--data-dir", dir); r.code != 0 || json.Unmarshal([]byte(r.out), &st) != nil ||
		st.Watermark.IsZero() || st.NewestHour.IsZero() || st.DirtyHours != 0 || st.Hourly == 0 || st.Daily == 0 || st.Frozen == nil {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "rollups", "status", "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "counted until") || !strings.Contains(r.out, "dirty hours    0") {
		t.Errorf("%+v", r)
	}
	from := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	if r := evenhand(t, "", "rollups", "rebuild", "--from", from, "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "counted again: 0 cells differed, 0 of them became empty") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "rollups", "rebuild", "--from", from, "--to", from, "--data-dir", dir); r.code != 2 || !strings.Contains(r.err, "is not a day after --from") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "check", "--at-rest", "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "counted again from what was written until") {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "sql", "SELECT uniqExact(kind) > 20, countIf(rule_version = '') FROM rule_sets FINAL", "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "\n1\t0") {
		t.Errorf("%+v", r)
	}
}

// The fields of settings bear the names of the jobs, and every fault names its key.
func TestJobSettings(t *testing.T) {
	list, err := jobList(jobParts{settings: defaultSettings(), embedded: true})
	if err != nil || len(list) != 10 {
		t.Fatal(list, err)
	}
	for _, j := range list {
		c := cli{Set: []string{"jobs." + j.Name + ".schedule=never"}}
		if _, err := c.load(defaultSettings()); err == nil || !strings.Contains(err.Error(), "jobs."+j.Name+`.schedule: "never" is not a schedule`) {
			t.Errorf("%s: %v", j.Name, err)
		}
	}
	c := cli{Set: []string{"jobs.time_zone=Moon", "jobs.verdict_retry.attempts=0", "jobs.verdict_retry.backoff=1ms"}}
	_, err = c.load(defaultSettings())
	for _, want := range []string{`jobs.time_zone: "Moon" is not a time zone`, "jobs.verdict_retry.attempts: 0 is not in 1..100", "jobs.verdict_retry.backoff: 1ms is not in 1s..6h"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}
