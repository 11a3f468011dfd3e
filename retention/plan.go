package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Action is what a step does.
type Action string

// The actions.
const (
	Drop   Action = "drop"   // a whole partition
	Delete Action = "delete" // the rows of some tenants, by a mutation
	Freeze Action = "freeze" // the rollups of a tenant's month, after the proof
	Erase  Action = "erase"  // the texts of one person, by a mutation
)

// Step is one thing that a run does.
type Step struct {
	Action  Action    `json:"action"`
	Object  string    `json:"object"`          // the table; rollups for a freeze
	Class   string    `json:"class,omitempty"` // retention class; of texts_held the hold
	Period  time.Time `json:"period"`          // the day, or the first day of the month
	Tenants []Share   `json:"tenants"`
	Rows    uint64    `json:"rows"`  // that go
	Held    uint64    `json:"held"`  // that a hold keeps: copied if they are texts, left where they are if not
	Bytes   uint64    `json:"bytes"` // on the disk, about

	partition string    // id; "" where the table has no partitions
	parts     []string  // of it that are dropped, as literals
	month     bool      // Period is a month
	begun     time.Time // of a step that was broken off
}

// Share is what of a step is one tenant's.
type Share struct {
	Tenant string `json:"tenant"`
	Rows   uint64 `json:"rows"`
	Held   uint64 `json:"held,omitempty"`

	sum uint64 // over the rows' versions: with their number it tells this content from another
	as  recorded
}

func (s *Step) tenants() []string {
	var out []string
	for _, t := range s.Tenants {
		out = append(out, t.Tenant)
	}
	return out
}

// String names a step without its figures.
func (s *Step) String() string {
	name := string(s.Action) + " " + s.Object
	if s.Class != "" {
		name += " " + s.Class
	}
	return name + " " + date(s.Period)
}

// Waiting is a tenant's month that is due and does not go yet.
type Waiting struct {
	Tenant string    `json:"tenant"`
	Month  time.Time `json:"month"`
	Why    string    `json:"why"`
	Until  time.Time `json:"until,omitzero"` // zero: until what it says is mended
}

// Plan is what a run at a time would do, in order.
type Plan struct {
	At      time.Time `json:"at"`
	Steps   []Step    `json:"steps"`
	Waiting []Waiting `json:"waiting"`
	// OldestText is the oldest event day whose texts are kept, zero when there are none.
	OldestText time.Time `json:"oldest_text,omitzero"`

	holds []Hold
}

// textTables hold personal text, by day.
var textTables = []string{"interaction_texts", "interaction_users"}

// monthTables hold facts of interactions, by month, in the order in which their rows go: what leads to
// the others goes last, so that a run that was broken off finds the rest.
var monthTables = []string{"gates", "reviews", "feedback", "reveals", "audit_current", "verdicts", "interactions"}

// partition is what a table holds of a day or month.
type partition struct {
	object, class, id string
	period            time.Time
	tenants           []Share
}

// Plan says what a run at a time would do; it changes nothing. A zero time is now.
func (r *Retention) Plan(ctx context.Context, at time.Time) (*Plan, error) {
	if at.IsZero() {
		var err error
		if at, err = r.now(ctx); err != nil {
			return nil, err
		}
	}
	p := &Plan{At: at.UTC(), Steps: []Step{}, Waiting: []Waiting{}}
	assigned, err := readAssignments(ctx, r.conn, r.db)
	if err != nil {
		return nil, err
	}
	if p.holds, err = r.Holds(ctx); err != nil {
		return nil, err
	}
	size, err := r.sizes(ctx)
	if err != nil {
		return nil, err
	}
	for _, plan := range []func(context.Context, *Plan, assignments, sizes) error{r.planTexts, r.planMonths, r.planRejected, r.planReleased, r.planJobRuns} {
		if err := plan(ctx, p, assigned, size); err != nil {
			return nil, err
		}
	}
	err = r.one(ctx, "retention: oldest text", "SELECT min(event_day) FROM {db}.interaction_texts", nil, &p.OldestText)
	if p.OldestText = p.OldestText.UTC(); p.OldestText.Unix() == 0 {
		p.OldestText = time.Time{}
	}
	return p, err
}

// sizes are bytes on the disk by table and partition id.
type sizes map[[2]string]uint64

