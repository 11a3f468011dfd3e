package store

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
)

// settled says before which times rows must have all that belongs to them.
type settled struct {
	written time.Time // by when a row was written, for those that a marker would cover
	current time.Time // the same of audit_current, which follows the facts at once
	later   time.Time // the same of facts that come later, which the hourly repair shows at the latest
	broker  time.Time // by the broker time of the delivery: every partition is past it
}

// settled looks at the markers. A quiet partition holds the broker time back; at rest everything is
// settled.
func (s *Store) settled(ctx context.Context, r *Report) (at settled, err error) {
	if r.opt.AtRest {
		future := r.At.Add(24 * time.Hour)
		return settled{future, future, future, future}, nil
	}
	const op = "store: check settled"
	var newest time.Time
	if err := s.one(ctx, op, s.from("ingest_batches").sql("max(written_at)", ""), nil, &newest); err != nil {
		return at, err
	}
	last := s.from("ingest_batches").current().and("last_hash != 0").sql("topic, epoch, partition, max(last_ts) AS last", "GROUP BY topic, epoch, partition")
	if err := s.one(ctx, op, "SELECT min(last) FROM ("+last+")", nil, &at.broker); err != nil {
		return at, err
	}
	at.written, at.current = newest.Add(-grace), r.At.Add(-5*time.Second)
	at.later = r.At.Add(-2 * time.Hour)
	return at, nil
}

// arrived is the broker time of a delivery in milliseconds, from its version (see audit.Origin.Version).
const arrived = "toInt64(bitShiftRight(bitNot(version), 20))"

// checkOrphans looks for texts and users of a chunk whose interaction never followed.
func (s *Store) checkOrphans(ctx context.Context, r *Report, c chunk, at settled) error {
	const op = "store: check orphans"
	for _, x := range []struct {
		code       FaultCode
		table, key string
		cond       string
		args       []any
	}{
		{FaultTextOrphan, "interaction_texts", "tenant_id, event_day, event_id, source_id", "kind IN (" + textKinds + ")", nil},
		{FaultUserOrphan, "interaction_users", "tenant_id, event_day, event_id", "1", nil},
	} {
		facts := c.bind(s.from("interactions").current())
		rows := c.bind(s.from(x.table).current()).and(x.cond).and(arrived+" < ?", at.broker.UnixMilli())
		rows.and("("+x.key+") NOT IN ("+facts.sql(strings.Replace(x.key, "source_id", "content_digest", 1), "")+")", facts.args...)
		found := rows.sql("event_day AS d, event_id AS id", "GROUP BY "+x.key)
		if err := s.orphans(ctx, op, r, x.code, found, rows.args); err != nil {
			return err
		}
	}
	return nil
}

// orphans reports what a query over (d, id) finds, by day.
func (s *Store) orphans(ctx context.Context, op string, r *Report, code FaultCode, found string, args []any) error {
	var days []string
	var counts []uint64
	var events [][]uuid.UUID
	err := s.one(ctx, op, "SELECT groupArray(day), groupArray(n), groupArray(ids) FROM (SELECT toString(d) AS day, count() AS n, groupArray(10)(id) AS ids FROM ("+
		found+") GROUP BY d ORDER BY d) SETTINGS "+spill, args, &days, &counts, &events)
	for i := range days {
		r.fault(Fault{Code: code, Count: counts[i], Day: days[i], Events: texts(events[i])})
	}
	return err
}

// checkHot looks for events with two hot verdicts: the key holds the result's id, which is made of
// the event, so there can be one only.
func (s *Store) checkHot(ctx context.Context, r *Report, c chunk, _ settled) error {
	q := c.bind(s.from("verdicts").current()).and("analyzer = 'hot' AND analyzer_version = ''")
	found := q.sql("event_day AS d, event_id AS id", "GROUP BY tenant_id, event_day, event_id, content_digest HAVING count() > 1")
	return s.orphans(ctx, "store: check verdicts", r, FaultVerdictTwice, found, q.args)
}

// checkRejectedTexts looks for texts of rejected messages that are not in rejected.
func (s *Store) checkRejectedTexts(ctx context.Context, r *Report) error {
	at, err := s.settled(ctx, r)
	if err != nil {
		return err
	}
	q := s.from("interaction_texts").current().and("kind = 'rejected'").and(arrived+" < ?", at.broker.UnixMilli())
	q.and("(event_day, event_id) NOT IN (" + s.from("rejected").current().sql("event_day, event_id", "") + ")")
	return s.orphans(ctx, "store: check rejected", r, FaultTextOrphan, q.sql("event_day AS d, event_id AS id", ""), q.args)
}
