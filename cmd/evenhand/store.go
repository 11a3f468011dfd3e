package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate"
)

type migrateCmd struct {
	storeFlags
	Status bool `help:"Only list the migrations."`
}

// Run applies or lists the migrations.
func (cmd *migrateCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, cfg, err := cmd.target(c, engine.Writer)
	if err != nil {
		return err
	}
	o := s.schema(false)
	if !cmd.Status {
		if err := migrateStore(ctx, cfg, o); err != nil {
			return err
		}
	}
	db, err := openDB(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	list, err := migrate.List(ctx, db, o)
	if err != nil {
		return err
	}
	for _, m := range list {
		state := "pending"
		if m.Applied {
			state = "applied " + m.AppliedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(std.out, "%05d  %-36s %s\n", m.Version, m.Name, state)
	}
	return nil
}

type sqlCmd struct {
	storeFlags
	Query string `arg:"" help:"One SELECT, SHOW, DESCRIBE or EXPLAIN; - reads it from stdin."`
	JSON  bool   `help:"One JSON object a row instead of a table." name:"json"`
}

// clientClause matches what ClickHouse's client carries out: a file to write, and an output format at the end. A text that speaks of them, or a
// column of that name in ORDER BY, is none.
var clientClause = regexp.MustCompile(`(?i)\bINTO\s+OUTFILE\s+'|\bFORMAT\s+(?:CSV|TSV|TabSeparated|JSON|Pretty|Vertical|Values|Markdown|XML|SQLInsert|Parquet|Arrow|Avro|ORC|Null|Template|Custom|RowBinary|Native|Raw|LineAsString|MsgPack|Protobuf|BSON)\w*\s*;?\s*$`)

func (sqlCmd) Help() string {
	return `Runs as a user that may only read. Use FINAL to see each event once. With --json, NaN and infinity are null. What
ClickHouse says of a query that it refuses is shown whole.

Examples:
  evenhand sql "SELECT domain, count() FROM audit_current FINAL GROUP BY domain"
  evenhand sql --json "SELECT * FROM llm_interaction_audit LIMIT 1"`
}

// Run runs the query.
func (cmd *sqlCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if cmd.Query == "-" {
		b, err := io.ReadAll(std.input(ctx, "the query"))
		if err != nil {
			return err
		}
		cmd.Query = string(b)
	}
	if strings.TrimSpace(cmd.Query) == "" {
		return &settingsError{errors.New("QUERY: is empty; it wants one SELECT, SHOW, DESCRIBE or EXPLAIN")}
	}
	if clause := clientClause.FindString(cmd.Query); clause != "" { // the server leaves these to its own client
		return &settingsError{fmt.Errorf("QUERY: %s has no effect here: the output is tab-separated, or JSON with --json, and goes where you redirect it", strings.Join(strings.Fields(strings.TrimSuffix(clause, "'")), " "))}
	}
	_, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	written := store.WriteTSV
	if cmd.JSON {
		written = store.WriteJSON
	}
	err = written(ctx, std.out, conn, cmd.Query)
	if whole := chconn.Whole(err); whole != nil { // what it repeats was typed here
		return whole
	}
	return err
}

// figuresFlags say of whom and of when figures are.
type figuresFlags struct {
	storeFlags
	Tenant string        `help:"Only this tenant; all when not given." placeholder:"NAME"`
	Last   time.Duration `help:"Window that ends now; passed over where --from is given." default:"168h"`
	From   string        `help:"Window that begins then: a day (YYYY-MM-DD, UTC) or a time (RFC 3339); instead of --last." placeholder:"TIME"`
	To     string        `help:"End of the window of --from, itself outside; now when not given." placeholder:"TIME"`
}

// window gives the asked one.
func (f *figuresFlags) window(now time.Time) (w store.Window, err error) {
	w = store.Window{From: now.Add(-f.Last), To: now}
	if f.From == "" && f.To != "" {
		return w, &settingsError{errors.New("--to: wants --from beside it")}
	}
	for _, end := range []struct {
		flag, given string
		at          *time.Time
	}{{"--from", f.From, &w.From}, {"--to", f.To, &w.To}} {
		if end.given == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, end.given)
		if err != nil {
			day, err = time.Parse(time.RFC3339, end.given)
		}
		if err != nil {
			return w, &settingsError{fmt.Errorf("%s: %q is neither a day such as 2026-10-01 nor a time such as 2026-10-01T08:00:00Z", end.flag, end.given)}
		}
		*end.at = day.UTC()
	}
	if f.From == "" && f.Last <= 0 {
		return w, &settingsError{errors.New("--last: wants more than nothing, such as 24h or 7d")}
	}
	if !w.To.After(w.From) {
		return w, &settingsError{errors.New("--to: is not after --from")}
	}
	return w, nil
}

// figures opens the store for them; the caller calls closing.
func (f *figuresFlags) figures(c *cli) (st *store.Store, figures *store.Figures, w store.Window, closing func(), err error) {
	if w, err = f.window(time.Now()); err != nil {
		return nil, nil, w, nil, err
	}
	s, conn, err := f.open(c, engine.Reader)
	if err != nil {
		return nil, nil, w, nil, err
	}
	st = store.New(conn, s.ClickHouse.Database)
	figures = st.AllTenants()
	if f.Tenant != "" {
		figures = &st.WithTenant(f.Tenant).Figures
	}
	return st, figures, w, func() { _ = conn.Close() }, nil
}

// none says that figures are of nothing.
func (f *figuresFlags) none() string {
	of := ""
	if f.Tenant != "" {
		of = fmt.Sprintf(" of tenant %q", f.Tenant)
	}
	when := fmt.Sprintf("of the last %v", f.Last)
	if f.From != "" {
		when = "of that time"
	}
	return fmt.Sprintf("no interactions%s %s are stored: --tenant wants the exact name, --last and --from look further back", of, when)
}

type ratesCmd struct {
	figuresFlags
	Min  int  `help:"Fold kinds of bias of a domain that were found less often into one line; 1 shows all." default:"2"`
	Top  int  `help:"Findings to show." default:"8"`
	JSON bool `help:"Print JSON." name:"json"`
}

func (ratesCmd) Help() string {
	return `Counts as trends and alarms do: bias that a review dismissed is not found, and its interaction stays among those analysed.
Bias that a person confirms where nothing was found is not counted. Personal data in the evidence of findings, passwords
too, is masked, in JSON as well.

Examples:
  evenhand rates
  evenhand rates --tenant acme --last 30d --json
  evenhand rates --from 2026-10-01 --to 2026-11-01`
}

// Run prints rates and findings.
func (cmd *ratesCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	st, figures, w, closing, err := cmd.figures(c)
	if err != nil {
		return err
	}
	defer closing()
	rates, err := figures.Rates(ctx, w)
	if err != nil {
		return err
	}
	coverage, err := figures.Coverage(ctx, w)
	if err != nil {
		return err
	}
	sets, err := figures.RuleSets(ctx, w)
	if err != nil {
		return err
	}
	deleted, err := st.DeletedMonths(ctx, cmd.Tenant, w)
	if err != nil {
		return err
	}
	replays, err := figures.Replays(ctx, w)
	if err != nil {
		return err
	}
	judged, err := figures.Judged(ctx, w)
	if err != nil {
		return err
	}
	var top []store.TopFinding
	if cmd.Top > 0 {
		if top, err = figures.TopFindings(ctx, w, min(cmd.Top, 100)); err != nil {
			return err
		}
	}
	if coverage.Received == 0 {
		fmt.Fprintln(std.err, cmd.none())
	}
	if cmd.JSON {
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"at": time.Now().UTC(), "tenant": cmd.Tenant, "window": w, "rule_sets": orEmpty(sets), "deleted_months": orEmpty(deleted), "coverage": coverage, "replays": replays, "judge": judged, "rates": orEmpty(rates), "findings": orEmpty(top)})
	}
	printRates(std.out, rates, top, cmd.Min)
	printCoverage(std.out, coverage, replays)
	printBasis(std.out, cmd.Tenant, w, sets, deleted)
	if judged != (store.JudgeCoverage{}) {
		fmt.Fprintf(std.out, "Judge: %d judged, %d failed, %d skipped for want of budget, %d abandoned; %d calls, %.4f USD\n", judged.Judged, judged.Failed, judged.Skipped, judged.Abandoned, judged.Calls, judged.CostUSD)
	}
	return nil
}

