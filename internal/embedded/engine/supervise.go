package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

const (
	firstTries  = 3                      // starts before Start gives up: a port may be taken under us
	backOffLow  = 100 * time.Millisecond // first wait before a restart; doubles
	backOffHigh = 10 * time.Second       // longest wait
	settled     = time.Minute            // a child that lived so long starts the back-off anew
	flushLimit  = 500 * time.Millisecond // for SYSTEM FLUSH LOGS, which may hang
	stopLimit   = 3 * time.Second        // for the child to end by itself
)

// supervise keeps one child running until ctx ends. The outcome of the first start goes to started.
// held is the locked file; it is released at the end.
func (e *Engine) supervise(ctx context.Context, held *os.File, started chan<- error) {
	defer close(e.done)
	defer func() { _ = held.Close() }()
	defer e.guard.close()
	defer e.web.close()
	defer func() { _ = os.Remove(e.files.ports()) }()
	// The kernel kills the child when the thread that started it ends, so this goroutine keeps its own.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var cause error // what ended the last child
	for failed := 0; ctx.Err() == nil; {
		c, err := e.launch(ctx, held)
		switch {
		case err != nil && started != nil && (failed+1 >= firstTries || hopeless(err)):
			started <- err
			return
		case err != nil && ctx.Err() != nil:
			continue // stopped while it started
		case err != nil:
			failed++
			e.log.Warn("engine did not start", "error", err, "failed", failed)
		default:
			if started != nil {
				started <- nil
				started = nil
			} else {
				e.log.Info("engine restarted", "http", local(c.ports.HTTP), "pid", c.ports.PID)
				e.opts.OnRestart(cause)
			}
			hung, stopAsking := e.watch(ctx, c.ports)
			select {
			case <-ctx.Done():
				stopAsking()
				e.setDown()
				e.flushLogs(context.WithoutCancel(ctx), c.ports)
				c.stop(e.hurry)
				return
			case <-c.exited:
				e.setDown()
				cause = c.failure()
				e.log.Error("engine ended unexpectedly", "error", cause)
			case cause = <-hung:
				e.setDown()
				e.log.Error("engine does not answer; it is killed and started again", "error", cause)
				c.kill()
			}
			stopAsking()
			if failed++; time.Since(c.began) > settled {
				failed = 1
			}
		}
		sleep(ctx, backOff(failed))
	}
	if started != nil {
		started <- context.Cause(ctx)
	}
}

// hopeless tells that another try would fail the same way.
func hopeless(err error) bool { return audit.KindOf(err) == audit.KindInvalid }

// backOff is the wait after the n-th failure in a row: doubling, capped, between half and whole.
func backOff(n int) time.Duration {
	d := min(backOffLow<<min(n-1, 16), backOffHigh)
	return d/2 + rand.N(d/2)
}

// launch starts a child and waits until it answers a query. When it fails, no child is left.
func (e *Engine) launch(ctx context.Context, held *os.File) (*child, error) {
	e.mu.Lock()
	last := e.ports
	e.mu.Unlock()
	p, err := choose(last)
	if err != nil {
		return nil, err
	}
	c, err := e.spawn(p, held)
	if err != nil {
		return nil, audit.E("embedded/engine: run child", audit.KindInternal, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, e.opts.StartTimeout, fmt.Errorf("no answer within %s", e.opts.StartTimeout))
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(wait*3/2, 200*time.Millisecond) {
		err := e.greet(limited, p)
		if err == nil {
			break
		}
		select {
		case <-time.After(wait):
		case <-c.exited:
			return nil, c.failure()
		case <-limited.Done():
			c.kill()
			return nil, audit.E("embedded/engine: wait for child", audit.KindUnavailable, fmt.Errorf("%w (%v)", context.Cause(limited), err)) //nolint:errorlint // why it was slow is told, but nobody may act on it
		}
	}
	b, err := json.Marshal(c.ports)
	if err == nil {
		err = replace(e.files.ports(), b)
	}
	if err != nil {
		c.kill()
		return nil, audit.E("embedded/engine: keep ports", audit.KindInternal, err)
	}
	e.setUp(c.ports)
	return c, nil
}

// fileClosed asks for what closes file(): a file of functions that the engine cannot read it passes over without a word.
const fileClosed = "SELECT throwIf(count() != 1, 'the function file() is open') FROM system.functions WHERE name = 'file' AND origin = 'SQLUserDefined'"

// greet makes the databases, which is also the proof that the engine works, and holds that it reads no files.
func (e *Engine) greet(ctx context.Context, p ports) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", local(p.native))
	if err != nil {
		return err // cheap while nobody listens yet
	}
	_ = conn.Close()
	if err := e.exec(ctx, p, fileClosed); err != nil {
		return err
	}
	for _, name := range []string{Database, TenantDatabase} {
		if err := e.exec(ctx, p, "CREATE DATABASE IF NOT EXISTS "+name+" ENGINE = Atomic"); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) flushLogs(ctx context.Context, p ports) {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if err := e.exec(ctx, p, "SYSTEM FLUSH LOGS"); err != nil {
		e.log.Debug("engine logs not flushed", "error", err)
	}
}

// exec runs one statement as the writer over a connection of its own.
func (e *Engine) exec(ctx context.Context, p ports, sql string) error {
	cfg := p.endpoint(Writer, e.passwords[Writer]).Config()
	cfg.Database, cfg.MaxConns, cfg.IdleConns = "", 1, 1
	cfg.Addr = []string{local(p.native)}
	if end, ok := ctx.Deadline(); ok { // clickhouse-go's handshake heeds only this
		cfg.DialTimeout = min(cfg.DialTimeout, max(time.Until(end), time.Millisecond))
	}
	conn, err := chconn.Open(cfg)
	if err != nil {
		return err
	}
	err = conn.Exec(ctx, sql)
	return chconn.Wrap("embedded/engine: exec", errors.Join(err, conn.Close()))
}

// child is one run of the engine process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer // the child ends when this does
	output head
	ports  ports
	began  time.Time
	exited chan struct{} // closed when the process is gone
	errLog string
}

