package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// sortColumns are what stands behind the keys but time; each is an integer.
var sortColumns = map[SortKey]string{
	ByBiasScore: "bias_sum", ByConfidence: "confidence", BySeverity: "max_severity", ByFindingsCount: "n_findings", BySafety: "safety_sum",
	ByToxicity: "toxicity", ByPII: "pii", ByHallucination: "hallucination",
}

// column is the sort's; for time, whose rows have no value beside it, a constant.
func (s Sort) column() string {
	if c, ok := sortColumns[s.By]; ok {
		return c
	}
	return "0"
}

// value is what the item is sorted by.
func (it *Item) value(by SortKey) int64 {
	switch by {
	case ByBiasScore:
		return int64(it.BiasSum)
	case ByConfidence:
		return int64(it.Confidence)
	case BySeverity:
		return int64(it.MaxSeverity)
	case ByFindingsCount:
		return int64(it.NFindings)
	case BySafety:
		return int64(it.SafetySum)
	case ByToxicity:
		return int64(it.Toxicity)
	case ByPII:
		return int64(it.PII)
	case ByHallucination:
		return int64(it.Hallucination)
	}
	return 0
}

// order is the ORDER BY of the first n rows. That of time is the table's key in one direction, so that
// the rows are read in order.
func (s Sort) order(n int) string {
	direction := " DESC"
	if s.Ascending {
		direction = " ASC"
	}
	if s.By == ByTime {
		return fmt.Sprintf("ORDER BY tenant_id%[1]s, event_day%[1]s, sort_ts%[1]s, event_id%[1]s, content_digest%[1]s LIMIT %[2]d", direction, n)
	}
	return fmt.Sprintf("ORDER BY %s%s, sort_ts DESC, event_id DESC, content_digest DESC LIMIT %d", s.column(), direction, n)
}

// candidatesByValue gives the next rows in the order of a value: keys with the value of one version
// each. The value is in no key, so the window is read, but at first two narrow columns of it only: the
// times of the next n rows lead by the key to the rows themselves, and to those of equal time that the
// order puts among them.
func (l *list) candidatesByValue(ctx context.Context, at *Cursor, n int) (keys []Cursor, full bool, err error) {
	base := func() *query {
		return l.f.byKey(l.t.scope, l.f.apply(l.t.from("audit_current")))
	}
	column, op, direction := l.sort.column(), "<", "DESC"
	if l.sort.Ascending {
		op, direction = ">", "ASC"
	}
	narrow, q := base(), base()
	times, args := "", []any(nil)
	if at != nil {
		narrow.and("("+column+" "+op+" ? OR "+column+" = ? AND sort_ts < "+instant+")", at.Value, at.Value, at.SortTS.UnixMilli())
		q.after(*at, l.sort)
		times, args = " UNION ALL SELECT toDate(?), "+instant, []any{day(at.SortTS), at.SortTS.UnixMilli()}
	}
	times = "(" + narrow.sql("event_day, sort_ts", fmt.Sprintf("ORDER BY %s %s, sort_ts DESC LIMIT %d", column, direction, n)) + ")" + times
	q.and("(event_day, sort_ts) IN ("+times+")", slices.Concat(narrow.args, args)...)
	keys, err = l.places(ctx, q, n)
	return keys, len(keys) == n, err
}

// places reads the first n rows of a query in the list's order.
func (l *list) places(ctx context.Context, q *query, n int) (keys []Cursor, err error) {
	err = l.t.each(ctx, "store: list", q.sql("sort_ts, event_id, content_digest, toInt64("+l.sort.column()+")", l.sort.order(n)), q.args, func(r driver.Rows) error {
		var c Cursor
		var id uuid.UUID
		var key string
		if err := r.Scan(&c.SortTS, &id, &key, &c.Value); err != nil {
			return err
		}
		c.EventID, c.Digest = audit.ID(id), digest(key)
		keys = append(keys, c)
		return nil
	})
	return keys, err
}
