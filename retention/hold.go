package retention

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// Hold keeps what would be dropped: the texts of the interactions that its filter names, as copies in
// texts_held, and their rows. The filter is exactly one of Events, [From, To) and User. What was dropped
// before it was placed is gone.
type Hold struct {
	ID     audit.ID   `json:"-"`
	Tenant string     `json:"tenant"`
	Events []audit.ID `json:"-"`
	From   time.Time  `json:"from,omitzero"` // event time, inclusive
	To     time.Time  `json:"to,omitzero"`   // exclusive
	User   string     `json:"-"`             // lies in texts_held; shown to nobody
	ByUser bool       `json:"by_user,omitempty"`
	Reason string     `json:"reason"` // a code, no words: it outlives the texts
	By     string     `json:"placed_by"`
	At     time.Time  `json:"placed_at"`

	ReleasedBy string    `json:"released_by,omitempty"`
	ReleasedAt time.Time `json:"released_at,omitzero"` // zero while it is in force
	Texts      uint64    `json:"texts"`                // rows that it keeps in texts_held
}

// Active tells whether the hold is in force.
func (h *Hold) Active() bool { return h.ReleasedAt.IsZero() }

// mostEvents of a hold by ids: what one statement takes.
const mostEvents = 10_000

var code = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,63}$`)

func (h *Hold) validate() error {
	var errs []error
	if h.Tenant == "" {
		errs = append(errs, errors.New("tenant: is empty"))
	}
	filters := 0
	if len(h.Events) > 0 {
		filters++
	}
	if !h.From.IsZero() || !h.To.IsZero() {
		filters++
		if h.From.IsZero() || h.To.IsZero() || !h.From.Before(h.To) {
			errs = append(errs, errors.New("from and to: a range needs both, from before to"))
		}
	}
	if h.User != "" {
		filters++
	}
	if filters != 1 {
		errs = append(errs, errors.New("filter: wants one of events, a range from–to, and a user"))
	}
	if len(h.Events) > mostEvents {
		errs = append(errs, fmt.Errorf("events: %d are more than %d; place several holds", len(h.Events), mostEvents))
	}
	return errors.Join(append(errs, reasoned(h.Reason), signed(h.By))...)
}

// reasoned refuses a reason that is no code: it outlives the texts.
func reasoned(reason string) error {
	if !code.MatchString(reason) {
		return errors.New("reason: is not a code of up to 64 letters, digits and _./- (a case number, not its story)")
	}
	return nil
}

// signed refuses what is not the name of who acts.
func signed(by string) error {
	if !code.MatchString(by) {
		return errors.New("by: is not a name of up to 64 letters, digits and _./-")
	}
	return nil
}

// Place puts a hold in force and gives it an id and a time. When a run was dropping what the hold names at
// that moment, the days are returned: they may be gone.
func (r *Retention) Place(ctx context.Context, h Hold) (Hold, []time.Time, error) {
	const op = "retention: place hold"
	if err := h.validate(); err != nil {
		return h, nil, audit.E(op, audit.KindInvalid, err)
	}
	now, err := r.now(ctx)
	if err != nil {
		return h, nil, err
	}
	h.ID, h.At, h.ByUser = audit.NewID(now), now.UTC().Truncate(time.Millisecond), h.User != ""
	if h.ByUser { // before the hold itself, which would be without its filter
		err := r.execQuietly(ctx, op, "INSERT INTO {db}.texts_held (hold_id, tenant_id, event_day, event_id, kind, source_id, version, retention_class, text, held_at) VALUES (toUUID(?), ?, toDate(?), toUUID(?), 'hold_user', unhex('00'), 1, '', ?, "+instant+")",
			h.ID.String(), h.Tenant, date(h.At), h.ID.String(), h.User, h.At.UnixMilli())
		if err != nil {
			return h, nil, err
		}
	}
	if err := r.fact(ctx, op, "placed", &h, h.By, h.At); err != nil {
		return h, nil, err
	}
	days, err := r.dropping(ctx, &h)
	return h, days, err
}

// Named counts the interactions that a hold names now; more may come.
func (r *Retention) Named(ctx context.Context, h *Hold) (n uint64, err error) {
	const op = "retention: count what a hold names"
	table, where, args := "interactions", "event_ts >= "+instant+" AND event_ts < "+instant, []any{h.Tenant, h.From.UnixMilli(), h.To.UnixMilli()}
	switch {
	case len(h.Events) > 0:
		where, args = anyOf(h.Events), args[:1]
	case h.ByUser:
		table, where, args = "interaction_users", "user_id = ?", []any{h.Tenant, h.User}
	}
	return n, r.oneQuietly(ctx, op, "SELECT uniqExact(event_id) FROM {db}."+table+" WHERE tenant_id = ? AND "+where, args, &n)
}

// Release ends a hold; the next run drops what it kept and is past its limit. Releasing twice keeps the
// first time.
func (r *Retention) Release(ctx context.Context, id audit.ID, by string) (Hold, error) {
	const op = "retention: release hold"
	if err := signed(by); err != nil {
		return Hold{}, audit.E(op, audit.KindInvalid, err)
	}
	holds, err := r.Holds(ctx)
	if err != nil {
		return Hold{}, err
	}
	at := slices.IndexFunc(holds, func(h Hold) bool { return h.ID == id })
	if at < 0 {
		return Hold{}, audit.E(op, audit.KindInvalid, fmt.Errorf("no hold %s; 'evenhand retention hold list' shows them", id))
	}
	h := holds[at]
	if !h.Active() {
		return h, nil
	}
	now, err := r.now(ctx)
	if err != nil {
		return h, err
	}
	h.ReleasedBy, h.ReleasedAt = by, now.UTC().Truncate(time.Millisecond)
	return h, r.fact(ctx, op, "released", &h, by, h.ReleasedAt)
}

func (r *Retention) fact(ctx context.Context, op, fact string, h *Hold, by string, at time.Time) error {
	ids := make([]uuid.UUID, 0, len(h.Events))
	for _, id := range h.Events {
		ids = append(ids, uuid.UUID(id))
	}
	b, err := r.conn.PrepareBatch(ctx, "INSERT INTO "+r.db+".legal_holds (tenant_id, hold_id, fact, version, event_ids, from_ts, to_ts, by_user, reason, by, at)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	ms := func(t time.Time) int64 { return max(0, t.UnixMilli()) }
	// The complement: of two facts the first one holds.
	if err := b.Append(h.Tenant, uuid.UUID(h.ID), fact, ^uint64(at.UnixMilli()), ids, ms(h.From), ms(h.To), flag(h.ByUser), h.Reason, by, at.UnixMilli()); err != nil {
		return chconn.Wrap(op, err)
	}
	return chconn.Wrap(op, b.Send())
}

// Holds lists all holds, the oldest first.
func (r *Retention) Holds(ctx context.Context) ([]Hold, error) {
	const op = "retention: read holds"
	kept := map[audit.ID]uint64{}
	users := map[audit.ID]string{}
	err := r.each(ctx, op, "SELECT hold_id, countIf(kind != 'hold_user'), anyIf(text, kind = 'hold_user') FROM {db}.texts_held FINAL GROUP BY hold_id", nil, func(scan func(...any) error) error {
		var id uuid.UUID
		var n uint64
		var user string
		err := scan(&id, &n, &user)
		kept[audit.ID(id)], users[audit.ID(id)] = n, user
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []Hold
	err = r.each(ctx, op, "SELECT tenant_id, hold_id, fact, event_ids, from_ts, to_ts, by_user, reason, by, at FROM {db}.legal_holds FINAL ORDER BY hold_id, fact", nil, func(scan func(...any) error) error {
		var h Hold
		var id uuid.UUID
		var fact string
		var events []uuid.UUID
		var byUser uint8
		if err := scan(&h.Tenant, &id, &fact, &events, &h.From, &h.To, &byUser, &h.Reason, &h.By, &h.At); err != nil {
			return err
		}
		h.ID, h.At, h.ByUser = audit.ID(id), h.At.UTC(), byUser == 1
		if last := len(out) - 1; fact == "released" { // sorts after placed
			if last >= 0 && out[last].ID == h.ID {
				out[last].ReleasedBy, out[last].ReleasedAt = h.By, h.At
			}
			return nil
		}
		for _, e := range events {
			h.Events = append(h.Events, audit.ID(e))
		}
		if h.From.UnixMilli() == 0 && h.To.UnixMilli() == 0 {
			h.From, h.To = time.Time{}, time.Time{}
		} else {
			h.From, h.To = h.From.UTC(), h.To.UTC()
		}
		h.User, h.Texts = users[h.ID], kept[h.ID]
		out = append(out, h)
		return nil
	})
	slices.SortStableFunc(out, func(a, b Hold) int { return a.At.Compare(b.At) })
	return out, err
}

// active are the holds in force, of one tenant.
func active(holds []Hold, tenant string) (out []*Hold) {
	for i := range holds {
		if h := &holds[i]; h.Active() && h.Tenant == tenant {
			out = append(out, h)
		}
	}
	return out
}

// cond is a condition with its arguments.
type cond struct {
	sql  string
	args []any
}

func anyOf(ids []audit.ID) string {
	var b strings.Builder
	b.WriteString("event_id IN (")
	for i, id := range ids {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("toUUID('" + id.String() + "')")
	}
	return b.String() + ")"
}

// texts is the condition for the rows of interaction_texts of a day that the hold names; ok is false when
// it names none of that day.
func (h *Hold) texts(db string, day time.Time) (c cond, ok bool) {
	tenant := cond{"tenant_id = ?", []any{h.Tenant}}
	switch d, next := date(day), day.AddDate(0, 0, 1); {
	case len(h.Events) > 0:
		return cond{"tenant_id = ? AND " + anyOf(h.Events), tenant.args}, true
	case h.ByUser:
		return cond{"tenant_id = ? AND event_id IN (SELECT event_id FROM " + db + ".interaction_users WHERE tenant_id = ? AND user_id = ? AND event_day = toDate(?))",
			[]any{h.Tenant, h.Tenant, h.User, d}}, true
	case !h.From.Before(next) || !h.To.After(day):
		return c, false
	case !h.From.After(day) && !h.To.Before(next):
		return tenant, true
	default:
		const in = " WHERE tenant_id = ? AND event_day = toDate(?) AND "
		between := func(column string) string { return column + " >= " + instant + " AND " + column + " < " + instant }
		one := []any{h.Tenant, d, h.From.UnixMilli(), h.To.UnixMilli()}
		return cond{"tenant_id = ? AND event_id IN (SELECT event_id FROM " + db + ".interactions" + in + between("event_ts") +
			" UNION ALL SELECT event_id FROM " + db + ".rejected" + in + between("broker_ts") + ")", slices.Concat(tenant.args, one, one)}, true
	}
}

// rows is the condition for the rows that the hold keeps, in any table that has tenant, day and event. A
// range keeps the whole days that it touches: the tables without text do not all know the time.
func (h *Hold) rows(db string) cond {
	copied := "event_id IN (SELECT event_id FROM " + db + ".texts_held WHERE hold_id = toUUID('" + h.ID.String() + "'))"
	switch {
	case len(h.Events) > 0:
		return cond{"tenant_id = ? AND (" + anyOf(h.Events) + " OR " + copied + ")", []any{h.Tenant}}
	case h.ByUser:
		return cond{"tenant_id = ? AND " + copied, []any{h.Tenant}}
	default:
		return cond{"tenant_id = ? AND (event_day >= toDate(?) AND event_day <= toDate(?) OR " + copied + ")",
			[]any{h.Tenant, date(h.From), date(h.To.Add(-time.Millisecond))}}
	}
}

// kept joins the conditions of several holds: what any of them keeps.
func kept(holds []*Hold, db string) cond {
	out := cond{sql: "0"}
	for _, h := range holds {
		c := h.rows(db)
		out.sql += " OR (" + c.sql + ")"
		out.args = append(out.args, c.args...)
	}
	out.sql = "(" + out.sql + ")"
	return out
}