func (e *Engine) spawn(p ports, held *os.File) (*child, error) {
	c := &child{ports: p, began: time.Now(), exited: make(chan struct{}), errLog: e.files.errorLog()}
	args := append(append([]string{}, e.opts.Args...),
		"-lib", e.opts.Lib, "-config", e.files.config(), "-path", e.files.data(),
		"-native-port", fmt.Sprint(p.native), "-http-port", fmt.Sprint(p.http))
	c.cmd = exec.Command(e.opts.Executable, args...)
	c.cmd.Dir = e.files.dir
	c.cmd.Env = childEnv()
	c.cmd.Stderr = &c.output
	c.cmd.ExtraFiles = []*os.File{held} // the folder stays locked while the child lives
	c.cmd.SysProcAttr = childAttr()
	c.cmd.WaitDelay = time.Second
	// The engine forgets the tables of its logs when it ends, keeps their files, and then cannot make the tables again.
	if err := os.RemoveAll(e.files.systemLogs()); err != nil {
		return nil, err
	}
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.ports.PID = c.cmd.Process.Pid
	go func() {
		_ = c.cmd.Wait() // how it ended stands in ProcessState
		close(c.exited)
	}()
	return c, nil
}

// childEnv keeps our secrets and ClickHouse's own variables from the child.
func childEnv() []string {
	env := []string{"TZ=UTC", "LANG=C.UTF-8"}
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "GOCOVERDIR", "GOTRACEBACK":
			env = append(env, kv)
		}
	}
	return env
}

// stop closes the child's standard input and waits; it kills when that takes too long or hurry is closed.
func (c *child) stop(hurry <-chan struct{}) {
	_ = c.stdin.Close()
	patience := time.NewTimer(stopLimit)
	defer patience.Stop()
	select {
	case <-c.exited:
	case <-patience.C:
		c.kill()
	case <-hurry:
		c.kill()
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error means that it is gone already
	<-c.exited
}

// failure says why the child ended; call it after exited is closed.
func (c *child) failure() error {
	state := c.cmd.ProcessState
	err := fmt.Errorf("engine process %d ended (%s): %s; more in %s", state.Pid(), state, c.output.String(), c.errLog)
	kind := audit.KindUnavailable
	if state.ExitCode() == exitLibrary || state.ExitCode() == exitUsage {
		kind = audit.KindInvalid
	}
	return audit.E("embedded/engine: child", kind, err)
}

// head keeps the first part of what is written to it: that is where a crash says why.
type head struct {
	mu sync.Mutex
	b  []byte
}

const headLimit = 1024

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b = append(h.b, p[:min(len(p), headLimit-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var said []string
	for line := range strings.Lines(string(h.b)) {
		if !strings.HasPrefix(line, "Logging ") { // where to, at each start
			said = append(said, line)
		}
	}
	return chconn.Redact(strings.TrimSpace(strings.Join(said, "")))
}
