package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Rejected is a message that could not become an interaction, or a request to the judge, without its text. It is for operators
// of the installation: the tenant of such a message may not be known.
type Rejected struct {
	Topic     string    `json:"topic"`
	Epoch     int32     `json:"epoch"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"` // broker time
	Tenant    string    `json:"tenant"`
	EventID   audit.ID  `json:"-"` // the one that an event without id gets at this place
	Reason    string    `json:"reason"`
	Detail    string    `json:"detail"`
	Bytes     uint32    `json:"bytes"` // of the value
}

// Origin is the message's place.
func (r *Rejected) Origin() audit.Origin {
	return audit.Origin{Topic: r.Topic, Epoch: r.Epoch, Partition: int(r.Partition), Offset: r.Offset, BrokerTime: r.Time}
}

// RejectedFilter chooses rejected messages; zero fields choose all.
type RejectedFilter struct {
	Reasons []string
	Tenant  string
	Since   time.Time // broker time, inclusive
	Until   time.Time // broker time, exclusive
	Places  []RejectedPlace
}

// RejectedPlace is a place of the log without its epoch: two messages may stand there, of a log and
// of the one that replaced it.
type RejectedPlace struct {
	Topic     string
	Partition int32
	Offset    int64
}

func (p RejectedPlace) String() string {
	return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset)
}

func (s *Store) rejected(f RejectedFilter) *query {
	q := s.from("rejected").current()
	if len(f.Reasons) > 0 {
		q.and("has(?, reason)", f.Reasons)
	}
	if f.Tenant != "" {
		q.and("tenant_id = ?", f.Tenant)
	}
	if !f.Since.IsZero() {
		q.and("broker_ts >= "+instant, f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		q.and("broker_ts < "+instant, f.Until.UnixMilli())
	}
	if len(f.Places) > 0 {
		var args []any
		for _, p := range f.Places {
			args = append(args, p.Topic, p.Partition, p.Offset)
		}
		q.and("("+strings.TrimSuffix(strings.Repeat("(topic, partition, offset) = (?, ?, ?) OR ", len(f.Places)), " OR ")+")", args...)
	}
	return q
}

const rejectedColumns = "topic, epoch, partition, offset, broker_ts, tenant_id, event_id, reason, detail, value_bytes"

func (s *Store) rejectedRows(ctx context.Context, q *query, rest string) ([]Rejected, error) {
	var out []Rejected
	err := s.each(ctx, "store: rejected", q.sql(rejectedColumns, rest), q.args, func(rows driver.Rows) error {
		var r Rejected
		var id uuid.UUID
		if err := rows.Scan(&r.Topic, &r.Epoch, &r.Partition, &r.Offset, &r.Time, &r.Tenant, &id, &r.Reason, &r.Detail, &r.Bytes); err != nil {
			return err
		}
		r.EventID, r.Time = audit.ID(id), r.Time.UTC()
		out = append(out, r)
		return nil
	})
	return out, err
}

// Rejected lists the newest rejected messages first, at most limit.
func (s *Store) Rejected(ctx context.Context, f RejectedFilter, limit int) ([]Rejected, error) {
	return s.rejectedRows(ctx, s.rejected(f), fmt.Sprintf("ORDER BY broker_ts DESC, topic, epoch DESC, partition, offset DESC LIMIT %d", limit))
}

// RejectedAfter goes through the rejected messages in the order of the log: those after a place, from
// the start when after is nil, at most limit.
func (s *Store) RejectedAfter(ctx context.Context, f RejectedFilter, after *Rejected, limit int) ([]Rejected, error) {
	q := s.rejected(f)
	if after != nil {
		q.and("(topic, epoch, partition, offset) > (?, ?, ?, ?)", after.Topic, after.Epoch, after.Partition, after.Offset)
	}
	return s.rejectedRows(ctx, q, fmt.Sprintf("ORDER BY topic, epoch, partition, offset LIMIT %d", limit))
}

// RejectedCount is how many messages were rejected for a reason, and when.
type RejectedCount struct {
	Reason string    `json:"reason"`
	Count  uint64    `json:"count"`
	First  time.Time `json:"first"` // broker times
	Last   time.Time `json:"last"`
}

// RejectedCounts counts by reason, most frequent first.
func (s *Store) RejectedCounts(ctx context.Context, f RejectedFilter) ([]RejectedCount, error) {
	q := s.rejected(f)
	var out []RejectedCount
	sql := q.sql("reason, count(), min(broker_ts), max(broker_ts)", "GROUP BY reason ORDER BY count() DESC, reason")
	err := s.each(ctx, "store: rejected", sql, q.args, func(rows driver.Rows) error {
		var c RejectedCount
		if err := rows.Scan(&c.Reason, &c.Count, &c.First, &c.Last); err != nil {
			return err
		}
		c.First, c.Last = c.First.UTC(), c.Last.UTC()
		out = append(out, c)
		return nil
	})
	return out, err
}

// RejectedMessages gives the messages as they came, in the order of rs. One whose text was dropped is
// missing: its place in the answer is nil. It holds all texts at once, so ask for few.
func (s *Store) RejectedMessages(ctx context.Context, rs []Rejected) ([]*audit.Rejected, error) {
	if len(rs) == 0 {
		return nil, nil
	}
	var in []string
	var args []any
	for _, r := range rs {
		in = append(in, "(?, toDate(?), toUUID(?))")
		args = append(args, r.Tenant, day(r.Time), r.EventID.String())
	}
	q := s.from("interaction_texts").current().and("kind = 'rejected'").and("(tenant_id, event_day, event_id) IN ("+strings.Join(in, ", ")+")", args...)
	texts := map[audit.ID]string{}
	err := s.each(ctx, "store: rejected", q.sql("event_id, text", ""), q.args, func(rows driver.Rows) error {
		var id uuid.UUID
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		texts[audit.ID(id)] = text
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]*audit.Rejected, len(rs))
	for i := range rs {
		text, ok := texts[rs[i].EventID]
		if !ok {
			continue
		}
		if out[i], err = rs[i].message(text); err != nil {
			return nil, audit.E("store: rejected", audit.KindInternal, err)
		}
	}
	return out, nil
}

// message reads what the sink wrote: JSON with key and value as text, or as base64 where they are no
// UTF-8.
func (r *Rejected) message(text string) (*audit.Rejected, error) {
	var m struct {
		Key      string `json:"key"`
		Value    string `json:"value"`
		RawKey   []byte `json:"key_base64"`
		RawValue []byte `json:"value_base64"`
		Headers  []struct {
			Key   string `json:"key"`
			Value []byte `json:"value"`
		} `json:"headers"`
	}
	if json.Unmarshal([]byte(text), &m) != nil {
		return nil, errors.New("text of kind rejected: not the JSON that was written")
	}
	out := &audit.Rejected{Origin: r.Origin(), Tenant: r.Tenant, Reason: r.Reason, Detail: r.Detail, Key: m.RawKey, Value: m.RawValue}
	if out.Key == nil && m.Key != "" { // no key and an empty one are written alike
		out.Key = []byte(m.Key)
	}
	if out.Value == nil {
		out.Value = []byte(m.Value)
	}
	for _, h := range m.Headers {
		out.Header = append(out.Header, audit.Header{Key: h.Key, Value: h.Value})
	}
	return out, nil
}
