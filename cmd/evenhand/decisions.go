package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/wait"
)

// claimLasts is how long a reviewer keeps others from a review without renewing the claim.
const claimLasts = 15 * time.Minute

// decisionRules lists what processes contend for. Every process on a log must know the same kinds, and
// a kind's rule never changes once it was used: a new rule gets a new name.
func decisionRules() (*arbiter.Rules, error) {
	return arbiter.NewRules(
		arbiter.Once("gate"),
		arbiter.Lease("review_claim", claimLasts),
		arbiter.States("breach", audit.BreachStates),
		arbiter.Once("seal_plan"),
		arbiter.Once("rule_promotion"),
	)
}

// openArbiter joins the arbitration of this stack's log; the caller closes. It needs broker and store.
// Users share what st.decisions opened by it.
func (st *stack) openArbiter(ctx context.Context) (*arbiter.Kafka, error) {
	opt, err := arbiterOptions(st.conn, st.chconfig.Database)
	if err != nil {
		return nil, err
	}
	opt.Logger, opt.OnError = st.log, func(op string, _ error) { st.metrics.BrokerError("decisions_" + op) }
	return arbiter.Open(ctx, st.kafka, opt)
}

// arbiterOptions are our rules and the projection in a database.
func arbiterOptions(conn driver.Conn, database string) (arbiter.Options, error) {
	rules, err := decisionRules()
	return arbiter.Options{Rules: rules, Store: arbiter.NewStore(conn, database)}, err
}

// projectDecisions keeps the table decisions up to date until ctx ends. It fails alone: the pipeline
// needs no decisions.
func (st *stack) projectDecisions(ctx context.Context) {
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
		began := time.Now()
		if err := st.projectOnce(ctx); err != nil && ctx.Err() == nil {
			st.log.Error("decisions are not projected", "error", err.Error())
		}
		if time.Since(began) > time.Minute {
			pause = time.Second
		}
		wait.For(ctx, pause)
	}
}

func (st *stack) projectOnce(ctx context.Context) error {
	a, err := st.decisions.get(ctx)
	if err != nil {
		return err
	}
	return a.Project(ctx)
}

type decisionCmd struct {
	List    decisionsListCmd    `cmd:"" help:"List keys with their newest decision."`
	Show    decisionsShowCmd    `cmd:"" help:"Show all decisions of a key."`
	Check   decisionsCheckCmd   `cmd:"" help:"Compare the table decisions with the log."`
	Restore decisionsRestoreCmd `cmd:"" help:"Write decisions back into a log that was replaced."`
}

func (decisionCmd) Help() string {
	return `What processes contended for: gates, claims, breaches, sealing plans, promotions of rules. The log evenhand.decisions
decides, the first valid record of a key holds; list and show read the table that is projected from it. BY is the person, PROCESS what
put the decision to the log.

Examples:
  evenhand decisions list --kind gate
  evenhand decisions show breach/2026-11-21.hr.charter.age --json`
}

type decisionsListCmd struct {
	storeFlags
	Kind  string        `help:"Only this kind: gate, review_claim, breach, seal_plan, rule_promotion." placeholder:"KIND" enum:",gate,review_claim,breach,seal_plan,rule_promotion" default:""`
	Last  time.Duration `help:"Only what was decided in a window that ends now; all when not given." placeholder:"DURATION"`
	Limit int           `help:"Keys to list, the newest first; 1 or more." default:"100"`
	JSON  bool          `help:"Print JSON." name:"json"`
}