func (r *Retention) sizes(ctx context.Context) (sizes, error) {
	out := sizes{}
	err := r.each(ctx, "retention: sizes", "SELECT table, partition_id, sum(bytes_on_disk) FROM system.parts WHERE active AND database = ? GROUP BY table, partition_id", []any{r.db}, func(scan func(...any) error) error {
		var table, id string
		var n uint64
		err := scan(&table, &id, &n)
		out[[2]string{table, id}] = n
		return err
	})
	return out, err
}

// contents reads what a table holds before a day, by partition, period and tenant.
func (r *Retention) contents(ctx context.Context, table, class, period string, before time.Time) ([]partition, error) {
	id := "_partition_id"
	if table == "rejected" {
		id = "''"
	}
	var out []partition
	sql := fmt.Sprintf(`SELECT %s AS class, %s AS period, any(%s), tenant_id, count(), groupBitXor(version) FROM {db}.%s FINAL WHERE event_day < toDate(?)
		GROUP BY class, period, tenant_id ORDER BY period, class, tenant_id`, class, period, id, table)
	err := r.each(ctx, "retention: read "+table, sql, []any{date(before)}, func(scan func(...any) error) error {
		x := partition{object: table}
		var s Share
		if err := scan(&x.class, &x.period, &x.id, &s.Tenant, &s.Rows, &s.sum); err != nil {
			return err
		}
		x.period = x.period.UTC()
		if last := len(out) - 1; last >= 0 && out[last].class == x.class && out[last].period.Equal(x.period) {
			out[last].tenants = append(out[last].tenants, s)
			return nil
		}
		x.tenants = []Share{s}
		out = append(out, x)
		return nil
	})
	return out, err
}

// horizon is the day before which something can be due when it is kept for at least as long as a
// function of the limits says.
func (r *Retention) horizon(at time.Time, a assignments, days func(Limits) int) time.Time {
	least := days(r.cfg.of(""))
	for tenant := range r.cfg.Tenants {
		least = min(least, days(r.cfg.of(tenant)))
	}
	for _, list := range a {
		for _, x := range list {
			if x.TextDays > 0 {
				least = min(least, days(Limits{TextDays: x.TextDays, RowDays: x.RowDays}))
			}
		}
	}
	return dayOf(at).AddDate(0, 0, -least)
}

// planTexts finds the day partitions of texts and users that are past their limit: day by day, texts
// before users, since a hold by user is looked up in the users of the day.
func (r *Retention) planTexts(ctx context.Context, p *Plan, a assignments, size sizes) error {
	var all []partition
	for _, table := range textTables {
		some, err := r.contents(ctx, table, "retention_class", "event_day", r.horizon(p.At, a, func(l Limits) int { return l.TextDays }))
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b partition) int {
		return cmp.Or(a.period.Compare(b.period), strings.Compare(a.class, b.class), cmp.Compare(slices.Index(textTables, a.object), slices.Index(textTables, b.object)))
	})
	for _, x := range all {
		s := x.step(size, func(t Share) bool { return !r.cfg.limits(t.Tenant, x.period, a).textsGo(x.period).After(p.At) })
		if s == nil {
			continue
		}
		if x.object == "interaction_texts" {
			for i := range s.Tenants {
				t := &s.Tenants[i]
				n, err := r.named(ctx, s, active(p.holds, t.Tenant))
				if err != nil {
					return err
				}
				t.Held = n
				s.Held += n
			}
		}
		p.Steps = append(p.Steps, *s)
	}
	return nil
}

// step makes a step for the tenants of a partition that are due, nil when none is.
func (x *partition) step(size sizes, due func(Share) bool) *Step {
	s := &Step{Action: Drop, Object: x.object, Class: x.class, Period: x.period, partition: x.id}
	var all uint64
	for _, t := range x.tenants {
		all += t.Rows
		if due(t) {
			s.Tenants, s.Rows = append(s.Tenants, t), s.Rows+t.Rows
		}
	}
	if len(s.Tenants) == 0 {
		return nil
	}
	s.Bytes = size[[2]string{x.object, x.id}]
	if len(s.Tenants) < len(x.tenants) || x.id == "" {
		s.Action = Delete
		s.Bytes = uint64(float64(s.Bytes) * float64(s.Rows) / float64(all))
	}
	return s
}

// named counts the rows of a text partition that some holds name.
func (r *Retention) named(ctx context.Context, s *Step, holds []*Hold) (n uint64, err error) {
	var named []string
	args := []any{s.Class, date(s.Period)}
	for _, h := range holds {
		if c, ok := h.texts(r.db, s.Period); ok {
			named, args = append(named, c.sql), append(args, c.args...)
		}
	}
	if len(named) == 0 {
		return 0, nil
	}
	err = r.one(ctx, "retention: count held", "SELECT count() FROM {db}.interaction_texts FINAL WHERE retention_class = ? AND event_day = toDate(?) AND ("+strings.Join(named, " OR ")+")", args, &n)
	return n, err
}

