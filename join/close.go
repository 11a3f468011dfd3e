package join

import (
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/failpoint"
)

// close makes the events of a group. It holds the position until they are told.
func (s *session) close(g *group) {
	failpoint.Hit(failpoint.CallsClosed, "")
	delete(g.p.open, g.id)
	s.open--
	s.bytes -= g.bytes
	s.batch.groups = append(s.batch.groups, g)
	pieces := make([]piece, 0, len(g.parts))
	for _, h := range g.parts {
		part, err := decode(h.value)
		if err != nil {
			s.batch.reject(s.rejected(g.p, h.offset, h.at, []byte(g.id.group), h.value, append(tenantHeader(g.id.tenant), h.past...)), ingest.BadJSON, err.Error())
			continue
		}
		part.Tenant, part.Group = g.id.tenant, g.id.group
		pieces = append(pieces, piece{part, h.offset, h.at, h.past})
	}
	var before []*node
	if g.past != nil {
		before = g.past.nodes()
		if e := g.past.place; e != nil && g.p.past[g.id] == g.past {
			s.drop(e.Value.(*rememberedIn))
		}
	}
	nodes := assemble(pieces, before)
	for _, n := range nodes {
		if !n.isCall() {
			continue
		}
		g.calls = true
		if n.fresh {
			s.call(g, n)
		}
	}
	for i := range g.parts {
		g.parts[i].value = nil
	}
	if !g.calls { // spans around calls of no model are the most there is
		return
	}
	m := &rememberedIn{remember(g.id, nodes, s.Now()), g.p}
	m.asked = g.asked || g.past != nil && g.past.asked
	m.place = s.pasts.PushBack(m)
	s.pastBytes += m.bytes
	g.p.past[g.id] = m.past
}

// call makes the event of a node.
func (s *session) call(g *group, n *node) {
	if n.known {
		if !say(&n.Part).adds(n.told) {
			s.Observer.Late("dropped")
			return
		}
		s.Observer.Late("told_again")
	}
	c := n.Part
	if c.Time.IsZero() {
		c.Time = n.at // of the first part, so that it is the same each time
	}
	m, faults := s.make(&c)
	if len(faults) == 0 {
		s.batch.add(m)
		return
	}
	n.refused = true // its letter, sent again, is no late part
	c.Kind, c.Parent = call.Model, ""
	value, err := encode(&c)
	if err != nil { // it was read from JSON
		value = nil
	}
	s.batch.reject(s.rejected(g.p, n.offset, n.at, []byte(g.id.group), value, append(tenantHeader(g.id.tenant), n.past...)), faults[0].Code, detail(faults))
}

func (s *session) rejected(p *partition, offset int64, at time.Time, key, value []byte, hs []audit.Header) audit.Rejected {
	return rejected(audit.Origin{Topic: s.g.Topic(), Partition: p.id, Offset: offset, BrokerTime: at}, key, value, hs)
}
