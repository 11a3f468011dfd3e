package join

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/evenhand/evenhand/ingest/call"
)

// maxBetween is how many spans may stand between two that tell of one call.
const maxBetween = 8

// once makes one node of those that tell of one call under two keys: Logfire tells a stream's end beside its call, and an
// instrumentation of a framework tells the call that the one of its client tells beneath it.
func once(nodes []*node, at map[string]*node) {
	for _, n := range nodes {
		if n.Ends && n.fresh && n.isModel() {
			if begun := slices.IndexFunc(nodes, n.ends); begun >= 0 {
				n.into(nodes[begun], call.Merge(n.Part, nodes[begun].Part)) // the end knows more than the beginning
			}
		}
	}
	for _, n := range nodes {
		if n.fresh && n.isModel() && len(n.Answers) > 0 {
			if outer := around(n, at); outer != nil && outer.fresh && sameAnswers(outer.Answers, n.Answers) && sameAsked(outer.Messages, n.Messages) {
				n.into(outer, call.Merge(outer.Part, n.Part))
			}
		}
	}
}

// ends tells whether n is the end of the call begun.
func (n *node) ends(begun *node) bool {
	return begun != n && begun.fresh && begun.isModel() && !begun.Ends && len(begun.Answers) == 0 && begun.Parent == n.Parent && sameMessages(begun.Messages, n.Messages)
}

// into makes n a part of whole.
func (n *node) into(whole *node, merged call.Part) {
	merged.Key, merged.Parent, merged.TraceID, merged.SpanID, merged.Ends = whole.Key, whole.Parent, whole.TraceID, whole.SpanID, false
	whole.Part, n.within = merged, whole
}

// around is the call of a model that stands around n, nil where there is none.
func around(n *node, at map[string]*node) *node {
	for range maxBetween {
		up := at[n.Parent]
		if n.Parent == "" || up == nil || up.isModel() {
			return up
		}
		if n = up; n.Kind == call.Outer {
			return nil
		}
	}
	return nil
}

func sameMessages(a, b []call.Message) bool {
	return slices.EqualFunc(a, b, func(a, b call.Message) bool {
		return a.Role == b.Role && bytes.Equal(a.Content, b.Content) && bytes.Equal(a.Calls, b.Calls)
	})
}

// sameAnswers tells whether two instrumentations tell the same answers, each in its own shape of calls.
func sameAnswers(a, b []call.Message) bool {
	return slices.EqualFunc(a, b, func(a, b call.Message) bool {
		return bytes.Equal(a.Content, b.Content) && slices.Equal(tools(a.Calls), tools(b.Calls))
	})
}

// sameAsked compares what was said last: instructions stand among the messages or beside them.
func sameAsked(a, b []call.Message) bool {
	return len(a) > 0 && len(b) > 0 && bytes.Equal(a[len(a)-1].Content, b[len(b)-1].Content)
}

// tools names the tools that were called.
func tools(calls json.RawMessage) (names []string) {
	var all []struct {
		Name     string
		Function struct{ Name string }
	}
	_ = json.Unmarshal(calls, &all) // of another shape: no names
	for _, c := range all {
		names = append(names, c.Name+c.Function.Name)
	}
	return names
}
