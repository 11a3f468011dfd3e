package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// parentEnv makes the test binary a program that starts an engine over the folder and waits.
const parentEnv = "EVENHAND_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		e, err := engine.Start(context.Background(), engine.Options{Dir: dir})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(e.Endpoint(engine.Writer).PID)
		select {}
	}
	enginetest.Main(m, func() error { return goleak.Find() })
}

func TestRestartOverExistingData(t *testing.T) {
	dir := t.TempDir()
	opts := engine.Options{Dir: dir}
	e := enginetest.StartWith(t, opts)
	first := e.Endpoint(engine.Writer)
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	mustExec(t, conn.Exec, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n")
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO kept")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(1000) {
		if err := batch.Append(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}

	// Its own log, too, is written before and after.
	logs := func() {
		t.Helper()
		conn := enginetest.Conn(t, e.Config(engine.Writer))
		mustExec(t, conn.Exec, "CREATE OR REPLACE TABLE slow ENGINE = Memory AS SELECT sleep(0.06)")
		mustExec(t, conn.Exec, "SYSTEM FLUSH LOGS")
		if got := count(t, e.Config(engine.Writer), "system.query_log"); got == 0 {
			t.Error("query_log is empty")
		}
	}
	logs()
	at, err := engine.Running(dir, engine.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got := count(t, at.Config(), "kept"); got != 1000 {
		t.Errorf("a second process reads %d rows, want 1000", got)
	}
	// A backup that was taken while the engine ran names its ports and its process.
	copied := t.TempDir()
	for _, name := range []string{"ports.json", "lock", string(engine.Reader) + ".password"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if at, err := engine.Running(copied, engine.Reader); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("Running over a copy of the folder gives the original's engine %v, %v; want an unavailable error", at, err)
	}
	for range 2 { // the second call does nothing
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !gone(first.PID) {
		t.Errorf("engine process %d lives after Close", first.PID)
	}
	if _, err := engine.Running(dir, engine.Reader); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("Running after Close: %v, want an unavailable error", err)
	}
	if _, err := e.Dial(t.Context(), ""); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("Dial after Close: %v, want an unavailable error", err)
	}

	e = enginetest.StartWith(t, opts)
	if got := e.Endpoint(engine.Writer).Password; got != first.Password {
		t.Error("the password changed with the restart")
	}
	if got := count(t, e.Config(engine.Writer), "kept"); got != 1000 {
		t.Errorf("%d rows after the restart, want 1000", got)
	}
	logs()
	for _, f := range []string{"config.xml", "users.xml", "ports.json", "lock", "evenhand.password", "reader.password", "grafana.password"} {
		if info, err := os.Stat(filepath.Join(dir, f)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v, want mode 0600", f, info, err)
		}
	}
}

// What docs/operations.md says of backups: clients may connect at any time meanwhile. Without the database they could not:
// libchdb ends over a connection that asks for one that is not there.
func TestBackupIsRestored(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Start(t)
	pid := e.Endpoint(engine.Writer).PID
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	mustExec(t, conn.Exec, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n AS SELECT number FROM numbers(10)")
	mustExec(t, conn.Exec, "CREATE VIEW kept_view AS SELECT * FROM kept")
	for _, statement := range []string{"BACKUP DATABASE evenhand TO File('2026-11-21')", "TRUNCATE DATABASE evenhand SYNC", "RESTORE DATABASE evenhand FROM File('2026-11-21')"} {
		if !strings.Contains(string(doc), statement) {
			t.Errorf("the documentation does not say %s", statement)
		}
		mustExec(t, conn.Exec, statement)
		if n, want := count(t, e.Config(engine.Writer), "system.tables WHERE database = 'evenhand'"), uint64(2); n != want && (n != 0 || !strings.HasPrefix(statement, "TRUNCATE")) {
			t.Errorf("after %s a new client sees %d tables", statement, n)
		}
	}
	if n := count(t, e.Config(engine.Writer), "kept_view"); n != 10 {
		t.Errorf("%d rows, want 10", n)
	}
	if now := e.Endpoint(engine.Writer).PID; now != pid {
		t.Errorf("the engine was restarted: process %d, was %d", now, pid)
	}
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	enginetest.StartWith(t, engine.Options{Dir: dir})
	_, err := engine.Start(t.Context(), engine.Options{Dir: dir})
	want := fmt.Sprintf("data folder %s is in use by process %d", dir, os.Getpid())
	if err == nil || !strings.Contains(err.Error(), want) || audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestStartFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	text := filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		opts engine.Options
		want string
	}{
		{"no folder", engine.Options{}, "engine.dir: is empty"},
		{"a file for a folder", engine.Options{Dir: file}, "not a directory"},
		{"native port taken", engine.Options{Dir: t.TempDir(), NativePort: port}, fmt.Sprintf("engine.native_port: %d cannot be used", port)},
		{"http port taken", engine.Options{Dir: t.TempDir(), HTTPPort: port}, fmt.Sprintf("engine.http_port: %d cannot be used", port)},
		{"too little memory", engine.Options{Dir: t.TempDir(), MemoryBytes: 1}, "engine.memory_bytes: 1 is below"},
		{"not a library", engine.Options{Dir: t.TempDir(), Lib: text}, "file too short"},
		{"no name of a table", engine.Options{Dir: t.TempDir(), Private: []string{"a, b"}}, `table "a, b" is not a plain name`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := engine.Start(t.Context(), tc.opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || audit.KindOf(err) != audit.KindInvalid {
				t.Errorf("got %v, want an invalid error with %q", err, tc.want)
			}
		})
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := engine.Start(ctx, engine.Options{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
	enginetest.StartWith(t, engine.Options{Dir: dir}) // folder and lock are free again
}

func TestParentKilled(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	began := time.Now()
	if !eventually(t, 5*time.Second, func() bool { return gone(child) }) {
		_ = syscall.Kill(child, syscall.SIGKILL)
		t.Fatalf("the engine lives 5 s after its parent")
	}
	t.Logf("engine gone %s after its parent", time.Since(began))
	enginetest.StartWith(t, engine.Options{Dir: dir})
}

func TestChildKilled(t *testing.T) {
	causes := make(chan error, 10)
	e := enginetest.StartWith(t, engine.Options{OnRestart: func(cause error) { causes <- cause }})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	mustExec(t, conn.Exec, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS fsync_after_insert = 1, fsync_part_directory = 1")
	for round := range 3 {
		mustExec(t, conn.Exec, fmt.Sprintf("INSERT INTO kept VALUES (%d)", round))
		was, port := e.Endpoint(engine.Writer), e.PrivatePort()
		if err := syscall.Kill(was.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if round > 0 { // the port is taken before the engine is back, so it must move
			var other net.Listener
			if !eventually(t, time.Second, func() (ok bool) {
				l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err == nil {
					other = l
				}
				return err == nil
			}) {
				t.Fatal("the engine had its port back before the test could take it")
			}
			defer func() { _ = other.Close() }()
		}
		began := time.Now()
		select {
		case cause := <-causes:
			if !strings.Contains(cause.Error(), "signal: killed") {
				t.Errorf("cause is %v", cause)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the engine is not back after 20 s")
		}
		if now := e.Endpoint(engine.Writer); now.PID == was.PID || now.Native != was.Native || (round > 0) != (e.PrivatePort() != port) {
			t.Errorf("round %d: was %v process %d private port %d, is %v process %d private port %d", round, was, was.PID, port, now, now.PID, e.PrivatePort())
		}
		// The same pool of connections goes on.
		var n uint64
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM kept").Scan(&n); err != nil || n != uint64(round)+1 {
			t.Errorf("round %d: %d rows, %v", round, n, err)
		}
		if n := count(t, was.Config(), "kept"); n != uint64(round)+1 {
			t.Errorf("round %d: %d rows through the guard", round, n)
		}
		t.Logf("back after %s", time.Since(began))
	}
}

// A child that hangs is found by asking, named once, and started again like one that died.
func TestChildHangs(t *testing.T) {
	causes := make(chan error, 10)
	var said lines
	e := enginetest.StartWith(t, engine.Options{
		AskEvery: 20 * time.Millisecond, AnswerWithin: 300 * time.Millisecond, OnRestart: func(cause error) { causes <- cause },
		Logger: slog.New(slog.NewTextHandler(&said, nil)),
	})
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	mustExec(t, conn.Exec, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS fsync_after_insert = 1, fsync_part_directory = 1")
	mustExec(t, conn.Exec, "INSERT INTO kept VALUES (1)")
	was := e.Endpoint(engine.Writer)
	if err := syscall.Kill(was.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	select {
	case cause := <-causes:
		if want := fmt.Sprintf("engine process %d left 3 questions in a row unanswered, each for 300ms", was.PID); !strings.Contains(cause.Error(), want) || audit.KindOf(cause) != audit.KindUnavailable {
			t.Errorf("cause is %v", cause)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the engine is not back after 20 s")
	}
	if now := e.Endpoint(engine.Writer); !gone(was.PID) || now.PID == was.PID {
		t.Errorf("process %d lives: %t; now %d", was.PID, !gone(was.PID), now.PID)
	}
	if n := count(t, e.Config(engine.Writer), "kept"); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
	if n := strings.Count(said.String(), "level=ERROR"); n != 1 || !strings.Contains(said.String(), "engine does not answer; it is killed and started again") {
		t.Errorf("%d errors in the log:\n%s", n, said.String())
	}
}

// An engine that works hard, or stops for less than it may, is let be.
func TestABusyChildIsLetBe(t *testing.T) {
	e := enginetest.StartWith(t, engine.Options{AskEvery: 10 * time.Millisecond, AnswerWithin: 5 * time.Second, OnRestart: func(cause error) { t.Errorf("restarted: %v", cause) }})
	pid := e.Endpoint(engine.Writer).PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	mustExec(t, conn.Exec, "SELECT sum(sipHash64(number)) FROM numbers_mt(30000000) FORMAT Null")
	if e.Endpoint(engine.Writer).PID != pid {
		t.Error("the engine was restarted")
	}
}

// lines keeps what is logged.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestDialWaitsForRestart(t *testing.T) {
	e := enginetest.Start(t)
	conn := enginetest.Conn(t, e.Config(engine.Writer))
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := e.Endpoint(engine.Writer).PID
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if !eventually(t, 5*time.Second, func() bool { return !e.Up() || e.Endpoint(engine.Writer).PID != pid }) {
		t.Fatal("the death was not noticed")
	}
	if err := conn.Ping(t.Context()); err != nil { // a new connection: the pooled one is broken
		t.Errorf("ping while restarting: %v", err)
	}
}

func TestCloseOfAFrozenEngine(t *testing.T) {
	e := enginetest.Start(t)
	pid := e.Endpoint(engine.Writer).PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*time.Second || !gone(pid) {
		t.Errorf("Close took %s, process gone: %t", took, gone(pid))
	}
}

func TestChildByHand(t *testing.T) {
	if code := engine.ChildMain(nil); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	e := enginetest.Shared(t)
	at := e.Endpoint(engine.Writer)
	cfg := e.Config(engine.Writer)
	for _, s := range []string{fmt.Sprint(at), fmt.Sprintf("%+v %#v", at, at), fmt.Sprintf("%+v", struct{ C chconn.Config }{cfg})} {
		if strings.Contains(s, at.Password) {
			t.Errorf("shows the password: %s", strings.ReplaceAll(s, at.Password, "PASSWORD"))
		}
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", at.PID))
	if err != nil || strings.Contains(string(cmdline), at.Password) {
		t.Errorf("command line of the child: %v", err)
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", at.PID))
	if err != nil {
		t.Fatal(err)
	}
	for kv := range strings.SplitSeq(string(environ), "\x00") {
		name, _, _ := strings.Cut(kv, "=")
		if allowed := []string{"", "TZ", "LANG", "PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "GOCOVERDIR", "GOTRACEBACK"}; !slices.Contains(allowed, name) {
			t.Errorf("the child has %s in its environment", name)
		}
	}
}

// gone tells whether the process has ended; a zombie of a parent that does not wait counts.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(state, "Z")
}

func eventually(t *testing.T, within time.Duration, ok func() bool) bool {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); {
		if ok() {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func mustExec(t *testing.T, exec func(context.Context, string, ...any) error, sql string) {
	t.Helper()
	if err := exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, cfg chconn.Config, table string) (n uint64) {
	t.Helper()
	if err := enginetest.Conn(t, cfg).QueryRow(t.Context(), "SELECT count() FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
