package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/retention"
)

type retainCmd struct {
	Plan     retainPlanCmd   `cmd:"" help:"Say what a run would drop, and change nothing."`
	Run      retainRunCmd    `cmd:"" help:"Run the job now."`
	Status   retainStatusCmd `cmd:"" help:"Say what was dropped and what is kept."`
	Hold     retainHoldCmd   `cmd:"" help:"Place, list and release legal holds."`
	Erase    retainEraseCmd  `cmd:"" help:"Take out the texts of one person, now."`
	Erasures erasuresCmd     `cmd:"" help:"List the erasures of persons."`
	Class    retainClassCmd  `cmd:"" help:"Give tenants partitions of their own."`
}

func (retainCmd) Help() string {
	return `Texts and users go retention.text_days after the day of their event; facts without text go retention.row_days after the month,
once its rollups were proved equal to them and a day passed. The job 'retention' does it every night.

Examples:
  evenhand retention plan
  evenhand retention plan --at 2027-06-01 --json
  evenhand retention hold add acme --from 2026-11-01 --to 2026-11-08 --reason case-4711
  evenhand retention erase acme --user u-17 --reason request-0815
  evenhand retention class assign acme brief --text-days 30 --row-days 365`
}

// retainFlags open the store for retention.
type retainFlags struct {
	storeFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// use opens the store and hands over a Retention of the settings.
func (f retainFlags) use(c *cli, do func(s settings, conn driver.Conn, r *retention.Retention) error) error {
	s, conn, err := f.open(c, engine.Writer)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	key, err := s.sealKeyHere()
	if err != nil {
		return err
	}
	r, err := retention.New(conn, s.ClickHouse.Database, s.Retention.config(), retention.Options{Cluster: s.ClickHouse.Cluster, Seal: key})
	if err != nil {
		return &settingsError{err}
	}
	return do(s, conn, r)
}

type retainPlanCmd struct {
	retainFlags
	At string `help:"As if it were this day (YYYY-MM-DD); now when not given." placeholder:"DATE"`
}

func (retainPlanCmd) Help() string {
	return `Reads what is due by what is stored now and proves rollups, but writes nothing. Exit status 3 when a month is due that cannot go
until something is mended.`
}

// Run prints the plan.
func (cmd *retainPlanCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	at, err := dayFlag("--at", cmd.At)
	if err != nil {
		return err
	}
	return cmd.use(c, func(_ settings, _ driver.Conn, r *retention.Retention) error {
		p, err := r.Plan(ctx, at)
		if err != nil {
			return err
		}
		if cmd.JSON {
			err = printJSON(std.out, p)
		} else {
			printPlan(std.out, p)
		}
		for _, w := range p.Waiting {
			if err == nil && w.Until.IsZero() {
				return exitCode(3)
			}
		}
		return err
	})
}

func printPlan(out io.Writer, p *retention.Plan) {
	if len(p.Steps) == 0 {
		fmt.Fprintf(out, "Nothing is due on %s.\n", p.At.Format(time.DateOnly))
	} else {
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ACTION\tTABLE\tCLASS\tFROM\tTENANTS\tROWS\tHELD\tBYTES")
		for _, s := range p.Steps {
			var names []string
			for _, x := range s.Tenants {
				if x.Tenant != "" {
					names = append(names, x.Tenant)
				}
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", s.Action, s.Object, s.Class, s.Period.Format(time.DateOnly), cut(strings.Join(names, ","), 40), s.Rows, s.Held, s.Bytes)
		}
		_ = t.Flush()
	}
	for _, w := range p.Waiting {
		until := ""
		if !w.Until.IsZero() {
			until = "; goes on from " + w.Until.Format("2006-01-02 15:04 MST")
		}
		fmt.Fprintf(out, "%s of %s waits: %s%s\n", w.Month.Format("2006-01"), w.Tenant, w.Why, until)
	}
	if !p.OldestText.IsZero() {
		fmt.Fprintf(out, "The oldest text is of %s.\n", p.OldestText.Format(time.DateOnly))
	}
}

func dayFlag(name, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, value); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, &settingsError{fmt.Errorf("%s: %q is not a day such as 2026-11-22, or a time such as 2026-11-22T10:00:00Z", name, value)}
}

type retainRunCmd struct {
	storeFlags
	JSON bool `help:"Print the outcome as JSON." name:"json"`
}

func (retainRunCmd) Help() string {
	return `The same as 'evenhand jobs run retention': it is recorded among the job's runs and may run beside the leader's.
When all is dropped it waits until the server has taken the old parts off the disk: two minutes as a rule, 15 at most.`
}

// Run runs the job.
func (cmd *retainRunCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	run := jobsRunCmd{storeFlags: cmd.storeFlags, Name: jobRetention, JSON: cmd.JSON}
	return run.Run(ctx, c, std)
}

type retainStatusCmd struct{ retainFlags }

// Run prints the status.
func (cmd *retainStatusCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	return cmd.use(c, func(s settings, _ driver.Conn, r *retention.Retention) error {
		st, err := r.Status(ctx)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(std.out, st)
		}
		fmt.Fprintln(std.out, s.Retention.diagnose().Says)
		day := func(t time.Time) string {
			if t.IsZero() {
				return "none"
			}
			return t.Format(time.DateOnly)
		}
		fmt.Fprintf(std.out, "oldest text %s, oldest row %s; %d holds in force keep %d texts; %s of persons\n", day(st.OldestText), day(st.OldestRow), st.Holds, st.HeldTexts, count(int(st.Erasures), "erasure"))
		fmt.Fprintf(std.out, "%d months frozen, %d deleted with %d interactions\n", st.Frozen, st.Purged, st.PurgedRows)
		fmt.Fprintf(std.out, "%d old parts are still on the disk, %d were set aside by the server, %d steps were broken off\n", st.Inactive, st.Detached, st.Interrupted)
		if len(st.Totals) > 0 {
			t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "\nACTION\tTABLE\tSTEPS\tROWS\tHELD\tBYTES\tFIRST\tLAST\tAT")
			for _, x := range st.Totals {
				fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", x.Action, x.Object, x.Steps, x.Rows, x.Held, x.Bytes, day(x.First), day(x.Last), x.At.Format("2006-01-02 15:04"))
			}
			_ = t.Flush()
		}
		return nil
	})
}

