package retention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
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

	who [sha256.Size]byte
}

// Erased is what an erasure took out, or would.
type Erased struct {
	Interactions uint64 `json:"interactions"` // whose texts went
	Texts        uint64 `json:"texts"`        // rows
	Held         uint64 `json:"held"`         // interactions that legal holds keep: they stay as they are
	Inactive     uint64 `json:"inactive_parts"`
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

// events names the person's interactions before the erasure.
func (e *Erasure) events(db string) string {
	return "event_id IN (SELECT event_id FROM " + db + ".interactions WHERE tenant_id = " + quoted(e.Tenant) + " AND event_ts < " + instantOf(e.At) +
		" AND event_id IN (SELECT event_id FROM " + db + ".interaction_users WHERE " + isWho(e.Tenant, e.who) + "))"
}

// Erasable says what an erasure of a user's texts would take out now; it changes nothing.
func (r *Retention) Erasable(ctx context.Context, tenant, user string) (Erased, error) {
	now, err := r.now(ctx)
	if err != nil {
		return Erased{}, err
	}
	e := Erasure{Tenant: tenant, At: now, who: digestOf(tenant, user)}
	return r.count(ctx, &e)
}

// Erase takes out a user's texts and waits until they are off the disk. Interactions that legal holds name stay as they
// are until they are released; the next run takes them out then, and whatever else comes of before the erasure.
func (r *Retention) Erase(ctx context.Context, e Erasure, user string, waiting func()) (Erasure, Erased, error) {
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
	out, err := r.count(ctx, &e)
	if err != nil {
		return e, out, err
	}
	if err := r.noteErasure(ctx, op, &e); err != nil { // first: a run that is broken off is completed by the next
		return e, out, err
	}
	steps, err := r.takeOut(ctx, &e)
	if err != nil {
		return e, out, err
	}
	out.Inactive, err = r.offDisk(ctx, &Plan{Steps: steps}, waiting)
	return e, out, err
}

func (r *Retention) noteErasure(ctx context.Context, op string, e *Erasure) error {
	b, err := r.conn.PrepareBatch(ctx, "INSERT INTO "+r.db+".erasures (tenant_id, erasure_id, version, who, reason, by, at)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	if err := b.Append(e.Tenant, uuid.UUID(e.ID), uint64(1), string(e.who[:]), e.Reason, e.By, e.At.UnixMilli()); err != nil {
		return chconn.Wrap(op, err)
	}
	return chconn.Wrap(op, b.Send())
}

// Erasures lists all erasures, the oldest first.
func (r *Retention) Erasures(ctx context.Context) ([]Erasure, error) {
	out := []Erasure{}
	err := r.each(ctx, "retention: read erasures", "SELECT tenant_id, erasure_id, who, reason, by, at FROM {db}.erasures FINAL ORDER BY at, erasure_id", nil, func(scan func(...any) error) error {
		var e Erasure
		var id uuid.UUID
		var who string
		if err := scan(&e.Tenant, &id, &who, &e.Reason, &e.By, &e.At); err != nil {
			return err
		}
		e.ID, e.At = audit.ID(id), e.At.UTC()
		copy(e.who[:], who)
		out = append(out, e)
		return nil
	})
	return out, err
}

// eraseAgain takes out what has come since of erased persons, and what holds no longer keep.
func (r *Retention) eraseAgain(ctx context.Context, out *Outcome) (steps []Step, err error) {
	list, err := r.Erasures(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		some, err := r.takeOut(ctx, &list[i])
		if err != nil {
			return nil, err
		}
		for _, s := range some {
			out.Mutations++
			out.Texts += s.Rows
		}
		steps = append(steps, some...)
	}
	return steps, nil
}

// count says how much an erasure would take out.
func (r *Retention) count(ctx context.Context, e *Erasure) (out Erased, err error) {
	steps, err := r.erasable(ctx, e)
	if err != nil {
		return out, err
	}
	for _, s := range steps {
		if s.Object != "interaction_texts" {
			continue
		}
		held := r.heldOf(s.holds, s.Period)
		var texts, interactions, kept uint64
		err := r.oneQuietly(ctx, "retention: count an erasure", "SELECT countIf(NOT held), uniqExactIf(event_id, NOT held), uniqExactIf(event_id, held) FROM (SELECT event_id, "+held.sql+" AS held FROM {db}.interaction_texts FINAL WHERE "+s.erases+")",
			held.args, &texts, &interactions, &kept)
		if err != nil {
			return out, err
		}
		out.Texts, out.Interactions, out.Held = out.Texts+texts, out.Interactions+interactions, out.Held+kept
	}
	return out, nil
}

// erasureStep is the part of an erasure in one partition.
type erasureStep struct {
	Step
	erases string // the condition for its rows, without regard to holds
	holds  []*Hold
}

// erasable finds the partitions in which an erasure has something to take out, texts before users: who they are of is looked
// up there.
func (r *Retention) erasable(ctx context.Context, e *Erasure) ([]erasureStep, error) {
	holds, err := r.Holds(ctx)
	if err != nil {
		return nil, err
	}
	var out []erasureStep
	for _, table := range textTables {
		where := "tenant_id = " + quoted(e.Tenant) + " AND " + e.events(r.db)
		if table == "interaction_users" {
			where = isWho(e.Tenant, e.who) + " AND " + e.events(r.db)
		}
		sql := "SELECT retention_class, event_day, any(_partition_id), count(), groupBitXor(version) FROM {db}." + table + " FINAL WHERE " + where + " GROUP BY retention_class, event_day ORDER BY event_day, retention_class"
		err := r.each(ctx, "retention: look for what is to be erased", sql, nil, func(scan func(...any) error) error {
			s := erasureStep{Step: Step{Action: Erase, Object: table}, holds: active(holds, e.Tenant)}
			t := Share{Tenant: e.Tenant}
			if err := scan(&s.Class, &s.Period, &s.partition, &t.Rows, &t.sum); err != nil {
				return err
			}
			s.Period = s.Period.UTC()
			s.Tenants, s.Rows = []Share{t}, t.Rows
			s.erases = "retention_class = " + quoted(s.Class) + " AND event_day = toDate('" + date(s.Period) + "') AND " + where
			out = append(out, s)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
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

// takeOut deletes what an erasure has to take out and is there now, and gives the steps that did something.
func (r *Retention) takeOut(ctx context.Context, e *Erasure) (done []Step, err error) {
	const op = "retention: erase"
	steps, err := r.erasable(ctx, e)
	if err != nil {
		return nil, err
	}
	for i := range steps {
		s := &steps[i]
		held := r.heldOf(s.holds, s.Period)
		var kept uint64
		if err := r.oneQuietly(ctx, op, "SELECT count() FROM {db}."+s.Object+" FINAL WHERE "+s.erases+" AND "+held.sql, held.args, &kept); err != nil {
			return done, err
		}
		t := &s.Tenants[0]
		t.Held, t.Rows = kept, t.Rows-min(kept, t.Rows)
		if s.Held, s.Rows = kept, t.Rows; s.Rows == 0 {
			continue
		}
		if err := r.record(ctx, &s.Step, "begun", e.At); err != nil {
			return done, err
		}
		if err := r.hook("erasing " + s.Object); err != nil {
			return done, err
		}
		if err := r.execQuietly(ctx, op, "ALTER TABLE {db}."+s.Object+" DELETE IN PARTITION ID "+quoted(s.partition)+" WHERE "+s.erases+" AND NOT "+held.sql, held.args...); err != nil {
			return done, err
		}
		var left uint64
		if err := r.oneQuietly(ctx, op, "SELECT count() FROM {db}."+s.Object+" WHERE "+s.erases+" AND NOT "+held.sql, held.args, &left); err != nil {
			return done, err
		}
		if left > 0 {
			return done, audit.E(op, audit.KindUnavailable, errors.New("rows came while it ran; the next run takes them out"))
		}
		if err := r.record(ctx, &s.Step, "done", e.At); err != nil {
			return done, err
		}
		done = append(done, s.Step)
	}
	return done, nil
}
