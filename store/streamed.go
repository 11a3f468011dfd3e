package store

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Retried gives the stream events of all interactions on which a later verdict, of a retry, an outside
// analyzer or the judge, was stored in a range of the store's time: every result of the hot path, its retries and those
// analyzers, oldest first, so that the newest message of each is of its newest result.
func (s *Store) Retried(ctx context.Context, w Written) ([]audit.StreamEvent, error) {
	// Without FINAL, which would read all verdicts: a row that was replaced since names an interaction once too often at worst.
	stored := s.from("verdicts").and(streamed).and("analyzer_version != ''").and(w.sql())
	v := s.from("verdicts").current().and(streamed).and("("+keyColumns+") IN ("+stored.sql(keyColumns, "")+")", stored.args...)
	return s.streamEvents(ctx, "store: retried", v)
}

// StreamEvent is what the stream is told of an interaction with verdicts of outside analyzers: all current
// verdicts merged. Time and ResultID are those of the verdict that gives rise to it, which the caller knows.
func (t *Tenant) StreamEvent(ctx context.Context, it *Item) (audit.StreamEvent, error) {
	e := audit.StreamEvent{AuditID: it.EventID, Tenant: it.Tenant, TraceID: it.TraceID}
	q := t.from("current_verdicts AS c").and("c.event_day = toDate(?)", day(it.Time)).and("c.event_id = toUUID(?)", it.EventID.String()).
		and("c.content_digest = toFixedString(unhex(?), 32)", hex.EncodeToString(it.Digest[:]))
	var detected uint8
	var confidence int32
	var names []string
	var values []int64
	err := t.one(ctx, "store: stream event", q.sql("max(c.bias_detected), "+typesMerged+", "+scoresMerged+".1, "+scoresMerged+".2, "+confidenceMerged, ""), q.args,
		&detected, &e.BiasTypes, &names, &values, &confidence)
	if err != nil {
		return audit.StreamEvent{}, err
	}
	e.Detected, e.Confidence, e.Scores = detected == 1, audit.Score(confidence), named(names, values)
	return e, nil
}

// StreamOf is what the stream is told of verdicts of the judge, results, on interactions of one tenant.
func (s *Store) StreamOf(ctx context.Context, keys []Key, results []audit.ID) ([]audit.StreamEvent, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	wanted := make(map[audit.ID]bool, len(results))
	for _, id := range results {
		wanted[id] = true
	}
	v := s.WithTenant(keys[0].Tenant).from("verdicts").current().and("analyzer = 'judge'").events(keys)
	all, err := s.streamEvents(ctx, "store: stream events", v)
	return slices.DeleteFunc(all, func(e audit.StreamEvent) bool { return !wanted[e.ResultID] }), err
}

// Over current_verdicts AS c, as the read model and the view merge.
const (
	typesMerged      = "arraySort(groupUniqArrayArray(CAST(c.bias_types AS Array(String))))"
	scoresMerged     = "maxMap(c.scores.name, c.scores.value)"
	confidenceMerged = "argMax(c.confidence, (c.bias_detected, c.max_severity, c.confidence, c.analyzer))"
)

func named(names []string, values []int64) (out []audit.NamedScore) {
	for i := range names {
		out = append(out, audit.NamedScore{Name: names[i], Value: audit.Score(values[i])})
	}
	return out
}

// streamed are the verdicts that the stream tells of.
const streamed = "(analyzer = 'hot' OR startsWith(analyzer, 'external:') OR analyzer = 'judge' AND status NOT IN ('failed', 'skipped', 'abandoned'))"

// streamEvents makes the events of some verdicts. Consumers keep the newest message of an interaction, so
// where outside analyzers or the judge said something each message says what the record says now: all of them merged.
func (s *Store) streamEvents(ctx context.Context, op string, v *query) (out []audit.StreamEvent, err error) {
	of := "(" + keyColumns + ") IN (" + v.sql(keyColumns, "") + ")"
	i := s.from("interactions").current().and(of, v.args...)
	m := s.from("current_verdicts AS c").and(of, v.args...)
	merged := m.sql(keyColumns+", max(c.analyzer != 'hot') AS outside, max(c.bias_detected) AS detected, "+typesMerged+" AS types, "+
		scoresMerged+" AS scored, "+confidenceMerged+" AS sure", "GROUP BY "+keyColumns)
	sql := "SELECT v.event_id, v.tenant_id, if(m.outside = 1, m.detected, v.bias_detected), if(m.outside = 1, m.scored.1, v.names), if(m.outside = 1, m.scored.2, v.scored), if(m.outside = 1, m.types, v.types)," +
		" if(m.outside = 1, m.sure, v.confidence), v.analysis_ts, i.trace_id, v.result_id FROM (" +
		v.sql(keyColumns+", bias_detected, scores.name AS names, scores.value AS scored, CAST(bias_types AS Array(String)) AS types, confidence, analysis_ts, result_id", "") + ") AS v" +
		" INNER JOIN (" + i.sql(keyColumns+", trace_id", "") + ") AS i USING (" + keyColumns + ")" +
		" INNER JOIN (" + merged + ") AS m USING (" + keyColumns + ") ORDER BY v.analysis_ts, v.result_id"
	err = s.each(ctx, op, sql, slices.Concat(v.args, i.args, m.args), func(rows driver.Rows) error {
		var e audit.StreamEvent
		var id, result uuid.UUID
		var detected uint8
		var confidence int32
		var names []string
		var values []int64
		if err := rows.Scan(&id, &e.Tenant, &detected, &names, &values, &e.BiasTypes, &confidence, &e.Time, &e.TraceID, &result); err != nil {
			return err
		}
		e.AuditID, e.ResultID, e.Detected, e.Confidence, e.Time = audit.ID(id), audit.ID(result), detected == 1, audit.Score(confidence), e.Time.UTC()
		e.Scores = named(names, values)
		out = append(out, e)
		return nil
	})
	return out, err
}