type retainHoldCmd struct {
	Add     holdAddCmd     `cmd:"" help:"Keep what would be dropped: events, a range of time, or a user."`
	List    holdListCmd    `cmd:"" help:"List the holds."`
	Release holdReleaseCmd `cmd:"" help:"Release a hold: what it kept goes at the next run."`
}

type holdAddCmd struct {
	retainFlags
	Tenant string   `arg:"" help:"Tenant."`
	Event  []string `help:"Id of an interaction, Evenhand's or the producer's own; repeatable." placeholder:"ID"`
	From   string   `help:"Start of a range of event time: a day or a time." placeholder:"TIME"`
	To     string   `help:"Its end, exclusive." placeholder:"TIME"`
	User   string   `help:"User id." placeholder:"ID"`
	Reason string   `help:"Code of the case, no words: it outlives the texts." required:"" placeholder:"CODE"`
	By     string   `help:"Who places it; the system user when not given." placeholder:"NAME"`
}

func (holdAddCmd) Help() string {
	return `Copies are made when the texts would be dropped; the rows stay where they are. What was dropped before is gone.
It says how many interactions the hold names now, and warns where there are none: it keeps what comes later.

Examples:
  evenhand retention hold add acme --event 64ecc60e-d487-5b0e-b92c-76b9fa175014 --event of-conv-2 --reason case-4711
  evenhand retention hold add acme --from 2026-11-01 --to 2026-11-08 --reason case-4711
  evenhand retention hold add acme --user u-17 --reason case-4711 --by ann`
}

