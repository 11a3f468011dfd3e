package gateway

import (
	"maps"

	"github.com/evenhand/evenhand/ingest/call"
)

// shorten gives a shorter copy of a call, nil when there is nothing left to cut. The caller's own metadata goes
// first: it may be what is too long.
func shorten(p *call.Part) *call.Part {
	own, _ := p.Metadata["gateway"].(map[string]any)
	was, _ := own[call.CutAt].(int)
	out, limit, ok := call.Shorter(*p, was)
	if !ok {
		return nil
	}
	own = maps.Clone(own)
	own[call.CutAt] = limit
	out.Metadata = map[string]any{"gateway": own}
	return &out
}
