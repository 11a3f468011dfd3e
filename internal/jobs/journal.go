package jobs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// Rows is the journal in the table job_runs. An entry is one row, written when the run has ended;
// writing it again changes nothing.
type Rows struct {
	conn  driver.Conn
	table string
}

var _ Journal = (*Rows)(nil)

// NewRows makes a journal on an open connection, which stays the caller's.
func NewRows(conn driver.Conn, database string) *Rows { return &Rows{conn, database + ".job_runs"} }

// Add implements [Journal].
func (j *Rows) Add(ctx context.Context, e Entry) error {
	const op = "jobs: write entry"
	result, err := json.Marshal(e.Result)
	if err != nil {
		return audit.E(op, audit.KindInternal, err)
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0}))
	b, err := j.conn.PrepareBatch(ctx, "INSERT INTO "+j.table+" (job, started_at, run_id, version, slot, finished_at, trigger, status, detail, host, result, watermark)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	ms := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	err = b.Append(e.Job, ms(e.Started), uuid.UUID(e.ID), uint64(ms(e.Finished)), ms(e.Slot), ms(e.Finished), string(e.Trigger), string(e.Status),
		e.Detail, e.Host, string(result), ms(e.Result.Watermark))
	if err == nil {
		err = b.Send()
	}
	return chconn.Wrap(op, err)
}

// recent bounds how far back runs are looked for; a job that has not run for longer counts as new,
// which costs one run and a look at everything.
const recent = "INTERVAL 400 DAY"

// Last implements [Journal]. What a clock that was ahead wrote counts from when that time has come: else nothing would be
// missed until then, and all be done.
func (j *Rows) Last(ctx context.Context) (_ map[string]Last, err error) {
	const op = "jobs: read last runs"
	rows, err := j.conn.Query(ctx, `SELECT job, e.1, e.2, e.3, e.4, e.5, e.6, e.7, e.8, e.9, served, success, mark FROM (
			SELECT job, argMax((run_id, trigger, slot, started_at, finished_at, status, detail, host, result), (finished_at, run_id)) AS e,
				maxIf(slot, status != 'canceled') AS served, maxIf(finished_at, status = 'done') AS success,
				argMaxIf(watermark, finished_at, status = 'done' AND toUnixTimestamp64Milli(watermark) > 0) AS mark
			FROM `+j.table+` FINAL WHERE started_at > now64(3) - `+recent+` AND finished_at < now64(3) + INTERVAL 1 HOUR GROUP BY job)`)
	if err != nil {
		return nil, chconn.Wrap(op, err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = chconn.Wrap(op, cerr)
		}
	}()
	out := map[string]Last{}
	for rows.Next() {
		var l Last
		var id uuid.UUID
		var trigger, status, result string
		if err := rows.Scan(&l.Job, &id, &trigger, &l.Entry.Slot, &l.Started, &l.Finished, &status, &l.Detail, &l.Host, &result,
			&l.Slot, &l.Success, &l.Watermark); err != nil {
			return nil, chconn.Wrap(op, err)
		}
		l.ID, l.Trigger, l.Status = audit.ID(id), Trigger(trigger), Status(status)
		if err := json.Unmarshal([]byte(result), &l.Result); err != nil {
			return nil, audit.E(op, audit.KindInternal, err)
		}
		for _, t := range []*time.Time{&l.Entry.Slot, &l.Started, &l.Finished, &l.Slot, &l.Success, &l.Watermark} {
			if *t = t.UTC(); t.UnixMilli() == 0 { // what no row gave
				*t = time.Time{}
			}
		}
		out[l.Job] = l
	}
	return out, chconn.Wrap(op, rows.Err())
}
