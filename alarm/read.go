package alarm

import (
	"context"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/breaches"
	"github.com/evenhand/evenhand/internal/chconn"
)

// Tables reads what alarms depend on and writes what they say, in one database. It is safe for
// concurrent use.
type Tables struct {
	conn driver.Conn
	db   string
}

// NewTables works on an open connection, which stays the caller's.
func NewTables(conn driver.Conn, database string) *Tables { return &Tables{conn, database} }

// each runs a query, with {{db}} for the database, and hands every row to scan.
func (t *Tables) each(ctx context.Context, op, sql string, args []any, scan func(driver.Rows) error) error {
	return chconn.Each(clickhouse.Context(ctx, clickhouse.WithSettings(chconn.Finals)), t.conn, op, strings.ReplaceAll(sql, "{{db}}", t.db), args, scan)
}

// instant is the SQL of a bound time in milliseconds; the client would cut a time.Time to seconds.
const instant = "fromUnixTimestamp64Milli(toInt64(?))"

func (t *Tables) transitions(ctx context.Context, where string, args ...any) (list []audit.Breach, err error) {
	err = t.each(ctx, "alarm: breaches", "SELECT "+breaches.Columns+" FROM {{db}}.breaches FINAL "+where, args, func(r driver.Rows) error {
		b, err := breaches.Scan(r)
		list = append(list, b)
		return err
	})
	return list, err
}

// Transitions gives of every breach the newest transition, and all of those that are not resolved or
// changed since.
func (t *Tables) Transitions(ctx context.Context, since time.Time) ([]audit.Breach, error) {
	const key = "tenant_id, breach_id"
	return t.transitions(ctx, `WHERE (`+key+`, seq) IN (SELECT `+key+`, seq FROM {{db}}.current_breaches)
		OR (`+key+`) IN (SELECT `+key+` FROM {{db}}.current_breaches WHERE state != 'resolved' OR changed_at >= `+instant+`)`, since.UnixMilli())
}

// Breach gives all transitions of a breach in order; none when it is not known.
func (t *Tables) Breach(ctx context.Context, id audit.ID) ([]audit.Breach, error) {
	return t.transitions(ctx, "WHERE breach_id = ? ORDER BY tenant_id, seq", uuid.UUID(id))
}

// Filter narrows a list of breaches. Zero values ask for everything.
type Filter struct {
	Tenant string
	State  audit.BreachState
	Limit  int // the newest; 0 means 100
}

// List gives breaches as they stand, those that changed last first.
func (t *Tables) List(ctx context.Context, f Filter) ([]audit.Breach, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	where, args := "WHERE (tenant_id, breach_id, seq) IN (SELECT tenant_id, breach_id, seq FROM {{db}}.current_breaches)", []any{}
	if f.Tenant != "" {
		where, args = where+" AND tenant_id = ?", append(args, f.Tenant)
	}
	if f.State != "" {
		where, args = where+" AND state = ?", append(args, string(f.State))
	}
	return t.transitions(ctx, where+" ORDER BY changed_at DESC, breach_id LIMIT ?", append(args, f.Limit)...)
}

// said are the reviews that hold, one a content.
const said = `SELECT tenant_id, event_day, event_id, content_digest, decision AS word, reviewer AS person, reviewed_at AS at FROM {{db}}.current_reviews`

const dismissed = `SELECT tenant_id, event_day, event_id, content_digest FROM (` + said + `) WHERE word = 'dismissed'`

// found gives the findings of the newest verdicts of some events; it is filled with a condition on verdicts.
const found = `SELECT tenant_id, event_day, event_id, content_digest, analysis_ts, f.1 AS kind, f.2 AS rule, f.3 AS severity FROM (
		SELECT tenant_id, event_day, event_id, content_digest, analyzer, analysis_ts, findings.kind AS kinds, findings.rule AS rules, findings.severity AS severities, findings.side AS sides
		FROM {{db}}.verdicts FINAL WHERE {{where}} ORDER BY analysis_ts DESC, result_id DESC LIMIT 1 BY tenant_id, event_day, event_id, content_digest, analyzer
	) ARRAY JOIN arrayZip(kinds, rules, severities, sides) AS f WHERE f.4 = 'output'`

// facts are the interactions of an answer, of which the domain is wanted; late ones are left out.
const facts = `SELECT tenant_id, event_day, event_id, content_digest, domain, event_ts FROM {{db}}.audit_current FINAL WHERE broker_ts <= event_ts + INTERVAL 48 HOUR AND (tenant_id, event_day, event_id) IN ({{keys}})`

