package join

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// piece is a part with its place in the log.
type piece struct {
	call.Part
	offset int64
	at     time.Time // the broker's
	past   []audit.Header
}

// node is all that a group's parts say under one key.
type node struct {
	key string
	call.Part
	fresh  bool  // holds parts that were not told
	told   said  // texts that were told; only with known
	known  bool  // a call was told under the key
	offset int64 // of its first part
	at     time.Time
	past   []audit.Header // of a dead letter among its parts

	refused bool  // it cannot become an event
	covered bool  // a call of a model is beneath it, and says what it says
	within  *node // the call that it tells once more
	whole   *call.Part
}

// assemble puts a group's parts together: one node a key, in the order of their first parts. past are the nodes of what
// was told of the group before, without texts.
func assemble(pieces []piece, past []*node) []*node {
	byKey := make(map[string][]piece, len(pieces))
	var nodes []*node
	at := map[string]*node{}
	for _, n := range past {
		nodes, at[n.key] = append(nodes, n), n
	}
	for _, p := range pieces {
		byKey[p.Key] = append(byKey[p.Key], p)
		n := at[p.Key]
		if n == nil {
			n = &node{key: p.Key}
			nodes, at[p.Key] = append(nodes, n), n
		}
		if !n.fresh {
			n.fresh, n.offset, n.at = true, p.offset, p.at
		}
		if n.past == nil {
			n.past = p.past
		}
	}
	for _, n := range nodes {
		if !n.fresh {
			continue
		}
		merged := merge(byKey[n.key])
		if n.Key != "" {
			merged = fill(merged, n.Part)
		}
		n.Part = merged
	}
	once(nodes, at)
	tree := lineage{nodes: at, root: root(nodes)}
	for _, n := range nodes { // a call of a model hides what wraps it, and a wrapper the wrappers above it
		if n.isModel() {
			tree.cover(n)
		}
	}
	for _, n := range slices.Clone(nodes) {
		if n.Kind == call.Outer && !n.covered {
			tree.cover(n)
		}
	}
	uncover(nodes)
	for _, n := range nodes {
		if n.isCall() && n.fresh {
			c := tree.inherit(n)
			n.Part = c
		}
	}
	return nodes
}

func (n *node) isModel() bool {
	return n.within == nil && (n.Kind == call.Model || n.Kind == call.Content)
}

// isCall tells whether an event is made of the node: a call of a model, texts whose call never told its facts, a
// wrapper without any of those beneath it, or one that says something else.
func (n *node) isCall() bool { return n.isModel() || n.Kind == call.Outer && !n.covered }

// leads is the order in which the parts of a call are asked.
var leads = []call.Kind{call.Model, call.Outer, call.Content, call.Context}

// merge makes one part of those of a key. The part with the most texts leads; texts that came apart follow in order.
func merge(ps []piece) call.Part {
	slices.SortStableFunc(ps, func(a, b piece) int {
		return cmp.Or(slices.Index(leads, a.Kind)-slices.Index(leads, b.Kind), count(b)-count(a))
	})
	first := slices.IndexFunc(ps, func(p piece) bool { return p.Kind == call.Content })
	out := ps[0].Part
	out.Metadata = maps.Clone(out.Metadata) // Merge writes into it
	if first == 0 {
		out = contents(ps)
	}
	for i := 1; i < len(ps); i++ {
		switch {
		case i == first:
			out = fill(out, contents(ps[first:]))
		case ps[i].Kind != call.Content:
			out = fill(out, ps[i].Part)
		}
	}
	if !out.SoFar {
		out.Answers = unrepeated(out.Answers, onTheWay(ps))
	}
	return out
}

// fill is call.Merge for parts of which one has the instructions and the other one the messages.
func fill(a, b call.Part) call.Part {
	if len(a.Messages) == 0 && len(b.Messages) > 0 {
		a.Messages, a.System = b.Messages, cmp.Or(a.System, b.System)
	}
	return call.Merge(a, b)
}

func count(p piece) int {
	n := len(p.Messages) + len(p.Answers)
	if p.System != "" {
		n++
	}
	return n
}

// contents puts the texts of the leading parts of kind Content in the order of their places, then of their times.
func contents(ps []piece) call.Part {
	type placed struct {
		call.Message
		at time.Time
	}
	order := func(ms []placed) (out []call.Message) {
		slices.SortStableFunc(ms, func(a, b placed) int { return cmp.Or(a.N-b.N, a.at.Compare(b.at)) })
		for _, m := range ms {
			out = append(out, m.Message)
		}
		return out
	}
	out := ps[0].Part
	out.Metadata = maps.Clone(out.Metadata)
	system := out.System
	var messages, answers []placed
	for i, p := range ps {
		if p.Kind != call.Content {
			break
		}
		for _, m := range p.Messages {
			messages = append(messages, placed{m, p.Time})
		}
		for _, m := range p.Answers {
			answers = append(answers, placed{m, p.Time})
		}
		if i > 0 {
			system = cmp.Or(system, p.System)
			p.Messages, p.Answers = nil, nil
			out = call.Merge(out, p.Part)
		}
	}
	out.System, out.Messages, out.Answers = system, order(messages), order(answers)
	return out
}
