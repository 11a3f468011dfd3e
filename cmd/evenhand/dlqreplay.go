package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/store"
)

type dlqReplayCmd struct {
	storeFlags
	dlqFlags
	Places []string `arg:"" optional:"" name:"place" help:"Only these: TOPIC/PARTITION/OFFSET, as list prints them."`
	Rate   int      `help:"Messages a second." default:"100"`
	Limit  int      `help:"Send at most so many; 0 sends all." default:"0"`
	DryRun bool     `help:"Only say what would be sent."`
	Resume string   `help:"Remember progress here and go on from it (default: a file in the data or cache folder)." placeholder:"FILE"`
	Quiet  bool     `help:"No progress." short:"q"`
	JSON   bool     `help:"Print what was done as JSON." name:"json"`
}

func (dlqReplayCmd) Help() string {
	return `Sends rejected messages to their topic again, as they came. Mend the cause first: what is still wrong is rejected again.
An event without an id or time keeps those of its first delivery, so sending twice changes nothing in the store. A run that was
broken off goes on where it stopped when the same command is run again. Exit status 3 when some could not be sent.

Examples:
  evenhand dlq replay --reason tenant_missing --dry-run
  evenhand dlq replay --reason tenant_missing --since 24h --rate 500
  evenhand dlq replay llm.interactions/3/17`
}

// replayState is what a resume file holds.
type replayState struct {
	Begun time.Time       `json:"begun"` // what was rejected later is not of this run
	After *store.Rejected `json:"after"` // the last one that is done
	Done  int             `json:"done"`
	Sent  int             `json:"sent"`
}

// replayed is what a run did.
type replayed struct {
	Selected int            `json:"selected"`
	Sent     int            `json:"sent"`     // or would be, of a dry run
	Repeated int            `json:"repeated"` // further rejections of a message that is sent
	NotSent  map[string]int `json:"not_sent"`
	DryRun   bool           `json:"dry_run"`
}

// Why a message is not sent.
const (
	textDropped  = "text_dropped" // retention has dropped it
	tooLarge     = "too_large"
	replayBatch  = 100
	replayMemory = 8 << 20   // bytes of values that are read at once
	replayLarge  = 1_040_000 // bytes of a message; the topic takes a little more
)