// Critical gives the CRITICAL findings that a reviewer confirmed since, or, unconfirmed, all of analyses
// since that are not dismissed.
func (t *Tables) Critical(ctx context.Context, since time.Time, confirmed bool) ([]Critical, error) {
	const key = "tenant_id, event_day, event_id"
	keys := "SELECT " + key + ", content_digest, person, at FROM (" + said + ") WHERE word = 'confirmed' AND at >= " + instant
	if !confirmed {
		keys = "SELECT " + key + ", content_digest, '' AS person, max(analysis_ts) AS at FROM {{db}}.verdicts FINAL WHERE analysis_ts >= " + instant + " AND max_severity >= 4 AND (" + key + ", content_digest) NOT IN (" + dismissed + ") GROUP BY " + key + ", content_digest"
	}
	events := "SELECT " + key + " FROM (" + keys + ")"
	sql := "SELECT DISTINCT f.tenant_id, c.domain, f.kind, f.event_id, f.rule, k.person, k.at, c.event_ts FROM (" + strings.ReplaceAll(found, "{{where}}", "("+key+") IN ("+events+")") + " AND severity = 4) AS f INNER JOIN (" +
		keys + ") AS k USING (" + key + ", content_digest) INNER JOIN (" + strings.ReplaceAll(facts, "{{keys}}", events) + ") AS c USING (" + key + ", content_digest)"
	from := since.UnixMilli()
	var out []Critical
	err := t.each(ctx, "alarm: critical findings", sql, []any{from, from, from}, func(r driver.Rows) error {
		c := Critical{Confirmed: confirmed}
		var domain string
		var id uuid.UUID
		err := r.Scan(&c.Tenant, &domain, &c.Kind, &id, &c.Rule, &c.By, &c.At, &c.When)
		c.Domain, c.Event, c.At = audit.Domain(domain), audit.ID(id), c.At.UTC()
		c.When = c.When.UTC()
		out = append(out, c)
		return err
	})
	return out, err
}

// Mitigations counts analysed interactions with a suggested mitigation by domain and bias type, over a
// window that ends at to: of those that came within 48 hours. Dismissed ones stay among the analysed, as in
// rates. It reads audit_current: the rollups do not cross the two.
func (t *Tables) Mitigations(ctx context.Context, to time.Time, window time.Duration) ([]Mitigated, error) {
	from := to.Add(-window)
	sql := `SELECT tenant_id, domain, arrayJoin(arrayConcat([''], if(mitigation != '' AND broker_ts <= event_ts + INTERVAL 48 HOUR AND
			(tenant_id, event_day, event_id, content_digest) NOT IN (` + dismissed + `), bias_types, []))) AS kind, if(kind = '', '', mitigation) AS m,
			countIf(broker_ts <= event_ts + INTERVAL 48 HOUR) AS n, countIf(broker_ts > event_ts + INTERVAL 48 HOUR) AS late
		FROM {{db}}.audit_current FINAL WHERE event_day >= toDate(?) AND event_day <= toDate(?) AND event_ts >= ` + instant + ` AND event_ts < ` + instant + `
		AND analysis_status IN ('done', 'partial')
		GROUP BY tenant_id, domain, kind, m ORDER BY tenant_id, domain, kind, n DESC, m`
	analysed := map[Cell]Mitigated{}
	out := []Mitigated{}
	err := t.each(ctx, "alarm: mitigations", sql, []any{from.Format(time.DateOnly), to.Format(time.DateOnly), from.UnixMilli(), to.UnixMilli()}, func(r driver.Rows) error {
		var c Cell
		var domain, mitigation string
		var n, late uint64
		if err := r.Scan(&c.Tenant, &domain, &c.Kind, &mitigation, &n, &late); err != nil {
			return err
		}
		c.Domain = audit.Domain(domain)
		all := analysed[Cell{c.Tenant, c.Domain, ""}]
		switch last := len(out) - 1; {
		case c.Kind == "":
			analysed[c] = Mitigated{N: n, Late: late}
		case last >= 0 && out[last].Cell == c:
			out[last].K += n
		default: // the most frequent one comes first
			out = append(out, Mitigated{Cell: c, N: all.N, Late: all.Late, K: n, Mitigation: mitigation, Window: window})
		}
		return nil
	})
	return out, err
}

