package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Key names one content of one event.
type Key struct {
	Tenant string
	Day    time.Time
	ID     audit.ID
	Digest [32]byte
}

// flatOf are the columns that audit_current makes of the current verdicts: those that check compares
// and the two that only people read.
var flatOf = slices.Concat(verdictOf, []mergedColumn{
	{"action", actionOrder + "[max(indexOf(" + actionOrder + ", action))]"},
	{"mitigation", mitigationOrder + "[max(indexOf(" + mitigationOrder + ", mitigation))]"},
})

const actionOrder = "['', 'none', 'log', 'warn', 'gate', 'block']"

// mitigationOrder lists the types, weakest first, as the view does.
var mitigationOrder = "['', '" + strings.Join(audit.Mitigations, "', '") + "']"

const keyColumns = "tenant_id, event_day, event_id, content_digest"

// delivery is the part of audit_current's version below the number of facts.
const (
	delivery = "bitAnd(version, toUInt64(18014398509481983))"
	mostFact = "1023"
)

// Written is a range of time in which rows were written by the store's clock, (From, To].
type Written struct{ From, To time.Time }

func (w Written) sql() string {
	return fmt.Sprintf("written_at > fromUnixTimestamp64Milli(toInt64(%d)) AND written_at <= fromUnixTimestamp64Milli(toInt64(%d))", max(0, w.From.UnixMilli()), w.To.UnixMilli())
}

// Now is the store's clock, the one that written_at goes by.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.one(ctx, "store: now", "SELECT now64(3, 'UTC')", nil, &now)
	return now, err
}

// Part is a share of the events that Stale looks at in one query.
type Part struct {
	chunk
	tables []string // that name the events, by the rows of cond
	cond   string
	Rows   uint64 // facts among them, about
}

// Parts cuts what was written in a range (interactions, verdicts and reviews) into shares that one
// query can hold, by event day.
func (s *Store) Parts(ctx context.Context, w Written) (parts []Part, err error) {
	return s.parts(ctx, []string{"interactions", "verdicts", "reviews"}, w.sql())
}

// Unfilled are the shares of events whose row in audit_current was written by a version without
// rule sets: before migration 16, or by an old process during an upgrade. Usually there are none.
func (s *Store) Unfilled(ctx context.Context) ([]Part, error) {
	return s.parts(ctx, []string{"audit_current"}, "rule_set = ''")
}

func (s *Store) parts(ctx context.Context, tables []string, cond string) (parts []Part, err error) {
	const op = "store: parts"
	var of []string
	for _, t := range tables {
		of = append(of, "SELECT event_day, count() AS n FROM "+s.db+"."+t+" WHERE "+cond+" GROUP BY event_day")
	}
	days, counts, err := s.rowsByDay(ctx, op, "SELECT toString(event_day) AS d, max(n) FROM ("+strings.Join(of, " UNION ALL ")+") GROUP BY d ORDER BY d")
	for from := 0; from < len(days); { // a share spans no days that have nothing of it
		to := from + 1
		for to < len(days) && follows(days[to-1], days[to]) {
			to++
		}
		for _, c := range chunks(days[from:to], counts[from:to]) {
			p := Part{chunk: c, tables: tables, cond: cond}
			for i := from; i < to; i++ {
				if c.from <= days[i] && days[i] <= c.to {
					p.Rows += counts[i] / c.parts
				}
			}
			parts = append(parts, p)
		}
		from = to
	}
	return parts, err
}

// follows tells whether b is the day after a.
func follows(a, b string) bool {
	t, err := time.Parse(time.DateOnly, a)
	return err == nil && t.AddDate(0, 0, 1).Format(time.DateOnly) == b
}

