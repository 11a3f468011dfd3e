package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// FrozenVersion is the highest bit of a rollup row's version, in SQL: a row that has it is final.
const FrozenVersion = "toUInt64(9223372036854775808)"

// JobRollup is the job that recomputes the rollups; its watermark in job_runs says how far they reach.
const JobRollup = "rollup"

// Late is how long after its event a delivery still counts for alarms.
const Late = 48 * time.Hour

// RollupOverlap is how much of what was written before a watermark is counted again: written_at is set
// when an insert is made, an insert may take minutes until it is seen, and a statement that read before
// it may still be writing (RollupLimit). It must be longer than both together.
const RollupOverlap = 15 * time.Minute

// RollupLimit ends a statement that recomputes.
const RollupLimit = 5 * time.Minute

// RollupDay is a day whose rollups are to be recomputed: its hours in shares that one statement each
// can read, for some tenants or, when there are none here, for all.
type RollupDay struct {
	Day     time.Time
	Tenants []string
	Shares  [][]time.Time // hours, ascending

	clean Written // leave out hours with rows written in it
}

// Hours counts the hours of all shares.
func (d RollupDay) Hours() (n int) {
	for _, s := range d.Shares {
		n += len(s)
	}
	return n
}

// cellRows bounds how many rows of audit_current a share of several hours reads. The memory of one
// statement is bounded by spilling; this bounds its time.
const cellRows = 1_000_000

// mostTenants bounds the list of tenants in a statement; more are all.
const mostTenants = 1000

// hoursOf are the hours (seconds since 1970) whose cells a row of audit_current may be or have been
// counted in. The hour of an event is in its key, unless its time was assumed: then an earlier delivery
// that comes to light later moves it to an earlier hour of the day, so the hours after it are looked at
// too (of live traffic there are none yet). A replayed time is not the delivery's: the whole day.
const hoursOf = "if(time_assumed = 0, [toUInt32(toUnixTimestamp(toStartOfHour(event_ts)))], " +
	"arrayMap(i -> toUInt32(toUnixTimestamp(toDateTime(event_day, 'UTC')) + 3600 * i), range(if(event_ts = broker_ts, toHour(event_ts), 0), 24)))"

// thawed leaves out what is frozen; day is an expression of type Date.
func (s *Store) thawed(day string) string {
	return "(tenant_id, toStartOfMonth(" + day + ")) NOT IN (" + s.from("rollup_frozen").current().sql("tenant_id, month", "") + ")"
}

// DirtyRollups gives the days, newest first, with the hours whose rows were written in the range. What
// is frozen is not among them.
func (s *Store) DirtyRollups(ctx context.Context, w Written) ([]RollupDay, error) {
	rows := s.from("audit_current").and(w.sql()).and(s.thawed("event_day"))
	inner := rows.sql("tenant_id, event_day, "+hoursOf+" AS hours, count() AS n", "GROUP BY tenant_id, event_day, hours")
	return s.rollupDays(ctx, "SELECT toString(event_day) AS d, arrayJoin(hours) AS h, groupUniqArray("+fmt.Sprint(mostTenants+1)+")(tenant_id), sum(n) FROM ("+
		inner+") GROUP BY d, h ORDER BY d DESC, h", rows.args)
}

// Rollups gives the days, newest first, with the hours in [from, to) that have rows or cells; days are
// taken as a whole.
func (s *Store) Rollups(ctx context.Context, from, to time.Time) ([]RollupDay, error) {
	rows := s.from("audit_current").and("event_day >= toDate(?)", day(from)).and("event_day <= toDate(?)", day(to.Add(-time.Millisecond))).and(s.thawed("event_day"))
	cells := s.from("rollup_hourly").and("hour >= toDateTime(toDate(?), 'UTC')", day(from)).and("toDate(hour) <= toDate(?)", day(to.Add(-time.Millisecond))).and(s.thawed("toDate(hour)"))
	inner := rows.sql("tenant_id AS t, toString(event_day) AS d, toUInt32(toUnixTimestamp(toStartOfHour(event_ts))) AS h, count() AS n", "GROUP BY t, d, h") + " UNION ALL " +
		cells.sql("tenant_id AS t, toString(toDate(hour)) AS d, toUInt32(toUnixTimestamp(hour)) AS h, toUInt64(0) AS n", "GROUP BY t, d, h")
	return s.rollupDays(ctx, "SELECT d, h, groupUniqArray("+fmt.Sprint(mostTenants+1)+")(t), sum(n) FROM ("+inner+") GROUP BY d, h ORDER BY d DESC, h", slices.Concat(rows.args, cells.args))
}

