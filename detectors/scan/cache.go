package scan

import (
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
)

// cache holds the states of the lazy automaton that have been needed so far. It serves two kinds of
// walks over the same table:
//
//   - the filter looks for all parts at once; a state is a base (what the entries of all parts have
//     become after the last symbol) and the further instructions that earlier symbols led to;
//   - a match of one pattern from one place; a state is a list of instructions in order of preference.
//
// Both decide assertions one symbol late, when both neighbours are known, and so report a match at the
// step over the symbol that follows it.
//
// Many goroutines walk one cache. Reading takes no lock: a row is written once, entry by entry, and an
// entry is published atomically after the state it leads to. When the cache is full, walks move to a
// new one, each taking along its own state; a walk never depends on what a cache still holds.
type cache struct {
	p       *program
	columns uint32
	table   []uint32 // row by row; see entry
	states  []state  // by number of the row
	starts  []uint32 // atomic; by pattern and kind: row of the state in which a match begins, 0 unknown

	mu     sync.Mutex // guards what follows, and all writing
	n      int        // states in use
	ids    map[string]uint32
	closer *closer
	key    []byte
	outs   []uint32
	pcs    []uint32
	found  []uint32
}

// An entry of the table is where its row begins, so that a step is one addition and one load. 0 is "not
// known yet".
const (
	matched = 1 << 31 // something matched before the symbol that was stepped over
	dead    = 1 << 30 // nothing can match any more; the rest of the entry is 0
	rowBits = dead - 1
)

// state is written before its row is published, and never after.
type state struct {
	key   string   // mode, then see filterState and matchState
	found []uint32 // parts that matched before the last symbol
}

const (
	filtering = 'f'
	matching  = 'm'
)

// newCache makes an empty cache. The first row belongs to no state, the second to the filter at the
// beginning of a text.
func newCache(p *program, maxStates int) *cache {
	columns := p.alphabet.columns()
	c := &cache{
		p:       p,
		columns: uint32(columns),
		table:   make([]uint32, maxStates*columns),
		states:  make([]state, maxStates),
		starts:  make([]uint32, len(p.patterns)*int(kinds)),
		n:       1,
		ids:     map[string]uint32{},
		closer:  newCloser(p),
	}
	c.key = filterKey(c.key, baseBegin, nil, nil)
	c.intern(nil)
	return c
}

// begin is the row of the filter at the beginning of a text.
func (c *cache) begin() uint32 { return c.columns }

// found gives the parts whose matches a step to row reported.
func (c *cache) foundAt(row uint32) []uint32 { return c.states[row/c.columns].found }

// load reads one entry.
func (c *cache) load(row uint32, column int) uint32 {
	return atomic.LoadUint32(&c.table[row+uint32(column)])
}

// intern gives the row of the state with the key in c.key, a new one if need be. It returns 0 if the
// cache is full. The caller holds the lock.
func (c *cache) intern(found []uint32) uint32 {
	if row, ok := c.ids[string(c.key)]; ok {
		return row
	}
	if c.n == len(c.states) {
		return 0
	}
	row := uint32(c.n) * c.columns
	key := string(c.key)
	c.states[c.n] = state{key, slices.Clone(found)}
	c.ids[key] = row
	c.n++
	return row
}

// adopt gives the row of a state of another cache, or 0 if this one is full.
func (c *cache) adopt(s state) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key = append(c.key[:0], s.key...)
	return c.intern(s.found)
}

// start gives the row of the state in which a match of the pattern begins after a symbol of kind prev,
// or 0 if the cache is full.
func (c *cache) start(pattern int32, prev kind) uint32 {
	slot := &c.starts[int(pattern)*int(kinds)+int(prev)]
	if row := atomic.LoadUint32(slot); row != 0 {
		return row
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closer.reset()
	c.pcs = c.closer.close(c.pcs[:0], c.p.patterns[pattern], 0)
	c.key = matchKey(c.key, prev, c.pcs)
	row := c.intern(nil)
	atomic.StoreUint32(slot, row)
	return row
}

// step computes the entry for one symbol and publishes it. It returns 0 if the cache is full.
func (c *cache) step(row uint32, class int) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := &c.table[row+uint32(class)]
	if e := atomic.LoadUint32(slot); e != 0 { // somebody else was faster
		return e
	}
	var e uint32
	if key := c.states[row/c.columns].key; key[0] == filtering {
		e = c.filterStep(key, class)
	} else {
		e = c.matchStep(key, class)
	}
	atomic.StoreUint32(slot, e)
	return e
}

