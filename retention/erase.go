package retention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/seal"
)

// Erasure takes out what was said to and by one person: the texts of all interactions of a user of a tenant that happened
// before it, prompts, answers, evidence, notes and whose they were (GDPR Art. 17). What the interactions were judged to be
// stays, without a word of text. Who the person is outlives the erasure as a digest only.
type Erasure struct {
	ID     audit.ID  `json:"-"`
	Tenant string    `json:"tenant"`
	Reason string    `json:"reason"` // a code, no words: it outlives the texts
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	// Done is when the texts were out of the tables and off the disk; zero while it is under way, or was broken off.
	Done time.Time `json:"done,omitzero"`
	// Interactions and Texts say what it took when it was asked for, interactions and rows; nil of older programs.
	Interactions *uint64 `json:"interactions,omitempty"`
	Texts        *uint64 `json:"texts,omitempty"`
	// Held are interactions that legal holds keep from it now, Left those whose texts a run takes out: they came again, or it is under
	// way. See [Retention.Stand].
	Held uint64 `json:"held,omitzero"`
	Left uint64 `json:"left,omitzero"`

	who [sha256.Size]byte
}

// Of tells whether the erasure is of a user.
func (e *Erasure) Of(user string) bool { return e.who == digestOf(e.Tenant, user) }

// Erased is what an erasure took out, or would.
type Erased struct {
	Interactions uint64 `json:"interactions"` // whose texts went
	Texts        uint64 `json:"texts"`        // rows
	Held         uint64 `json:"held"`         // interactions that legal holds keep: they stay as they are
	// InIDs are interactions of which an id that the producer gave has the user's in it: it stays with the facts.
	InIDs    uint64 `json:"in_ids,omitzero"`
	Inactive uint64 `json:"inactive_parts"`
}

// digestOf is what is kept of a person.
func digestOf(tenant, user string) [sha256.Size]byte {
	return sha256.Sum256([]byte(tenant + "\x00" + user))
}

// isWho is the condition that a row of interaction_users is a person's. A digest is compared, since the server writes
// down what a mutation looks for.
func isWho(tenant string, who [sha256.Size]byte) string {
	return "tenant_id = " + quoted(tenant) + " AND SHA256(concat(tenant_id, unhex('00'), user_id)) = unhex('" + hex.EncodeToString(who[:]) + "')"
}

// revealReason is the kind of texts that an erasure leaves: why a member of staff looked at what is masked is the account of
// that access (Art. 5(2)), and goes at the limit of texts.
const revealReason = seal.RevealReason

// began is when an interaction was there at the latest: a clock that is ahead, or local time taken for UTC, dates it up to a day after
// it came, and what was here when a person was erased goes whatever time it tells.
const began = "least(event_ts, broker_ts)"

// events names the person's interactions before the erasure.
func (e *Erasure) events(db string) string {
	return "event_id IN (SELECT event_id FROM " + db + ".interactions WHERE tenant_id = " + quoted(e.Tenant) + " AND " + began + " < " + instantOf(e.At) +
		" AND event_id IN (SELECT event_id FROM " + db + ".interaction_users WHERE " + isWho(e.Tenant, e.who) + "))"
}

// named names the interactions that the erasure took, by what it wrote down of them: who they were of is gone by then, and a
// judge, a retry or a reviewer that had read the texts may write words about them afterwards.
func (e *Erasure) named(db string) string {
	of := " FROM " + db + ".texts_erased WHERE tenant_id = " + quoted(e.Tenant) + " AND erasure_id = toUUID('" + e.ID.String() + "')"
	return "(event_day, event_id) IN (SELECT event_day, event_id FROM " + db + ".interactions WHERE tenant_id = " + quoted(e.Tenant) +
		" AND event_day IN (SELECT event_day" + of + ") AND " + seal.Event.SQL(nil) + " IN (SELECT arrayJoin(events)" + of + "))"
}

