package arbiter

import (
	"container/list"
	"sync"
)

// maxCached bounds what decisions in memory take, in bytes.
const maxCached = 16 << 20

// cache keeps the decisions used last, by offset. It is safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	size  int
	order *list.List // of Decision, the newest first
	at    map[int64]*list.Element
}

func newCache() *cache { return &cache{order: list.New(), at: map[int64]*list.Element{}} }

func (c *cache) get(offset int64) (Decision, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[offset]
	if !ok {
		return Decision{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(Decision), true
}

func (c *cache) put(d Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.at[d.Offset]; ok {
		return
	}
	c.at[d.Offset] = c.order.PushFront(d)
	for c.size += weight(&d); c.size > maxCached; {
		e := c.order.Back()
		old := c.order.Remove(e).(Decision)
		delete(c.at, old.Offset)
		c.size -= weight(&old)
	}
}

func weight(d *Decision) int {
	return 300 + len(d.Key.Kind) + len(d.Key.ID) + len(d.Value) + len(d.Proposer)
}
