// Command bench measures Evenhand as whole processes: CPU by getrusage and /proc summed over all of
// them, events a second, resident memory, parts of the store. `make bench` runs it.
//
//	go run ./bench backlog -n 2000000            a backlog, embedded: broker and pipeline, engine
//	go run ./bench backlog -n 200000 -days 28    28 event days mixed in each batch
//	go run ./bench backlog -from answers.jsonl   with texts of a file ({"text"} a line) in pieces of 2 KB instead of generated ones
//	go run ./bench split -n 500000               broker, engine and `evenhand run` in processes of their own
//	go run ./bench judge -n 60000 -rounds 12     the pipeline with the judge's selection on, beside off
//	go run ./bench low -rate 500 -seconds 60     acked → visible at a low rate, then idle
//	go run ./bench lists -rows 10000000          list queries over generated rows, idle and under load
//	go run ./bench rollup -events 1000000        the rollup of one hour of so many events
//	go run ./bench trends -rows 100000000        the dashboards' queries over two years of rollups, cold and warm
//	go run ./bench scan -n 200000                `evenhand scan` over 2 KB texts
//	go run ./bench inline -n 4000 -rate 100      what the guard and the gateway add, LiteLLM's proxy beside with -litellm FILE
//	go run ./bench sim                           alarm policies on made-up traffic: false alarms, delays
//
// Texts come from the generator named by EVENHAND_SHARED (tools/scanbench) when it is there, else
// from one of its own. Every command prints what it measured and fails when ids are missing or double.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenhand/evenhand/internal/embedded/engine"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == engine.ChildCommand {
		os.Exit(engine.ChildMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags of all commands.
type options struct {
	bin     string // the evenhand binary
	dir     string // where data goes; "" makes a temporary folder
	n       int
	days    int
	parts   int
	rate    int
	seconds int
	rows    int
	set     string
	seeds   int
	spread  float64
	compare bool
	load    bool
	only    string
	pace    int
	samples int
	rounds  int
	litellm string
	texts   int
	from    string
	quiet   bool // figures are returned, not printed
}

// say prints figures.
func (o options) say(format string, args ...any) {
	if !o.quiet {
		fmt.Printf(format, args...)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which? backlog, split, judge, low, lists, rollup, trends, scan, inline or sim")
	}
	var o options
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	fs.StringVar(&o.bin, "bin", "bin/evenhand", "the binary to measure")
	fs.IntVar(&o.texts, "texts", 20_000, "different texts at most; events go through them in turn")
	fs.StringVar(&o.from, "from", "", "file with a text a line ({\"text\"}); default generated ones")
	fs.StringVar(&o.dir, "dir", "", "folder for data; default a temporary one")
	fs.IntVar(&o.n, "n", 200_000, "events or texts")
	fs.IntVar(&o.n, "events", 200_000, "the same as -n")
	fs.IntVar(&o.days, "days", 1, "event days mixed in each batch")
	fs.IntVar(&o.parts, "partitions", 4, "partitions of llm.interactions")
	fs.IntVar(&o.pace, "pace", 0, "of lists: events a second that come in beside; 0: as many as are taken")
	fs.IntVar(&o.rate, "rate", 500, "events a second")
	fs.IntVar(&o.seconds, "seconds", 60, "how long")
	fs.IntVar(&o.rows, "rows", 1_000_000, "rows to generate")
	fs.StringVar(&o.set, "set", "", "extra settings for evenhand, comma separated key=value")
	fs.IntVar(&o.seeds, "seeds", 3, "of sim: simulations to average")
	fs.Float64Var(&o.spread, "spread", 0, "of sim: how much the logarithms of the cells' usual rates differ")
	fs.BoolVar(&o.compare, "compare", true, "of sim: other schemes beside the shipped policies")
	fs.IntVar(&o.samples, "samples", 40, "of lists: how often each query is asked")
	fs.IntVar(&o.rounds, "rounds", 3, "of judge: how often each is measured")
	fs.StringVar(&o.litellm, "litellm", "", "of inline: the command of LiteLLM's proxy")
	fs.BoolVar(&o.load, "load", true, "of lists: ask again while events come in")
	fs.StringVar(&o.only, "only", "", "of lists: the questions whose name holds this, and no comparison with plain FINAL")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "evenhand-bench.")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.dir = dir
	}
	commands := map[string]func(context.Context, options) error{
		"backlog": backlog, "split": split, "judge": judgeBeside, "low": lowRate, "lists": lists, "rollup": rollupHour, "trends": trends, "scan": scanTexts, "sim": simulate, "inline": inline,
		"broker": brokerOnly, "engine": engineOnly, // processes of split
	}
	f, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("%s: no such measurement", args[0])
	}
	return f(ctx, o)
}