// Run places a hold.
func (cmd *holdAddCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	h := retention.Hold{Tenant: cmd.Tenant, User: cmd.User, Reason: cmd.Reason, By: me(cmd.By)}
	var errs [2]error
	h.From, errs[0] = dayFlag("--from", cmd.From)
	h.To, errs[1] = dayFlag("--to", cmd.To)
	err := errors.Join(errs[:]...)
	for _, e := range cmd.Event {
		if e == "" {
			err = errors.Join(err, errors.New("--event: is empty"))
		}
		id, _ := audit.EventID(cmd.Tenant, e)
		h.Events = append(h.Events, id)
	}
	if err != nil {
		return &settingsError{err}
	}
	return cmd.use(c, func(_ settings, _ driver.Conn, r *retention.Retention) error {
		h, dropping, err := r.Place(ctx, h)
		if err != nil {
			return asUsage(err)
		}
		named, err := r.Named(ctx, &h)
		if err != nil {
			fmt.Fprintf(std.err, "evenhand: hold %s is in force\n", h.ID) // all the same
			return err
		}
		return cmd.placed(std, &h, named, dropping)
	})
}

// placed says what the hold names now. Naming nothing may be meant, and may be a slip of the pen.
func (cmd *holdAddCmd) placed(std *stdio, h *retention.Hold, named uint64, dropping []time.Time) error {
	if named == 0 {
		fmt.Fprintf(std.err, "evenhand: warning: hold %s names no interaction that is stored now; it keeps what comes later. If that is not meant, look at tenant, ids and times, and release it with 'evenhand retention hold release %s'\n", h.ID, h.ID)
	}
	if cmd.JSON {
		return printJSON(std.out, map[string]any{"hold": h.ID.String(), "placed_at": h.At, "interactions": named, "may_be_gone": dropping})
	}
	fmt.Fprintf(std.out, "hold %s is in force and names %s\n", h.ID, count(int(named), "interaction"))
	for _, d := range dropping {
		fmt.Fprintf(std.out, "a run is dropping texts of %s at this moment: look whether the hold keeps them with 'evenhand retention hold list'\n", d.Format(time.DateOnly))
	}
	return nil
}

// asUsage makes a fault of what was given one of usage.
func asUsage(err error) error {
	if audit.KindOf(err) == audit.KindInvalid {
		return &settingsError{err}
	}
	return err
}

