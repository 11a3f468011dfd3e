package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/alarm"
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/breaches"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/jobs"
)

// alarmPolicies are those of the file over the shipped ones.
func (s settings) alarmPolicies() (*alarm.Policies, error) {
	if s.Alarms.PolicyFile == "" {
		return alarm.DefaultPolicies()
	}
	return readPolicies("alarms.policy_file", s.Alarms.PolicyFile)
}

func readPolicies(key, file string) (*alarm.Policies, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	p, err := alarm.ParsePolicies(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %s:\n%s", key, file, indent(errors.Unwrap(err).Error()))
	}
	return p, nil
}

// joinDecisions opens an arbiter for a command; the caller closes.
func joinDecisions(ctx context.Context, s settings, conn driver.Conn) (*arbiter.Kafka, error) {
	opt, err := arbiterOptions(conn, s.ClickHouse.Database)
	if err != nil {
		return nil, err
	}
	return arbiter.Open(ctx, s.kafka(), opt)
}

func alarmsJob(r *alarm.Runner) func(context.Context, jobs.Run) (jobs.Result, error) {
	return func(ctx context.Context, _ jobs.Run) (jobs.Result, error) {
		o, err := r.Run(ctx)
		figures := map[string]int64{
			"cells": int64(o.Cells), "learning": int64(o.Learning), "warnings": int64(o.Warnings), "muted": int64(o.Muted), "blind": int64(o.Blind),
			"opened": int64(o.Opened), "repeated": int64(o.Repeated), "resolved": int64(o.Resolved), "open": int64(o.Open),
			"repaired": int64(o.Repaired), "lost": int64(o.Lost), "refused": int64(o.Refused),
		}
		for tier, n := range o.OpenBy {
			figures["open_"+string(tier)] = int64(n)
		}
		return jobs.Result{Watermark: o.At, Figures: figures, Events: o.Events}, err
	}
}

type alarmsCmd struct {
	List     alarmsListCmd     `cmd:"" help:"List breaches as they stand."`
	Show     alarmsShowCmd     `cmd:"" help:"Show all transitions of a breach."`
	Policy   alarmsPolicyCmd   `cmd:"" help:"Print the policies that hold."`
	Lint     alarmsLintCmd     `cmd:"" help:"Check a file of policies."`
	Backtest alarmsBacktestCmd `cmd:"" help:"Replay policies over the stored rollups, beside naive rules."`
	Resolve  alarmsResolveCmd  `cmd:"" help:"End a breach by hand."`
}

func (alarmsCmd) Help() string {
	return `The job 'alarms' compares each cell (tenant, domain, kind of finding) with its own past every few minutes; what departs
opens a breach. docs/alarms.md explains tiers and policies.

Examples:
  evenhand alarms list
  evenhand alarms show 6a0c8a52-7d3f-4d5e-9f8e-0d5b7c1f2a3b --json
  evenhand alarms backtest --from 2026-10-01 --to 2026-11-01 --policy mine.yaml
  evenhand alarms lint mine.yaml`
}

type alarmsListCmd struct {
	storeFlags
	Tenant string `help:"Only this tenant." placeholder:"NAME"`
	State  string `help:"Only breaches that are ${enum}." enum:"open,mitigated,resolved,all" default:"all"`
	Limit  int    `help:"Breaches to list, those that changed last first; 1 or more." default:"100"`
	JSON   bool   `help:"One JSON object a line." name:"json"`
}

// Run lists breaches.
func (cmd *alarmsListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if err := inRange("--limit", cmd.Limit, 1, maxListed); err != nil {
		return err
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	f := alarm.Filter{Tenant: cmd.Tenant, Limit: cmd.Limit}
	if cmd.State != "all" {
		f.State = audit.BreachState(cmd.State)
	}
	list, err := alarm.NewTables(conn, s.ClickHouse.Database).List(ctx, f)
	if err != nil {
		return err
	}
	return printBreaches(std.out, list, cmd.JSON, true)
}

type alarmsShowCmd struct {
	storeFlags
	ID   string `arg:"" help:"Id of the breach, as the list shows it."`
	JSON bool   `help:"One JSON object a line." name:"json"`
}

// Run shows a breach.
func (cmd *alarmsShowCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	id, err := audit.ParseID(cmd.ID)
	if err != nil {
		return &settingsError{fmt.Errorf("ID: %w", err)}
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	list, err := alarm.NewTables(conn, s.ClickHouse.Database).Breach(ctx, id)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("there is no breach %s; 'evenhand alarms list' shows what there is", id)
	}
	if err := printBreaches(std.out, list, cmd.JSON, false); err != nil || cmd.JSON {
		return err
	}
	last := &list[len(list)-1]
	for i := range list {
		if b := &list[i]; b.By != "" {
			fmt.Fprintf(std.out, "by     %d %s (%s): %s\n", b.Seq, b.State, b.Reason, b.By)
		}
	}
	for _, r := range last.TopRules {
		fmt.Fprintf(std.out, "rule   %s  %s\n", r.Rule, count(int(r.Interactions), "interaction"))
	}
	for _, e := range last.Events {
		fmt.Fprintf(std.out, "event  %s\n", e)
	}
	return nil
}

func printBreaches(out io.Writer, list []audit.Breach, asJSON, ids bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		for i := range list {
			if err := enc.Encode(breachJSON(&list[i])); err != nil {
				return err
			}
		}
		return nil
	}
	const stamp = "2006-01-02 15:04"
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	first := "SEQ"
	if ids {
		first = "BREACH"
	}
	fmt.Fprintln(t, first+"\tSTATE\tREASON\tTIER\tTENANT\tDOMAIN\tKIND\tOPENED\tCHANGED\tFOUND\tOF\tRATE\tWILSON 95 %\tBASELINE OR LIMIT")
	for i := range list {
		b := &list[i]
		name := fmt.Sprint(b.Seq)
		if ids {
			name = b.ID.String()
		}
		kind := inLine(b.Kind)
		switch {
		case b.Tier == audit.TierBlind:
			kind = "not analysed"
		case kind == "":
			kind = "any bias"
		}
		against := fmt.Sprintf("%.2f %%", 100*b.Baseline)
		if b.Tier == audit.TierBlind || b.Tier == audit.TierMitigation { // have no past, their policy says how much is too much
			against += " (limit)"
		}
		of := fmt.Sprintf("%d\t%.2f %%\t%.2f – %.2f %%\t%s", b.N, 100*b.Rate, 100*b.Lower, 100*b.Upper, against)
		if b.Tier == audit.TierPolicy {
			of = "–\t–\t–\t–"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", name, b.State, b.Reason, b.Tier, b.Tenant, b.Domain, kind,
			b.Opened.Format(stamp), b.Changed.Format(stamp), b.K, of)
	}
	return t.Flush()
}