// Stale gives the keys of a part whose row in audit_current is missing, says other than interaction,
// current verdicts and reviews, or does not show that its id came with other content on that day or the day before
// or after. Interactions without a verdict are left out: they are a fault of their own.
func (s *Store) Stale(ctx context.Context, p Part) ([]Key, error) {
	const op = "store: stale rows"
	var named []string
	var args []any
	for _, table := range p.tables {
		q := p.bind(s.from(table).and(p.cond))
		named, args = append(named, q.sql("event_id", "")), append(args, q.args...)
	}
	touched := strings.Join(named, " UNION ALL ")
	keys, err := s.stale(ctx, op, func(q *query) *query { return p.bind(q).and("event_id IN ("+touched+")", args...) })
	if err != nil {
		return nil, err
	}
	sql, all := p.conflicts(s, touched, args)
	unseen, err := s.keysOf(ctx, op, sql, all)
	if err != nil {
		return nil, err
	}
	known := make(map[Key]bool, len(keys))
	for _, k := range keys {
		known[k] = true
	}
	for _, k := range unseen {
		if !known[k] {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// StaleAmong gives those of some keys, of one tenant, whose row says other than the facts, and of other
// contents of their ids. Conflicts are not looked for.
func (s *Store) StaleAmong(ctx context.Context, keys []Key) ([]Key, error) {
	return s.stale(ctx, "store: stale rows", func(q *query) *query { return q.events(keys) })
}

// stale lays the tables over each other, as hashes; rows restricts each of them to the same events.
func (s *Store) stale(ctx context.Context, op string, rows func(*query) *query) ([]Key, error) {
	const key = "tenant_id, event_day AS d, event_id AS id, content_digest"
	hash := "cityHash64(" + strings.Join(factsOf, ", ") + ")"
	var flat, merged []string
	for _, c := range flatOf {
		flat, merged = append(flat, c.flat()), append(merged, c.merged)
	}
	i, a, v, r := rows(s.from("interactions").current()), rows(s.from("audit_current").current()), rows(s.from("current_verdicts AS v")), rows(s.from("reviews").current()).byReviewer()
	inner := strings.Join([]string{
		i.sql(key+", 1 AS src, "+hash+" AS hf, "+deliveryOf+" AS delivery, toUInt64(0) AS hv, '' AS review", ""),
		a.sql(key+", 2 AS src, "+hash+" AS hf, "+delivery+" AS delivery, cityHash64("+strings.Join(flat, ", ")+") AS hv, "+reviewShown, ""),
		v.sql(key+", 3 AS src, toUInt64(0) AS hf, toUInt64(0) AS delivery, cityHash64("+strings.Join(merged, ", ")+") AS hv, ''", "GROUP BY "+keyColumns),
		r.sql(key+", 4 AS src, toUInt64(0) AS hf, toUInt64(0) AS delivery, toUInt64(0) AS hv, "+reviewSaid, "GROUP BY "+keyColumns),
	}, " UNION ALL ")
	sql := "SELECT tenant_id, d, id, content_digest FROM (" + inner + ") GROUP BY tenant_id, d, id, content_digest" +
		" HAVING countIf(src = 1) = 1 AND countIf(src = 3) = 1 AND (countIf(src = 2) = 0 OR groupBitXorIf(hf, src < 3) != 0 OR groupBitXorIf(delivery, src < 3) != 0 OR groupBitXorIf(hv, src IN (2, 3)) != 0 OR maxIf(review, src = 2) != maxIf(review, src = 4))" +
		" SETTINGS " + spill
	return s.keysOf(ctx, op, sql, slices.Concat(i.args, a.args, v.args, r.args))
}

// conflicts is the query for rows of a part's ids that have other content within a day and do not show
// it yet. A repeated id of a far day is found by Duplicates, which looks at the whole store.
func (p Part) conflicts(s *Store, touched string, args []any) (sql string, all []any) {
	near := func(q *query) *query {
		return p.share(q.and("event_day >= toDate(?) - 1", p.from).and("event_day <= toDate(?) + 1", p.to))
	}
	ids := near(s.from("interactions")).and("event_id IN ("+touched+")", args...)
	q := near(s.from("audit_current").current()).and("id_conflict = 0").
		and("(tenant_id, event_id) IN ("+ids.sql("tenant_id, event_id", "GROUP BY tenant_id, event_id HAVING min(content_digest) != max(content_digest)")+")", ids.args...)
	return q.sql(keyColumns, "SETTINGS "+spill), q.args
}

// keysOf scans keys.
func (s *Store) keysOf(ctx context.Context, op, sql string, args []any) (keys []Key, err error) {
	err = s.each(ctx, op, sql, args, func(rows driver.Rows) error {
		var k Key
		var id uuid.UUID
		var dig string
		if err := rows.Scan(&k.Tenant, &k.Day, &id, &dig); err != nil {
			return err
		}
		k.Day, k.ID, k.Digest = k.Day.UTC(), audit.ID(id), digest(dig)
		keys = append(keys, k)
		return nil
	})
	return keys, err
}

// events restricts a query to the days and ids of some keys of one tenant. Other contents of the same
// ids come with them: comparing digests here would cost more than it saves.
func (q *query) events(keys []Key) *query {
	var days []string
	var ids []uuid.UUID
	for _, k := range keys {
		if d := "toDate('" + day(k.Day) + "')"; !slices.Contains(days, d) {
			days = append(days, d)
		}
		ids = append(ids, uuid.UUID(k.ID))
	}
	return q.and("tenant_id = ?", keys[0].Tenant).and("event_day IN (" + strings.Join(days, ", ") + ")").and(anyOf(ids))
}

// CurrentRows is the statement that computes rows of audit_current from interactions, current verdicts
// and reviews, with its columns and arguments; its rows have more facts than the ones they replace. Keys
// must be of one tenant; all contents of their ids are computed. A conflict once seen is kept; conflict
// says that all ids are known to have come with other content, else it is looked up on the keys' days
// and a day around them.
func (s *Store) CurrentRows(keys []Key, conflict bool) (columns []string, sql string, args []any) {
	i, a, n := s.from("interactions").current().events(keys), s.from("audit_current").current().events(keys), s.from("verdicts").current().events(keys)
	v, r := s.from("current_verdicts AS v").events(keys), s.from("reviews").current().events(keys).byReviewer()
	first, last := keys[0].Day, keys[0].Day
	var ids []uuid.UUID
	for _, k := range keys {
		if ids = append(ids, uuid.UUID(k.ID)); k.Day.Before(first) {
			first = k.Day
		} else if k.Day.After(last) {
			last = k.Day
		}
	}
	near := s.from("interactions").and("tenant_id = ?", keys[0].Tenant).and("event_day >= toDate(?) - 1", day(first)).and("event_day <= toDate(?) + 1", day(last)).and(anyOf(ids))
	seen := "a.id_conflict = 1 OR i.event_id IN (" + near.sql("event_id", "GROUP BY event_id HAVING min(content_digest) != max(content_digest)") + ")"
	if conflict {
		seen, near.args = "1", nil
	}

	var of, merged []string
	put := func(column, expression string) { columns, of = append(columns, column), append(of, expression) }
	for _, c := range []string{"tenant_id", "event_day", "event_id", "content_digest"} {
		put(c, "i."+c)
	}
	put("version", "bitOr(bitShiftLeft(toUInt64(least(greatest(n.n, bitShiftRight(a.version, 54) + 1), "+mostFact+")), 54), "+strings.Replace(deliveryOf, "version", "i.version", 1)+")")
	for _, c := range slices.Concat(factsOf, placeOf) {
		put(c, "i."+c)
	}
	for _, c := range flatOf {
		merged = append(merged, c.merged+" AS m_"+c.column)
		put(c.column, "v.m_"+c.column)
	}
	put("human_reviewed", "r.human_reviewed")
	put("review", "r.review")
	put("id_conflict", "toUInt8("+seen+")")

	args = slices.Concat(near.args, i.args, v.args, n.args, a.args, r.args)
	sql = "SELECT " + strings.Join(of, ", ") + " FROM (" + i.sql("*", "") + ") AS i" +
		" INNER JOIN (" + v.sql(keyColumns+", "+strings.Join(merged, ", "), "GROUP BY "+keyColumns) + ") AS v USING (" + keyColumns + ")" +
		" INNER JOIN (" + n.sql(keyColumns+", count() AS n", "GROUP BY "+keyColumns) + ") AS n USING (" + keyColumns + ")" +
		" LEFT JOIN (" + a.sql(keyColumns+", version, id_conflict", "") + ") AS a USING (" + keyColumns + ")" +
		" LEFT JOIN (" + r.sql(keyColumns+", "+newestReview+" AS review, "+humanReviewed+" AS human_reviewed", "GROUP BY "+keyColumns) + ") AS r USING (" + keyColumns + ")"
	return columns, sql, args
}
