package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

func TestLimitsOfOpenFiles(t *testing.T) {
	for _, tc := range []struct {
		limit    uint64
		embedded bool
		state    string
		says     string
	}{
		{255, true, "bad", "may open 255 files and needs at least 256; raise the hard limit to 4096 or more"},
		{256, true, "warn", "may open 256 files"},
		{127, false, "bad", "needs at least 128"},
		{255, false, "warn", "raise the hard limit"},
		{4095, true, "warn", "raise the hard limit"},
		{4096, true, "ok", "4096 may be open"},
		{math.MaxUint64, false, "ok", ""},
	} {
		d := diagnoseFiles(tc.limit, tc.embedded)
		if d.State != tc.state || !strings.Contains(d.Says, tc.says) {
			t.Errorf("%d: %+v, want %s, %s", tc.limit, d, tc.state, tc.says)
		}
		var said bytes.Buffer
		err := heedFiles(tc.limit, tc.embedded, slog.New(slog.NewTextHandler(&said, nil)))
		if (err != nil) != (tc.state == "bad") || (said.Len() > 0) != (tc.state == "warn") {
			t.Errorf("%d: %v, log %q", tc.limit, err, said.String())
		}
	}
}

// The doctor looks at the process that runs, whose limit may be another than its own.
func TestOpenFilesOfAProcess(t *testing.T) {
	sleeper := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -n 77; exec sleep 60")
	out, err := sleeper.StdinPipe()
	if err != nil || sleeper.Start() != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close(); _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	eventually(t, "its limit", func() error {
		if n := openFilesOf(sleeper.Process.Pid); n != 77 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if n := openFilesOf(-1); n != openFiles() {
		t.Errorf("of nobody: %d", n)
	}
}

// A start under a hard limit that cannot work ends with the reason; a low soft limit alone is raised.
func TestFewOpenFiles(t *testing.T) {
	for limit, want := range map[string]string{
		"ulimit -n 100":                   "a process may open 100 files and needs at least 128; raise the hard limit",
		"ulimit -Hn 5000; ulimit -Sn 100": "kafka.brokers",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", limit+`; exec "$0" run --roles pipeline --http 127.0.0.1:0 --set clickhouse.addr=127.0.0.1:1`, os.Args[0])
		cmd.Env = environment(t)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "open files") != strings.Contains(want, "may open") {
			t.Errorf("%s: %v\n%s\nwant %s", limit, err, out, want)
		}
	}
}

// GOMEMLIMIT holds where it is smaller than pipeline.memory_mb, also while rules are reloaded.
func TestTheSmallerMemoryLimitHolds(t *testing.T) {
	was := operatorsLimit
	defer func() { operatorsLimit = was; debug.SetMemoryLimit(was) }()
	for _, tc := range []struct {
		operator int64
		mb       int64
		embedded bool
		want     int64 // MiB
		compile  int64 // while two rule sets are there
	}{
		{math.MaxInt64, 400, false, 400, 800},
		{math.MaxInt64, 400, true, 700, 1400},
		{200 << 20, 400, true, 200, 200},
		{500 << 20, 400, false, 400, 500},
	} {
		operatorsLimit = tc.operator
		if got := heapLimit(tc.mb, tc.embedded); got != tc.want<<20 {
			t.Errorf("%+v: %d MiB", tc, got>>20)
		}
		debug.SetMemoryLimit(tc.want << 20)
		back := roomToCompile()
		if got := debug.SetMemoryLimit(-1); got != tc.compile<<20 {
			t.Errorf("%+v: %d MiB to compile", tc, got>>20)
		}
		back()
		if got := debug.SetMemoryLimit(-1); got != tc.want<<20 {
			t.Errorf("%+v: %d MiB after it", tc, got>>20)
		}
	}
}
