package engine

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// ChildCommand is the hidden subcommand under which the binary runs itself as the engine.
const ChildCommand = "engine-child"

// Exit codes of the child.
const (
	exitStopped = 0 // its parent closed its standard input, or SIGTERM
	exitUsage   = 2 // started by hand
	exitLibrary = 3 // the library cannot be loaded: starting again does not help
	exitEngine  = 4 // the engine ended: a port in use, a locked folder, a fault
)

// hold keeps clickhouse-local, and with it the listeners, alive; it never ends by itself.
const hold = "SELECT count() FROM system.numbers WHERE sleepEachRow(1) = 1" +
	" SETTINGS max_block_size = 1, max_threads = 1, max_execution_time = 0"

type libraryError struct{ err error }

func (e *libraryError) Error() string { return e.err.Error() }
func (e *libraryError) Unwrap() error { return e.err }

// ChildMain is the engine process: args are those after [ChildCommand]. It returns the exit code,
// with which main must leave at once (os.Exit): the engine is stopped crash-only, its threads are
// still running. It ends when standard input does, or on SIGTERM.
func ChildMain(args []string) int {
	flags := flag.NewFlagSet(ChildCommand, flag.ContinueOnError)
	lib := flags.String("lib", "", "engine library")
	config := flags.String("config", "", "config.xml")
	path := flags.String("path", "", "data folder")
	native := flags.Int("native-port", 0, "port of the native protocol on 127.0.0.1")
	http := flags.Int("http-port", 0, "port of HTTP on 127.0.0.1")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if *lib == "" || *config == "" || *path == "" || *native == 0 || *http == 0 {
		fmt.Fprintln(os.Stderr, ChildCommand+" is started by evenhand itself, not by hand; see: evenhand up")
		return exitUsage
	}

	stop := make(chan struct{}, 2)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() { <-term; stop <- struct{}{} }()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop <- struct{}{} }()

	ended := make(chan error, 1)
	go func() {
		ended <- runLocal(*lib, []string{
			"--multiquery", "--output-format=TabSeparated", // Null would silence every client
			"--config-file=" + *config,
			"--path=" + *path,
			"--log-level=warning", // <level> in the file is not heeded
			"--listen_host=127.0.0.1",
			fmt.Sprintf("--http_port=%d", *http),
			fmt.Sprintf("--tcp_port=%d", *native),
			// The parent asks the native port: when that answers, HTTP does too.
			"--query=" + strings.Join([]string{"SYSTEM START LISTEN HTTP", "SYSTEM START LISTEN TCP", hold}, "; "),
		})
	}()

	select {
	case <-stop:
		return exitStopped
	case err := <-ended:
		fmt.Fprintln(os.Stderr, "engine ended:", err)
		if _, ok := errors.AsType[*libraryError](err); ok {
			return exitLibrary
		}
		return exitEngine
	}
}