// Stores refuses a tenant of which no interaction is stored: a slip of the pen, as a rule.
func (r *Retention) Stores(ctx context.Context, tenant string) error {
	const op = "retention: look for a tenant"
	var n uint64
	if err := r.one(ctx, op, "SELECT count() FROM (SELECT 1 FROM {db}.interactions WHERE tenant_id = ? LIMIT 1)", []any{tenant}, &n); err != nil || n > 0 {
		return err
	}
	return audit.E(op, audit.KindInvalid, fmt.Errorf("tenant: no interaction of %q is stored", tenant))
}

// Erasable says what an erasure of a user's texts would take out now; it changes nothing.
func (r *Retention) Erasable(ctx context.Context, tenant, user string) (Erased, error) {
	now, err := r.now(ctx)
	if err != nil {
		return Erased{}, err
	}
	e := Erasure{Tenant: tenant, At: now, who: digestOf(tenant, user)}
	out, err := r.count(ctx, &e)
	if err == nil {
		out.InIDs, err = r.inIDs(ctx, &e, user)
	}
	return out, err
}

// inIDs counts the interactions of before an erasure of which an id has the user's in it. A short one stands in many by chance.
func (r *Retention) inIDs(ctx context.Context, e *Erasure, user string) (n uint64, err error) {
	if len(user) < 4 {
		return 0, nil
	}
	var in []string
	args := []any{e.Tenant}
	for _, id := range []string{"given_id", "conversation", "decision_id"} {
		in, args = append(in, "positionCaseInsensitiveUTF8("+id+", ?) > 0"), append(args, user)
	}
	sql := "SELECT uniqExact(event_id) FROM {db}.interactions WHERE tenant_id = ? AND " + began + " < " + instantOf(e.At) + " AND (" + strings.Join(in, " OR ") + ")"
	return n, r.oneQuietly(ctx, "retention: look for a user in ids", sql, args, &n)
}

// Erase takes out a user's texts and waits until they are off the disk. Interactions that legal holds name stay as they
// are until they are released; the next run takes them out then, and whatever else comes of before the erasure. progress
// hears how many of the partitions that it rewrites, of a table and a day each, are done, and waiting that old parts are
// waited for.
func (r *Retention) Erase(ctx context.Context, e Erasure, user string, progress func(done, total int), waiting func()) (Erasure, Erased, error) {
	const op = "retention: erase"
	var errs []error
	if e.Tenant == "" {
		errs = append(errs, errors.New("tenant: is empty"))
	}
	if user == "" {
		errs = append(errs, errors.New("user: is empty"))
	}
	if err := errors.Join(append(errs, reasoned(e.Reason), signed(e.By))...); err != nil {
		return e, Erased{}, audit.E(op, audit.KindInvalid, err)
	}
	now, err := r.now(ctx)
	if err != nil {
		return e, Erased{}, err
	}
	e.ID, e.At, e.who = audit.NewID(now), now.UTC().Truncate(time.Millisecond), digestOf(e.Tenant, user)
	if err := r.signs(ctx); err != nil {
		return e, Erased{}, err
	}
	out, err := r.count(ctx, &e)
	if err != nil {
		return e, out, err
	}
	if out.InIDs, err = r.inIDs(ctx, &e, user); err != nil {
		return e, out, err
	}
	e.Interactions, e.Texts = &out.Interactions, &out.Texts
	if err := r.noteErasure(ctx, op, &e); err != nil { // first: a run that is broken off is completed by the next
		return e, out, err
	}
	steps, err := r.takeOut(ctx, &e, progress)
	if err != nil {
		return e, out, err
	}
	if out.Inactive, err = r.offDisk(ctx, &Plan{Steps: steps}, waiting); err != nil || out.Inactive > 0 {
		return e, out, err
	}
	some := []Erasure{e}
	err = r.noteErased(ctx, some)
	return some[0], out, err
}

// noteErased writes down of erasures that were under way that they are done.
func (r *Retention) noteErased(ctx context.Context, list []Erasure) error {
	for i := range list {
		e := &list[i]
		if !e.Done.IsZero() {
			continue
		}
		now, err := r.now(ctx)
		if err != nil {
			return err
		}
		e.Done = now.UTC().Truncate(time.Millisecond)
		if err := r.noteErasure(ctx, "retention: note an erasure", e); err != nil {
			return err
		}
	}
	return nil
}

