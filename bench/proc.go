package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

// process is one that we measure; its children are processes of their own.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   *bytes.Buffer
}

func start(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), log: &bytes.Buffer{}}
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	p.cmd.Env = append(os.Environ(), "EVENHAND_LOG_LEVEL=warn")
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

func (p *process) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

// usage is what a process used so far.
type usage struct {
	cpu  time.Duration
	rss  int // MiB
	peak int // MiB
}

func usageOf(pid int) (u usage) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	u.cpu = time.Duration(user+system) * 10 * time.Millisecond
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for l := range strings.SplitSeq(string(status), "\n") {
		if f := strings.Fields(l); len(f) > 1 {
			kb, _ := strconv.Atoi(f[1])
			switch f[0] {
			case "VmRSS:":
				u.rss = kb / 1024
			case "VmHWM:":
				u.peak = kb / 1024
			}
		}
	}
	return u
}

// engineOf finds the engine child of a process.
func engineOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		more, _ := os.ReadFile(t)
		b = append(append(b, ' '), more...)
	}
	for f := range strings.FieldsSeq(string(b)) {
		child, _ := strconv.Atoi(f)
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		if bytes.Contains(line, []byte(engine.ChildCommand)) {
			return child
		}
	}
	return 0
}

// endpoints is what a running process wrote into its data folder.
type endpoints struct {
	HTTP  string `json:"http"`
	Kafka string `json:"kafka"`
}

// waitFor polls until ready says so.
func waitFor(ctx context.Context, what string, limit time.Duration, ready func() bool) error {
	return pollEvery(ctx, 50*time.Millisecond, what, limit, ready)
}

// pollEvery polls as seldom as is asked: questions to the engine are part of what is measured.
func pollEvery(ctx context.Context, every time.Duration, what string, limit time.Duration, ready func() bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	late := time.After(limit)
	for !ready() {
		select {
		case <-tick.C:
		case <-late:
			return fmt.Errorf("%s: not within %v", what, limit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func readEndpoints(dir string) (e endpoints, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, "running.json"))
	return e, err == nil && json.Unmarshal(b, &e) == nil
}

// storeOf opens the embedded store of a data folder as the writer.
func storeOf(dir string) (driver.Conn, error) {
	p, err := engine.Running(filepath.Join(dir, "store"), engine.Writer)
	if err != nil {
		return nil, err
	}
	return chconn.Open(p.Config())
}

func scalar[T any](ctx context.Context, conn driver.Conn, q string, args ...any) (v T, err error) {
	err = conn.QueryRow(ctx, q, args...).Scan(&v)
	return v, err
}

// mergesRest waits until no merge runs for a second.
func mergesRest(ctx context.Context, conn driver.Conn) error {
	quiet := time.Now()
	return pollEvery(ctx, 500*time.Millisecond, "merges at rest", 5*time.Minute, func() bool {
		n, err := scalar[uint64](ctx, conn, "SELECT count() FROM system.merges")
		if err != nil || n > 0 {
			quiet = time.Now()
		}
		return time.Since(quiet) > time.Second
	})
}