// Run lists keys.
func (cmd *decisionsListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if err := inRange("--limit", cmd.Limit, 1, maxListed); err != nil {
		return err
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	f := arbiter.Filter{Kind: cmd.Kind, Limit: cmd.Limit}
	if cmd.Last > 0 {
		f.Since = time.Now().Add(-cmd.Last)
	}
	list, err := arbiter.NewStore(conn, s.ClickHouse.Database).List(ctx, f)
	if err != nil {
		return err
	}
	return printDecisions(std.out, list, cmd.JSON)
}

type decisionsShowCmd struct {
	storeFlags
	Key  string `arg:"" help:"KIND/ID, as the list shows it."`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Run shows a key.
func (cmd *decisionsShowCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	key, err := arbiter.ParseKey(cmd.Key)
	if err != nil {
		return &settingsError{fmt.Errorf("KEY: %w", err)}
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	list, err := arbiter.NewStore(conn, s.ClickHouse.Database).Show(ctx, key)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%s is not decided, or not projected yet; 'evenhand decisions list' shows what is", key)
	}
	return printDecisions(std.out, list, cmd.JSON)
}

// decided is a decision as it is printed: beside its process the person, where one decided.
type decided struct {
	arbiter.Listed
	By string `json:"by,omitempty"`
}

func printDecisions(out io.Writer, list []arbiter.Listed, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		for _, d := range list {
			if err := enc.Encode(decided{d, person(d.Value)}); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tSEQ\tDECIDED\tBY\tPROCESS\tVALUE")
	for _, d := range list {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", inLine(d.Key), d.Seq, d.Time.Format("2006-01-02 15:04:05.000"), inLine(cmp.Or(person(d.Value), "–")), inLine(d.Proposer), inLine(cut(string(d.Value), 80)))
	}
	return t.Flush()
}

// person is who a decision is of, as its value says; "" where a process decided by itself.
func person(value json.RawMessage) string {
	var v struct {
		By string `json:"by"`
	}
	if json.Unmarshal(value, &v) != nil {
		return ""
	}
	return v.By
}

// decisionsFlags choose the log beside the store.
type decisionsFlags struct {
	storeFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// options are for arbiter.Verify and arbiter.Restore; the caller closes the connection.
func (f decisionsFlags) options(c *cli) (settings, driver.Conn, arbiter.Options, error) {
	s, conn, err := f.open(c, engine.Writer)
	if err != nil {
		return s, nil, arbiter.Options{}, err
	}
	opt, err := arbiterOptions(conn, s.ClickHouse.Database)
	if err == nil {
		err = s.findBrokers()
	}
	if err != nil {
		_ = conn.Close()
		return s, nil, arbiter.Options{}, err
	}
	return s, conn, opt, nil
}

type decisionsCheckCmd struct{ decisionsFlags }

func (decisionsCheckCmd) Help() string {
	return `Reads the whole log evenhand.decisions and compares the table decisions with it, row by row. Exit status 3 when something is wrong.`
}

// Run compares.
func (cmd *decisionsCheckCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, conn, opt, err := cmd.options(c)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	rep, err := arbiter.Verify(ctx, s.kafka(), opt)
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = json.NewEncoder(std.out).Encode(rep)
	} else {
		printDecisionReport(std.out, rep)
	}
	if err == nil && !rep.OK() {
		return exitCode(3)
	}
	return err
}

func printDecisionReport(out io.Writer, r *arbiter.Report) {
	fmt.Fprintf(out, "%d decisions in %d records: %d came late, %d were refused, %d of unknown kinds, %d foreign\n", r.Decisions, r.Records, r.Late, r.Refused, r.Unknown, r.Foreign)
	fmt.Fprintf(out, "%d are projected, %d wait\n", r.Projected, r.Behind)
	if r.OK() {
		fmt.Fprintln(out, "OK: the table holds what the log decided.")
		return
	}
	if r.Replaced {
		fmt.Fprintln(out, "FAULT replaced: the table is of another log; 'evenhand decisions restore' writes its decisions back")
	}
	for _, f := range []struct {
		code string
		n    uint64
	}{{"missing", r.Missing}, {"extra", r.Extra}, {"unequal", r.Unequal}, {"forgotten", r.Forgotten}, {"contradicted", r.Contradicted}} {
		if f.n > 0 {
			fmt.Fprintf(out, "FAULT %s: %d\n", f.code, f.n)
		}
	}
	if len(r.Keys) > 0 {
		fmt.Fprintln(out, "first:", strings.Join(r.Keys, ", "))
	}
}

type decisionsRestoreCmd struct{ decisionsFlags }

func (decisionsRestoreCmd) Help() string {
	return `For a log that was made anew, cut, or restored from an older copy: processes refuse to decide on it. Writes the decisions that
the table knows and the log lacks back into the log. What the log decided otherwise meanwhile holds, and is named; exit status 3 then.`
}

// Run writes decisions back.
func (cmd *decisionsRestoreCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, conn, opt, err := cmd.options(c)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	done, err := arbiter.Restore(ctx, s.kafka(), opt)
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = json.NewEncoder(std.out).Encode(done)
	} else {
		fmt.Fprintf(std.out, "%d written back, %d were there\n", done.Written, done.Held)
		for _, k := range done.Unknown {
			fmt.Fprintf(std.out, "not written: %s is of a kind that this version does not know\n", k)
		}
		for _, k := range done.Contradicted {
			fmt.Fprintf(std.out, "FAULT contradicted: %s was decided otherwise in this log, which holds\n", k)
		}
	}
	if err == nil && len(done.Contradicted) > 0 {
		return exitCode(3)
	}
	return err
}
