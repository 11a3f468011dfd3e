package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// asBinary makes the test binary behave as evenhand.
const asBinary = "EVENHAND_TEST_AS_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(asBinary) == "1" && (len(os.Args) < 2 || os.Args[1] != engine.ChildCommand) {
		_ = os.Unsetenv(asBinary)
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	enginetest.Main(m)
}

// result is what a command did.
type result struct {
	out, err string
	code     int
}

// environment is the caller's without our own settings, and a data folder that nobody uses.
func environment(t *testing.T, extra ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "EVENHAND_") && !strings.HasPrefix(kv, "PORT=") {
			env = append(env, kv)
		}
	}
	return append(append(env, asBinary+"=1", "EVENHAND_DATA_DIR="+filepath.Join(t.TempDir(), "nobody")), extra...)
}

// evenhand runs a command to its end.
func evenhand(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return evenhandEnv(t, stdin, nil, args...)
}

func evenhandEnv(t *testing.T, stdin string, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = strings.NewReader(stdin), &out, &errs, environment(t, env...)
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must is evenhand that succeeds.
func must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := evenhand(t, stdin, args...)
	if r.code != 0 {
		t.Fatalf("evenhand %s: status %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// output is what a process said so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// up is a running `evenhand up` in a process of its own.
type up struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	log  *output
	done chan struct{}
	running
}

// runs tells what looks for a running process that r is one, until the test ends.
func runs(t *testing.T, dir string, r running) {
	t.Helper()
	held, err := writeRunning(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
}

func startUp(t *testing.T, dir string, args ...string) *up {
	t.Helper()
	u := &up{t: t, dir: dir, log: &output{}, done: make(chan struct{})}
	_ = os.Remove(runningFile(dir))
	u.cmd = exec.Command(os.Args[0], append([]string{"up", "--data-dir", dir, "--http", "127.0.0.1:0"}, args...)...)
	u.cmd.Stdout, u.cmd.Stderr, u.cmd.Env = u.log, u.log, environment(t)
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = u.cmd.Wait(); close(u.done) }()
	t.Cleanup(u.stop)
	eventually(t, "evenhand up", func() error {
		select {
		case <-u.done:
			t.Fatalf("evenhand up ended:\n%s", u.log)
		default:
		}
		r, ok := findRunning(dir)
		if !ok {
			return fmt.Errorf("not yet")
		}
		u.running = r
		return nil
	})
	return u
}

// stop ends the process and waits; the second call does nothing.
func (u *up) stop() {
	_ = u.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-u.done:
	case <-time.After(60 * time.Second):
		u.t.Errorf("evenhand up did not stop:\n%s", u.log)
		u.kill()
	}
}

// kill is kill -9.
func (u *up) kill() {
	_ = u.cmd.Process.Kill()
	<-u.done
}

// patience is how long nothing may change.
const patience = 2 * time.Minute

// eventually asks until try gives nil; the limit is generous because test machines are busy.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for last := ""; ; {
		err := try()
		if err == nil {
			return
		}
		if said, _, _ := strings.Cut(err.Error(), "\n"); said != last { // it gets on
			last = said
			late.Reset(patience)
		}
		select {
		case <-late.C:
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// count asks the store for one number.
func (u *up) count(query string) int {
	r := evenhand(u.t, "", "sql", "--data-dir", u.dir, "--json", query)
	var row map[string]json.Number
	if json.Unmarshal([]byte(r.out), &row) != nil {
		return -1
	}
	for _, n := range row {
		i, _ := n.Int64()
		return int(i)
	}
	return -1
}

// arrived waits until so many interactions are in the read model.
func (u *up) arrived(n int) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("%d interactions", n), func() error {
		if got := u.count("SELECT count() AS n FROM audit_current FINAL"); got < n {
			return fmt.Errorf("%d are there\n%s", got, u.log)
		}
		return nil
	})
}

// checked is a check without faults.
func (u *up) checked() string {
	u.t.Helper()
	r := evenhand(u.t, "", "check", "--data-dir", u.dir)
	if r.code != 0 {
		u.t.Fatalf("check: status %d\n%s%s", r.code, r.out, r.err)
	}
	return r.out
}

func (u *up) post(path, contentType, body string) (int, string) {
	u.t.Helper()
	res, err := http.Post(u.HTTP+path, contentType, strings.NewReader(body))
	if err != nil {
		u.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// readTopic reads all messages of a topic's partitions that are there.
func readTopic(t *testing.T, brokers, topic string) (ms []kafka.Message) {
	t.Helper()
	conn, err := kafka.DialContext(t.Context(), "tcp", brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	parts, err := conn.ReadPartitions(topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		leader, err := kafka.DialLeader(t.Context(), "tcp", brokers, topic, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		first, last, err := leader.ReadOffsets()
		if err != nil {
			t.Fatal(err)
		}
		_ = leader.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := leader.Seek(first, kafka.SeekAbsolute); err != nil {
			t.Fatal(err)
		}
		for first < last {
			m, err := leader.ReadMessage(10 << 20)
			if err != nil {
				t.Fatal(err)
			}
			ms, first = append(ms, m), m.Offset+1
		}
		_ = leader.Close()
	}
	return ms
}

// sharedData is the folder of labelled texts; absent, the test is skipped, in CI it fails.
func sharedData(t *testing.T) string {
	t.Helper()
	return detectortest.Shared(t, "data")
}

// lines calls f for each line of a file.
func lines(t *testing.T, path string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	sc := bufio.NewScanner(file)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		f(sc.Bytes())
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}
