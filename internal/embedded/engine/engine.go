// Package engine runs the embedded store: a real ClickHouse server, out of the library libchdb.so,
// as a child process of this binary (linux/amd64, no cgo).
//
// Clients speak the native protocol or HTTP to it on 127.0.0.1, as to a server outside. It
// costs about 230 MB and half a per cent of a core when idle, and is ready within a second.
// A crash of the engine leaves this process alone: the child is started again over the same data,
// with back-off. So is a child that hangs: one that leaves three small queries in a row without any answer, each for ten
// seconds, is killed. The death of this process, even by kill -9, ends the child.
//
// Four users exist, each with a random password in a 0600 file of the data folder: [Writer] may
// do everything, [Reader] and [Grafana] may read the database evenhand within limits, [API] the rows
// of the tenant that its query names. SQL cannot make users, and there is no Keeper: Replicated tables need a server outside.
//
// Start fails with audit.KindInvalid for what the operator must mend (library missing, folder in
// use, port taken). While the engine is down, connections fail with audit.KindUnavailable.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// User is one of the engine's accounts.
type User string

// The accounts.
const (
	Writer  User = "evenhand" // everything
	Reader  User = "reader"   // reads the database evenhand: people's own queries
	Grafana User = "grafana"  // the same for dashboards
	API     User = "api"      // reads what Options.Bound and Common name, one tenant at a time
)

// GrafanaOf is the account of dashboards that show one tenant only. It exists for Options.Tenants.
func GrafanaOf(tenant string) User { return Grafana + "_" + User(tenant) }

// Database is the database of Evenhand's tables; Start makes it.
const Database = "evenhand"

// Options says what to start. Dir is needed; the rest may stay zero.
type Options struct {
	Dir         string // data folder; made when absent
	Lib         string // engine library; "" lets [Find] look for it
	MemoryBytes int64  // limit of the engine's memory; 0 means 2 GiB, at least 512 MiB
	NativePort  int    // port on 127.0.0.1; 0 takes a free one
	HTTPPort    int    // port on 127.0.0.1; 0 takes a free one

	// Private names tables of the database that Grafana may not read, also before they are made.
	Private []string

	// Bound and Common name what API may read. Of Bound, tables with a column tenant_id, it sees the rows of
	// the tenant that the query names in chconn.TenantSetting; a query that names none fails.
	Bound, Common []string

	// Tenants get an account each, see [GrafanaOf], which reads Shared, and of Filtered, tables with a
	// column tenant_id, its own rows, by the views of [Engine.ShowTenants]. A view of Shared stands behind those it is over.
	Tenants          []string
	Shared, Filtered []string

	StartTimeout time.Duration     // for one start of the child; 0 means 60 s
	AskEvery     time.Duration     // how often a running child is asked whether it answers; 0 means 5 s
	AnswerWithin time.Duration     // how long each answer may take; 0 means 10 s
	Logger       *slog.Logger      // nil means slog.Default
	OnRestart    func(cause error) // called after each restart with what ended the child; must not block
	Executable   string            // what to run as the child; "" means this binary
	Args         []string          // its arguments before the child's own; nil means [ChildCommand]
}

const (
	defaultMemory = 2 << 30
	leastMemory   = 512 << 20
)

var (
	tableName  = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	tenantName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) // it becomes part of a file's and of an account's name
)

// Engine is a running server. Its methods may be called from any goroutine.
type Engine struct {
	opts      Options
	files     layout
	passwords map[User]string
	guard     *guard
	web       *web
	log       *slog.Logger

	cancel context.CancelFunc // asks the supervisor to stop
	hurry  chan struct{}      // closed when it must kill rather than wait
	rush   sync.Once
	done   chan struct{} // closed when supervisor and child are gone

	mu    sync.Mutex
	ports ports
	up    chan struct{} // closed while the engine answers
}

// Start takes the folder, starts the engine and returns when it has answered a query. ctx bounds
// the start only. The engine runs until Close.
func Start(ctx context.Context, opts Options) (*Engine, error) {
	const op = "embedded/engine: start"
	opts, err := opts.complete()
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	files := layout{opts.Dir}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	held, err := lock(ctx, files)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	passwords, err := files.prepare(opts)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, errors.Join(err, held.Close()))
	}
	listener, err := net.Listen("tcp", local(opts.NativePort))
	if err != nil {
		return nil, errors.Join(taken("engine.native_port", opts.NativePort, err), held.Close())
	}
	webListener, err := net.Listen("tcp", local(opts.HTTPPort))
	if err != nil {
		return nil, errors.Join(taken("engine.http_port", opts.HTTPPort, err), listener.Close(), held.Close())
	}

	running, cancel := context.WithCancel(context.Background())
	e := &Engine{
		opts: opts, files: files, passwords: passwords, log: opts.Logger,
		cancel: cancel, hurry: make(chan struct{}), done: make(chan struct{}),
		ports: ports{Guard: portOf(listener), HTTP: portOf(webListener)}, up: make(chan struct{}),
	}
	e.guard = newGuard(listener, passwords, e.Dial) //nolint:contextcheck // ctx bounds the start only
	e.web = newWeb(webListener, e.dialHTTP)         //nolint:contextcheck // the same
	began := time.Now()
	started := make(chan error, 1)
	go e.supervise(running, held, started) //nolint:contextcheck // ctx bounds the start only
	select {
	case err = <-started:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		e.kill()
		return nil, audit.E(op, audit.KindOf(err), err)
	}
	at := e.Endpoint(Writer)
	e.log.Info("engine started", "dir", opts.Dir, "native", at.Native, "http", at.HTTP, "pid", at.PID, "took", time.Since(began))
	return e, nil
}