// explain adds the rules that fired most in the window of a breach, who was behind most of it, what its verdicts suggested
// most, examples of its events and its severity.
func (t *Tables) explain(ctx context.Context, b *audit.Breach) error {
	if b.Tier == audit.TierPolicy || b.Tier == audit.TierBlind || b.State != audit.BreachOpen {
		return nil
	}
	has, of := "bias_detected = 1", "(startsWith(kind, 'charter.') OR startsWith(kind, 'terms.'))"
	args := []any{b.Tenant, b.From.Format(time.DateOnly), b.To.Format(time.DateOnly), b.From.UnixMilli(), b.To.UnixMilli(), string(b.Domain)}
	if b.Kind != "" {
		has, of = "has(kinds, ?)", "kind = ?"
		args = append(args, b.Kind)
	}
	where := `tenant_id = ? AND event_day >= toDate(?) AND event_day <= toDate(?) AND event_ts >= ` + instant + ` AND event_ts < ` + instant + ` AND domain = ? AND ` + has + `
		AND broker_ts <= event_ts + INTERVAL 48 HOUR AND (tenant_id, event_day, event_id, content_digest) NOT IN (` + dismissed + `)`
	if b.Tier == audit.TierMitigation {
		where += " AND mitigation != ''"
	}
	b.Events, b.TopRules = nil, nil
	err := t.each(ctx, "alarm: examples", "SELECT event_id FROM {{db}}.audit_current FINAL WHERE "+where+" ORDER BY max_severity DESC, event_ts DESC, event_id LIMIT ?", append(args, maxEvents), func(r driver.Rows) error {
		var id uuid.UUID
		err := r.Scan(&id)
		b.Events = append(b.Events, audit.ID(id))
		return err
	})
	if err != nil {
		return err
	}
	if err := t.split(ctx, b, where, args); err != nil {
		return err
	}
	if b.Tier != audit.TierMitigation { // which is of a mitigation already
		if b.Mitigation, err = t.suggested(ctx, where, args); err != nil {
			return err
		}
	}
	events := "SELECT tenant_id, event_day, event_id FROM {{db}}.audit_current FINAL WHERE " + where
	sql := "SELECT rule, uniqExact(tenant_id, event_day, event_id) AS n, max(severity) FROM (" + strings.ReplaceAll(found, "{{where}}", "tenant_id = ? AND event_day >= toDate(?) AND event_day <= toDate(?) AND (tenant_id, event_day, event_id) IN ("+events+")") +
		") WHERE " + of + " GROUP BY rule ORDER BY n DESC, rule"
	all := append(append([]any{}, args[:3]...), args...)
	if b.Kind != "" {
		all = append(all, b.Kind)
	}
	var most uint8
	err = t.each(ctx, "alarm: rules", sql, all, func(r driver.Rows) error {
		var c audit.RuleCount
		var severity uint8
		err := r.Scan(&c.Rule, &c.Interactions, &severity)
		if len(b.TopRules) < maxRules {
			b.TopRules = append(b.TopRules, c)
		}
		most = max(most, severity)
		return err
	})
	if most > 0 && int(most) <= len(audit.Severities) {
		b.Severity = audit.Severities[most-1]
	}
	return err
}

// suggested is the mitigation that was suggested most for a breach's interactions, which where chooses; "" for none.
func (t *Tables) suggested(ctx context.Context, where string, args []any) (most string, err error) {
	sql := "SELECT mitigation FROM {{db}}.audit_current FINAL WHERE " + where + " AND mitigation != '' GROUP BY mitigation ORDER BY count() DESC, mitigation LIMIT 1"
	err = t.each(ctx, "alarm: mitigation", sql, args, func(r driver.Rows) error { return r.Scan(&most) })
	return most, err
}

// mostBehind bounds how many applications, models and kinds a breach names, longestBehind their names in characters.
const mostBehind, longestBehind = 3, 100

// split adds who was behind most of a breach's interactions, which where chooses.
func (t *Tables) split(ctx context.Context, b *audit.Breach, where string, args []any) error {
	parts := "[('application', app), ('model', model)]"
	if b.Kind == "" {
		parts = "arrayConcat(" + parts + ", arrayMap(k -> ('kind', toString(k)), bias_types))"
	}
	sql := "SELECT p.1 AS of, substringUTF8(p.2, 1, ?) AS value, count() AS n FROM (SELECT arrayJoin(" + parts + ") AS p FROM {{db}}.audit_current FINAL WHERE " + where +
		") WHERE value != '' GROUP BY of, value ORDER BY of, n DESC, value LIMIT ? BY of"
	b.Split = nil
	return t.each(ctx, "alarm: split", sql, append(append([]any{longestBehind}, args...), mostBehind), func(r driver.Rows) error {
		var p audit.Behind
		err := r.Scan(&p.Of, &p.Value, &p.Interactions)
		b.Split = append(b.Split, p)
		return err
	})
}