// unrated is a breach of tier policy, which has no rate: what stands for one is null.
type unrated struct {
	*audit.Breach
	N         *uint64  `json:"n"`
	Rate      *float64 `json:"rate"`
	Lower     *float64 `json:"lower"`
	Upper     *float64 `json:"upper"`
	Baseline  *float64 `json:"baseline"`
	BaselineN *uint64  `json:"baseline_n"`
	P         *float64 `json:"p_value"`
}

// breachJSON is a breach as it is printed.
func breachJSON(b *audit.Breach) any {
	if b.Tier == audit.TierPolicy {
		return unrated{Breach: b}
	}
	return b
}

type alarmsPolicyCmd struct{}

func (alarmsPolicyCmd) Help() string {
	return `Prints a file of policies that says everything: what is shipped and what alarms.policy_file sets otherwise.`
}

// Run prints the policies.
func (cmd *alarmsPolicyCmd) Run(c *cli, std *stdio) error {
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	p, err := s.alarmPolicies()
	if err != nil {
		return &settingsError{err}
	}
	return p.Print(std.out)
}

type alarmsLintCmd struct {
	File string `arg:"" help:"YAML file of policies." type:"existingfile"`
}

func (alarmsLintCmd) Help() string {
	return `Names every fault with its line and what to write instead. Exit status 3 when there are any.`
}

// Run checks a file.
func (cmd *alarmsLintCmd) Run(std *stdio) error {
	b, err := os.ReadFile(cmd.File)
	if err != nil {
		return err
	}
	p, err := alarm.ParsePolicies(b)
	if err != nil {
		for line := range strings.SplitSeq(errors.Unwrap(err).Error(), "\n") {
			fmt.Fprintf(std.out, "FAULT %s: %s\n", cmd.File, line)
		}
		return exitCode(3)
	}
	fmt.Fprintf(std.out, "OK: %s and the default\n", fmt.Sprintf("policies: %d", len(p.List())-1))
	return nil
}

type alarmsResolveCmd struct {
	storeFlags
	ID     string `arg:"" help:"Id of the breach."`
	Reason string `help:"Why: ${enum}. After accepted the rate since the breach is the usual one." enum:"fixed,noise,accepted" required:""`
	By     string `help:"Who resolves it; the system user when not given." placeholder:"NAME"`
}

func (alarmsResolveCmd) Help() string {
	return `Has the end of a breach decided on evenhand.decisions. fixed: the cause is mended; noise: there was none; accepted: the new rate is
usual from now on, its baseline begins with the breach. Who did it stands in the decision, and in the comment on its ticket.

Example:
  evenhand alarms resolve 6a0c8a52-7d3f-4d5e-9f8e-0d5b7c1f2a3b --reason fixed --by ann`
}

// Run resolves a breach.
func (cmd *alarmsResolveCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	id, err := audit.ParseID(cmd.ID)
	if err != nil {
		return &settingsError{fmt.Errorf("ID: %w", err)}
	}
	s, conn, err := cmd.open(c, engine.Writer)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := s.findBrokers(); err != nil {
		return err
	}
	log, err := joinDecisions(ctx, s, conn)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close(context.WithoutCancel(ctx)) }()
	last, ok, err := log.Winner(ctx, arbiter.Key{Kind: breaches.Kind, ID: id.String()})
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("there is no breach %s; 'evenhand alarms list' shows what there is", id)
	}
	b, err := breaches.Of(&last)
	if err != nil {
		return err
	}
	if b.State == audit.BreachResolved {
		return fmt.Errorf("breach %s is resolved already (%s)", id, b.Reason)
	}
	b.Seq, b.State, b.Reason, b.By, b.Changed, b.Confirmed = b.Seq+1, audit.BreachResolved, cmd.Reason, me(cmd.By), time.Time{}, time.Time{}
	d, err := breaches.Propose(ctx, log, &b)
	if err != nil {
		return err
	}
	if err := breaches.Write(ctx, conn, s.ClickHouse.Database, d); err != nil {
		return err
	}
	if d.State != b.State || d.Reason != b.Reason || d.By != b.By {
		return fmt.Errorf("somebody was first: breach %s is %s (%s)", id, d.State, d.Reason)
	}
	fmt.Fprintf(std.out, "%s is resolved (%s) by %s\n", id, d.Reason, d.By)
	return nil
}