// tenantMonth names the rows of a tenant's month.
type tenantMonth struct {
	tenant string
	month  time.Time
}

// planMonths finds the months of tenants whose rows are past their limit: they are frozen first, and go
// a day later.
func (r *Retention) planMonths(ctx context.Context, p *Plan, a assignments, size sizes) error {
	frozen, err := r.frozen(ctx)
	if err != nil {
		return err
	}
	before := r.horizon(p.At, a, func(l Limits) int { return l.RowDays })
	tables := map[string][]partition{}
	months := map[tenantMonth]uint64{}
	for _, table := range monthTables {
		if tables[table], err = r.contents(ctx, table, "''", "toStartOfMonth(event_day)", monthOf(before)); err != nil {
			return err
		}
		for _, x := range tables[table] {
			for _, t := range x.tenants {
				n := uint64(0)
				if table == "interactions" {
					n = t.Rows
				}
				months[tenantMonth{t.Tenant, x.period}] += n
			}
		}
	}
	goes := map[tenantMonth]bool{}
	order := slices.SortedFunc(maps.Keys(months), func(a, b tenantMonth) int {
		return cmp.Or(a.month.Compare(b.month), strings.Compare(a.tenant, b.tenant))
	})
	for _, m := range order {
		if r.cfg.monthGoes(m.tenant, m.month, a).After(p.At) {
			continue
		}
		since, ok := frozen[m]
		switch {
		case !ok:
			if err := r.planFreeze(ctx, p, m, months[m]); err != nil {
				return err
			}
		case p.At.Sub(since) < freezeFor:
			p.Waiting = append(p.Waiting, Waiting{m.tenant, m.month, "its rollups were frozen less than a day ago", since.Add(freezeFor)})
		default:
			goes[m] = true
		}
	}
	for _, table := range monthTables {
		for _, x := range tables[table] {
			s := x.step(size, func(t Share) bool { return goes[tenantMonth{t.Tenant, x.period}] })
			if err := r.planRows(ctx, p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// planRows adds a step over rows without text: those that a hold names stay, and a month of which nothing
// else is left is done.
func (r *Retention) planRows(ctx context.Context, p *Plan, s *Step) error {
	if s == nil {
		return nil
	}
	s.month = true
	var going []Share
	for _, t := range s.Tenants {
		if hs := active(p.holds, t.Tenant); len(hs) > 0 {
			keep := kept(hs, r.db)
			sql := "SELECT count() FROM {db}." + s.Object + " FINAL WHERE tenant_id = ? AND " + inMonth + " AND " + keep.sql
			if err := r.one(ctx, "retention: count held", sql, append([]any{t.Tenant, date(s.Period), date(s.Period)}, keep.args...), &t.Held); err != nil {
				return err
			}
		}
		t.Rows -= t.Held
		s.Rows, s.Held = s.Rows-t.Held, s.Held+t.Held
		if t.Rows > 0 {
			going = append(going, t)
		}
	}
	if len(going) < len(s.Tenants) || s.Held > 0 {
		s.Action = Delete
	}
	if s.Tenants = going; len(going) > 0 {
		p.Steps = append(p.Steps, *s)
	}
	return nil
}

const inMonth = "event_day >= toDate(?) AND event_day < addMonths(toDate(?), 1)"

// planFreeze adds a freeze when nothing stands against it.
func (r *Retention) planFreeze(ctx context.Context, p *Plan, m tenantMonth, rows uint64) error {
	var last time.Time
	sql := "SELECT max(written_at) FROM (SELECT max(written_at) AS written_at FROM {db}.interactions WHERE tenant_id = ? AND " + inMonth +
		" UNION ALL SELECT max(written_at) FROM {db}.verdicts WHERE tenant_id = ? AND " + inMonth +
		" UNION ALL SELECT max(written_at) FROM {db}.reviews WHERE tenant_id = ? AND " + inMonth + ")"
	d := date(m.month)
	if err := r.one(ctx, "retention: last write", sql, []any{m.tenant, d, d, m.tenant, d, d, m.tenant, d, d}, &last); err != nil {
		return err
	}
	if until := last.Add(quiet); until.After(p.At) {
		p.Waiting = append(p.Waiting, Waiting{m.tenant, m.month, "rows of it were written less than two hours ago", until.UTC()})
		return nil
	}
	if err := r.prove(ctx, m.tenant, m.month); err != nil {
		if !errors.Is(err, ErrUnequal) {
			return err
		}
		p.Waiting = append(p.Waiting, Waiting{Tenant: m.tenant, Month: m.month, Why: err.Error()})
		return nil
	}
	p.Steps = append(p.Steps, Step{Action: Freeze, Object: "rollups", Period: m.month, Tenants: []Share{{Tenant: m.tenant, Rows: rows}}, Rows: rows, month: true})
	return nil
}

// frozen reads since when months are frozen.
func (r *Retention) frozen(ctx context.Context) (map[tenantMonth]time.Time, error) {
	out := map[tenantMonth]time.Time{}
	err := r.each(ctx, "retention: read frozen months", "SELECT tenant_id, month, min(frozen_at) FROM {db}.rollup_frozen GROUP BY tenant_id, month", nil, func(scan func(...any) error) error {
		var m tenantMonth
		var at time.Time
		err := scan(&m.tenant, &m.month, &at)
		m.month = m.month.UTC()
		out[m] = at.UTC()
		return err
	})
	return out, err
}

// planRejected finds the months of dead letters that are past the limit of rows; their text went before.
func (r *Retention) planRejected(ctx context.Context, p *Plan, a assignments, size sizes) error {
	before := r.horizon(p.At, a, func(l Limits) int { return l.RowDays })
	all, err := r.contents(ctx, "rejected", "''", "toStartOfMonth(event_day)", monthOf(before))
	if err != nil {
		return err
	}
	for _, x := range all {
		s := x.step(size, func(t Share) bool { return !r.cfg.monthGoes(t.Tenant, x.period, a).After(p.At) })
		if err := r.planRows(ctx, p, s); err != nil {
			return err
		}
	}
	return nil
}

// planReleased finds what released holds kept: all of it is past its limit, for only then it was copied.
func (r *Retention) planReleased(ctx context.Context, p *Plan, _ assignments, size sizes) error {
	gone := map[string]*Hold{}
	for i := range p.holds {
		if h := &p.holds[i]; !h.Active() {
			gone[h.ID.String()] = h
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return r.each(ctx, "retention: read texts_held", "SELECT hold_id, any(_partition_id), tenant_id, count(), groupBitXor(version) FROM {db}.texts_held FINAL GROUP BY hold_id, tenant_id ORDER BY hold_id", nil, func(scan func(...any) error) error {
		var id uuid.UUID
		var s Share
		var part string
		if err := scan(&id, &part, &s.Tenant, &s.Rows, &s.sum); err != nil {
			return err
		}
		if h := gone[id.String()]; h != nil {
			p.Steps = append(p.Steps, Step{Action: Drop, Object: "texts_held", Class: id.String(), Period: dayOf(h.At), Tenants: []Share{s}, Rows: s.Rows,
				Bytes: size[[2]string{"texts_held", part}], partition: part})
		}
		return nil
	})
}

// planJobRuns finds months of job_runs that are past the limit of rows and no job's newest.
func (r *Retention) planJobRuns(ctx context.Context, p *Plan, _ assignments, size sizes) error {
	var limit time.Time
	if err := r.one(ctx, "retention: read job_runs", "SELECT min(last) FROM (SELECT max(started_at) AS last FROM {db}.job_runs WHERE status = 'done' GROUP BY job)", nil, &limit); err != nil {
		return err
	}
	if old := dayOf(p.At).AddDate(0, 0, -r.cfg.RowDays); old.Before(limit) {
		limit = old
	}
	return r.each(ctx, "retention: read job_runs", "SELECT toStartOfMonth(started_at) AS m, any(_partition_id), count(), groupBitXor(sipHash64(run_id)) FROM {db}.job_runs FINAL WHERE started_at < "+instant+" GROUP BY m ORDER BY m",
		[]any{max(0, monthOf(limit).UnixMilli())}, func(scan func(...any) error) error {
			var m time.Time
			var part string
			var s Share
			if err := scan(&m, &part, &s.Rows, &s.sum); err != nil {
				return err
			}
			p.Steps = append(p.Steps, Step{Action: Drop, Object: "job_runs", Period: m.UTC(), Tenants: []Share{s}, Rows: s.Rows,
				Bytes: size[[2]string{"job_runs", part}], partition: part, month: true})
			return nil
		})
}
