// Command crash proves delivery under faults. It runs real processes (a broker, the store's engine,
// members of the pipeline built with the tag "failpoints"), sends events whose acknowledgements it
// keeps in a ledger of its own, and kills, pauses, cuts and hides what it runs. After each round it
// lets the pipeline catch up and compares the store with the ledger and with `evenhand check`.
//
// The last line of its output is one JSON object: kills by kind, events, lost, double and how long
// recovery took. It exits with status 1 when anything was lost, doubled or found faulty.
//
// See tools/crash.sh, which builds the binary and calls it: `make crash`, `make crash LONG=1`.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/evenhand/evenhand/internal/failpoint"
)

// options are the flags.
type options struct {
	bin        string        // evenhand, built with the tag failpoints
	dir        string        // of all data and logs
	broker     string        // embedded, kafka or kafka3; several run one after the other
	duration   time.Duration // of all rounds on all brokers; 0: one short round on each
	rate       int           // events a second
	members    int
	partitions int
	absent     time.Duration // how long the store is hidden
	seed       uint64
	measure    string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == brokerCommand {
		os.Exit(brokerMain(os.Args[2:]))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process around it.
func run(args []string, out, errw io.Writer) int {
	var o options
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "bin/evenhand-crash", "evenhand, built with -tags failpoints")
	flags.StringVar(&o.dir, "dir", "", "folder of data and logs; a temporary one, deleted when all is well")
	flags.StringVar(&o.broker, "broker", "embedded", "embedded, kafka (one broker), kafka3 (three, one of which is lost), or several, separated by commas")
	flags.DurationVar(&o.duration, "for", 0, "rounds follow each other for so long, shared by the brokers; 0 is one short round on each")
	flags.IntVar(&o.rate, "rate", 400, "events a second")
	flags.IntVar(&o.members, "members", 3, "processes of the pipeline")
	flags.IntVar(&o.partitions, "partitions", 4, "of the interactions' topic")
	flags.DurationVar(&o.absent, "absent", 6*time.Second, "how long the store is out of reach, once")
	flags.StringVar(&o.measure, "measure", "", "measure instead: memory (a gigabyte waits while the store is away) or hung (a broker hangs; with -broker kafka3)")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of what is sent and when faults come")
	if flags.Parse(args) != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	temporary := o.dir == ""
	if temporary {
		var err error
		if o.dir, err = os.MkdirTemp("", "evenhand-crash-"); err != nil {
			fmt.Fprintln(errw, "crash:", err)
			return 1
		}
	}
	log := newLog(errw)
	o.bin, _ = filepath.Abs(o.bin)
	if o.measure != "" {
		if err := measure(ctx, o.measure, o, log, out); err != nil {
			fmt.Fprintln(errw, "crash:", err)
			return 1
		}
		return 0
	}
	r := newReport(o)
	err := crash(ctx, o, r, log)
	r.finish(err)
	b, _ := json.Marshal(r) // plain fields: cannot fail
	fmt.Fprintln(out, string(b))
	if !r.Clean {
		fmt.Fprintln(errw, "crash: not clean; data and logs are kept in", o.dir)
		return 1
	}
	if temporary {
		_ = os.RemoveAll(o.dir)
	}
	return 0
}

// newLog writes what happens when, for people.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.LevelKey:
			return slog.Attr{}
		case slog.TimeKey:
			return slog.String("at", a.Value.Time().Format("15:04:05.0"))
		}
		return a
	}}))
}

