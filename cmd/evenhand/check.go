package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-isatty"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
	"github.com/evenhand/evenhand/sources/kafka"
	"github.com/evenhand/evenhand/store"
)

type checkCmd struct {
	storeFlags
	JSON      bool `help:"Print the whole report as one line of JSON." name:"json"`
	StoreOnly bool `help:"Do not ask the brokers."`
	AtRest    bool `help:"Nothing is being written: judge what the newest batches left too, and all rollups."`
	Rollups   bool `help:"Count the rollups of all event days again, not of the last week only." name:"all-rollups"`
}

func (checkCmd) Help() string {
	return `Proves that what the log gave is in the store, once. From the store alone: the commit markers tile each partition without gap or
overlap, the tables hold what the markers say, no event has two rows or two verdicts, the flat read model equals the facts, no row
is an orphan, the rollups equal a new count. With the brokers, which are asked when they are known (the running 'evenhand up', or kafka.brokers): every message that
the interactions' topic still holds and the group has taken in is stored or rejected, bias.audit.stream holds its result, and the table
decisions is what evenhand.decisions says.
What was altered, deleted or added in the store by hand is told by the seals: hashes of each interaction, its first verdict and its texts that the
commit markers hold, signed with seal.key_file (with 'up': seal/seal.key in the data folder; seal.pub beside it is all that a check needs). Verdicts that came later
(judge, retries, outside analyzers), reviews, feedback, reveals and gates have theirs in the table fact_seals, a signed chain for each writer. What an older
program wrote has none.
It runs beside production. Exit status 3 when something is wrong.`
}

// Run checks the store.
func (cmd *checkCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, conn, err := cmd.open(c, engine.Writer)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	opt := store.CheckOptions{AtRest: cmd.AtRest, AllRollups: cmd.Rollups, Progress: checkProgress(std.err)}
	if r, ok := findRunning(s.DataDir); ok && len(s.Kafka.Brokers) == 0 {
		s.Kafka.Brokers = []string{r.Kafka}
		if s.Tenant.Default == "" {
			s.Tenant.Default = "default" // as 'up' sets it
		}
	}
	if !cmd.StoreOnly && len(s.Kafka.Brokers) > 0 {
		log, err := newCheckLog(s)
		if err != nil {
			return err
		}
		defer log.scan.Close()
		opt.Log = log
	}
	if opt.Keys, err = s.sealKeys(); err != nil {
		return err
	}
	rep := checkReport{}
	if rep.Report, err = store.New(conn, s.ClickHouse.Database).CheckWith(ctx, opt); err != nil {
		return err
	}
	if opt.Log != nil {
		decided, err := arbiterOptions(conn, s.ClickHouse.Database)
		if err != nil {
			return err
		}
		if rep.Decisions, err = arbiter.Verify(ctx, s.kafka(), decided); err != nil {
			return err
		}
	}
	if cmd.JSON {
		if err := json.NewEncoder(std.out).Encode(rep); err != nil {
			return err
		}
	} else {
		if d := rep.Decisions; d != nil && (d.Decisions > 0 || !d.OK()) {
			printDecisionReport(std.out, d)
			fmt.Fprintln(std.out)
		}
		printReport(std.out, rep.Report)
	}
	if !rep.OK() || rep.Decisions != nil && !rep.Decisions.OK() {
		return exitCode(3)
	}
	return nil
}

// checkReport is what a check prints as JSON.
type checkReport struct {
	*store.Report
	Decisions *arbiter.Report `json:"decisions,omitempty"` // of the brokers' log evenhand.decisions, if they were asked
}

