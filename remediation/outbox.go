package remediation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/sinks"
)

// State is where a ticket stands.
type State string

// The states of a ticket.
const (
	Pending State = "pending"
	Sent    State = "sent"
	Dead    State = "dead" // the tracker will not take it; it waits for a person
)

// Entry is a ticket in the outbox.
type Entry struct {
	sinks.Ticket
	Target   string    `json:"target"`
	State    State     `json:"state"`
	Attempts uint32    `json:"attempts"`
	Next     time.Time `json:"next_attempt_at"`
	RemoteID string    `json:"remote_id,omitempty"`
	Key      string    `json:"remote_key,omitempty"`
	Link     string    `json:"remote_url,omitempty"`
	Class    string    `json:"error_class,omitempty"` // of the last attempt that failed
	Detail   string    `json:"error_detail,omitempty"`
	Created  time.Time `json:"created_at"`
	SentAt   time.Time `json:"sent_at,omitzero"`

	version uint64
}

// sentVersion is above that of any row that is not sent: what was sent stays sent, whatever a process
// that was cut off still writes.
const sentVersion = 1 << 62

// group is what is said to one tracker about one breach.
type group struct {
	Tenant string
	Breach audit.ID
	Target string
}

// Outbox is the tables tickets, ticket_events and breaches of a database.
type Outbox struct {
	conn driver.Conn
	db   string
}

// NewOutbox works on an open connection, which stays the caller's.
func NewOutbox(conn driver.Conn, database string) *Outbox { return &Outbox{conn, database} }

const ticketColumns = "tenant_id, breach_id, ticket_id, version, seq, target, action, payload, state, attempts, next_attempt_at, remote_id, remote_key, url, error_class, error_detail, created_at, sent_at"

// write stores entries in one insert.
func (o *Outbox) write(ctx context.Context, entries ...Entry) error {
	const op = "remediation: write tickets"
	if len(entries) == 0 {
		return nil
	}
	b, err := o.conn.PrepareBatch(synchronous(ctx), "INSERT INTO "+o.db+".tickets ("+ticketColumns+")")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	for i := range entries {
		e := &entries[i]
		payload, err := json.Marshal(e.Ticket)
		if err != nil {
			return audit.E(op, audit.KindInternal, err)
		}
		err = b.Append(e.Tenant, uuid.UUID(e.Breach), uuid.UUID(e.ID), e.version, e.Seq, e.Target, string(e.Action), string(payload), string(e.State), e.Attempts,
			ms(e.Next), e.RemoteID, e.Key, e.Link, e.Class, e.Detail, ms(e.Created), ms(e.SentAt))
		if err != nil {
			return chconn.Wrap(op, err)
		}
	}
	return chconn.Wrap(op, b.Send())
}

func synchronous(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0}))
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the time of a column, zero for the epoch, which stands for none.
func instant(t time.Time) time.Time {
	if t.UnixMilli() == 0 {
		return time.Time{}
	}
	return t.UTC()
}

// Filter chooses tickets; what is empty chooses all.
type Filter struct {
	Tenant string
	Breach audit.ID
	Ticket audit.ID
	Target string
	State  State
	Limit  int // 0: no limit
}

// rank orders the tickets of one transition.
var rank = map[sinks.TicketAction]int{sinks.OpenIssue: 0, sinks.Attach: 1, sinks.Reopen: 2, sinks.Comment: 3}

// of gives the tickets of a group in the order in which they are to be sent.
func (o *Outbox) of(ctx context.Context, g group) ([]Entry, error) {
	list, err := o.List(ctx, Filter{Tenant: g.Tenant, Breach: g.Breach, Target: g.Target})
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(rank[a.Action], rank[b.Action]), strings.Compare(a.URL, b.URL))
	})
	return list, err
}

