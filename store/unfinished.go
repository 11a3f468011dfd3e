package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Due says which unfinished verdicts are due for another attempt.
type Due struct {
	Now time.Time
	// First is how long after the first analysis the next is due; each later one waits four times as
	// long as the one before, at most Most.
	First, Most time.Duration
	// Limit bounds how many are read at once.
	Limit int
}

// Unfinished is an interaction whose current verdict of the hot path could not look at all of it.
type Unfinished struct {
	audit.Record // with the texts and the current verdict
	// Analyses is how often it was analysed, the first time included.
	Analyses int
	// TextDropped tells that the texts are gone: nothing is left to analyse.
	TextDropped bool
}

// unfinished begins the query for all that wait, of all tenants: the read model's own status leads to
// the few rows that may; the verdicts decide.
func (s *Store) unfinished(rest string) string {
	waiting := s.from("audit_current").and("analysis_status IN ('failed', 'partial')")
	q := s.from("verdicts").current().and("analyzer = 'hot'").and("(tenant_id, event_day, event_id) IN (" + waiting.sql("tenant_id, event_day, event_id", "") + ")")
	return q.sql(keyColumns+", count() AS n, argMax(status, (analysis_ts, result_id)) AS state, max(analysis_ts) AS ts",
		"GROUP BY "+keyColumns+" HAVING state IN ('failed', 'partial')"+rest)
}

// Waiting counts the interactions whose analysis is not finished, due or not.
func (s *Store) Waiting(ctx context.Context) (n uint64, err error) {
	err = s.one(ctx, "store: waiting", "SELECT count() FROM ("+s.unfinished("")+")", nil, &n)
	return n, err
}

// Unfinished gives interactions that are due, those that wait longest first.
func (s *Store) Unfinished(ctx context.Context, d Due) ([]Unfinished, error) {
	const op = "store: unfinished"
	next := fmt.Sprintf("toUnixTimestamp64Milli(ts) + toInt64(least(%d * pow(4, n - 1), %d))", d.First.Milliseconds(), d.Most.Milliseconds())
	sql := "SELECT " + keyColumns + ", n FROM (" + s.unfinished(fmt.Sprintf(" AND %s <= %d", next, d.Now.UnixMilli())) + fmt.Sprintf(") ORDER BY ts, event_id LIMIT %d", d.Limit)
	byTenant := map[string][]Key{}
	var order []Key
	analyses := map[Key]int{}
	err := s.each(ctx, op, sql, nil, func(rows driver.Rows) error {
		var k Key
		var id uuid.UUID
		var dig string
		var n uint64
		if err := rows.Scan(&k.Tenant, &k.Day, &id, &dig, &n); err != nil {
			return err
		}
		k.Day, k.ID, k.Digest = k.Day.UTC(), audit.ID(id), digest(dig)
		byTenant[k.Tenant], order, analyses[k] = append(byTenant[k.Tenant], k), append(order, k), int(n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := map[Key]*Unfinished{}
	for _, keys := range byTenant {
		for _, read := range []func(context.Context, []Key, map[Key]*Unfinished) error{s.unfinishedFacts, s.unfinishedVerdicts, s.unfinishedTexts} {
			if err := read(ctx, keys, found); err != nil {
				return nil, err
			}
		}
	}
	var out []Unfinished
	for _, k := range order {
		if u := found[k]; u != nil && u.Verdict != nil { // a verdict whose interaction never followed is a fault that check reports
			u.Analyses = analyses[k]
			if in := u.Interaction; in.Query == "" && (in.Messages == "" || hasUserMessage(in.Messages)) {
				in.Query = in.Prompt // as in Get
			}
			out = append(out, *u)
		}
	}
	return out, nil
}

// placedRow is a row of interactions with its place in the log.
type placedRow struct {
	factRow
	Topic     string    `ch:"topic"`
	Epoch     int32     `ch:"epoch"`
	Partition int32     `ch:"partition"`
	Offset    int64     `ch:"offset"`
	BrokerTS  time.Time `ch:"broker_ts"`
	EventDay  time.Time `ch:"event_day"`
}

func (s *Store) unfinishedFacts(ctx context.Context, keys []Key, found map[Key]*Unfinished) error {
	q := s.from("interactions").current().events(keys)
	return s.each(ctx, "store: unfinished", q.sql(factColumns+", topic, epoch, partition, offset, broker_ts, event_day", ""), q.args, func(rows driver.Rows) error {
		var r placedRow
		if err := rows.ScanStruct(&r); err != nil {
			return err
		}
		in := r.interaction()
		found[Key{in.Tenant, r.EventDay.UTC(), in.ID, in.Digest}] = &Unfinished{TextDropped: true, Record: audit.Record{
			Interaction: &in,
			Origin:      audit.Origin{Topic: r.Topic, Epoch: r.Epoch, Partition: int(r.Partition), Offset: r.Offset, BrokerTime: r.BrokerTS.UTC()},
		}}
		return nil
	})
}

func (s *Store) unfinishedVerdicts(ctx context.Context, keys []Key, found map[Key]*Unfinished) error {
	q := s.from("current_verdicts").events(keys).and("analyzer = 'hot'")
	type row struct {
		verdictRow
		TenantID string    `ch:"tenant_id"`
		EventDay time.Time `ch:"event_day"`
		EventID  uuid.UUID `ch:"event_id"`
	}
	return s.each(ctx, "store: unfinished", q.sql(verdictColumns+", tenant_id, event_day, event_id", ""), q.args, func(rows driver.Rows) error {
		var r row
		if err := rows.ScanStruct(&r); err != nil {
			return err
		}
		if u := found[Key{r.TenantID, r.EventDay.UTC(), audit.ID(r.EventID), digest(r.ContentDigest)}]; u != nil {
			v := r.verdict()
			u.Verdict = &v
		}
		return nil
	})
}

func (s *Store) unfinishedTexts(ctx context.Context, keys []Key, found map[Key]*Unfinished) error {
	q := s.from("interaction_texts").current().events(keys)
	return s.each(ctx, "store: unfinished", q.sql("tenant_id, event_day, event_id, source_id, kind, text", ""), q.args, func(rows driver.Rows) error {
		var k Key
		var id uuid.UUID
		var source, kind, text string
		if err := rows.Scan(&k.Tenant, &k.Day, &id, &source, &kind, &text); err != nil {
			return err
		}
		k.Day, k.ID, k.Digest = k.Day.UTC(), audit.ID(id), digest(source)
		u := found[k]
		if u == nil {
			return nil
		}
		u.TextDropped = false
		return setText(u.Interaction, kind, text)
	})
}
