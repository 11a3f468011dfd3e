package join

import (
	"context"
	"encoding/json"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

// mark says which groups were told, so that nobody tells them again of the part of their records that lies behind
// a committed position.
type mark struct {
	V    int         `json:"v"`
	Told []toldGroup `json:"told"`
}

type toldGroup struct {
	Tenant string `json:"t,omitempty"`
	Group  string `json:"g"`
	Upto   int64  `json:"o"` // its last record
}

// readMarks looks ahead for what was told of the records from the position on.
func (s *session) readMarks(ctx context.Context, p *partition) error {
	start, end, err := s.g.Bounds(ctx, p.id)
	if err != nil {
		return err
	}
	p.marked, p.until = map[groupID]int64{}, end
	for at := max(start, p.next); at < end; {
		ch, err := s.chunk(ctx, s.g, p.id, at, fetchBytes)
		if err != nil {
			return err
		}
		for i := range ch.Records {
			s.noteMark(p, &ch.Records[i])
		}
		if ch.Next == at && at >= ch.End { // the log is shorter than it was
			break
		}
		at = ch.Next
	}
	return nil
}

// noteMark takes a mark in; false when the record is none.
func (s *session) noteMark(p *partition, r *sources.Record) bool {
	if _, is := header(r, headerTold); !is {
		return false
	}
	var m mark
	if unmarshal(r.Value, &m) != nil || m.V != version {
		return true // of a later version, which says more than is known here
	}
	for _, t := range m.Told {
		if p.marked != nil {
			id := groupID{t.Tenant, t.Group}
			p.marked[id] = max(p.marked[id], t.Upto)
		}
	}
	return true
}

// mark notes in each partition which groups of several parts were told: a position may come to lie between them.
func (s *session) mark(ctx context.Context, groups []*group) error {
	var ms []kafka.Message
	for _, m := range marksOf(groups) {
		value, err := json.Marshal(m)
		if err != nil {
			return audit.E("join: mark", audit.KindInternal, err)
		}
		// The key of one of its groups leads to the partition where all of them lie.
		ms = append(ms, kafka.Message{Topic: kafkaconn.Calls, Key: []byte(m.Told[0].Group), Value: value, Headers: []kafka.Header{{Key: headerTold, Value: []byte{'1'}}}})
	}
	if len(ms) == 0 {
		return nil
	}
	return s.retry(ctx, "mark", func(ctx context.Context) error { return s.log.Produce(ctx, ms) }, never)
}

// marksOf makes the marks of groups: at least one a partition, none larger than a message may be.
func marksOf(groups []*group) (all []*mark) {
	const most = 100_000 // bytes of names: six times as many when all are escaped
	last, size := map[int]*mark{}, map[int]int{}
	for _, g := range groups {
		if !g.calls || g.first() == g.upto {
			continue // nothing was told, or one part, whole
		}
		n := len(g.id.tenant) + len(g.id.group) + 48
		m := last[g.p.id]
		if m == nil || size[g.p.id]+n > most {
			m = &mark{V: version}
			last[g.p.id], size[g.p.id] = m, 0
			all = append(all, m)
		}
		size[g.p.id] += n
		m.Told = append(m.Told, toldGroup{g.id.tenant, g.id.group, g.upto})
	}
	return all
}
