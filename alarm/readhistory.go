package alarm

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
)

// The kinds that have cells: those of bias, any bias, and those of safety. What came over 48 hours late
// is counted apart. A cell is one row, its hours a list of numbers as text (index of the hour, then counts):
// a month of many cells is millions of hours, and rows and arrays of that many cost the client seconds.
const (
	sqlAnalysed = `SELECT tenant_id, domain, rule_set, '', ` + packed + ` FROM (
		SELECT tenant_id, domain, rule_set, hour, [toInt64(sum(n)) - toInt64(sum(late)), toInt64(sum(late)), toInt64(sum(k))] AS counts FROM {{db}}.rollup_hourly FINAL
		WHERE dim = 'all' AND ` + within + ` GROUP BY tenant_id, domain, rule_set, hour) GROUP BY tenant_id, domain, rule_set`
	sqlSkipped = `SELECT tenant_id, domain, '', '', ` + packed + ` FROM (
		SELECT tenant_id, domain, hour, [toInt64(sum(k))] AS counts FROM {{db}}.rollup_hourly FINAL
		WHERE dim = 'status' AND value = 'skipped' AND ` + within + ` GROUP BY tenant_id, domain, hour) GROUP BY tenant_id, domain`
	sqlFound = `SELECT tenant_id, domain, rule_set, kind, ` + packed + ` FROM (
		SELECT tenant_id, domain, rule_set, if(dim = 'outcome', '', value) AS kind, hour, [toInt64(sum(k)) - toInt64(sum(late)), toInt64(sum(late))] AS counts FROM {{db}}.rollup_hourly FINAL
		WHERE (dim = 'bias' OR dim = 'outcome' AND value = 'detected' OR dim = 'kind' AND startsWith(value, 'safety.')) AND ` + within + `
		GROUP BY tenant_id, domain, rule_set, kind, hour HAVING counts[1] + counts[2] > 0) GROUP BY tenant_id, domain, rule_set, kind`

	packed = `arrayStringConcat(groupArray(concat(toString(intDiv(toUnixTimestamp(hour) - ?, 3600)), ' ', arrayStringConcat(counts, ' '))), ' ')`
	within = `hour >= toDateTime(?, 'UTC') AND hour < toDateTime(?, 'UTC')`
)

// unpack reads whole numbers that single spaces part.
func unpack(s string, into []int64) []int64 {
	into = into[:0]
	for len(s) > 0 {
		word, rest, _ := strings.Cut(s, " ")
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return into // the store made the list
		}
		into, s = append(into, n), rest
	}
	return into
}

// History reads the counts of the hours in [from, to). A window in which nothing was found has no
// cell: it could not alarm.
func (t *Tables) History(ctx context.Context, from, to time.Time) (*History, error) {
	const op = "alarm: history"
	rules := map[string]map[string]string{}
	err := t.each(ctx, op, "SELECT rule_set, kind, rule_version FROM {{db}}.rule_sets FINAL", nil, func(r driver.Rows) error {
		var set, kind, version string
		if err := r.Scan(&set, &kind, &version); err != nil {
			return err
		}
		if rules[set] == nil {
			rules[set] = map[string]string{}
		}
		rules[set][kind] = version
		return nil
	})
	if err != nil {
		return nil, err
	}
	from = from.UTC().Truncate(time.Hour)
	h := NewHistory(from, hours(to.Sub(from)), rules)
	window := []any{from.Unix(), from.Unix(), to.Unix()}
	var domain, set, list string
	var c Cell
	var numbers []int64
	for _, q := range []struct {
		sql    string
		counts int
		take   func(hour time.Time, n []int64)
	}{
		{sqlAnalysed, 3, func(hour time.Time, n []int64) {
			h.Analysed(c.Tenant, c.Domain, set, hour, uint64(max(0, n[0])), uint64(n[1]))
			h.Received(c.Tenant, c.Domain, hour, n[2], n[0]+n[1])
		}},
		{sqlSkipped, 1, func(hour time.Time, n []int64) { h.Received(c.Tenant, c.Domain, hour, -n[0], 0) }},
		{sqlFound, 2, func(hour time.Time, n []int64) { h.Found(c, set, hour, uint64(max(0, n[0])), uint64(n[1])) }},
	} {
		err := t.each(ctx, op, q.sql, window, func(r driver.Rows) error {
			if err := r.Scan(&c.Tenant, &domain, &set, &c.Kind, &list); err != nil {
				return err
			}
			c.Domain = audit.Domain(domain)
			numbers = unpack(list, numbers)
			for i := 0; i+q.counts < len(numbers); i += 1 + q.counts {
				q.take(h.time(int(numbers[i])), numbers[i+1:i+1+q.counts])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}
