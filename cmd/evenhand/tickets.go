package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/remediation"
	"github.com/evenhand/evenhand/sinks"
)

type ticketsCmd struct {
	List  ticketsListCmd  `cmd:"" help:"List tickets, the newest first."`
	Show  ticketsShowCmd  `cmd:"" help:"Show what is said to a tracker."`
	Retry ticketsRetryCmd `cmd:"" help:"Send again what a tracker refused."`
	Test  ticketsTestCmd  `cmd:"" help:"Send a test issue, or print what would be sent."`
}

func (ticketsCmd) Help() string {
	return `What Linear, or the receiver of a webhook, is told about breaches: an issue a breach, its links, comments on news. A ticket is
pending, sent, or dead: refused for good. See docs/linear.md.

Examples:
  evenhand tickets list --state dead
  evenhand tickets retry --all
  evenhand tickets test --dry-run`
}

type ticketsListCmd struct {
	storeFlags
	Tenant string `help:"Only this tenant's." placeholder:"NAME"`
	Breach string `help:"Only of this breach." placeholder:"ID"`
	State  string `help:"Only these: pending, sent, dead." placeholder:"STATE" enum:",pending,sent,dead" default:""`
	Limit  int    `help:"Tickets to list; 0 lists all." default:"100"`
	JSON   bool   `help:"Print one JSON object a line." name:"json"`
}