// me is who acts: the name that was given, or the system's.
func me(given string) string {
	if given != "" {
		return given
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

type holdListCmd struct{ retainFlags }

// Run lists the holds.
func (cmd *holdListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	return cmd.use(c, func(_ settings, _ driver.Conn, r *retention.Retention) error {
		holds, err := r.Holds(ctx)
		if err != nil {
			return err
		}
		type listed struct {
			ID string `json:"hold"`
			retention.Hold
			Events []string `json:"events,omitempty"`
			Named  *uint64  `json:"interactions,omitempty"` // now, while it is in force
		}
		out := []listed{}
		for _, h := range holds {
			l := listed{ID: h.ID.String(), Hold: h}
			for _, id := range h.Events {
				l.Events = append(l.Events, id.String())
			}
			if h.Active() {
				n, err := r.Named(ctx, &h)
				if err != nil {
					return err
				}
				l.Named = &n
			}
			out = append(out, l)
		}
		if cmd.JSON {
			return printJSON(std.out, out)
		}
		t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "HOLD\tTENANT\tNAMES\tINTERACTIONS\tREASON\tPLACED\tBY\tCOPIED TEXTS\tRELEASED")
		for _, h := range out {
			names, released := "a user", ""
			switch {
			case len(h.Events) > 0:
				names = count(len(h.Events), "event")
			case !h.ByUser:
				names = h.From.Format("2006-01-02T15:04") + " – " + h.To.Format("2006-01-02T15:04")
			}
			if !h.Active() {
				released = h.ReleasedAt.Format(time.RFC3339) + " by " + h.ReleasedBy
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", h.ID, h.Tenant, names, figure(h.Named), inLine(h.Reason), h.At.Format(time.RFC3339), h.By, h.Texts, released)
		}
		return t.Flush()
	})
}

type holdReleaseCmd struct {
	retainFlags
	ID string `arg:"" help:"The hold's id, see 'hold list'."`
	By string `help:"Who releases it; the system user when not given." placeholder:"NAME"`
}

// Run releases a hold.
func (cmd *holdReleaseCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	id, err := audit.ParseID(cmd.ID)
	if err != nil {
		return &settingsError{fmt.Errorf("ID: %q is not a UUID", cmd.ID)}
	}
	return cmd.use(c, func(_ settings, _ driver.Conn, r *retention.Retention) error {
		h, err := r.Release(ctx, id, me(cmd.By))
		if err != nil {
			return asUsage(err)
		}
		if cmd.JSON {
			return printJSON(std.out, map[string]any{"hold": h.ID.String(), "released_at": h.ReleasedAt})
		}
		fmt.Fprintf(std.out, "hold %s is released since %s; what it kept goes at the next run\n", h.ID, h.ReleasedAt.Format(time.RFC3339))
		return nil
	})
}

type retainEraseCmd struct {
	retainFlags
	Tenant string `arg:"" help:"Tenant."`
	User   string `help:"User id, as the events tell it." required:"" placeholder:"ID"`
	Reason string `help:"Code of the case, no words: it outlives the texts." placeholder:"CODE"`
	By     string `help:"Who erases; the system user when not given." placeholder:"NAME"`
	DryRun bool   `help:"Only say what would go." name:"dry-run"`

	UnknownTenant bool `help:"Erase though nothing of the tenant is stored: what comes in of before now goes then." name:"unknown-tenant"`
}

func (retainEraseCmd) Help() string {
	return `Takes out all texts of the interactions of a user of a tenant that happened until now (GDPR Art. 17): prompts, answers, evidence, notes, and
whose they were. Verdicts, models, times and digests stay. What legal holds name stays until they are released. What is delivered
again or restored from a backup goes at the next run: a digest of tenant and user id is kept for that. A tenant of which nothing is
stored is refused. Why members of staff looked at what is masked stays (docs/review.md).
It waits until the texts are off the disk, as 'retention run' does. The log, exports and backups: see docs/retention.md.

Examples:
  evenhand retention erase acme --user u-17 --dry-run
  evenhand retention erase acme --user u-17 --reason request-0815 --by ann`
}

// Run erases.
func (cmd *retainEraseCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if cmd.Reason == "" && !cmd.DryRun {
		return &settingsError{errors.New("--reason: is missing; give the code of the request, or --dry-run to only look")}
	}
	return cmd.use(c, func(_ settings, _ driver.Conn, r *retention.Retention) error {
		if err := r.Stores(ctx, cmd.Tenant); err != nil && (audit.KindOf(err) != audit.KindInvalid || !cmd.UnknownTenant) {
			if audit.KindOf(err) == audit.KindInvalid {
				err = &settingsError{fmt.Errorf("%w; --unknown-tenant erases all the same", err)}
			}
			return err
		}
		before, err := r.Erasures(ctx)
		if err != nil {
			return err
		}
		before = ofPerson(before, cmd.Tenant, cmd.User)
		if cmd.DryRun {
			out, err := r.Erasable(ctx, cmd.Tenant, cmd.User)
			if err != nil {
				return asUsage(err)
			}
			return cmd.told(std, "", "would go", out, before)
		}
		waits := false
		e, out, err := r.Erase(ctx, retention.Erasure{Tenant: cmd.Tenant, Reason: cmd.Reason, By: me(cmd.By)}, cmd.User, cmd.progress(std), func() {
			if !waits && !cmd.JSON {
				fmt.Fprintln(std.err, "evenhand: the texts are out; waiting until the server has taken the old parts off the disk")
			}
			waits = true
		})
		if err != nil {
			return asUsage(err)
		}
		return cmd.told(std, e.ID.String(), "went", out, before)
	})
}

// progress says how far it is: every two seconds on a terminal, every half minute in a log.
func (cmd *retainEraseCmd) progress(std *stdio) func(done, total int) {
	every, shown := 30*time.Second, time.Now()
	if onTerminal(std.err) {
		every = 2 * time.Second
	}
	return func(done, total int) {
		if time.Since(shown) >= every {
			shown = time.Now()
			fmt.Fprintf(std.err, "evenhand: erased in %d of %d partitions, of a table and a day each\n", done, total)
		}
	}
}

// ofPerson are the erasures of a tenant, or of all, that are of a user, or of anybody.
func ofPerson(list []retention.Erasure, tenant, user string) []retention.Erasure {
	return slices.DeleteFunc(list, func(e retention.Erasure) bool {
		return tenant != "" && e.Tenant != tenant || user != "" && !e.Of(user)
	})
}

// told says what an erasure did, or would do; before are those of the same person before it.
func (cmd *retainEraseCmd) told(std *stdio, id, did string, out retention.Erased, before []retention.Erasure) error {
	if n := len(before); n > 0 {
		fmt.Fprintf(std.err, "evenhand: this user was erased before: %s at %s (evenhand retention erasures shows all)\n", before[n-1].ID, before[n-1].At.Format(time.RFC3339))
	} else if out.Interactions+out.Held == 0 {
		fmt.Fprintln(std.err, "evenhand: warning: no texts of this user are stored in this tenant; look at both if that is not meant")
	}
	if cmd.JSON {
		return printJSON(std.out, struct {
			ID string `json:"erasure,omitempty"`
			retention.Erased
		}{id, out})
	}
	if id != "" {
		fmt.Fprintf(std.out, "erasure %s: ", id)
	}
	fmt.Fprintf(std.out, "%s of %s %s\n", count(int(out.Texts), "text"), count(int(out.Interactions), "interaction"), did)
	if out.Held > 0 {
		fmt.Fprintf(std.out, "legal holds keep the texts of %s; they go at the next run after the release\n", count(int(out.Held), "interaction"))
	}
	if out.InIDs > 0 {
		fmt.Fprintf(std.out, "the user id stands in the event id, conversation or decision that the producer gave of %s: these stay as long as rows do\n", count(int(out.InIDs), "interaction"))
	}
	if out.Inactive > 0 {
		fmt.Fprintf(std.out, "%s still on the disk: see 'evenhand retention status'\n", count(int(out.Inactive), "old part"))
	}
	return nil
}

type erasuresCmd struct {
	retainFlags
	Tenant string `help:"Only those of this tenant." placeholder:"NAME"`
	User   string `help:"Only those of this user id: what of a person was erased, when and by whom." placeholder:"ID"`
}

func (erasuresCmd) Help() string {
	return `Who was erased is kept as a digest only: --user tells which erasures are of a user whose id you know. The figures are of the moment
when it was asked for; STATE says what holds keep, and what came again since.

Examples:
  evenhand retention erasures
  evenhand retention erasures --tenant acme --user u-17 --json`
}

// Run lists the erasures.
func (cmd *erasuresCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	return cmd.use(c, func(_ settings, _ driver.Conn, r *retention.Retention) error {
		list, err := r.Erasures(ctx)
		if err != nil {
			return err
		}
		list = ofPerson(list, cmd.Tenant, cmd.User)
		if err := r.Stand(ctx, list); err != nil {
			return err
		}
		if cmd.JSON {
			type listed struct {
				ID string `json:"erasure"`
				retention.Erasure
			}
			out := []listed{}
			for _, e := range list {
				out = append(out, listed{e.ID.String(), e})
			}
			return printJSON(std.out, out)
		}
		t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ERASURE\tTENANT\tREASON\tAT\tBY\tINTERACTIONS\tTEXTS\tSTATE")
		for _, e := range list {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.ID, e.Tenant, inLine(e.Reason), e.At.Format(time.RFC3339), e.By, figure(e.Interactions), figure(e.Texts), standing(&e))
		}
		return t.Flush()
	})
}

// standing says how far an erasure is.
func standing(e *retention.Erasure) string {
	state := "under way, or broken off: the job retention completes it"
	switch {
	case !e.Done.IsZero() && e.Left > 0:
		verb := "go"
		if e.Left == 1 {
			verb = "goes"
		}
		state = "done " + e.Done.Format(time.RFC3339) + "; " + count(int(e.Left), "interaction") + " that came again " + verb + " at the next run"
	case !e.Done.IsZero():
		state = "done " + e.Done.Format(time.RFC3339)
	}
	if e.Held > 0 {
		state += "; legal holds keep " + count(int(e.Held), "interaction")
	}
	return state
}

// figure is a number that may not be known.
func figure(n *uint64) string {
	if n == nil {
		return "–"
	}
	return fmt.Sprint(*n)
}

type retainClassCmd struct {
	Assign classAssignCmd `cmd:"" help:"Write a tenant's texts into a class from a day on."`
	List   classListCmd   `cmd:"" help:"List the assignments."`
}

type classAssignCmd struct {
	retainFlags
	Tenant   string `arg:"" help:"Tenant."`
	Class    string `arg:"" help:"Class: up to 16 of a-z, 0-9 and _; 'std' is that of all others."`
	TextDays int    `help:"Days that the class keeps texts." placeholder:"DAYS"`
	RowDays  int    `help:"Days that it keeps rows." placeholder:"DAYS"`
	From     string `help:"First event day (YYYY-MM-DD); the first that can be assigned when not given." placeholder:"DATE"`
	By       string `help:"Who assigns it; the system user when not given." placeholder:"NAME"`
}

func (classAssignCmd) Help() string {
	return `An event keeps its class for ever, so a class can be assigned for days after tomorrow only, and never taken back. At most 8 classes.
Limits in retention.tenants stand above those of a class; the class then only gives the tenant partitions of its own.

Examples:
  evenhand retention class assign acme brief --text-days 30 --row-days 365
  evenhand retention class assign acme std --from 2027-01-01`
}

// Run assigns a class.
func (cmd *classAssignCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	from, err := dayFlag("--from", cmd.From)
	if err != nil {
		return err
	}
	if from.IsZero() {
		from = retention.FirstDay(time.Now())
	}
	return cmd.use(c, func(s settings, conn driver.Conn, _ *retention.Retention) error {
		a, err := retention.NewClasses(conn, s.ClickHouse.Database).Assign(ctx, retention.Assignment{
			Tenant: cmd.Tenant, Class: cmd.Class, TextDays: cmd.TextDays, RowDays: cmd.RowDays, From: from, By: me(cmd.By)}, s.Retention.config())
		if err != nil {
			return asUsage(err)
		}
		if cmd.JSON {
			return printJSON(std.out, a)
		}
		fmt.Fprintf(std.out, "texts of %s are written into class %s from %s on\n", a.Tenant, a.Class, a.From.Format(time.DateOnly))
		return nil
	})
}

type classListCmd struct{ retainFlags }

// Run lists the assignments.
func (cmd *classListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	return cmd.use(c, func(s settings, conn driver.Conn, _ *retention.Retention) error {
		list, err := retention.NewClasses(conn, s.ClickHouse.Database).List(ctx)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(std.out, orEmpty(list))
		}
		t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TENANT\tCLASS\tFROM\tTEXT DAYS\tROW DAYS\tASSIGNED\tBY")
		for _, a := range list {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", a.Tenant, a.Class, a.From.Format(time.DateOnly), a.TextDays, a.RowDays, a.At.Format("2006-01-02 15:04"), a.By)
		}
		return t.Flush()
	})
}
