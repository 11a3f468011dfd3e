package join

import (
	"container/list"
	"time"

	"github.com/evenhand/evenhand/ingest/call"
)

// past is what is remembered of a group that was told: facts, no texts.
type past struct {
	id    groupID
	facts [][]byte        // its nodes, as parts
	told  map[string]said // texts told, by the call's key
	above map[string]bool // what stands above the told calls
	asked bool            // it had parts of a call whose end was to be told
	at    time.Time       // ours, of the telling
	bytes int64
	place *list.Element // in session.pasts
}

// remember makes the past of assembled nodes.
func remember(id groupID, nodes []*node, at time.Time) *past {
	m := &past{id: id, told: map[string]said{}, above: map[string]bool{}, at: at, bytes: groupCost + int64(len(id.tenant)+len(id.group))}
	byKey := make(map[string]*node, len(nodes))
	for _, n := range nodes {
		byKey[n.key] = n
		fact := n.Part
		if n.known || n.within != nil || n.isCall() && !n.refused {
			m.told[n.key] = n.told.and(say(&fact))
		}
		fact.System, fact.Messages, fact.Answers = "", nil, nil
		b, err := encode(&fact)
		if err != nil { // what was read from JSON can be written as JSON
			continue
		}
		m.facts = append(m.facts, b)
		m.bytes += int64(len(b)) + int64(len(n.key)) + partCost
	}
	for key := range m.told {
		for up := byKey[key].Parent; up != "" && !m.above[up]; {
			m.above[up] = true
			if byKey[up] == nil {
				break
			}
			up = byKey[up].Parent
		}
	}
	return m
}

// adds tells whether a late part says anything that was not told.
func (m *past) adds(p *call.Part) bool {
	was, told := m.told[p.Key]
	switch {
	case told:
		return say(p).adds(was)
	case p.Kind == call.Context:
		return false
	case p.Kind == call.Outer:
		return !m.above[p.Key]
	}
	return true
}

// nodes gives what is remembered back to a group that was opened again.
func (m *past) nodes() (nodes []*node) {
	for _, b := range m.facts {
		p, err := decode(b)
		if err != nil { // it was written by remember
			continue
		}
		was, told := m.told[p.Key]
		nodes = append(nodes, &node{key: p.Key, Part: p, told: was, known: told})
	}
	return nodes
}

// forget drops what is remembered for too long or takes too much room.
func (s *session) forget() {
	now := s.Now()
	for e := s.pasts.Front(); e != nil; e = s.pasts.Front() {
		m := e.Value.(*rememberedIn)
		if now.Sub(m.at) < memory && s.pasts.Len() <= s.cfg.Groups && s.pastBytes <= s.cfg.MemoryBytes/4 {
			return
		}
		s.drop(m)
	}
}

// rememberedIn is a past and where it is found.
type rememberedIn struct {
	*past
	p *partition
}

func (s *session) drop(m *rememberedIn) {
	s.pasts.Remove(m.place)
	s.pastBytes -= m.bytes
	if m.p.past[m.id] == m.past {
		delete(m.p.past, m.id)
	}
}
