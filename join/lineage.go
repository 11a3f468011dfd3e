package join

import (
	"cmp"
	"maps"
	"slices"

	"github.com/evenhand/evenhand/ingest/call"
)

// root is the one part above all others of a group, nil when there is none or more than one.
func root(nodes []*node) (found *node) {
	for _, n := range nodes {
		if n.Parent != "" || n.isModel() || n.within != nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = n
	}
	return found
}

// lineage walks up the links of a group.
type lineage struct {
	nodes map[string]*node
	root  *node
}

// above is the node above n. Where a link of the chain was not told, the group's root stands above.
func (l lineage) above(n *node) *node {
	if up := l.nodes[n.Parent]; n.Parent != "" && up != nil {
		return up
	}
	if l.root != n && (n.Parent != "" || n.Kind == call.Content) {
		return l.root
	}
	return nil
}

// cover marks what is above n. A chain that was walked before, or that bites its own tail, is walked once.
func (l lineage) cover(n *node) {
	for up := l.above(n); up != nil && up != n && !up.covered; up = l.above(up) {
		up.covered = true
	}
}

// inherit gives n with what holds for it from above, and the instructions of the wrapper that it has none of itself.
func (l lineage) inherit(n *node) call.Part {
	c := n.Part
	system := c.System != "" || slices.ContainsFunc(c.Messages, func(m call.Message) bool { return m.Role == "system" || m.Role == "developer" })
	above := l.held(l.above(n))
	if above == nil {
		return c
	}
	c.Metadata = maps.Clone(c.Metadata)
	c = call.Inherit(c, *above)
	if !system && texts(&c) != 0 {
		c.System = above.System
	}
	return c
}

// held is what n and all above it hold for those beneath; each node's is made once.
func (l lineage) held(n *node) *call.Part {
	var chain []*node
	seen := map[*node]bool{}
	for ; n != nil && n.whole == nil && !seen[n]; n = l.above(n) {
		seen[n] = true
		chain = append(chain, n)
	}
	var above *call.Part
	if n != nil {
		above = n.whole
	}
	for _, n := range slices.Backward(chain) {
		var own call.Part
		if !n.isModel() && n.within == nil { // a call of a model wraps nothing
			own = n.Part
			own.Metadata = maps.Clone(own.Metadata)
		}
		if above != nil {
			system := cmp.Or(own.System, above.System)
			own = call.Inherit(own, *above)
			own.System = system
		}
		n.whole = &own
		above = &own
	}
	return above
}
