// Package rollup keeps the tables rollup_hourly and rollup_daily equal to what audit_current says: counts
// by event hour and day that are cheap to read and outlive the rows they were counted from.
//
// Nothing is added up as events come in. A run looks for the hours of events whose rows were written
// since the last one, counts these hours anew under FINAL, and writes the cells that differ; a cell that
// nothing is counted in any more becomes a row of zeros. Days are the sums of their hours. So an
// event that is delivered again, judged again or dismissed leaves the cells it was in, and doing it twice
// changes nothing. Two processes may do it at once: a row's version is above the one it replaces, and what
// a slow statement writes from an older state is found by the next runs, which look back a quarter of an
// hour, longer than a statement may take, and once a day a day.
//
// It suffices to look at audit_current: the rollups are a function of it, and every later fact (a retry,
// a repair, a review) becomes a new row of it. Rows that are deleted leave no trace: whoever deletes some
// asks for their hours ([Roller.Rebuild]). Frozen months are never touched.
//
// Cost: one read of the rows of each hour, about three seconds of CPU a million; large states spill to disk.
package rollup

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/store"
)

// Roller writes the rollups. It is safe for concurrent use.
type Roller struct {
	store *store.Store
	conn  driver.Conn
	db    string

	overlap time.Duration
	between func() error // for tests: called before each statement
}

// New makes a roller on an open connection, which stays the caller's.
func New(conn driver.Conn, database string) *Roller {
	return &Roller{store: store.New(conn, database), conn: conn, db: database, overlap: store.RollupOverlap, between: func() error { return nil }}
}

// daily is how far the first run of a day looks back: an insert that a stopped machine held up for longer
// than the overlap is found then.
const daily = 26 * time.Hour

// Outcome is what a run did.
type Outcome struct {
	Hours   int           // counted anew
	Days    int           // summed anew
	Rows    uint64        // written, of hours and days: those that differed
	Zeros   uint64        // of them, cells that nothing is counted in any more
	Through time.Time     // end of the range, by the store's clock: where the next one begins
	Behind  time.Duration // the longest that what this run counted has waited
}

// Since counts anew the hours of what was written after from, zero for everything. progress hears of
// each day done, the newest first. On an error what was written stays, and Through is zero.
func (r *Roller) Since(ctx context.Context, from time.Time, progress func(done, total int)) (out Outcome, err error) {
	now, err := r.store.Now(ctx)
	if err != nil {
		return out, err
	}
	w := store.Written{To: now.Add(time.Hour)} // clocks of replicas differ: whatever is there already
	if !from.IsZero() {
		w.From = from.Add(-r.overlap)
		if !from.Truncate(24 * time.Hour).Equal(now.Truncate(24 * time.Hour)) {
			w.From = from.Add(-daily)
		}
	}
	days, err := r.store.DirtyRollups(ctx, w)
	if err == nil {
		err = r.days(ctx, &out, days, progress)
	}
	if err == nil {
		err = r.zeros(ctx, &out, days, now)
	}
	if err != nil {
		return out, err
	}
	if !from.IsZero() {
		end, err := r.store.Now(ctx)
		if err != nil {
			return out, err
		}
		out.Behind = max(0, end.Sub(from))
	}
	out.Through = now
	return out, nil
}

// Rebuild counts anew all hours of the days that [from, to) touches, whether anything was written or
// not. Frozen months stay as they are.
func (r *Roller) Rebuild(ctx context.Context, from, to time.Time, progress func(done, total int)) (out Outcome, err error) {
	now, err := r.store.Now(ctx)
	if err != nil {
		return out, err
	}
	days, err := r.store.Rollups(ctx, from, to)
	if err == nil {
		err = r.days(ctx, &out, days, progress)
	}
	if err == nil {
		err = r.zeros(ctx, &out, days, now)
	}
	return out, err
}

// days counts hours and sums days.
func (r *Roller) days(ctx context.Context, out *Outcome, days []store.RollupDay, progress func(done, total int)) error {
	for i, d := range days {
		for _, hours := range d.Shares {
			columns, sql, args := r.store.HourlyCells(d, hours)
			if err := r.write(ctx, out, "rollup_hourly", columns, sql, args); err != nil {
				return err
			}
			out.Hours += len(hours)
		}
		columns, sql, args := r.store.DailyCells(d)
		if err := r.write(ctx, out, "rollup_daily", columns, sql, args); err != nil {
			return err
		}
		out.Days++
		progress(i+1, len(days))
	}
	return nil
}

// write runs one statement and counts what it wrote.
func (r *Roller) write(ctx context.Context, out *Outcome, table, columns, sql string, args []any) error {
	if err := r.between(); err != nil {
		return err
	}
	var wrote uint64
	ctx, cancel := context.WithTimeout(ctx, store.RollupLimit+time.Minute)
	defer cancel()
	insert := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"async_insert": 0, "insert_deduplicate": 0, "max_execution_time": int(store.RollupLimit.Seconds()), "max_query_size": 4 << 20, "max_partitions_per_insert_block": 0,
		"do_not_merge_across_partitions_select_final": 1, "max_bytes_before_external_group_by": 400_000_000, "max_bytes_ratio_before_external_group_by": 0,
	}), clickhouse.WithProgress(func(p *clickhouse.Progress) { wrote += p.WroteRows }))
	if err := r.conn.Exec(insert, "INSERT INTO "+r.db+"."+table+" ("+columns+") "+sql, args...); err != nil {
		return chconn.Wrap("rollup: write "+table, err)
	}
	out.Rows += wrote
	return nil
}

// zeros counts the cells that became zero since begun.
func (r *Roller) zeros(ctx context.Context, out *Outcome, days []store.RollupDay, begun time.Time) (err error) {
	if out.Rows > 0 {
		out.Zeros, err = r.store.ZeroCells(ctx, days[len(days)-1].Day, begun)
	}
	return err
}
