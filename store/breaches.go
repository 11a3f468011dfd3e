package store

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// BreachFilter says which breaches a list shows; zero fields do not restrict.
type BreachFilter struct {
	State  audit.BreachState
	Domain audit.Domain
	Kind   string
}

// Ticket is one thing that was or will be said to a tracker about a breach.
type Ticket struct {
	ID       audit.ID
	Breach   audit.ID
	Target   string
	Action   string
	State    string
	Attempts uint32
	Key      string // as people call it there; "" before it was sent
	URL      string
	Created  time.Time
	Sent     time.Time // zero before it was sent
}

// Breaches lists the current state of the tenant's breaches, newest transition first. after is the
// cursor of the page before, "" for the first; next is "" when there are no more. A breach that changes
// while pages are turned moves to the front. limit is as of List.
func (t *Tenant) Breaches(ctx context.Context, f BreachFilter, limit int, after string) (bs []audit.Breach, next string, err error) {
	const op = "store: breaches"
	if limit, err = pageLimit(limit); err != nil {
		return nil, "", audit.E(op, audit.KindInvalid, err)
	}
	of := f.hash(t.tenant)
	rows := t.from("breaches").current()
	if f.Domain != "" {
		rows.and("domain = ?", string(f.Domain))
	}
	if f.Kind != "" {
		rows.and("kind = ?", f.Kind)
	}
	q := inside(rows, breachColumns, "ORDER BY tenant_id, breach_id, seq DESC LIMIT 1 BY tenant_id, breach_id")
	if f.State != "" {
		q.and("state = ?", string(f.State))
	}
	if after != "" {
		at, id, err := parseBreachCursor(after, of)
		if err != nil {
			return nil, "", audit.E(op, audit.KindInvalid, err)
		}
		q.and("(changed_at, breach_id) < ("+instant+", toUUID(?))", at.UnixMilli(), id.String())
	}
	bs, err = t.breaches(ctx, op, q, fmt.Sprintf("ORDER BY changed_at DESC, breach_id DESC LIMIT %d", limit+1))
	if len(bs) > limit {
		bs = bs[:limit]
		next = breachCursor(&bs[limit-1], of)
	}
	return bs, next, err
}

// BreachHistory reads every transition of some breaches, newest first. At most MaxLimit may be asked for.
func (t *Tenant) BreachHistory(ctx context.Context, ids []audit.ID) (map[audit.ID][]audit.Breach, error) {
	const op = "store: breach history"
	of := map[audit.ID][]audit.Breach{}
	if len(ids) == 0 {
		return of, nil
	}
	if err := few(op, len(ids)); err != nil {
		return nil, err
	}
	bs, err := t.breaches(ctx, op, t.from("breaches").current().and(anyID("breach_id", ids)), "ORDER BY breach_id, seq DESC")
	for i := range bs {
		of[bs[i].ID] = append(of[bs[i].ID], bs[i])
	}
	return of, err
}

// Tickets reads what belongs to some breaches, oldest first. At most MaxLimit may be asked for.
func (t *Tenant) Tickets(ctx context.Context, breaches []audit.ID) (map[audit.ID][]Ticket, error) {
	const op = "store: tickets"
	of := map[audit.ID][]Ticket{}
	if len(breaches) == 0 {
		return of, nil
	}
	if err := few(op, len(breaches)); err != nil {
		return nil, err
	}
	q := t.from("tickets").current().and(anyID("breach_id", breaches))
	sql := q.sql("ticket_id, breach_id, target, action, state, attempts, remote_key, url, created_at, sent_at", "ORDER BY created_at, ticket_id")
	return of, t.each(ctx, op, sql, q.args, func(r driver.Rows) error {
		var x Ticket
		var id, breach uuid.UUID
		if err := r.Scan(&id, &breach, &x.Target, &x.Action, &x.State, &x.Attempts, &x.Key, &x.URL, &x.Created, &x.Sent); err != nil {
			return err
		}
		x.ID, x.Breach, x.Created, x.Sent = audit.ID(id), audit.ID(breach), set(x.Created), set(x.Sent)
		of[x.Breach] = append(of[x.Breach], x)
		return nil
	})
}

// set gives a time of a column where the epoch is one that was never set.
func set(t time.Time) time.Time {
	if t.UnixMilli() == 0 {
		return time.Time{}
	}
	return t.UTC()
}

var breachColumns = strings.Join(columnsOf[breachRow](), ", ")