// crash runs the rounds on each kind of broker.
func crash(ctx context.Context, o options, r *report, log *slog.Logger) error {
	kinds := strings.Split(o.broker, ",")
	for _, kind := range kinds {
		each := o
		each.broker, each.dir, each.duration = kind, filepath.Join(o.dir, kind), o.duration/time.Duration(len(kinds))
		if err := onBroker(ctx, each, r, log); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// onBroker runs rounds on one kind of broker and a store of its own.
func onBroker(ctx context.Context, o options, r *report, log *slog.Logger) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	w, err := openWorld(ctx, o, r, log)
	if err != nil {
		return err
	}
	defer w.close() //nolint:contextcheck // ends what runs, also after ctx has ended
	r.past = r.counts
	log.Info("ready", "broker", o.broker, "dir", o.dir, "seed", o.seed)
	end := time.Now().Add(o.duration)
	for round := 1; round == 1 || time.Now().Before(end); round++ {
		log.Info("round begins", "broker", o.broker, "round", round)
		if err := w.round(ctx, round); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		r.Rounds++
		log.Info("round is clean", "round", round, "events", r.Events, "kills", r.Kills, "duplicates_before_final", r.BeforeFinal)
	}
	return nil
}

// counts are what verification counts.
type counts struct {
	Events      int    `json:"events"`    // distinct (tenant, id, content) that producers had acknowledged
	Sent        int    `json:"sent"`      // acknowledged messages, producers' duplicates among them
	Conflicts   int    `json:"conflicts"` // messages under an id that was sent with other content
	Rejected    int    `json:"rejected"`  // messages that are no events
	Lost        int    `json:"lost"`
	Double      int    `json:"double"`
	Phantom     int    `json:"phantom"`                 // rows that nobody sent
	BeforeFinal uint64 `json:"duplicates_before_final"` // rows that FINAL folds, with merges held back
	Republished uint64 `json:"published_again"`
}

func (c counts) plus(d counts) counts {
	return counts{c.Events + d.Events, c.Sent + d.Sent, c.Conflicts + d.Conflicts, c.Rejected + d.Rejected, c.Lost + d.Lost, c.Double + d.Double,
		c.Phantom + d.Phantom, c.BeforeFinal + d.BeforeFinal, c.Republished + d.Republished}
}

// report is the outcome.
type report struct {
	mu          sync.Mutex
	recoveries  []time.Duration
	Broker      string         `json:"broker"`
	Seed        uint64         `json:"seed"`
	Seconds     float64        `json:"seconds"`
	Rounds      int            `json:"rounds"` // that ended clean
	Kills       int            `json:"kills"`
	KillsByKind map[string]int `json:"kills_by_kind"`
	Faults      map[string]int `json:"other_faults"` // pauses, cuts, absences, members that came and left
	counts
	Recovery map[string]int64 `json:"recovery_ms"` // n, p50, p95, max: from the fault until all partitions passed what had been acknowledged before it
	Exits    int              `json:"exits"`       // of members by themselves, as when the store is away at their start
	Check    json.RawMessage  `json:"check,omitempty"`
	Clean    bool             `json:"clean"`
	Error    string           `json:"error,omitempty"`

	began time.Time
	past  counts // of the brokers before this one
}

func newReport(o options) *report {
	r := &report{Broker: o.broker, Seed: o.seed, KillsByKind: map[string]int{}, Faults: map[string]int{}, began: time.Now()}
	for _, p := range failpoint.All() {
		r.KillsByKind["failpoint:"+p] = 0
	}
	return r
}

func (r *report) killed(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Kills++
	r.KillsByKind[kind]++
}

func (r *report) fault(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Faults[kind]++
}

func (r *report) recovered(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recoveries = append(r.recoveries, d)
}

func (r *report) exited() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Exits++
}

func (r *report) finish(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Seconds = time.Since(r.began).Round(100 * time.Millisecond).Seconds()
	slices.Sort(r.recoveries)
	if n := len(r.recoveries); n > 0 {
		at := func(q float64) int64 { return r.recoveries[min(n-1, int(q*float64(n)))].Milliseconds() }
		r.Recovery = map[string]int64{"n": int64(n), "p50": at(0.5), "p95": at(0.95), "max": at(1)}
	}
	if err != nil {
		r.Error = err.Error()
	}
	r.Clean = err == nil && r.Lost+r.Double+r.Phantom == 0
}