// filterKey is mode, base, number of found parts, found parts, instructions beyond the base; the last
// two sorted.
func filterKey(b []byte, base uint32, found, pcs []uint32) []byte {
	b = append(b[:0], filtering)
	b = appendNumbers(b, []uint32{base, uint32(len(found))})
	b = appendNumbers(b, found)
	return appendNumbers(b, pcs)
}

func (c *cache) filterStep(key string, class int) uint32 {
	from := c.p.bases[number(key[1:])]
	extra := key[9+4*number(key[5:]):]
	prev, next := from.kind, c.p.alphabet.kind[class]
	to := uint32(baseEnd)
	if next != edge {
		to = c.p.base[prev][class]
	}

	holds := assertions(prev, next)
	c.closer.reset()
	c.outs, c.found = c.outs[:0], c.found[:0]
	for _, pc := range from.pcs {
		c.cross(pc, holds, class)
	}
	for ; extra != ""; extra = extra[4:] {
		c.cross(number(extra), holds, class)
	}

	c.closer.reset()
	for _, pc := range c.p.bases[to].pcs {
		c.closer.seen[pc] = c.closer.gen
	}
	c.pcs = c.pcs[:0]
	for _, pc := range c.outs {
		c.pcs = c.closer.close(c.pcs, pc, 0)
	}
	slices.Sort(c.pcs)
	slices.Sort(c.found)
	c.found = slices.Compact(c.found)
	c.key = filterKey(c.key, to, c.found, c.pcs)
	row := c.intern(c.found)
	if row != 0 && len(c.found) > 0 {
		row |= matched
	}
	return row
}

// cross takes one instruction of the filter over a symbol of the class, or over the end of the text.
func (c *cache) cross(pc uint32, holds syntax.EmptyOp, class int) {
	if in := &c.p.inst[pc]; in.op == symbol { // by far the most frequent
		if class < c.p.alphabet.end && c.p.sets[in.arg].has(class) {
			c.outs = append(c.outs, in.out)
		}
		return
	}
	c.pcs = c.closer.close(c.pcs[:0], pc, holds)
	for _, pc := range c.pcs {
		in := &c.p.inst[pc]
		if in.op == match {
			c.found = append(c.found, in.arg)
		} else if class < c.p.alphabet.end && c.p.sets[in.arg].has(class) {
			c.outs = append(c.outs, in.out)
		}
	}
}

// matchKey is mode, kind of the last symbol, instructions in order of preference.
func matchKey(b []byte, prev kind, pcs []uint32) []byte {
	return appendNumbers(append(b[:0], matching, byte(prev)), pcs)
}

func (c *cache) matchStep(key string, class int) uint32 {
	prev, next := kind(key[1]), c.p.alphabet.kind[class]
	holds := assertions(prev, next)
	var flags uint32
	c.closer.reset()
	c.outs = c.outs[:0]
threads:
	for list := key[2:]; list != ""; list = list[4:] {
		c.pcs = c.closer.close(c.pcs[:0], number(list), holds)
		for _, pc := range c.pcs {
			in := &c.p.inst[pc]
			if in.op == match { // preferred to everything after it
				flags = matched
				break threads
			}
			if class < c.p.alphabet.end && c.p.sets[in.arg].has(class) {
				c.outs = append(c.outs, in.out)
			}
		}
	}
	c.closer.reset()
	c.pcs = c.pcs[:0]
	for _, pc := range c.outs {
		c.pcs = c.closer.close(c.pcs, pc, 0)
	}
	for i, pc := range c.pcs {
		if c.p.inst[pc].op == match {
			c.pcs = c.pcs[:i+1]
			break
		}
	}
	if len(c.pcs) == 0 {
		return dead | flags
	}
	c.key = matchKey(c.key, next, c.pcs)
	row := c.intern(nil)
	if row != 0 {
		row |= flags
	}
	return row
}

// number reads one number of a key.
func number(key string) uint32 {
	return uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24
}