// printCoverage says what the rates above it are of, and what they are not of.
func printCoverage(out io.Writer, coverage store.Coverage, replays store.Replays) {
	fmt.Fprintf(out, "\nCoverage: %d analysed, %d failed, %d without a response, %d rejected\n", coverage.Analysed, coverage.Failed, coverage.Skipped, coverage.Rejected)
	for _, more := range []struct {
		n    uint64
		what string
	}{
		{coverage.Abandoned, "more failed until they were given up: nobody looked at them"},
		{coverage.Pending, "more wait for their analysis"},
		{coverage.Partial, "of the analysed were looked at by some detectors only: what the others find is missing"},
		{coverage.OtherLanguages, "of the analysed are in languages that the detectors have not learnt: bias and harm in them go unseen"},
		{coverage.Dismissed, "of the analysed had bias that a review dismissed: it counts as not found"},
		{coverage.Unfound, "of the analysed have bias that a review confirmed and nothing found: no rate counts it"},
		{coverage.OtherDomains, "of the received name a domain that has no profile: they were scored as general, and count there"},
		{replays.Rounds, "of the received are rounds of replays: a call that was made again counts each time"},
	} {
		if more.n > 0 {
			fmt.Fprintf(out, "          %d %s\n", more.n, more.what)
		}
	}
}

