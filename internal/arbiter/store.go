package arbiter

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// Store is the projection of the log in ClickHouse, the table decisions. It serves people and a quick
// start; what was decided is in the log. It is safe for concurrent use.
type Store struct {
	conn  driver.Conn
	table string
}

// NewStore makes a store on an open connection, which stays the caller's.
func NewStore(conn driver.Conn, database string) *Store {
	return &Store{conn: conn, table: database + ".decisions"}
}

// row is a decision as projected, and its two columns that place it in the whole.
type row struct {
	Decision
	sum, rules uint64
}

// snapshot is the newest log's decisions without their values, in the order of n.
type snapshot struct {
	log    audit.ID
	newest Decision
	rows   []Decision
	sums   []uint64
	rules  []uint64
}

// usable is the longest run of rows from n = 1 on that lacks none and was folded under these rules.
func (s *snapshot) usable(rules uint64) []Decision {
	var sum uint64
	for i := range s.rows {
		d := &s.rows[i]
		sum += mark(d)
		if d.N != uint64(i)+1 || s.sums[i] != sum || s.rules[i] != rules || i > 0 && d.Offset <= s.rows[i-1].Offset {
			return s.rows[:i]
		}
	}
	return s.rows
}

// snapshot reads what Open starts from. Without rows it is empty.
func (s *Store) snapshot(ctx context.Context) (*snapshot, error) {
	const op = "arbiter: read the projection"
	snap := &snapshot{}
	logs, err := s.logs(ctx)
	if err != nil || len(logs) == 0 {
		return snap, err
	}
	snap.log = logs[0]
	err = s.each(ctx, snap.log, false, func(r *row) error {
		snap.rows = append(snap.rows, r.Decision)
		snap.sums, snap.rules = append(snap.sums, r.sum), append(snap.rules, r.rules)
		if r.Offset >= snap.newest.Offset {
			snap.newest = r.Decision
		}
		return nil
	})
	return snap, chconn.Wrap(op, err)
}

// logs are the ids of the logs that decisions were projected from, the newest first.
func (s *Store) logs(ctx context.Context) ([]audit.ID, error) {
	const op = "arbiter: read the projection"
	rows, err := s.conn.Query(ctx, "SELECT log_id FROM "+s.table+" GROUP BY log_id ORDER BY max(decided_at) DESC, max(written_at) DESC")
	if err != nil {
		return nil, chconn.Wrap(op, err)
	}
	defer func() { _ = rows.Close() }()
	var ids []audit.ID
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return nil, chconn.Wrap(op, err)
		}
		ids = append(ids, audit.ID(id))
	}
	return ids, chconn.Wrap(op, rows.Err())
}

// each calls f with the rows of a log in the order of n.
func (s *Store) each(ctx context.Context, log audit.ID, values bool, f func(*row) error) error {
	value := "''"
	if values {
		value = "value"
	}
	return s.query(ctx, f, "SELECT "+columns(value)+" FROM "+s.table+" FINAL WHERE log_id = ? ORDER BY n, offset", uuid.UUID(log))
}

func columns(value string) string {
	return "kind, key, seq, log_id, " + value + ", proposer, proposal_id, offset, decided_at, n, check_sum, rules"
}

func (s *Store) query(ctx context.Context, f func(*row) error, sql string, args ...any) error {
	rows, err := s.conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r row
		var log, proposal uuid.UUID
		var value string
		if err := rows.Scan(&r.Key.Kind, &r.Key.ID, &r.Seq, &log, &value, &r.Proposer, &proposal, &r.Offset, &r.Time, &r.N, &r.sum, &r.rules); err != nil {
			return err
		}
		r.Log, r.Proposal, r.Value, r.Time = audit.ID(log), audit.ID(proposal), []byte(value), r.Time.UTC()
		if err := f(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// write inserts rows; writing them again changes nothing under FINAL.
func (s *Store) write(ctx context.Context, rows []row) error {
	const op = "arbiter: project"
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(uuid.NewString()), clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 0}))
	b, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+s.table+" (kind, key, seq, log_id, version, value, proposer, proposal_id, offset, decided_at, n, check_sum, rules)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	for i := range rows {
		r := &rows[i]
		// Of a log that lost its end the decision that was written back is the later one.
		version := uint64(r.Time.UnixMilli())
		if err := b.Append(r.Key.Kind, r.Key.ID, r.Seq, uuid.UUID(r.Log), version, string(r.Value), r.Proposer, uuid.UUID(r.Proposal), r.Offset, r.Time, r.N, r.sum, r.rules); err != nil {
			_ = b.Abort()
			return chconn.Wrap(op, err)
		}
	}
	return chconn.Wrap(op, b.Send())
}

// Filter narrows List. Zero values ask for everything.
type Filter struct {
	Kind  string
	Since time.Time
	Limit int // newest first; 0 means 100
}

// Listed is a decision as people see it.
type Listed struct {
	Key      string `json:"key"`
	Proposal string `json:"proposal"`
	Decision
}

// List gives the newest decision of each key, the newest first, as far as they are projected.
func (s *Store) List(ctx context.Context, f Filter) ([]Listed, error) {
	var where []string
	var args []any
	if f.Kind != "" {
		where, args = append(where, "kind = ?"), append(args, f.Kind)
	}
	if !f.Since.IsZero() {
		where, args = append(where, "decided_at >= ?"), append(args, f.Since)
	}
	sql := "SELECT " + columns("value") + " FROM " + s.table + " FINAL"
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	sql += " ORDER BY decided_at DESC, n DESC LIMIT 1 BY kind, key LIMIT ?"
	return s.listed(ctx, "arbiter: list", sql, append(args, f.Limit)...)
}

// Show gives all decisions of a key in order. Where a log was replaced, the newest holds.
func (s *Store) Show(ctx context.Context, k Key) ([]Listed, error) {
	return s.listed(ctx, "arbiter: show", "SELECT "+columns("value")+" FROM "+s.table+" FINAL WHERE kind = ? AND key = ? ORDER BY seq, decided_at DESC, n DESC LIMIT 1 BY seq", k.Kind, k.ID)
}

func (s *Store) listed(ctx context.Context, op, sql string, args ...any) ([]Listed, error) {
	list := []Listed{}
	err := s.query(ctx, func(r *row) error {
		list = append(list, Listed{Key: r.Key.String(), Proposal: r.Proposal.String(), Decision: r.Decision})
		return nil
	}, sql, args...)
	return list, chconn.Wrap(op, err)
}

// errNoStore is a fault of the program.
var errNoStore = errors.New("the arbiter was opened without a store")