// rollupDays reads (day, hour, tenants, rows) and cuts shares.
func (s *Store) rollupDays(ctx context.Context, sql string, args []any) (days []RollupDay, err error) {
	const op = "store: rollup hours"
	err = s.each(ctx, op, sql, args, func(rows driver.Rows) error {
		var d string
		var h uint32
		var tenants []string
		var n uint64
		if err := rows.Scan(&d, &h, &tenants, &n); err != nil {
			return err
		}
		hour := time.Unix(int64(h), 0).UTC()
		if len(days) == 0 || days[len(days)-1].Day.Format(time.DateOnly) != d {
			days = append(days, RollupDay{Day: hour.Truncate(24 * time.Hour), Shares: [][]time.Time{{}}})
		}
		last := &days[len(days)-1]
		last.Shares[0] = append(last.Shares[0], hour)
		last.Tenants = append(last.Tenants, tenants...)
		return nil
	})
	for i := range days {
		slices.Sort(days[i].Tenants)
		if days[i].Tenants = slices.Compact(days[i].Tenants); len(days[i].Tenants) > mostTenants {
			days[i].Tenants = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return days, s.cutShares(ctx, days)
}

// cutShares counts what the hours hold in all, which is more than what was written, and cuts the shares.
func (s *Store) cutShares(ctx context.Context, days []RollupDay) error {
	for several := range slices.Chunk(days, 366) {
		var in []string
		for _, d := range several {
			if len(d.Shares[0]) > 1 {
				in = append(in, "toDate('"+day(d.Day)+"')")
			}
		}
		if len(in) == 0 {
			continue
		}
		held := map[int64]uint64{}
		q := s.from("audit_current").and("event_day IN (" + strings.Join(in, ", ") + ")")
		err := s.each(ctx, "store: rollup hours", q.sql("toUInt32(toUnixTimestamp(toStartOfHour(event_ts))) AS h, count()", "GROUP BY h"), nil, func(rows driver.Rows) error {
			var h uint32
			var n uint64
			err := rows.Scan(&h, &n)
			held[int64(h)] = n
			return err
		})
		if err != nil {
			return err
		}
		for i := range several {
			several[i].Shares = cutHours(several[i].Shares[0], held)
		}
	}
	return nil
}

// cutHours puts hours together as long as they hold few rows.
func cutHours(hours []time.Time, held map[int64]uint64) (shares [][]time.Time) {
	var sum uint64
	for _, h := range hours {
		n := held[h.Unix()]
		if len(shares) == 0 || sum+n > cellRows {
			shares, sum = append(shares, nil), 0
		}
		shares[len(shares)-1] = append(shares[len(shares)-1], h)
		sum += n
	}
	return shares
}

// bind restricts a query to the tenants of the day that are not frozen, and, where asked, to what is not
// dirty; at is its hour or day.
func (d RollupDay) bind(s *Store, q *query, at string, hourly bool) *query {
	if len(d.Tenants) > 0 {
		q.and("tenant_id IN (?)", d.Tenants)
	}
	q.and(s.thawed("toDate(" + at + ")"))
	if d.clean.To.IsZero() {
		return q
	}
	column := "event_day"
	if hourly {
		column = "toDateTime(arrayJoin(" + hoursOf + "), 'UTC')"
	}
	dirty := s.from("audit_current").and(d.clean.sql()).and("event_day = toDate(?)", day(d.Day))
	return q.and("(tenant_id, "+at+") NOT IN ("+dirty.sql("tenant_id, "+column, "")+")", dirty.args...)
}

// cells are the cells that one kind of row is counted in, as (dim, value, severity). A dismissed
// interaction keeps what is no bias, and its mitigation if anything but bias asked for it.
const cells = "arrayConcat([('all', '', toUInt8(0)), ('status', analysis_status, toUInt8(0))], if(NOT looked, [], arrayConcat(" +
	"arrayMap(o -> ('outcome', o.1, toUInt8(0)), arrayFilter(o -> o.2, [('detected', bias_detected = 1 AND NOT dismissed), ('flagged', flagged = 1 AND NOT dismissed), ('unsafe', unsafe = 1), ('gated', gated = 1)])), " +
	"arrayMap(x -> ('kind', x.1, x.2), arrayFilter(x -> NOT dismissed OR NOT has(types, x.1), arrayZip(found, strengths))), " +
	"if(dismissed, [], arrayMap(b -> ('bias', b, strengths[indexOf(found, b)]), types)), " +
	"if(mitigation = '' OR dismissed AND hasAll(types, found), [], [('mitigation', mitigation, toUInt8(0))]))))"

// HourlyCells is the statement that gives the rows of rollup_hourly for some hours of a day that differ
// from what is there, with its columns and arguments. A cell that nothing is counted in any more is a
// row of zeros. Its version is above that of the row it replaces; a row with the highest bit is left alone.
func (s *Store) HourlyCells(d RollupDay, hours []time.Time) (columns, sql string, args []any) {
	first, last := hours[0], hours[len(hours)-1]
	var in []string
	for _, h := range hours {
		in = append(in, fmt.Sprintf("toDateTime(%d, 'UTC')", h.Unix()))
	}
	const at = "toDateTime(toStartOfHour(event_ts), 'UTC')"
	rows := d.bind(s, s.from("audit_current").current().and("event_day = toDate(?)", day(d.Day)), at, true).
		and("(sort_ts >= "+instant+" AND sort_ts < "+instant+" OR sort_ts = toDateTime64(event_day, 3, 'UTC'))", first.UnixMilli(), last.Add(time.Hour).UnixMilli()).
		and(at + " IN (" + strings.Join(in, ", ") + ")")
	// Rows are counted by what they look like before they are spread over cells: most look alike.
	alike := rows.sql("tenant_id, "+at+" AS h, app, domain, model, rule_set, analysis_status, "+
		analysed+" AS looked, review = 'dismissed' AS dismissed, bias_detected, flagged, unsafe, gated, mitigation, CAST(kinds AS Array(String)) AS found, "+
		"arrayResize(severities, length(kinds)) AS strengths, CAST(bias_types AS Array(String)) AS types, count() AS fk, "+
		fmt.Sprintf("countIf(toUnixTimestamp64Milli(broker_ts) - toUnixTimestamp64Milli(event_ts) > %d) AS later, ", Late.Milliseconds())+
		"sum(greatest(cost_micro_usd, 0)) AS cost", "GROUP BY ALL")
	fresh := "SELECT tenant_id, cell.1, h AS at, toString(app) AS a, toString(domain) AS b, toString(model) AS c, toString(rule_set) AS r, cell.2, cell.3, toUInt64(0) AS version, toUInt8(0) AS held, " +
		"if(cell.1 = 'all' AND NOT looked, 0, if(cell.1 = 'all', fk, 0)) AS fn, fk, if(cell.1 = 'all' AND NOT looked, 0, later) AS fl, if(cell.1 = 'all', cost, 0) AS fc " +
		"FROM (" + alike + ") ARRAY JOIN " + cells + " AS cell"
	there := d.bind(s, s.from("rollup_hourly").current().and("hour IN ("+strings.Join(in, ", ")+")"), "hour", true)
	columns, sql = changes("hour", fresh, there.sql(cellsHeld("hour"), ""))
	return columns, sql, slices.Concat(rows.args, there.args)
}

// DailyCells is the same for the rows of rollup_daily: the sums of the day's hours.
func (s *Store) DailyCells(d RollupDay) (columns, sql string, args []any) {
	hours := d.bind(s, s.from("rollup_hourly").current().and("hour >= toDateTime(toDate(?), 'UTC')", day(d.Day)).and("hour < toDateTime(toDate(?) + 1, 'UTC')", day(d.Day)), "toDate(hour)", false)
	there := d.bind(s, s.from("rollup_daily").current().and("day = toDate(?)", day(d.Day)), "day", false)
	fresh := hours.sql(strings.Replace(cellsHeld("toDate(hour)"), "version, toUInt8(1)", "toUInt64(0), toUInt8(0)", 1), "")
	columns, sql = changes("day", fresh, there.sql(cellsHeld("day"), ""))
	return columns, sql, slices.Concat(hours.args, there.args)
}

// cellsHeld are the columns of a rollup's rows as changes takes them.
func cellsHeld(at string) string {
	return "tenant_id, toString(dim), " + at + ", toString(app), toString(domain), toString(model), toString(rule_set), toString(value), severity, version, toUInt8(1), n, k, late, cost_micro_usd"
}

// changes lays fresh cells over those that are there and gives the rows to write. Both have the key's
// nine columns, version, whether it is there, and the four figures.
func changes(at, fresh, there string) (columns, sql string) {
	columns = "tenant_id, dim, " + at + ", app, domain, model, rule_set, value, severity, version, n, k, late, cost_micro_usd"
	var sums, differ []string
	for _, f := range []string{"n", "k", "late", "cost"} {
		sums = append(sums, "sumIf(c_"+f+", held = 0)")
		differ = append(differ, "sumIf(c_"+f+", held = 0) != sumIf(c_"+f+", held = 1)")
	}
	const key = "c_tenant, c_dim, c_at, c_app, c_domain, c_model, c_rule_set, c_value, c_severity"
	sql = "SELECT " + key + ", greatest(toUInt64(toUnixTimestamp64Milli(now64(3))), max(c_version) + 1), " + strings.Join(sums, ", ") +
		" FROM (SELECT * FROM (SELECT " + "'' AS c_tenant, '' AS c_dim, " + emptyAt(at) + " AS c_at, '' AS c_app, '' AS c_domain, '' AS c_model, '' AS c_rule_set, '' AS c_value, toUInt8(0) AS c_severity, " +
		"toUInt64(0) AS c_version, toUInt8(0) AS held, toUInt64(0) AS c_n, toUInt64(0) AS c_k, toUInt64(0) AS c_late, toInt64(0) AS c_cost) WHERE 0" + // names and types of the columns
		" UNION ALL " + fresh + " UNION ALL " + there + ")" +
		" GROUP BY " + key + " HAVING max(c_version) < " + FrozenVersion + " AND (" + strings.Join(differ, " OR ") + ")"
	return columns, sql
}

// emptyAt is a value of the type of a rollup's time.
func emptyAt(at string) string {
	if at == "day" {
		return "toDate(0)"
	}
	return "toDateTime(0, 'UTC')"
}

// ZeroCells counts the rows of zeros, of hours and days from a day on, that were written since a time.
func (s *Store) ZeroCells(ctx context.Context, from, since time.Time) (n uint64, err error) {
	const zero = "k = 0 AND n = 0"
	hours := s.from("rollup_hourly").and(zero).and("hour >= toDateTime(toDate(?), 'UTC')", day(from)).and("written_at >= "+instant, since.UnixMilli())
	days := s.from("rollup_daily").and(zero).and("day >= toDate(?)", day(from)).and("written_at >= "+instant, since.UnixMilli())
	sql := "SELECT sum(c) FROM (" + hours.sql("count() AS c", "") + " UNION ALL " + days.sql("count()", "") + ")"
	return n, s.one(ctx, "store: rollup zeros", sql, slices.Concat(hours.args, days.args), &n)
}
