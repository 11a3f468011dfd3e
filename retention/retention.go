// Package retention lets what is stored go at its limit, provably.
//
// Personal text lies in day partitions (interaction_texts, interaction_users); dropping one is the
// anonymization, and it counts as done once no old part of it is on the disk. Facts without text stay
// longer, by months: a tenant's month is frozen once its rollups are proved equal to its rows, and a day
// later its rows are deleted. The trends stay. Texts that a legal hold names are copied into texts_held
// and proved to be there before their partition goes; their rows stay.
//
// A [Config] says how long; a class ([Classes]) is where a tenant's texts lie, so that tenants with
// other limits have partitions of their own. Where tenants of one partition differ, the rows of those
// that are due are deleted by a mutation instead, which costs a rewrite of the partition.
//
// Everything a run does follows from what is stored and from the day: a run that was broken off is
// completed by the next, and two at once do no harm. [Retention.Plan] says what a run would do and
// changes nothing. Commit markers (ingest_batches) are kept for ever: they are what proves the log, and
// hold no personal data. Errors carry the class of package chconn and never text.
package retention

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/seal"
	"github.com/evenhand/evenhand/store"
)

// Options are what the program sets.
type Options struct {
	// Now is the clock; nil asks the store.
	Now func() time.Time
	// Cluster is the name of the cluster whose replicas are all asked for old parts; "" asks one server.
	Cluster string
	// DiskWait bounds how long a run waits for old parts to leave the disk; what is left then is counted
	// and looked at again by the next run. Default 15 minutes.
	DiskWait time.Duration
	// Poll is how often it looks. Default a second.
	Poll time.Duration
	// Seal signs what erasures take, nil leaves it unsigned.
	Seal *seal.Key
}

// Retention applies one configuration to one database. It is safe for concurrent use.
type Retention struct {
	conn driver.Conn
	db   string
	cfg  Config
	opt  Options

	// hook stands where tests break a run off.
	hook func(point string) error
}

// freezeFor is how long a month is frozen before its rows go: time to notice that it should not have been.
const freezeFor = 24 * time.Hour

// quiet is how long a month must not have been written to before it is frozen: what was written last
// must have reached the rollups.
const quiet = 2 * time.Hour

// New makes a Retention over an open connection, which stays the caller's. It fails on a faulty
// configuration.
func New(conn driver.Conn, database string, cfg Config, opt Options) (*Retention, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if opt.DiskWait <= 0 {
		opt.DiskWait = 15 * time.Minute
	}
	if opt.Poll <= 0 {
		opt.Poll = time.Second
	}
	return &Retention{conn: conn, db: database, cfg: cfg, opt: opt, hook: func(string) error { return nil }}, nil
}

func (r *Retention) now(ctx context.Context) (time.Time, error) {
	if r.opt.Now != nil {
		return r.opt.Now(), nil
	}
	at, err := store.New(r.conn, r.db).Now(ctx)
	if err == nil {
		err = agree(at, time.Now())
	}
	return at, err
}

// agree refuses a clock that a second one contradicts: days hang on it, and what is dropped does not come back.
func agree(store, ours time.Time) error {
	if apart := store.Sub(ours).Abs(); apart > time.Hour {
		return audit.E("retention: clock", audit.KindUnavailable, fmt.Errorf("the store's clock and this machine's differ by %s: nothing is dropped until they agree", apart.Round(time.Second)))
	}
	return nil
}

// instant is the SQL of a bound time in milliseconds.
const instant = "fromUnixTimestamp64Milli(toInt64(?))"

func instantOf(t time.Time) string {
	return fmt.Sprintf("fromUnixTimestamp64Milli(toInt64(%d))", t.UnixMilli())
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// reads make FINAL cheap: two versions of a row lie in one partition.
// They may name a user, which is nothing for the server's log of queries.
var reads = clickhouse.Settings{"do_not_merge_across_partitions_select_final": 1, "log_queries": 0}

// writes wait until what they change is changed, on all replicas, and may be as long as a hold's list.
var writes = clickhouse.Settings{
	"mutations_sync": 2, "alter_sync": 2, "allow_nondeterministic_mutations": 1, "max_query_size": 4 << 20,
	"async_insert": 0, "insert_deduplicate": 0, "max_partitions_per_insert_block": 0,
	"do_not_merge_across_partitions_select_final": 1,
}

// exec runs a statement; {db} stands for the database.
func (r *Retention) exec(ctx context.Context, op, sql string, args ...any) error {
	return chconn.Wrap(op, r.conn.Exec(clickhouse.Context(ctx, clickhouse.WithSettings(writes)), strings.ReplaceAll(sql, "{db}", r.db), args...))
}

// execQuietly is exec for statements that may name a user.
func (r *Retention) execQuietly(ctx context.Context, op, sql string, args ...any) error {
	settings := maps.Clone(writes)
	settings["log_queries"] = 0
	return chconn.Wrap(op, r.conn.Exec(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), strings.ReplaceAll(sql, "{db}", r.db), args...))
}

// each runs a query and hands every row to f.
func (r *Retention) each(ctx context.Context, op, sql string, args []any, f func(scan func(...any) error) error) error {
	return chconn.Each(clickhouse.Context(ctx, clickhouse.WithSettings(reads)), r.conn, op, strings.ReplaceAll(sql, "{db}", r.db), args, func(rows driver.Rows) error { return f(rows.Scan) })
}

// one runs a query whose single row goes to dest.
func (r *Retention) one(ctx context.Context, op, sql string, args []any, dest ...any) error {
	return chconn.Wrap(op, r.conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithSettings(reads)), strings.ReplaceAll(sql, "{db}", r.db), args...).Scan(dest...))
}

// oneQuietly is one without a line in the server's log of queries, for arguments that name a person.
func (r *Retention) oneQuietly(ctx context.Context, op, sql string, args []any, dest ...any) error {
	settings := maps.Clone(reads)
	settings["log_queries"] = 0
	return chconn.Wrap(op, r.conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), strings.ReplaceAll(sql, "{db}", r.db), args...).Scan(dest...))
}

// quoted is a text as a literal.
func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func list(tenants []string) string {
	var out []string
	for _, t := range tenants {
		out = append(out, quoted(t))
	}
	return fmt.Sprintf("tenant_id IN (%s)", strings.Join(out, ", "))
}