// checkProgress shows on a terminal which part is being looked at; elsewhere it is quiet.
func checkProgress(w io.Writer) func(step string, i, n int) {
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return nil
	}
	return func(step string, i, n int) {
		fmt.Fprintf(w, "\r\x1b[Kchecking %s %d/%d", step, i, n)
		if (step == "days" || step == "rollups") && i == n { // the last steps
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

// checkLog is the brokers' side of a check.
type checkLog struct {
	scan   *kafka.Scanner
	topics []checkedTopic
	stream string
}

type checkedTopic struct {
	name, group string
	decoder     *ingest.Decoder
}

func newCheckLog(s settings) (*checkLog, error) {
	scan, err := kafka.NewScanner(s.kafka())
	if err != nil {
		return nil, err
	}
	l := &checkLog{scan: scan, stream: kafkaconn.AuditStream}
	bound, err := s.interactionTopics()
	for _, b := range bound {
		l.topics = append(l.topics, checkedTopic{b.topic, s.sourceOf(b).Group, s.decoderOf(b)})
	}
	return l, err
}

// each runs f for some partitions at once.
func (l *checkLog) each(ctx context.Context, partitions int, f func(ctx context.Context, partition int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for p := range partitions {
		g.Go(func() error { return f(ctx, p) })
	}
	return g.Wait()
}

// Deliveries implements store.Log. Messages are decoded as the pipeline does.
func (l *checkLog) Deliveries(ctx context.Context, f func(store.Delivery)) error {
	for _, t := range l.topics {
		if err := l.deliveries(ctx, t, f); err != nil {
			return err
		}
	}
	return nil
}

func (l *checkLog) deliveries(ctx context.Context, t checkedTopic, f func(store.Delivery)) error {
	at, err := l.scan.Positions(ctx, t.name, t.group)
	if err != nil {
		return err
	}
	partitions := 0
	for p := range at {
		partitions = max(partitions, p+1)
	}
	var mu sync.Mutex
	return l.each(ctx, partitions, func(ctx context.Context, p int) error {
		start, end, err := l.scan.Bounds(ctx, t.name, p)
		if err != nil {
			return err
		}
		return l.scan.Scan(ctx, t.name, p, start, min(at[p], end), func(r sources.Record) {
			d := store.Delivery{Topic: t.name, Partition: int32(p), Offset: r.Offset}
			if in, _ := t.decoder.Decode(r, audit.Origin{Topic: t.name, Partition: p, Offset: r.Offset, BrokerTime: r.Time}); in != nil {
				d.Result = audit.HotResultID(in.Tenant, in.ID, in.Digest)
			}
			mu.Lock()
			defer mu.Unlock()
			f(d)
		})
	})
}

// Positions implements store.Log.
func (l *checkLog) Positions(ctx context.Context, f func(topic string, partition int32, next, waiting int64)) error {
	for _, t := range l.topics {
		at, err := l.scan.Positions(ctx, t.name, t.group)
		if err != nil {
			return err
		}
		partitions, err := l.scan.Partitions(ctx, t.name)
		if err != nil {
			return err
		}
		for p := range partitions {
			start, end, err := l.scan.Bounds(ctx, t.name, p)
			if err != nil {
				return err
			}
			next, ok := at[p]
			if !ok {
				f(t.name, int32(p), -1, end-start)
				continue
			}
			next = min(next, end) // a log that was replaced may not have come to the old position
			f(t.name, int32(p), next, end-max(next, start))
		}
	}
	return nil
}

// Results implements store.Log.
func (l *checkLog) Results(ctx context.Context, f func(audit.ID)) (since time.Time, err error) {
	partitions, err := l.scan.Partitions(ctx, l.stream)
	if err != nil {
		return since, err
	}
	begun := time.Now()
	var mu sync.Mutex
	err = l.each(ctx, partitions, func(ctx context.Context, p int) error {
		start, end, err := l.scan.Bounds(ctx, l.stream, p)
		if err != nil {
			return err
		}
		first := time.Time{}
		if start > 0 {
			first = begun // nothing is left to tell how old the rest would be
		}
		seen := false
		err = l.scan.Scan(ctx, l.stream, p, start, end, func(r sources.Record) {
			if !seen && start > 0 {
				first = r.Time
			}
			seen = true
			for _, h := range r.Headers {
				if h.Key != "result_id" {
					continue
				}
				if id, err := audit.ParseID(string(h.Value)); err == nil {
					mu.Lock()
					f(id)
					mu.Unlock()
				}
			}
		})
		mu.Lock()
		defer mu.Unlock()
		if first.After(since) {
			since = first
		}
		return err
	})
	return since, err
}

// printReport prints what the check found.
func printReport(out io.Writer, r *store.Report) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOPIC\tPARTITION\tEPOCH\tOFFSETS\tMARKERS\tROWS\tREJECTED\tSKIPPED\tLOST")
	for _, p := range r.Partitions {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d – %d\t%d\t%d\t%d\t%d\t%d\n", p.Topic, p.Partition, p.Epoch, p.Lo, p.Hi, p.Markers, p.Rows, p.Rejected, p.Skipped, p.Lost)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\n%d interactions, %d delivered again, %d with another content under a known id, %d rejected\n", r.Interactions, r.Duplicates, r.IDConflicts, r.Rejected)
	if r.Purged > 0 {
		fmt.Fprintf(out, "%d interactions of months that retention deleted are counted as they were\n", r.Purged)
	}
	if l := r.Log; l != nil {
		fmt.Fprintf(out, "%d messages that the log still holds and %d results that the stream must hold were looked up\n", l.Messages, l.Judged)
		if l.Waiting > 0 {
			fmt.Fprintf(out, "%d messages of the log are not taken in yet and were not looked up: the pipeline is behind\n", l.Waiting)
		}
	} else {
		fmt.Fprintln(out, "The brokers were not asked: what the log holds was not compared with the store")
	}
	printSeals(out, r.Seals)
	printFactSeals(out, r.FactSeals)
	if x := r.Rollups; x != nil {
		fmt.Fprintf(out, "%s of %s were counted again from what was written until %s and compared with the rollups\n", count(x.Hours, "hour"), count(x.Days, "event day"), x.Through.Format(time.RFC3339))
	}
	if r.OK() {
		fmt.Fprintln(out, "OK: every offset is covered once, every event has one verdict, the read model equals the facts.")
		if x := r.Seals; x != nil && x.Markers > 0 && len(x.Signers) == 0 {
			fmt.Fprintln(out, "    That nobody changed rows and seals alike by hand is not proved: no signature was checked.")
		}
		return
	}
	for _, f := range r.Faults {
		fmt.Fprintf(out, "FAULT %s: %d", f.Code, f.Count)
		if f.Topic != "" {
			fmt.Fprintf(out, "  %s/%d epoch %d [%d, %d]", f.Topic, f.Partition, f.Epoch, f.Lo, f.Hi)
		}
		if f.Table != "" {
			fmt.Fprintf(out, "  %s of %s", f.Table, f.Day)
		}
		if f.Writer != "" {
			fmt.Fprintf(out, "writer %s [%d, %d]", f.Writer, f.Lo, f.Hi)
		}
		if len(f.Columns) > 0 {
			fmt.Fprintf(out, "  columns %s", strings.Join(f.Columns, ", "))
		}
		for _, x := range slices.Concat(f.Cells, f.Events) {
			fmt.Fprintf(out, "  %s", x)
		}
		fmt.Fprintln(out)
	}
	var said []string
	changed := slices.ContainsFunc(r.Faults, func(f store.Fault) bool { return slices.Contains(byHand, f.Code) })
	for _, f := range r.Faults {
		if m := mendOf(f, changed); m != "" && !slices.Contains(said, m) {
			said = append(said, m)
			fmt.Fprintf(out, "MEND  %s\n", m)
		}
	}
}

// printSeals says what was compared with seals.
func printSeals(out io.Writer, x *store.SealReport) {
	switch {
	case x == nil || x.Markers+x.Unsealed == 0:
		return
	case x.Markers == 0:
		fmt.Fprintln(out, "No marker has seals: what was altered or deleted in the store by hand would not show")
		return
	}
	fmt.Fprintf(out, "%s and the texts of %d were compared with their seals, made since %s", count(int(x.Interactions), "interaction"), x.Texts, x.Since.Format(time.RFC3339))
	if x.TextsDropped > 0 {
		fmt.Fprintf(out, "; the texts of %d were dropped by retention", x.TextsDropped)
	}
	if x.TextsErased > 0 {
		fmt.Fprintf(out, "; those of %d were taken by erasures of persons (evenhand retention erasures)", x.TextsErased)
	}
	if x.TextsErasedUnsigned > 0 {
		fmt.Fprintf(out, "; those of %d are gone by erasures that nobody signed, which proves nothing", x.TextsErasedUnsigned)
	}
	fmt.Fprintln(out)
	switch {
	case len(x.Signers) > 0:
		fmt.Fprintf(out, "%d of %s are signed, with %s\n", x.Signed, count(int(x.Markers), "marker"), strings.Join(x.Signers, ", "))
	default:
		fmt.Fprintln(out, "No signature was checked: seal.key_file signs, seal.public_keys names keys to check with")
	}
	if x.UnsignedMarkers > 0 {
		fmt.Fprintf(out, "%s of %s without a signature, which say that they are from before others were signed or from the day after: nothing proves these\n",
			count(int(x.UnsignedInteractions), "interaction"), count(int(x.UnsignedMarkers), "marker"))
	}
	if x.Unsealed > 0 {
		fmt.Fprintf(out, "%s of an older program without seals: their interactions, of which %d stand, are proved by their number alone\n", count(int(x.Unsealed), "marker"), x.UnsealedInteractions)
		if x.SealedElsewhere > 0 {
			fmt.Fprintf(out, "%s of them came again and got a seal then: their rows are of the first time, and were not compared\n", count(int(x.SealedElsewhere), "interaction"))
		}
	}
}

// printFactSeals says what of later facts was compared with seals.
func printFactSeals(out io.Writer, x *store.FactSealReport) {
	if x == nil || x.Rows == 0 {
		return
	}
	fmt.Fprintf(out, "%s and %d of their texts were compared with %s of seals", count(int(x.Facts), "later fact"), x.Texts, count(int(x.Rows), "row"))
	if x.Signed > 0 {
		fmt.Fprintf(out, " (%d signed)", x.Signed)
	}
	if x.UnsignedRows > 0 {
		fmt.Fprintf(out, " (%d without a signature, which say that they are from before others were signed or from the day after)", x.UnsignedRows)
	}
	for _, y := range []struct {
		n   uint64
		say string
	}{
		{x.Purged, "%d are of months that retention deleted"}, {x.TextsDropped, "%d texts were dropped by retention"}, {x.TextsErased, "%d texts were taken by erasures of persons"},
		{x.TextsErasedUnsigned, "%d texts are gone by erasures that nobody signed, which proves nothing"},
		{x.Unfinished, "%d were sealed and not finished: the write failed, or the process ended"}, {x.Unsealed, "%d are from before there were seals"},
		{x.UnsignedFacts, "%d have seals that nobody signed, which prove nothing"},
	} {
		if y.n > 0 {
			fmt.Fprintf(out, "; "+y.say, y.n)
		}
	}
	fmt.Fprintln(out)
}

// byHand are faults of facts that somebody changed in the store by hand. What is made of facts must not be made anew from these.
var byHand = []store.FaultCode{
	store.FaultInteractionAltered, store.FaultInteractionDeleted, store.FaultInteractionAdded, store.FaultVerdictAltered,
	store.FaultFactAltered, store.FaultFactDeleted, store.FaultFactAdded,
}

// mendOf is the command that mends a fault, "" where none does: then rows were lost or changed behind the program's back. changed says that
// facts were changed by hand.
func mendOf(f store.Fault, changed bool) string {
	switch f.Code {
	case store.FaultCurrentMissing, store.FaultCurrentUnequal:
		if changed {
			return "set jobs.audit_current_repair.schedule to off until it is known who changed the facts by hand: the job would bring that into records and rates   (then put the facts back, from a backup, and run it)"
		}
		return "evenhand jobs run audit_current_repair   (as the hourly job does; such faults are expected after an upgrade until it has run)"
	case store.FaultSealUnknown:
		return "name the public keys of the signers in seal.public_keys (--json lists the signers; of another data folder it is seal/seal.pub)"
	case store.FaultRollupUnequal, store.FaultRollupDayUnequal:
		if d, err := time.Parse(time.DateOnly, f.Day); err == nil {
			return "evenhand rollups rebuild --from " + f.Day + " --to " + d.AddDate(0, 0, 1).Format(time.DateOnly)
		}
	}
	return ""
}
