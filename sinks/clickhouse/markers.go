package clickhouse

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/sinks"
)

// markers is the table whose rows say what is in.
const markers = "ingest_batches"

// Markers implements sinks.Store. An insert of this sink that may still be under way is waited for: its
// marker must not appear after it was looked for.
func (s *Sink) Markers(ctx context.Context, topic string, partition int, from int64) ([]sinks.Marker, int32, error) {
	const op = "sinks/clickhouse: markers"
	if err := s.settle(ctx); err != nil {
		return nil, 0, err
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(s.opt.readSettings()))
	var epoch int32
	err := s.conn.QueryRow(ctx, "SELECT max(epoch) FROM "+s.database+".ingest_batches WHERE topic = ? AND partition = ?", topic, partition).Scan(&epoch)
	if err != nil {
		return nil, 0, chconn.Wrap(op, err)
	}
	rows, err := s.conn.Query(ctx, `SELECT lo, hi, generation, rows, rejected, skipped, reason,
		first_offset, first_ts, first_hash, last_offset, last_ts, last_hash, log_end
		FROM `+s.database+`.ingest_batches FINAL
		WHERE topic = ? AND partition = ? AND epoch = ? AND hi >= ? ORDER BY lo, hi`, topic, partition, epoch, from)
	if err != nil {
		return nil, 0, chconn.Wrap(op, err)
	}
	defer func() { _ = rows.Close() }()
	var ms []sinks.Marker
	for rows.Next() {
		m := sinks.Marker{Topic: topic, Partition: partition, Epoch: epoch}
		var first, last time.Time
		if err := rows.Scan(&m.Lo, &m.Hi, &m.Generation, &m.Rows, &m.Rejected, &m.Skipped, &m.Reason,
			&m.First.Offset, &first, &m.First.Hash, &m.Last.Offset, &last, &m.Last.Hash, &m.End); err != nil {
			return nil, 0, chconn.Wrap(op, err)
		}
		if m.Rows+m.Rejected > 0 {
			m.First.Time, m.Last.Time = first.UTC(), last.UTC()
		} else {
			m.First, m.Last = sinks.Edge{}, sinks.Edge{}
		}
		ms = append(ms, m)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, chconn.Wrap(op, err)
	}
	return sinks.Resolve(ms), epoch, nil
}

// Events implements sinks.Store.
func (s *Sink) Events(ctx context.Context, m sinks.Marker) ([]audit.StreamEvent, error) {
	const op = "sinks/clickhouse: events"
	rows, err := s.conn.Query(ctx, `WITH stored AS (
			SELECT DISTINCT tenant_id, event_day, event_id, content_digest, trace_id FROM `+s.database+`.interactions
			WHERE topic = ? AND partition = ? AND epoch = ? AND offset BETWEEN ? AND ?)
		SELECT event_id, tenant_id, bias_detected, scores.name, scores.value, bias_types, confidence, analysis_ts, trace_id, result_id
		FROM `+s.database+`.verdicts AS v FINAL
		INNER JOIN stored USING (tenant_id, event_day, event_id, content_digest)
		WHERE v.analyzer = 'hot' AND (v.tenant_id, v.event_day, v.event_id) IN (SELECT tenant_id, event_day, event_id FROM stored)
		ORDER BY v.analysis_ts, v.result_id`, // a retry is published after what it replaces
		m.Topic, m.Partition, m.Epoch, m.Lo, m.Hi)
	if err != nil {
		return nil, chconn.Wrap(op, err)
	}
	defer func() { _ = rows.Close() }()
	var evs []audit.StreamEvent
	for rows.Next() {
		var e audit.StreamEvent
		var id, result uuid.UUID
		var detected uint8
		var confidence int32
		var names []string
		var values []int64
		if err := rows.Scan(&id, &e.Tenant, &detected, &names, &values, &e.BiasTypes, &confidence, &e.Time, &e.TraceID, &result); err != nil {
			return nil, chconn.Wrap(op, err)
		}
		e.AuditID, e.ResultID, e.Detected, e.Confidence = audit.ID(id), audit.ID(result), detected == 1, audit.Score(confidence)
		e.Time = e.Time.UTC()
		for i, n := range names {
			e.Scores = append(e.Scores, audit.NamedScore{Name: n, Value: audit.Score(values[i])})
		}
		evs = append(evs, e)
	}
	return evs, chconn.Wrap(op, rows.Err())
}
