package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/arbiter"
)

// Decisions that another process makes are projected by 'up', survive its kill, and are shown, checked
// and restored by the commands.
func TestDecisionsAreProjectedShownAndChecked(t *testing.T) {
	u := startUp(t, t.TempDir())
	decide := func(value string, key arbiter.Key, seq uint32) {
		t.Helper()
		rules, err := decisionRules()
		if err != nil {
			t.Fatal(err)
		}
		s := defaultSettings()
		s.Kafka.Brokers = []string{u.Kafka}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, err := arbiter.Open(ctx, s.kafka(), arbiter.Options{Rules: rules, Proposer: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Close(context.WithoutCancel(ctx)) }()
		if _, err := a.Propose(ctx, arbiter.Proposal{Key: key, Seq: seq, Value: json.RawMessage(value)}); err != nil {
			t.Fatal(err)
		}
	}
	projected := func(n int) {
		t.Helper()
		eventually(t, "projection", func() error {
			if got := u.count("SELECT count() AS n FROM decisions FINAL"); got != n {
				return fmt.Errorf("%d of %d rows\n%s", got, n, u.log)
			}
			return nil
		})
	}
	breach := arbiter.Key{Kind: "breach", ID: "hr.age"}
	decide(`{"state":"approved"}`, arbiter.Key{Kind: "gate", ID: "g1"}, 1)
	decide(`{"state":"open"}`, breach, 1)
	projected(2)
	u.kill()
	u = startUp(t, u.dir)
	decide(`{"state":"mitigated"}`, breach, 2)
	projected(3)

	run := func(code int, args ...string) string {
		t.Helper()
		r := evenhand(t, "", append([]string{"decisions"}, append(args, "--data-dir", u.dir)...)...)
		if r.code != code {
			t.Errorf("decisions %v: status %d\n%s%s", args, r.code, r.out, r.err)
		}
		return r.out + r.err
	}
	if out := run(0, "list"); !strings.Contains(out, `{"state":"mitigated"}`) || !strings.Contains(out, "gate/g1") || strings.Count(out, "\n") != 3 {
		t.Error(out)
	}
	if out := run(0, "show", "breach/hr.age", "--json"); strings.Count(out, "\n") != 2 || !strings.Contains(out, `"value":{"state":"open"}`) || !strings.Contains(out, `"proposer":"test"`) {
		t.Error(out)
	}
	run(1, "show", "gate/none")
	run(2, "show", "gate")
	if out := run(0, "check"); !strings.Contains(out, "3 decisions in ") || !strings.Contains(out, "OK:") {
		t.Error(out)
	}
	if out := run(0, "restore"); out != "0 written back, 3 were there\n" {
		t.Error(out)
	}
	var rep arbiter.Report
	if err := json.Unmarshal([]byte(run(0, "check", "--json")), &rep); err != nil || rep.Projected != 3 || rep.Decisions != 3 {
		t.Errorf("%+v %v", rep, err)
	}
}