// printBasis says of whom, of when and under which rules the figures are, and what of that time is gone.
func printBasis(out io.Writer, tenant string, w store.Window, sets []store.RuleSetUse, deleted []string) {
	whose := "all tenants"
	if tenant != "" {
		whose = fmt.Sprintf("tenant %q", tenant)
	}
	const second = "2006-01-02 15:04:05"
	fmt.Fprintf(out, "Window: %s to %s UTC, of %s\n", w.From.UTC().Format(second), w.To.UTC().Format(second), whose)
	if len(deleted) > 0 {
		fmt.Fprintf(out, "        Retention deleted rows of %s, which are in no figure here; biasTrend of GraphQL has their rates\n", strings.Join(deleted, ", "))
	}
	switch len(sets) {
	case 0:
	case 1:
		fmt.Fprintf(out, "Rules: %s\n", sets[0].RuleSet)
	default:
		fmt.Fprintf(out, "Rules: %d sets, of which the rates above are a mixture: compare windows of one alone\n", len(sets))
		for _, u := range sets {
			fmt.Fprintf(out, "       %s: %s from %s to %s\n", u.RuleSet, count(int(u.N), "interaction"), u.First.UTC().Format(second), u.Last.UTC().Format(second))
		}
	}
}

// printRates prints the table of domains and kinds and the findings with their evidence. Kinds found
// less often than atLeast say little: more than three of them in a domain are one line.
func printRates(out io.Writer, rates []store.DomainRates, top []store.TopFinding, atLeast int) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DOMAIN\tBIAS\tFOUND\tANALYSED\tRATE\tWILSON 95 %")
	for _, d := range rates {
		row := func(domain, name string, r store.Rate) {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.1f %%\t%.1f – %.1f %%\n", domain, name, r.K, r.N, 100*r.Rate, 100*r.Lower, 100*r.Upper)
		}
		row(string(d.Domain), "any bias", d.Detected)
		row("", "above threshold", d.Flagged)
		shown := slices.IndexFunc(d.Kinds, func(k store.KindRate) bool { return k.K < uint64(max(atLeast, 0)) }) // most frequent first
		if shown < 0 || len(d.Kinds)-shown <= 3 {
			shown = len(d.Kinds)
		}
		for _, k := range d.Kinds[:shown] {
			row("", strings.TrimPrefix(k.Kind, "charter."), k.Rate)
		}
		if n := len(d.Kinds) - shown; n > 0 {
			each := "once"
			if atLeast > 2 {
				each = fmt.Sprintf("< %d", atLeast)
			}
			fmt.Fprintf(t, "\t… and %d kinds\t%s\t\t\t\n", n, each)
		}
	}
	_ = t.Flush()
	if len(top) == 0 {
		return
	}
	fmt.Fprintln(out, "\nTop findings")
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tKIND\tSEVERITY\tINTERACTIONS\tEVIDENCE (newest of the strongest)\tEVENT")
	for _, f := range top {
		evidence := f.Evidence
		if evidence == "" {
			evidence = "(text dropped)"
		} else {
			evidence = fmt.Sprintf("%q", cut(evidence, 60))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", f.Rule, f.Kind, f.Severity, f.Interactions, evidence, f.EventID)
	}
	_ = t.Flush()
}

// orEmpty makes JSON of no entries an empty list, not null.
func orEmpty[T any](entries []T) []T {
	if entries == nil {
		return []T{}
	}
	return entries
}

// count puts a number before its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// findBrokers takes the brokers of the running 'evenhand up' where none are set.
func (s *settings) findBrokers() error {
	if len(s.Kafka.Brokers) > 0 {
		return nil
	}
	up, ok := findRunning(s.DataDir)
	if !ok {
		return notUp(s.DataDir, "name its folder with --data-dir, or set kafka.brokers")
	}
	s.Kafka.Brokers = []string{up.Kafka}
	return nil
}