// Run lists tickets.
func (cmd *ticketsListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if err := inRange("--limit", cmd.Limit, 0, maxListed); err != nil {
		return err
	}
	f := remediation.Filter{Tenant: cmd.Tenant, State: remediation.State(cmd.State), Limit: cmd.Limit}
	if err := parseID("--breach", cmd.Breach, &f.Breach); err != nil {
		return err
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	list, err := remediation.NewOutbox(conn, s.ClickHouse.Database).List(ctx, f)
	if err != nil {
		return err
	}
	return printTickets(std.out, list, cmd.JSON)
}

// parseID reads an id where one is given.
func parseID(flag, s string, to *audit.ID) (err error) {
	if s == "" {
		return nil
	}
	if *to, err = audit.ParseID(s); err != nil {
		return &settingsError{fmt.Errorf("%s: %w", flag, err)}
	}
	return nil
}

func printTickets(out io.Writer, list []remediation.Entry, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		for i := range list {
			if err := enc.Encode(list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TICKET\tTARGET\tACTION\tSEQ\tSTATE\tATTEMPTS\tWRITTEN\tISSUE\tBREACH\tSAYS")
	for i := range list {
		e := &list[i]
		says := cmp.Or(e.Title, headline(e.Body), "-")
		if e.State != remediation.Sent {
			says = cmp.Or(e.Detail, says)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\n", e.ID, e.Target, e.Action, e.Seq, e.State, e.Attempts, e.Created.Format("2006-01-02 15:04:05"), inLine(cmp.Or(e.Key, "-")), e.Breach, inLine(cut(says, 60)))
	}
	return t.Flush()
}

// headline is the first line of a Markdown text, without its marks of bold.
func headline(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.ReplaceAll(line, "**", "")
}

type ticketsShowCmd struct {
	storeFlags
	ID   string `arg:"" help:"Id of a ticket or of a breach, as the list shows it."`
	JSON bool   `help:"Print one JSON object a line." name:"json"`
}

// Run shows a ticket, or all of a breach.
func (cmd *ticketsShowCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	var id audit.ID
	if err := parseID("ID", cmd.ID, &id); err != nil {
		return err
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	o := remediation.NewOutbox(conn, s.ClickHouse.Database)
	list, err := o.List(ctx, remediation.Filter{Ticket: id})
	if err == nil && len(list) == 0 {
		list, err = o.List(ctx, remediation.Filter{Breach: id})
	}
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return fmt.Errorf("there is no ticket and no breach with tickets %s", id)
	case cmd.JSON:
		return printTickets(std.out, list, true)
	}
	for i := len(list) - 1; i >= 0; i-- { // the oldest first, as the issue reads
		printTicket(std.out, &list[i])
	}
	return nil
}

func printTicket(out io.Writer, e *remediation.Entry) {
	fmt.Fprintf(out, "%s %s to %s: %s", inLine(e.Action), e.ID, inLine(e.Target), inLine(e.State))
	if e.Key != "" {
		fmt.Fprintf(out, " as %s", inLine(e.Key))
	}
	if e.Link != "" {
		fmt.Fprintf(out, "  %s", inLine(e.Link))
	}
	if e.State != remediation.Sent && e.Detail != "" {
		fmt.Fprintf(out, ", %d attempts, %s: %s", e.Attempts, inLine(e.Class), inLine(e.Detail))
	}
	fmt.Fprintln(out)
	for _, s := range []string{e.Title, e.URL, e.Body} {
		if s != "" {
			fmt.Fprintf(out, "\n%s\n", inLines(s))
		}
	}
	fmt.Fprintln(out, "--")
}

type ticketsRetryCmd struct {
	storeFlags
	ID  string `arg:"" optional:"" help:"Id of a dead ticket."`
	All bool   `help:"All dead tickets."`
}

func (ticketsRetryCmd) Help() string {
	return `Makes dead tickets pending again; the job remediation sends them within a minute. Mend the cause first: 'evenhand tickets list
--state dead' tells it.`
}

// Run requeues.
func (cmd *ticketsRetryCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if (cmd.ID == "") == !cmd.All {
		return &settingsError{errors.New("name one ticket, or give --all")}
	}
	var f remediation.Filter
	if err := parseID("ID", cmd.ID, &f.Ticket); err != nil {
		return err
	}
	s, conn, err := cmd.open(c, engine.Writer)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	n, err := remediation.NewOutbox(conn, s.ClickHouse.Database).Retry(ctx, f, time.Now())
	if err == nil && n == 0 && cmd.ID != "" {
		return fmt.Errorf("%s is no dead ticket", cmd.ID)
	}
	if err == nil {
		fmt.Fprintf(std.out, "%s will be sent again\n", count(n, "ticket"))
	}
	return err
}

type ticketsTestCmd struct {
	DryRun bool `help:"Print what an issue and its news would be; send nothing."`
}

func (ticketsTestCmd) Help() string {
	return `Sends an issue about a made-up breach to every tracker that is set up, past the outbox; close it when you have seen it.

Examples:
  evenhand tickets test --dry-run
  EVENHAND_LINEAR_API_KEY_FILE=key.txt evenhand tickets test --set linear.team=BIAS`
}

// Run sends or prints.
func (cmd *ticketsTestCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	b := sampleBreach(time.Now())
	if cmd.DryRun {
		enc := json.NewEncoder(std.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		for _, t := range remediation.Derive("test", s.ticketPolicy(), &b, "") {
			if err := enc.Encode(t); err != nil {
				return err
			}
		}
		return nil
	}
	if !s.tracks() {
		return &settingsError{errors.New("no tracker is set up: set linear.api_key and linear.team, or webhook.url; --dry-run prints what would be sent")}
	}
	list, err := s.trackers()
	if err != nil {
		return err
	}
	for _, t := range list {
		tickets := remediation.Derive(t.Name(), s.ticketPolicy(), &b, "")
		tickets[0].Title = "Test by evenhand: " + tickets[0].Title
		tickets[0].Priority, tickets[0].Due = 4, ""
		for i := range tickets {
			r, err := t.Send(ctx, &tickets[i])
			if err != nil {
				return err
			}
			if tickets[i].Action == sinks.OpenIssue {
				fmt.Fprintf(std.out, "%s took the issue %s %s\n", t.Name(), r.Key, r.URL)
			}
		}
		if c, ok := t.(closer); ok {
			c.Close()
		}
	}
	return nil
}

// sampleBreach is one that never was.
func sampleBreach(now time.Time) audit.Breach {
	to := now.UTC().Truncate(time.Hour)
	return audit.Breach{
		ID: audit.DerivedV4("test", now.Format(time.RFC3339Nano)), Seq: 1, Tenant: "example", Policy: "example", Tier: audit.TierRate, Domain: "hr", Kind: "charter.age", Generation: 1,
		State: audit.BreachOpen, Reason: "breached", Opened: to, Changed: to, From: to.Add(-24 * time.Hour), To: to, N: 2000, K: 82, Rate: 0.041, Lower: 0.033168, Upper: 0.050568,
		Baseline: 0.012, BaselineN: 40000, P: 1e-9, Severity: audit.High, RuleSet: "example",
		TopRules: []audit.RuleCount{{Rule: "age.older.too_old", Interactions: 61}}, Mitigation: audit.MitigationRephrase,
		Split: []audit.Behind{{Of: "application", Value: "careers-chat", Interactions: 78}, {Of: "model", Value: "example-model", Interactions: 82}},
	}
}
