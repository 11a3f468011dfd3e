// Command evenhand audits what language models say: it reads LLM interactions from Kafka, runs the
// detectors, keeps the verdicts in ClickHouse and serves the doors for applications.
//
// Flags, configuration and wiring live here; the lists of sources, detectors and sinks are ordinary
// code in this package (see stack.go, detectors.go and remediation.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // schedules have time zones, and small images have no list of them

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"

	"github.com/evenhand/evenhand/internal/embedded/engine"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == engine.ChildCommand {
		os.Exit(engine.ChildMain(os.Args[2:])) // the embedded store: this binary again, as a child
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// cli is the command line.
type cli struct {
	Config string   `help:"YAML file with settings (see 'evenhand config')." type:"existingfile" placeholder:"FILE" env:"EVENHAND_CONFIG"`
	Set    []string `help:"One setting, over file and environment; repeatable." placeholder:"KEY=VALUE" sep:"none"`

	Release kong.VersionFlag `name:"version" help:"Print the version."`

	Up       upCmd         `cmd:"" help:"Run everything on this machine: broker, store, pipeline, HTTP."`
	Run      runCmd        `cmd:"" help:"Run chosen roles against an outside Kafka and ClickHouse."`
	Emit     emitCmd       `cmd:"" help:"Send interactions from a file or stdin."`
	Scan     scanCmd       `cmd:"" help:"Scan texts: JSONL on stdin, one verdict a line on stdout. Needs no broker and no store."`
	Evaluate evaluateCmd   `cmd:"" help:"Score one text with the hybrid bias evaluator."`
	Judge    judgeCmd      `cmd:"" help:"Ask the judging model about one text or stored interaction."`
	Replay   replayCmd     `cmd:"" help:"Make a call again whose response does not pass, or say how often that helped."`
	Rates    ratesCmd      `cmd:"" help:"Print bias rates by domain and characteristic, with evidence."`
	Check    checkCmd      `cmd:"" help:"Prove the store: every offset covered, every event once, one verdict each."`
	DLQ      dlqCmd        `cmd:"" name:"dlq" help:"List, show and replay messages that could not become interactions."`
	Decision decisionCmd   `cmd:"" name:"decisions" help:"Show, check and restore what processes contended for."`
	Alarms   alarmsCmd     `cmd:"" help:"List breaches, show the policies, replay them over the past."`
	Jobs     jobsCmd       `cmd:"" help:"List the recurring jobs, or run one now."`
	Rollups  rollupsCmd    `cmd:"" help:"Show how far the hourly and daily counts reach, or count days again."`
	Gates    gatesCmd      `cmd:"" help:"List what waits for a person's approval, approve or deny it."`
	Tickets  ticketsCmd    `cmd:"" help:"List what trackers are told about breaches, and send again what they refused."`
	Retain   retainCmd     `cmd:"" name:"retention" help:"Say what is dropped when, drop it, and place legal holds."`
	Token    tokenCmd      `cmd:"" help:"Sign a development token for a tenant and roles."`
	Keys     keysCmd       `cmd:"" help:"Make, list and revoke API keys of machines."`
	GraphQL  graphqlCmd    `cmd:"" name:"graphql" help:"Print what GraphQL serves: its schema, or the reference."`
	Taxonomy taxonomyCmd   `cmd:"" help:"List the keys of bias types, kinds and tags, add one or change one."`
	Rules    rulesCmd      `cmd:"" help:"List, explain, test and lint the rule packs."`
	Train    trainCmd      `cmd:"" help:"Learn the classifier's model from labelled texts."`
	Eval     evalCmd       `cmd:"" help:"Judge rules and classifier on labelled texts."`
	Boards   dashboardsCmd `cmd:"" name:"dashboards" help:"Bring dashboards and alert rules to Grafana."`
	Migrate  migrateCmd    `cmd:"" help:"Create or upgrade the store's tables."`
	Topics   topicsCmd     `cmd:"" help:"Create the Kafka topics, or list them."`
	Doctor   doctorCmd     `cmd:"" help:"Look at everything a run needs and say what is missing."`
	Ready    readyCmd      `cmd:"" help:"Tell whether a process is ready to take traffic."`
	SQL      sqlCmd        `cmd:"" name:"sql" help:"Run one read-only query on the store."`
	Settings settingsCmd   `cmd:"" name:"config" help:"Print all settings with their variables and values; secrets as ***."`
	Version  versionCmd    `cmd:"" help:"Print the version."`
}

// stdio are the program's streams; commands use nothing else.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// input is the standard input for a command that wants what there; a person at a terminal is told so.
// Reads end with ctx: the system does not break off a read of a terminal or a pipe.
func (s *stdio) input(ctx context.Context, what string) io.Reader {
	if f, ok := s.in.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprintf(s.err, "Type or paste %s; Ctrl-D ends.\n", what)
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(w, s.in)
		_ = w.CloseWithError(err)
	}()
	return r
}

// usage says what is wrong with the command line and which help to read.
func usage(err error) string {
	said, help := err.Error(), "evenhand --help"
	if arg, ok := strings.CutPrefix(said, "unexpected argument "); ok {
		said = "there is no command or argument " + arg
	}
	var at *kong.ParseError
	if errors.As(err, &at) && at.Context != nil && at.Context.Selected() != nil {
		help = at.Context.Selected().FullPath() + " --help"
	}
	return said + "\nTry: " + help
}

// decodeDuration reads a duration of Go, or days: 7d.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var s string
	if err := ctx.Scan.PopValueInto("duration", &s); err != nil {
		return err
	}
	d, err := age(s)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

// age reads a duration, which may be in days.
func age(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 16); err == nil {
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no duration such as 90m, 24h or 7d", s)
	}
	return d, nil
}

// outliveLogs lets a server go on whose output lost its reader, as when the collector of its log ends: Go ends a process that
// writes to such a pipe, which suits a command before head.
func outliveLogs() { signal.Ignore(syscall.SIGPIPE) }

// run is main without the process around it: it returns the exit status. 0 ok, 1 failed, 2 usage or
// settings, 3 a check found faults.
func run(args []string, in io.Reader, out, errw io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out = guarded(out)
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends at once
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("evenhand"),
		kong.Description("Audit what language models say: bias, safety, personal data.\n\nStart with:\n\n    evenhand up\n    evenhand emit examples/interactions.jsonl      in another terminal\n    evenhand rates"),
		kong.Writers(out, errw), kong.Exit(func(code int) { exited = code }),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Vars{"version": banner()},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&stdio{in, out, errw}))
	if err != nil {
		fmt.Fprintln(errw, "evenhand:", err)
		return 1
	}
	if len(args) == 0 || args[0] == "help" { // help up is up --help
		args = slices.Concat(args[min(1, len(args)):], []string{"--help"})
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintln(errw, "evenhand:", usage(err))
		return 2
	}
	err = k.Run(&c)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return 130
	}
	fmt.Fprintln(errw, "evenhand:", inLines(err.Error())) // a server's answer may be in it
	var bad *settingsError
	if errors.As(err, &bad) {
		return 2
	}
	return 1
}

// exitCode ends the program with a status after the command has said why.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