func (o Options) complete() (Options, error) {
	if err := supported(); err != nil {
		return o, err
	}
	if o.Dir == "" {
		return o, errors.New("engine.dir: is empty; name the data folder")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, err
	}
	o.Dir = dir
	if o.Lib, err = Find(o.Lib); err != nil {
		return o, err
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemory
	}
	if o.MemoryBytes < leastMemory {
		return o, fmt.Errorf("engine.memory_bytes: %d is below %d", o.MemoryBytes, int64(leastMemory))
	}
	for _, table := range slices.Concat(o.Private, o.Shared, o.Filtered, o.Bound, o.Common) {
		if !tableName.MatchString(table) {
			return o, fmt.Errorf("engine: table %q is not a plain name", table)
		}
	}
	for _, tenant := range o.Tenants {
		if !tenantName.MatchString(tenant) {
			return o, fmt.Errorf("engine.grafana_tenants: %q has other signs than letters, digits, _ and -", tenant)
		}
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = time.Minute
	}
	if o.AskEvery == 0 {
		o.AskEvery = 5 * time.Second
	}
	if o.AnswerWithin == 0 {
		o.AnswerWithin = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnRestart == nil {
		o.OnRestart = func(error) {}
	}
	if o.Executable == "" {
		if o.Executable, err = os.Executable(); err != nil {
			return o, err
		}
	}
	if o.Args == nil {
		o.Args = []string{ChildCommand}
	}
	return o, nil
}

// Endpoint tells where the engine is reached now by programs that connect by themselves.
func (e *Engine) Endpoint(u User) Endpoint {
	e.mu.Lock()
	p := e.ports
	e.mu.Unlock()
	return p.endpoint(u, e.passwords[u])
}

// Config gives what [chconn.Open] needs in this process. Connections opened with it go to the engine
// directly, follow it to other ports, and wait within their DialTimeout while it is being restarted.
// A changed Database must exist: libchdb ends when a connection names another.
func (e *Engine) Config(u User) chconn.Config {
	c := e.Endpoint(u).Config()
	c.Dial = e.Dial
	return c
}

// Dial opens a connection to the engine's own native port as it is now, whatever addr says; it
// waits for an engine that is being restarted until ctx ends. It fits clickhouse-go's
// Options.DialContext. Only sign in there with what Config gives, see Config.
func (e *Engine) Dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := e.connect(ctx, func(p ports) int { return p.native })
	if err != nil {
		return nil, err
	}
	return &polite{TCPConn: conn.(*net.TCPConn)}, nil
}

// dialHTTP is Dial for the engine's own HTTP port.
func (e *Engine) dialHTTP(ctx context.Context) (net.Conn, error) {
	return e.connect(ctx, func(p ports) int { return p.http })
}

func (e *Engine) connect(ctx context.Context, port func(ports) int) (net.Conn, error) {
	for {
		e.mu.Lock()
		p, up := e.ports, e.up
		e.mu.Unlock()
		select {
		case <-up:
		case <-ctx.Done():
			return nil, audit.E("embedded/engine: dial", audit.KindUnavailable, context.Cause(ctx))
		case <-e.done:
			return nil, audit.E("embedded/engine: dial", audit.KindUnavailable, net.ErrClosed)
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", local(port(p)))
		if err == nil {
			return conn, nil
		}
		// Refused by a child that has just died: the supervisor is about to see it.
		if !sleep(ctx, 10*time.Millisecond) {
			return nil, audit.E("embedded/engine: dial", audit.KindUnavailable, err)
		}
	}
}

// Up tells whether the engine answers, as far as is known without asking it.
func (e *Engine) Up() bool {
	e.mu.Lock()
	up := e.up
	e.mu.Unlock()
	select {
	case <-up:
		return true
	default:
		return false
	}
}

// Close stops the engine and frees the folder: it flushes the system logs for half a second at
// most, then ends the child, by force when ctx ends. When Close returns, the child is gone. Calling
// it again does nothing.
func (e *Engine) Close(ctx context.Context) error {
	e.cancel()
	select {
	case <-e.done:
	case <-ctx.Done():
		e.kill()
	}
	return nil
}

// kill ends the engine without waiting for anything but the kernel.
func (e *Engine) kill() {
	e.rush.Do(func() { close(e.hurry) })
	e.cancel()
	<-e.done
}

func (e *Engine) setUp(p ports) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ports = p
	close(e.up)
}

func (e *Engine) setDown() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.up = make(chan struct{})
}