// List gives tickets, the newest transitions first.
func (o *Outbox) List(ctx context.Context, f Filter) (list []Entry, err error) {
	const op = "remediation: read tickets"
	where, args := []string{"1"}, []any{}
	add := func(set bool, cond, name string, v any) {
		if set {
			where, args = append(where, cond), append(args, clickhouse.Named(name, v))
		}
	}
	add(f.Tenant != "", "tenant_id = {tenant:String}", "tenant", f.Tenant)
	add(!f.Breach.IsZero(), "breach_id = {breach:UUID}", "breach", f.Breach.String())
	add(!f.Ticket.IsZero(), "ticket_id = {ticket:UUID}", "ticket", f.Ticket.String())
	add(f.Target != "", "target = {target:String}", "target", f.Target)
	add(f.State != "", "state = {state:String}", "state", string(f.State))
	sql := "SELECT " + ticketColumns + " FROM " + o.db + ".tickets FINAL WHERE " + strings.Join(where, " AND ") + " ORDER BY created_at DESC, breach_id, seq DESC, ticket_id"
	if f.Limit > 0 {
		sql += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	err = o.each(ctx, op, sql, args, func(rows driver.Rows) error {
		var e Entry
		var breach, id uuid.UUID
		var action, payload, state string
		if err := rows.Scan(&e.Tenant, &breach, &id, &e.version, &e.Seq, &e.Target, &action, &payload, &state, &e.Attempts,
			&e.Next, &e.RemoteID, &e.Key, &e.Link, &e.Class, &e.Detail, &e.Created, &e.SentAt); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(payload), &e.Ticket); err != nil {
			return fmt.Errorf("payload of ticket %s: %w", id, err)
		}
		e.ID, e.Breach, e.Action, e.State = audit.ID(id), audit.ID(breach), sinks.TicketAction(action), State(state)
		e.Next, e.Created, e.SentAt = instant(e.Next), instant(e.Created), instant(e.SentAt)
		list = append(list, e)
		return nil
	})
	return list, err
}

// each runs a query and hands out its rows.
func (o *Outbox) each(ctx context.Context, op, sql string, args []any, f func(driver.Rows) error) error {
	return chconn.Each(ctx, o.conn, op, sql, args, f)
}

// due gives the groups of targets that have something to send at a time, those that wait longest first.
// Where the issue is dead nothing can be sent: such groups must not take the places of others.
func (o *Outbox) due(ctx context.Context, now time.Time, targets []string, limit int) (list []group, err error) {
	sql := `SELECT tenant_id, breach_id, target FROM ` + o.db + `.tickets FINAL WHERE target IN {targets:Array(String)}
		GROUP BY tenant_id, breach_id, target
		HAVING countIf(state = 'pending' AND next_attempt_at <= fromUnixTimestamp64Milli({now:Int64})) > 0 AND countIf(action = 'issue' AND state = 'dead') = 0
		ORDER BY minIf(created_at, state = 'pending'), breach_id LIMIT {limit:UInt32}`
	args := []any{clickhouse.Named("now", now.UnixMilli()), clickhouse.Named("limit", limit), clickhouse.Named("targets", targets)}
	err = o.each(ctx, "remediation: read due tickets", sql, args, func(rows driver.Rows) error {
		var g group
		var breach uuid.UUID
		if err := rows.Scan(&g.Tenant, &breach, &g.Target); err != nil {
			return err
		}
		g.Breach = audit.ID(breach)
		list = append(list, g)
		return nil
	})
	return list, err
}

// Figures count tickets.
type Figures struct {
	Pending, Sent, Dead uint64
	Oldest              time.Time // when the oldest pending one was written; zero when there is none
}

// Figures counts tickets to these trackers; to all when none is named.
func (o *Outbox) Figures(ctx context.Context, targets ...string) (f Figures, err error) {
	err = o.conn.QueryRow(ctx, `SELECT countIf(state = 'pending'), countIf(state = 'sent'), countIf(state = 'dead'), minIf(created_at, state = 'pending') FROM `+o.db+`.tickets FINAL
		WHERE empty({targets:Array(String)}) OR has({targets:Array(String)}, target)`, clickhouse.Named("targets", targets)).
		Scan(&f.Pending, &f.Sent, &f.Dead, &f.Oldest)
	if f.Oldest = instant(f.Oldest); f.Pending == 0 {
		f.Oldest = time.Time{}
	}
	return f, chconn.Wrap("remediation: count tickets", err)
}

// Retry makes dead tickets pending; those of the filter that are not dead stay as they are. The next
// sweep sends them. It gives how many there were.
func (o *Outbox) Retry(ctx context.Context, f Filter, now time.Time) (int, error) {
	f.State = Dead
	list, err := o.List(ctx, f)
	if err != nil {
		return 0, err
	}
	for i := range list {
		e := &list[i]
		e.version++
		e.State, e.Attempts, e.Next = Pending, 0, now
	}
	return len(list), o.write(ctx, list...)
}
