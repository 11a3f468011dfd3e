package retention

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/seal"
)

// named is what an erasure takes of a day, as a row of texts_erased says it.
type named struct {
	tenant  string
	erasure uuid.UUID
	day     time.Time
	id      uuid.UUID
	at      time.Time
	events  []uint64 // hashes of seal.Event, and of the names of texts that came later
	signer  string
}

// digest is the SHA-256 of the form that a signature is of.
func (n *named) digest() [sha256.Size]byte {
	b := seal.AppendText([]byte(seal.Erasure.Prefix), n.tenant)
	b = seal.AppendUUID(b, n.erasure)
	b = seal.AppendDay(b, n.day)
	b = seal.AppendUUID(b, n.id)
	b = seal.AppendNumber(b, seal.Version)
	b = seal.AppendNumber(b, n.at.UnixMilli())
	b = seal.AppendUnsigned(b, 0)
	b = seal.AppendNumbers(b, n.events)
	return sha256.Sum256(seal.AppendText(b, n.signer))
}

// signs refuses an erasure that a check would take for texts deleted by hand.
func (r *Retention) signs(ctx context.Context) error {
	const op = "retention: erase"
	if r.opt.Seal != nil {
		return nil
	}
	var n uint64
	if err := r.one(ctx, op, "SELECT count() FROM (SELECT 1 FROM {db}.ingest_batches WHERE signer != '' LIMIT 1)", nil, &n); err != nil || n == 0 {
		return err
	}
	return audit.E(op, audit.KindInvalid, errors.New("the seals of this store are signed, and an erasure without a signature would read as texts deleted by hand: name the key in seal.key_file"))
}

// name writes down which interactions an erasure takes out of some parts, and which texts that came later, before it does: a check tells them from what was
// deleted by hand. It leaves out those of have and adds its own.
func (r *Retention) name(ctx context.Context, e *Erasure, parts []*erasurePart, have map[uint64]bool) error {
	const op = "retention: name what is erased"
	days := map[time.Time]*named{}
	for _, p := range parts {
		taken := " FROM {db}." + p.table + " WHERE " + p.rows() + " AND NOT " + p.held.sql
		of := []string{"SELECT event_day, " + seal.Event.SQL(nil) + " AS name FROM {db}.interactions WHERE tenant_id = " + quoted(e.Tenant) + " AND " + p.onDays() +
			" AND (event_day, event_id) IN (SELECT event_day, event_id" + taken + ")"}
		if p.table == "interaction_texts" {
			of = append(of, "SELECT event_day, "+seal.LaterText.Name().SQL(nil)+" AS name"+taken+" AND "+seal.ErasedLaterSQL())
		}
		for _, sql := range of {
			err := r.each(ctx, op, sql+" GROUP BY event_day, name ORDER BY event_day, name", p.held.args, func(scan func(...any) error) error {
				var day time.Time
				var name uint64
				if err := scan(&day, &name); err != nil || have[name] {
					return err
				}
				x := days[day.UTC()]
				if x == nil {
					x = &named{tenant: e.Tenant, erasure: uuid.UUID(e.ID), day: day.UTC(), id: uuid.New(), at: e.At}
					days[day.UTC()] = x
				}
				have[name], x.events = true, append(x.events, name)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	if len(days) == 0 {
		return nil
	}
	return r.noteNamed(ctx, op, days)
}

func (r *Retention) noteNamed(ctx context.Context, op string, days map[time.Time]*named) error {
	b, err := r.conn.PrepareBatch(ctx, "INSERT INTO "+r.db+".texts_erased (tenant_id, erasure_id, event_day, taken_id, version, seal_version, at, texts, events, signer, signature)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	for _, day := range slices.SortedFunc(maps.Keys(days), time.Time.Compare) {
		x, signature := days[day], ""
		if key := r.opt.Seal; key != nil {
			x.signer = key.ID()
			signature = string(key.Sign(x.digest()))
		}
		if err := b.Append(x.tenant, x.erasure, x.day, x.id, uint64(1), uint8(seal.Version), x.at.UnixMilli(), uint64(0), x.events, x.signer, signature); err != nil {
			return chconn.Wrap(op, err)
		}
	}
	return chconn.Wrap(op, b.Send())
}
