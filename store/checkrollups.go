package store

import (
	"context"
	"slices"
	"time"
)

// RollupReport is what a check compared of the rollups.
type RollupReport struct {
	Through time.Time `json:"through"` // up to when rows were counted, by the job's watermark
	From    time.Time `json:"from"`    // first event day that was looked at
	Hours   int       `json:"hours"`   // hours that were counted again, those that wait for the job included
	Days    int       `json:"days"`
}

// checkedDays are the event days whose rollups are compared when not all are.
const checkedDays = 7

// RollupWatermark is up to when, by the store's clock, rows were counted into the rollups; zero before
// the job's first run. One that a clock which was ahead has noted counts for nothing yet.
func (s *Store) RollupWatermark(ctx context.Context) (at time.Time, err error) {
	q := s.from("job_runs").current().and("job = ?", JobRollup).and("status = 'done'")
	err = s.one(ctx, "store: rollup watermark", q.sql("maxIf(watermark, watermark < now64(3) + INTERVAL 1 HOUR)", ""), q.args, &at)
	if at = at.UTC(); at.UnixMilli() == 0 {
		at = time.Time{}
	}
	return at, err
}

// checkRollups counts hours again and sums days again. What was written since the job's last run, or
// shortly before it, waits for the next one; what is frozen has no rows to be compared with.
func (s *Store) checkRollups(ctx context.Context, r *Report) error {
	mark, err := s.RollupWatermark(ctx)
	if err != nil || mark.IsZero() {
		return err
	}
	rep := &RollupReport{Through: mark, From: r.At.AddDate(0, 0, -checkedDays).Truncate(24 * time.Hour)}
	if r.opt.AtRest || r.opt.AllRollups {
		rep.From = time.Unix(0, 0).UTC()
	}
	dirty := Written{From: mark.Add(-RollupOverlap), To: r.At.Add(24 * time.Hour)}
	if r.opt.AtRest {
		dirty.From = mark.Add(-time.Minute)
	}
	days, err := s.Rollups(ctx, rep.From, r.At.Add(48*time.Hour))
	if err != nil {
		return err
	}
	for i, d := range days {
		d.clean = dirty
		for _, check := range []func(context.Context, RollupDay) (Fault, error){s.unequalHours, s.unequalDay} {
			f, err := check(ctx, d)
			if err == nil && f.Count > 0 && !r.opt.AtRest { // the tables of one query may be a moment apart
				f, err = check(ctx, d)
			}
			if err != nil {
				return err
			}
			if f.Count > 0 {
				r.fault(f)
			}
		}
		rep.Hours, rep.Days = rep.Hours+d.Hours(), rep.Days+1
		r.tell("rollups", i+1, len(days))
	}
	r.Rollups = rep
	return nil
}

// unequalHours compares the hours of a day with a new count.
func (s *Store) unequalHours(ctx context.Context, d RollupDay) (Fault, error) {
	f := Fault{Code: FaultRollupUnequal, Day: day(d.Day)}
	for _, hours := range d.Shares {
		_, sql, args := s.HourlyCells(d, hours)
		if err := s.unequalCells(ctx, &f, "formatDateTime(c_at, '%Y-%m-%dT%H:00Z')", sql, args); err != nil {
			return f, err
		}
	}
	return f, nil
}

// unequalDay compares a day with the sum of its hours.
func (s *Store) unequalDay(ctx context.Context, d RollupDay) (Fault, error) {
	f := Fault{Code: FaultRollupDayUnequal, Day: day(d.Day)}
	_, sql, args := s.DailyCells(d)
	return f, s.unequalCells(ctx, &f, "toString(c_at)", sql, args)
}

// UnequalMonth counts the cells of a tenant's month that differ from a new count of its rows, or from the
// sum of their hours, with up to ten of them. A frozen month has none: its rows may be gone.
func (s *Store) UnequalMonth(ctx context.Context, tenant string, month time.Time) (n uint64, cells []string, err error) {
	days, err := s.Rollups(ctx, month, month.AddDate(0, 1, 0))
	if err != nil {
		return 0, nil, err
	}
	var f Fault
	for _, d := range days {
		d.Tenants = []string{tenant}
		for _, check := range []func(context.Context, RollupDay) (Fault, error){s.unequalHours, s.unequalDay} {
			one, err := check(ctx, d)
			if err != nil {
				return 0, nil, err
			}
			f.Count, f.Cells = f.Count+one.Count, append(f.Cells, one.Cells...)
		}
	}
	return f.Count, f.Cells[:min(len(f.Cells), 10)], nil
}

func (s *Store) unequalCells(ctx context.Context, f *Fault, at, sql string, args []any) error {
	var n uint64
	var cells []string
	err := s.one(ctx, "store: check rollups", "SELECT count(), arraySort(groupUniqArray(10)(trimRight(concat("+at+", ' ', c_dim, ' ', c_value)))) FROM ("+sql+") SETTINGS "+spill, args, &n, &cells)
	f.Count += n
	f.Cells = append(f.Cells, cells...)
	f.Cells = slices.Clip(f.Cells[:min(len(f.Cells), 10)])
	return err
}