// Run replays.
func (cmd *dlqReplayCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if cmd.Rate < 1 || cmd.Limit < 0 {
		return &settingsError{fmt.Errorf("--rate wants 1 or more and --limit 0 or more: they are %d and %d", cmd.Rate, cmd.Limit)}
	}
	f, err := cmd.filter(time.Now())
	for _, s := range cmd.Places {
		p, perr := parsePlace(s)
		f.Places, err = append(f.Places, p), errors.Join(err, perr)
	}
	if err != nil {
		return err
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	st := store.New(conn, s.ClickHouse.Database)
	if err := cmd.known(ctx, st); err != nil {
		return err
	}
	if err := s.findBrokers(); err != nil {
		return err
	}
	opt := kafkaconn.DefaultProducerOptions()
	opt.MaxMessage = replayLarge
	producer, err := kafkaconn.NewProducer(s.kafka(), opt)
	if err != nil {
		return err
	}
	defer func() { _ = producer.Close(context.WithoutCancel(ctx)) }()
	r := newReplayRun(cmd, st, producer.Produce)
	if err := r.resume(cmd.stateFile(s)); err != nil {
		return err
	}
	f.Until = r.state.Begun
	total, err := st.RejectedCounts(ctx, f)
	if err != nil {
		return err
	}
	all := int64(0)
	for _, c := range total {
		all += int64(c.Count)
	}
	if all == 0 && len(f.Places) > 0 {
		return fmt.Errorf("no message was rejected at %s", strings.Join(cmd.Places, ", "))
	}
	r.bar = newProgress(std.err, all, cmd.Quiet)
	err = r.all(ctx, f)
	r.bar.done()
	return r.report(std, strings.Join(s.Kafka.Brokers, ","), err)
}

// stateFile is where progress is remembered: one file for each selection and store.
func (cmd *dlqReplayCmd) stateFile(s settings) string {
	if cmd.Resume != "" {
		return cmd.Resume
	}
	dir := s.DataDir
	if _, err := os.Stat(dir); err != nil {
		if dir, err = os.UserCacheDir(); err != nil {
			return ""
		}
		dir = filepath.Join(dir, "evenhand")
		_ = os.MkdirAll(dir, 0o700) // what fails here is said when progress is written
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %q %q", cmd.Reason, cmd.Tenant, cmd.Since, cmd.Places, cmd.Limit, s.ClickHouse.Addr, s.ClickHouse.Database))
	return filepath.Join(dir, "dlq-replay-"+hex.EncodeToString(sum[:6])+".json")
}

// rejectedStore is what a replay reads.
type rejectedStore interface {
	RejectedAfter(ctx context.Context, f store.RejectedFilter, after *store.Rejected, limit int) ([]store.Rejected, error)
	RejectedMessages(ctx context.Context, rs []store.Rejected) ([]*audit.Rejected, error)
}

// replayRun is one run's progress. It remembers the ids of what it sent: some 50 bytes a message.
type replayRun struct {
	cmd     *dlqReplayCmd
	st      rejectedStore
	produce func(context.Context, []kafka.Message) error
	bar     *progress
	path    string // of state; "" remembers nothing
	state   replayState
	resumed int // messages done by earlier runs
	out     replayed
	seen    map[audit.ID]struct{} // events sent by this run
	due     time.Time             // of the next batch
}

func newReplayRun(cmd *dlqReplayCmd, st rejectedStore, produce func(context.Context, []kafka.Message) error) *replayRun {
	return &replayRun{cmd: cmd, st: st, produce: produce, seen: map[audit.ID]struct{}{}, out: replayed{NotSent: map[string]int{}, DryRun: cmd.DryRun}}
}

// resume reads the file of an earlier run that was broken off; without one the run begins now.
func (r *replayRun) resume(path string) error {
	r.path, r.state = path, replayState{Begun: time.Now().UTC().Truncate(time.Millisecond)}
	b, err := os.ReadFile(path)
	if path == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	var st replayState
	if json.Unmarshal(b, &st) != nil || st.Begun.IsZero() {
		return fmt.Errorf("--resume: %s is not a file of 'dlq replay'; delete it or name another", path)
	}
	r.state, r.resumed = st, st.Done
	return nil
}

// all goes through the selection in the order of the log.
func (r *replayRun) all(ctx context.Context, f store.RejectedFilter) error {
	for {
		rows, err := r.st.RejectedAfter(ctx, f, r.state.After, 10*replayBatch)
		if err != nil || len(rows) == 0 {
			return err
		}
		for len(rows) > 0 {
			n := r.next(rows)
			if n == 0 {
				return nil // --limit
			}
			if err := r.some(ctx, rows[:n]); err != nil {
				return err
			}
			rows = rows[n:]
		}
	}
}

// next is how many rows go together: a fifth of a second's, in bounded memory; 0 when the limit is
// reached.
func (r *replayRun) next(rows []store.Rejected) (n int) {
	most := min(replayBatch, max(1, r.cmd.Rate/5))
	if r.cmd.Limit > 0 {
		most = min(most, r.cmd.Limit-r.state.Sent)
	}
	for size := 0; n < min(len(rows), most); n++ {
		if size += int(rows[n].Bytes); n > 0 && size > replayMemory {
			break
		}
	}
	return n
}

// some sends rows and remembers that it did.
func (r *replayRun) some(ctx context.Context, rows []store.Rejected) error {
	messages, err := r.st.RejectedMessages(ctx, rows)
	if err != nil {
		return err
	}
	var ms []kafka.Message
	for _, m := range messages {
		switch {
		case m == nil:
			r.out.NotSent[textDropped]++
		case !r.first(m):
			r.out.Repeated++
		default:
			ms = append(ms, stream.Replay(m))
		}
	}
	if len(ms) > 0 && !r.cmd.DryRun {
		if err := r.send(ctx, ms); err != nil {
			return err
		}
	} else {
		r.out.Sent += len(ms)
		r.state.Sent += len(ms)
	}
	r.out.Selected += len(rows)
	r.state.Done += len(rows)
	last := rows[len(rows)-1]
	r.state.After = &last
	r.bar.set(r.out.Sent, int64(r.state.Done))
	return r.save()
}

// first tells whether this run has not sent the event yet: a message that was replayed and rejected
// again stands in the table once for each try.
func (r *replayRun) first(m *audit.Rejected) bool {
	id := stream.EventID(m)
	_, again := r.seen[id]
	r.seen[id] = struct{}{}
	return !again
}

// send waits its turn, and waits and sends again while the broker is full: what was taken before folds
// in the store. Messages that the broker refuses are counted.
func (r *replayRun) send(ctx context.Context, ms []kafka.Message) error {
	if !wait.For(ctx, time.Until(r.due)) {
		return ctx.Err()
	}
	r.due = time.Now().Add(time.Duration(len(ms)) * time.Second / time.Duration(r.cmd.Rate))
	for {
		err := r.produce(ctx, ms)
		var each kafkaconn.MessageErrors
		refused := 0
		if errors.As(err, &each) {
			refused = len(slices.DeleteFunc(slices.Clone(each), func(e error) bool { return audit.KindOf(e) != audit.KindInvalid || e == nil }))
		}
		switch kind := audit.KindOf(err); {
		case err == nil, kind == audit.KindInvalid && refused > 0:
			if refused > 0 {
				r.out.NotSent[tooLarge] += refused
			}
			r.out.Sent += len(ms) - refused
			r.state.Sent += len(ms) - refused
			return nil
		case kind != audit.KindOverloaded:
			return err
		}
		if !wait.For(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

func (r *replayRun) save() error {
	if r.path == "" || r.cmd.DryRun {
		return nil
	}
	return saveProgress(r.path, r.state)
}

func (r *replayRun) report(std *stdio, to string, err error) error {
	if r.cmd.JSON {
		err = errors.Join(err, printJSON(std.out, r.out))
	} else {
		r.print(std.err, to)
	}
	if err != nil {
		if r.path != "" && !r.cmd.DryRun {
			fmt.Fprintf(std.err, "Run the same command again to go on after %s done.\n", count(r.state.Done, "message"))
		}
		return err
	}
	if r.path != "" && !r.cmd.DryRun {
		_ = os.Remove(r.path) // all is sent: nothing to go on from
	}
	if len(r.out.NotSent) > 0 {
		return exitCode(3)
	}
	return nil
}

func (r *replayRun) print(out io.Writer, to string) {
	verb, took := "sent to "+to, r.bar.elapsed().Seconds()
	if r.cmd.DryRun {
		verb = "would be sent to " + to
	}
	fmt.Fprintf(out, "%d of %s %s in %.1f s", r.out.Sent, count(r.out.Selected, "message"), verb, took)
	if r.out.Repeated > 0 {
		fmt.Fprintf(out, ", %d of them rejections of the same one again", r.out.Repeated)
	}
	if r.resumed > 0 {
		fmt.Fprintf(out, ", %d done before", r.resumed)
	}
	fmt.Fprintln(out)
	for why, text := range map[string]string{
		textDropped: "have no text any more", tooLarge: "are too large for the topic",
	} {
		if n := r.out.NotSent[why]; n > 0 {
			fmt.Fprintf(out, "%s not sent: they %s\n", count(n, "message"), text)
		}
	}
}
