package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// Two processes may run the jobs. The one that does is killed; the other takes over and its jobs run.
func TestAnotherLeadsWhenTheLeaderIsKilled(t *testing.T) {
	ch := enginetest.Start(t).Config(engine.Writer)
	conn := enginetest.Conn(t, ch)
	env := []string{"EVENHAND_KAFKA_BROKERS=" + brokertest.Start(t).Brokers[0], "EVENHAND_CLICKHOUSE_ADDR=" + ch.Addr[0],
		"EVENHAND_CLICKHOUSE_USERNAME=" + ch.Username, "EVENHAND_CLICKHOUSE_PASSWORD=" + ch.Password, "EVENHAND_HTTP_ADDR=127.0.0.1:0", "EVENHAND_KAFKA_SESSION_TIMEOUT=6s"}
	type process struct {
		cmd *exec.Cmd
		log *output
	}
	var members []*process
	for range 2 {
		p := &process{exec.Command(os.Args[0], "run", "--roles", "jobs", "--set", "jobs.audit_current_repair.schedule=@every 1s"), &output{}}
		p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = p.log, p.log, environment(t, env...)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
		members = append(members, p)
		eventually(t, "a leader", func() error {
			if !strings.Contains(members[0].log.String(), "this process runs the jobs") {
				return fmt.Errorf("nobody leads:\n%s", members[0].log)
			}
			return nil
		})
	}
	eventually(t, "the second is a member", func() error {
		if !strings.Contains(members[1].log.String(), "evenhand is running") {
			return fmt.Errorf("%s", members[1].log)
		}
		return nil
	})
	// Both are there; a rebalance may have moved the partition, so the leader is who said so last.
	leads := func(p *process) int { return strings.Count(p.log.String(), "this process runs the jobs") }
	leader, other := members[0], members[1]
	if leads(other) > 0 {
		leader, other = other, leader
	}
	before := leads(other)
	if err := leader.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = leader.cmd.Wait()
	var ran uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM job_runs").Scan(&ran); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other leads", func() error {
		if leads(other) == before {
			return fmt.Errorf("it does not:\n%s", other.log)
		}
		return nil
	})
	eventually(t, "jobs run again", func() error {
		var n uint64
		err := conn.QueryRow(t.Context(), "SELECT countIf(job = '"+jobRepair+"' AND status = 'done') FROM job_runs FINAL").Scan(&n)
		if err == nil && n <= ran {
			err = fmt.Errorf("%d runs, %d before the kill", n, ran)
		}
		return err
	})
}