// breachRow is a row of breaches as the client scans it.
type breachRow struct {
	TenantID   string      `ch:"tenant_id"`
	BreachID   uuid.UUID   `ch:"breach_id"`
	Seq        uint32      `ch:"seq"`
	State      string      `ch:"state"`
	Reason     string      `ch:"reason"`
	Policy     string      `ch:"policy"`
	Tier       string      `ch:"tier"`
	Domain     string      `ch:"domain"`
	Kind       string      `ch:"kind"`
	RuleGroup  string      `ch:"rule_group"`
	Generation uint32      `ch:"generation"`
	OpenedAt   time.Time   `ch:"opened_at"`
	ChangedAt  time.Time   `ch:"changed_at"`
	WindowFrom time.Time   `ch:"window_from"`
	WindowTo   time.Time   `ch:"window_to"`
	N          uint64      `ch:"n"`
	K          uint64      `ch:"k"`
	Rate       float64     `ch:"rate"`
	Lower      float64     `ch:"lower"`
	Upper      float64     `ch:"upper"`
	Baseline   float64     `ch:"baseline"`
	BaselineN  uint64      `ch:"baseline_n"`
	PValue     float64     `ch:"p_value"`
	Severity   uint8       `ch:"severity"`
	RuleSet    string      `ch:"rule_set"`
	Rules      []string    `ch:"top_rules.rule"`
	Fired      []uint64    `ch:"top_rules.interactions"`
	EventIDs   []uuid.UUID `ch:"event_ids"`
	Mitigation string      `ch:"mitigation"`
	DecidedBy  string      `ch:"decided_by"`
	Confirmed  time.Time   `ch:"confirmed_at"`
	SplitOf    []string    `ch:"split.of"`
	SplitValue []string    `ch:"split.value"`
	SplitCount []uint64    `ch:"split.interactions"`
}

func (r *breachRow) breach() audit.Breach {
	b := audit.Breach{
		ID: audit.ID(r.BreachID), Seq: r.Seq, Tenant: r.TenantID, Policy: r.Policy, Tier: audit.BreachTier(r.Tier), Domain: audit.Domain(r.Domain),
		Kind: r.Kind, Group: r.RuleGroup, Generation: r.Generation, State: audit.BreachState(r.State), Reason: r.Reason,
		Opened: set(r.OpenedAt), Changed: set(r.ChangedAt), From: set(r.WindowFrom), To: set(r.WindowTo),
		N: r.N, K: r.K, Rate: r.Rate, Lower: r.Lower, Upper: r.Upper, Baseline: r.Baseline, BaselineN: r.BaselineN, P: r.PValue,
		Severity: severity(r.Severity), RuleSet: r.RuleSet, Mitigation: r.Mitigation, By: r.DecidedBy, Confirmed: set(r.Confirmed),
	}
	for i := range r.Rules {
		b.TopRules = append(b.TopRules, audit.RuleCount{Rule: r.Rules[i], Interactions: r.Fired[i]})
	}
	for i := range r.SplitOf {
		b.Split = append(b.Split, audit.Behind{Of: r.SplitOf[i], Value: r.SplitValue[i], Interactions: r.SplitCount[i]})
	}
	for _, id := range r.EventIDs {
		b.Events = append(b.Events, audit.ID(id))
	}
	return b
}

func (s scope) breaches(ctx context.Context, op string, q *query, rest string) (bs []audit.Breach, err error) {
	err = s.each(ctx, op, q.sql(breachColumns, rest), q.args, func(r driver.Rows) error {
		var row breachRow
		if err := r.ScanStruct(&row); err != nil {
			return err
		}
		bs = append(bs, row.breach())
		return nil
	})
	return bs, err
}

// hash tells filters, and tenants, apart: a cursor holds in its own list only.
func (f BreachFilter) hash(tenant string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q", tenant, f.State, f.Domain, f.Kind)
	return h.Sum64()
}

func breachCursor(b *audit.Breach, of uint64) string {
	at := binary.BigEndian.AppendUint64(make([]byte, 0, 32), uint64(b.Changed.UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(append(at, b.ID[:]...), of))
}

func parseBreachCursor(s string, of uint64) (at time.Time, id audit.ID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 32 {
		return at, id, errCursor
	}
	if binary.BigEndian.Uint64(b[24:]) != of {
		return at, id, errors.New("cursor: it belongs to a list with another filter")
	}
	copy(id[:], b[8:24])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC(), id, nil
}
