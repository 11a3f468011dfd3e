// Package enginetest gives tests a real engine. The engine library must be there: tests that need
// it fail without it, with the one command to run.
//
// A package that uses it calls [Main] from TestMain, because its test binary runs itself as the
// engine's child:
//
//	func TestMain(m *testing.M) { enginetest.Main(m) }
//
// The first engine of a test binary takes about half a second; [Shared] is one for the whole
// package, [Database] an empty database of a test's own in it.
package enginetest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

var shared struct {
	once sync.Once
	dir  string
	eng  *engine.Engine
	err  error
}

// Main runs the tests, or the engine when the test binary was started as its child. It ends the
// process; after are run when the tests have ended and the shared engine is closed (goleak.Find).
func Main(m *testing.M, after ...func() error) {
	if len(os.Args) > 1 && os.Args[1] == engine.ChildCommand {
		os.Exit(engine.ChildMain(os.Args[2:]))
	}
	code := m.Run()
	closeShared()
	for _, f := range after {
		if err := f(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Start runs an engine of the test's own in a temporary folder and stops it when the test ends.
func Start(t testing.TB) *engine.Engine {
	t.Helper()
	return StartWith(t, engine.Options{})
}

// StartWith is Start with options; what they leave open gets the values of tests.
func StartWith(t testing.TB, opts engine.Options) *engine.Engine {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	e, err := engine.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(e) })
	return e
}

// Shared is one engine for all tests of the package; [Main] stops it.
func Shared(t testing.TB) *engine.Engine {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "evenhand-engine-"); shared.err == nil { //nolint:usetesting // it outlives the first test
			shared.eng, shared.err = engine.Start(context.Background(), engine.Options{Dir: shared.dir, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.eng
}

// Database makes an empty database in the shared engine, gives the writer's configuration for it,
// and drops it when the test ends. Reader and Grafana cannot read it: they see evenhand only.
func Database(t testing.TB) chconn.Config {
	t.Helper()
	cfg := Shared(t).Config(engine.Writer)
	cfg.Database = "test_" + strings.ReplaceAll(audit.NewID(time.Now()).String(), "-", "")
	admin := Conn(t, Shared(t).Config(engine.Writer))
	if err := admin.Exec(t.Context(), "CREATE DATABASE "+cfg.Database+" ENGINE = Atomic"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Exec(context.Background(), "DROP DATABASE IF EXISTS "+cfg.Database+" SYNC") })
	return cfg
}

// Conn opens connections and closes them when the test ends.
func Conn(t testing.TB, cfg chconn.Config) driver.Conn {
	t.Helper()
	conn, err := chconn.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func stop(e *engine.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = e.Close(ctx)
}

func closeShared() {
	if shared.eng != nil {
		stop(shared.eng)
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
}