func (r *Retention) noteErasure(ctx context.Context, op string, e *Erasure) error {
	b, err := r.conn.PrepareBatch(ctx, "INSERT INTO "+r.db+".erasures (tenant_id, erasure_id, version, who, reason, by, at, done_at, interactions, texts)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	version, done := uint64(1), int64(0)
	if !e.Done.IsZero() {
		version, done = 2, e.Done.UnixMilli()
	}
	if err := b.Append(e.Tenant, uuid.UUID(e.ID), version, string(e.who[:]), e.Reason, e.By, e.At.UnixMilli(), done, noted(e.Interactions), noted(e.Texts)); err != nil {
		return chconn.Wrap(op, err)
	}
	return chconn.Wrap(op, b.Send())
}

// noted is a figure as it is stored, figure as it is read.
func noted(n *uint64) int64 {
	if n == nil {
		return audit.Unknown
	}
	return int64(*n)
}

func figure(n int64) *uint64 {
	if n < 0 {
		return nil
	}
	u := uint64(n)
	return &u
}

// Erasures lists all erasures, the oldest first.
func (r *Retention) Erasures(ctx context.Context) ([]Erasure, error) {
	out := []Erasure{}
	err := r.each(ctx, "retention: read erasures", "SELECT tenant_id, erasure_id, who, reason, by, at, done_at, interactions, texts FROM {db}.erasures FINAL ORDER BY at, erasure_id", nil, func(scan func(...any) error) error {
		var e Erasure
		var id uuid.UUID
		var who string
		var interactions, texts int64
		if err := scan(&e.Tenant, &id, &who, &e.Reason, &e.By, &e.At, &e.Done, &interactions, &texts); err != nil {
			return err
		}
		e.ID, e.At = audit.ID(id), e.At.UTC()
		if e.Done = e.Done.UTC(); e.Done.Unix() == 0 {
			e.Done = time.Time{}
		}
		e.Interactions, e.Texts = figure(interactions), figure(texts)
		copy(e.who[:], who)
		out = append(out, e)
		return nil
	})
	return out, err
}

// Stand says of erasures what is there of their persons now.
func (r *Retention) Stand(ctx context.Context, list []Erasure) error {
	work, err := r.erasuresWithWork(ctx, list)
	if err != nil {
		return err
	}
	for i := range list {
		if e := &list[i]; work[e.ID] {
			out, err := r.count(ctx, e)
			if err != nil {
				return err
			}
			e.Held, e.Left = out.Held, out.Interactions
		}
	}
	return nil
}

// count says how much an erasure would take out.
func (r *Retention) count(ctx context.Context, e *Erasure) (out Erased, err error) {
	parts, err := r.erasable(ctx, e)
	if err != nil {
		return out, err
	}
	for _, p := range parts {
		if p.table != "interaction_texts" {
			continue
		}
		var texts, interactions, kept uint64
		err := r.oneQuietly(ctx, "retention: count an erasure", "SELECT countIf(NOT held), uniqExactIf(event_id, NOT held), uniqExactIf(event_id, held) FROM (SELECT event_id, "+p.held.sql+" AS held FROM {db}.interaction_texts FINAL WHERE "+p.rows()+")",
			p.held.args, &texts, &interactions, &kept)
		if err != nil {
			return out, err
		}
		out.Texts, out.Interactions, out.Held = out.Texts+texts, out.Interactions+interactions, out.Held+kept
	}
	return out, nil
}

// erasurePart is what an erasure has to take out of a table, of the days of which the same holds keep something.
type erasurePart struct {
	table string
	where string // the condition for its rows, without regard to days and holds
	held  cond
	steps []Step // a partition each
}

// rows is the condition for its rows, without regard to holds.
func (p *erasurePart) rows() string {
	var of []string
	for _, s := range p.steps {
		of = append(of, "("+quoted(s.Class)+", toDate('"+date(s.Period)+"'))")
	}
	return p.onDays() + " AND (retention_class, event_day) IN (" + strings.Join(of, ", ") + ") AND " + p.where
}

// onDays is the condition that a row is of its days, which lets the server pass over all other parts.
func (p *erasurePart) onDays() string {
	var days []string
	for _, s := range p.steps {
		days = append(days, "toDate('"+date(s.Period)+"')")
	}
	return "event_day IN (" + strings.Join(days, ", ") + ")"
}

// erasable finds the partitions in which an erasure has something to take out, texts before users: who they are of is looked
// up there.
func (r *Retention) erasable(ctx context.Context, e *Erasure) (out []*erasurePart, err error) {
	all, err := r.Holds(ctx)
	if err != nil {
		return nil, err
	}
	holds := active(all, e.Tenant)
	for _, table := range textTables {
		where := "tenant_id = " + quoted(e.Tenant) + " AND kind != '" + revealReason + "' AND (" + e.events(r.db) + " OR " + e.named(r.db) + ")"
		if table == "interaction_users" {
			where = isWho(e.Tenant, e.who) + " AND " + e.events(r.db)
		}
		var steps []Step
		sql := "SELECT retention_class, event_day, any(_partition_id), count(), groupBitXor(version) FROM {db}." + table + " FINAL WHERE " + where + " GROUP BY retention_class, event_day ORDER BY event_day, retention_class"
		err := r.each(ctx, "retention: look for what is to be erased", sql, nil, func(scan func(...any) error) error {
			s, t := Step{Action: Erase, Object: table}, Share{Tenant: e.Tenant}
			if err := scan(&s.Class, &s.Period, &s.partition, &t.Rows, &t.sum); err != nil {
				return err
			}
			s.Period = s.Period.UTC()
			s.Tenants, s.Rows = []Share{t}, t.Rows
			steps = append(steps, s)
			return nil
		})
		if err != nil {
			return nil, err
		}
		out = append(out, r.parted(table, where, holds, steps)...)
	}
	return out, nil
}

// parted puts the steps together of whose days the same holds keep something.
func (r *Retention) parted(table, where string, holds []*Hold, steps []Step) (out []*erasurePart) {
	alike := map[string]*erasurePart{} // by the condition of holds
	for _, s := range steps {
		held := r.heldOf(holds, s.Period)
		key := fmt.Sprint(held.sql, held.args)
		if alike[key] == nil {
			alike[key] = &erasurePart{table: table, where: where, held: held}
			out = append(out, alike[key])
		}
		alike[key].steps = append(alike[key].steps, s)
	}
	return out
}

// heldOf is the condition for what holds name of the texts of a day.
func (r *Retention) heldOf(holds []*Hold, day time.Time) cond {
	sql, args := []string{"0"}, []any(nil)
	for _, h := range holds {
		if h.ByUser {
			sql = append(sql, "event_id IN (SELECT event_id FROM "+r.db+".interaction_users WHERE "+isWho(h.Tenant, digestOf(h.Tenant, h.User))+")")
		} else if c, ok := h.texts(r.db, day); ok {
			sql, args = append(sql, "("+c.sql+")"), append(args, c.args...)
		}
	}
	return cond{"(" + strings.Join(sql, " OR ") + ")", args}
}

// leaveHeld takes what holds keep off the steps of a part.
func (r *Retention) leaveHeld(ctx context.Context, p *erasurePart) error {
	kept := map[string]uint64{}
	if p.held.sql != "(0)" {
		sql := "SELECT retention_class, event_day, count() FROM {db}." + p.table + " FINAL WHERE " + p.rows() + " AND " + p.held.sql + " GROUP BY retention_class, event_day"
		err := r.each(ctx, "retention: look for what holds keep", sql, p.held.args, func(scan func(...any) error) error {
			var class string
			var day time.Time
			var n uint64
			err := scan(&class, &day, &n)
			kept[class+date(day)] = n
			return err
		})
		if err != nil {
			return err
		}
	}
	for i := range p.steps {
		s := &p.steps[i]
		t := &s.Tenants[0]
		all := t.Rows + t.Held
		t.Held = min(kept[s.Class+date(s.Period)], all)
		t.Rows = all - t.Held
		s.Held, s.Rows = t.Held, t.Rows
	}
	return nil
}

// takeOut deletes what an erasure has to take out and is there now, and gives the steps that did something.
func (r *Retention) takeOut(ctx context.Context, e *Erasure, progress func(done, total int)) (done []Step, err error) {
	parts, err := r.erasable(ctx, e)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, p := range parts {
		if err := r.leaveHeld(ctx, p); err != nil {
			return nil, err
		}
		p.steps = slices.DeleteFunc(p.steps, func(s Step) bool { return s.Rows == 0 })
		total += len(p.steps)
	}
	have := map[uint64]bool{} // what is named already
	for _, table := range textTables {
		var of []*erasurePart
		for _, p := range parts {
			if p.table == table && len(p.steps) > 0 {
				of = append(of, p)
			}
		}
		if len(of) == 0 {
			continue
		}
		if of, err = r.beginErasing(ctx, e, of); err != nil {
			return done, err
		}
		if err := r.name(ctx, e, of, have); err != nil {
			return done, err
		}
		some, err := r.takeOutOf(ctx, table, of, func(n int) { progress(len(done)+n, total) })
		if err != nil {
			return done, err
		}
		done = append(done, some...)
	}
	return done, nil
}

// beginErasing records that parts are begun and looks at the holds once more: one that is placed meanwhile is seen here, or
// sees the record, whenever the erasure was asked for.
func (r *Retention) beginErasing(ctx context.Context, e *Erasure, parts []*erasurePart) (out []*erasurePart, err error) {
	var steps []Step
	for _, p := range parts {
		steps = append(steps, p.steps...)
	}
	if err := r.hook("looked for " + parts[0].table); err != nil {
		return nil, err
	}
	if err := r.recordNow(ctx, steps, begun); err != nil {
		return nil, err
	}
	all, err := r.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		out = append(out, r.parted(p.table, p.where, active(all, e.Tenant), p.steps)...)
	}
	for _, p := range out {
		if err := r.leaveHeld(ctx, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// recordNow is recordAll with the time that it is: an erasure may be of long ago.
func (r *Retention) recordNow(ctx context.Context, steps []Step, state string) error {
	now, err := r.now(ctx)
	if err != nil {
		return err
	}
	return r.recordAll(ctx, steps, state, now)
}

// takeOutOf deletes an erasure's rows of one table by one mutation, however many days they lie in: each mutation makes a new
// version of every part of the table, so one a day would cost days times parts. DELETE FROM would only hide the rows until
// parts are merged, and what is erased has to be gone.
func (r *Retention) takeOutOf(ctx context.Context, table string, parts []*erasurePart, progress func(done int)) (steps []Step, err error) {
	const op = "retention: erase"
	var sql []string
	var args []any
	for _, p := range parts {
		steps = append(steps, p.steps...)
		sql, args = append(sql, "("+p.rows()+" AND NOT "+p.held.sql+")"), append(args, p.held.args...)
	}
	where := strings.Join(sql, " OR ")
	if err := r.hook("erasing " + table); err != nil {
		return nil, err
	}
	left := func() (n uint64, err error) {
		err = r.oneQuietly(ctx, op, "SELECT uniqExact(retention_class, event_day) FROM {db}."+table+" WHERE "+where, args, &n)
		return n, err
	}
	err = r.meanwhile(ctx, func(ctx context.Context) error {
		return r.execQuietly(ctx, op, "ALTER TABLE {db}."+table+" DELETE WHERE "+where, args...)
	}, func() {
		if n, err := left(); err == nil {
			progress(len(steps) - int(min(n, uint64(len(steps)))))
		}
	})
	if err != nil {
		return nil, err
	}
	switch n, err := left(); {
	case err != nil:
		return nil, err
	case n > 0:
		return nil, audit.E(op, audit.KindUnavailable, errors.New("rows came while it ran; the next run takes them out"))
	}
	progress(len(steps))
	return steps, r.recordNow(ctx, steps, done)
}

// longest bounds a mutation. Without a bound of its own a statement ends when the server says nothing for five minutes, which
// it does while it rewrites a large table.
const longest = 24 * time.Hour

// meanwhile looks again and again while something is done, and gives its error.
func (r *Retention) meanwhile(ctx context.Context, do func(context.Context) error, look func()) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	t := time.NewTicker(r.opt.Poll)
	defer t.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-t.C:
			look()
		}
	}
}
