package scan

import (
	"maps"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
)

// cache holds the states of the filter that have been needed so far. The filter is a deterministic
// automaton that looks for all parts at once; a state is a base (what the entries of all parts have
// become after the last symbol) and the further instructions that earlier symbols led to. Assertions
// are decided one symbol late, when both neighbours are known, and so a part's end is reported by the
// step over the symbol that follows it.
//
// All goroutines share one cache. Reading takes no lock: an entry is published atomically after the
// state it leads to. When the cache is full, each goes on in its successor and takes its own state
// along; nothing depends on what a cache holds.
type cache struct {
	p       *program
	columns uint32
	table   []uint32 // row by row; see entry
	far     []uint64 // entries of symbols beyond the columns, by hash; see farSlot
	states  []state  // by number of the row

	mu       sync.Mutex // guards what follows, and all writing
	n        int        // rows in use
	rows     map[string]uint32
	closer   *closer
	key      []byte
	outs     []uint32
	pcs      []uint32
	leaves   []uint32
	found    []uint32
	fromBase map[[2]uint32]crossed // by base and class
}

// An entry of the table is where the row of the next state begins, so that a step is one addition and
// one load. 0 is "not known yet".
const (
	matched = 1 << 31 // parts ended before the symbol that was stepped over
	rowBits = matched - 1
)

// A row has a column for every symbol, up to maxColumns of them; that is enough for ASCII. Patterns in
// many scripts may tell thousands of characters apart. Entries beyond the columns lie in a hash table
// that forgets: a lost one is computed again.
const (
	maxColumns = 144
	farBits    = 15      // the hash table has 1<<farBits entries
	mostStates = 1 << 16 // so many rows can be told apart there
)

// columnsFor is the width of a row, a multiple of a cache line.
func columnsFor(a *alphabet) int { return min((a.size+15)&^15, maxColumns) }

// state is written before its row is published, and never after.
type state struct {
	key   string   // see keyOf; enough to make the state anew
	found []uint32 // parts that ended before the last symbol
}

// newCache makes an empty cache. The first row belongs to no state, the second to the beginning of a
// text.
func newCache(p *program, maxStates int) *cache {
	columns := columnsFor(p.alphabet)
	c := &cache{
		p:        p,
		columns:  uint32(columns),
		table:    make([]uint32, maxStates*columns),
		states:   make([]state, maxStates),
		n:        1,
		rows:     map[string]uint32{},
		fromBase: map[[2]uint32]crossed{},
		closer:   newCloser(p.inst),
	}
	if p.alphabet.size > columns {
		c.far = make([]uint64, 1<<farBits)
	}
	c.key = keyOf(c.key, baseBegin, nil, nil)
	c.intern()
	return c
}

// grown is a cache for more states with everything that is in this one.
func (c *cache) grown(maxStates int) *cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := newCache(c.p, maxStates)
	for i := range c.table {
		g.table[i] = atomic.LoadUint32(&c.table[i])
	}
	copy(g.states, c.states[:c.n])
	g.rows, g.n = maps.Clone(c.rows), c.n
	g.fromBase = maps.Clone(c.fromBase)
	return g
}

// begin is the row of the beginning of a text.
func (c *cache) begin() uint32 { return c.columns }

// stateAt is the state of a row.
func (c *cache) stateAt(row uint32) state { return c.states[row/c.columns] }

// entry reads one entry.
func (c *cache) entry(row uint32, symbol int) uint32 {
	if symbol < int(c.columns) {
		return atomic.LoadUint32(&c.table[row+uint32(symbol)])
	}
	slot, tag := c.farSlot(row, symbol)
	if v := atomic.LoadUint64(slot); uint32(v>>32) == tag {
		return uint32(v)
	}
	return 0
}

func (c *cache) publish(row uint32, symbol int, e uint32) {
	if symbol < int(c.columns) {
		atomic.StoreUint32(&c.table[row+uint32(symbol)], e)
		return
	}
	slot, tag := c.farSlot(row, symbol)
	atomic.StoreUint64(slot, uint64(tag)<<32|uint64(e))
}

func (c *cache) farSlot(row uint32, symbol int) (slot *uint64, tag uint32) {
	tag = row/c.columns<<16 | uint32(symbol)
	return &c.far[tag*0x9e3779b1>>(32-farBits)], tag
}

// adopt gives the row of a state of another cache, or 0 if this one is full.
func (c *cache) adopt(s state) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key, c.found = append(c.key[:0], s.key...), append(c.found[:0], s.found...)
	return c.intern()
}

// intern gives the row of the state with c.key and c.found, a new one if need be. It returns 0 if the
// cache is full.
func (c *cache) intern() uint32 {
	if row, ok := c.rows[string(c.key)]; ok {
		return row
	}
	if c.n == len(c.states) {
		return 0
	}
	row, key := uint32(c.n)*c.columns, string(c.key)
	c.states[c.n] = state{key, slices.Clone(c.found)}
	c.rows[key] = row
	c.n++
	return row
}

// keyOf is base, number of found parts, found parts, instructions beyond the base; the last two sorted.
func keyOf(b []byte, base uint32, found, pcs []uint32) []byte {
	b = appendNumbers(b[:0], []uint32{base, uint32(len(found))})
	b = appendNumbers(b, found)
	return appendNumbers(b, pcs)
}

// number reads one number of a key.
func number(key string) uint32 {
	return uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24
}

// step computes the entry for one symbol and publishes it. It returns 0 if the cache is full.
func (c *cache) step(row uint32, class int) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entry(row, class); e != 0 { // somebody else was faster
		return e
	}
	key := c.stateAt(row).key
	from := c.p.bases[number(key)]
	extra := key[8+4*number(key[4:]):]
	prev, next := from.kind, c.p.alphabet.kind[class]
	to := uint32(baseEnd)
	if class != ending {
		to = c.p.base[prev][class]
	}

	holds := assertions[prev][next]
	of := c.ofBase(number(key), to, holds, class)
	c.found, c.pcs = append(c.found[:0], of.found...), append(c.pcs[:0], of.pcs...)
	c.outs = c.outs[:0]
	c.closer.reset()
	for ; extra != ""; extra = extra[4:] {
		c.cross(number(extra), holds, class)
	}
	if len(c.outs) > 0 {
		c.closeOuts(to, of.pcs)
	}
	slices.Sort(c.pcs)
	slices.Sort(c.found)
	c.found = slices.Compact(c.found)
	c.key = keyOf(c.key, to, c.found, c.pcs)
	e := c.intern()
	if e != 0 && len(c.found) > 0 {
		e |= matched
	}
	c.publish(row, class, e)
	return e
}

// crossed is where a base leads over a symbol: the parts that end before it, and the instructions beyond
// those of the base after it.
type crossed struct{ found, pcs []uint32 }

// ofBase gives where a base leads. That is the same for all states with that base.
func (c *cache) ofBase(base, to uint32, holds syntax.EmptyOp, class int) crossed {
	key := [2]uint32{base, uint32(class)}
	of, ok := c.fromBase[key]
	if !ok {
		c.outs, c.found, c.pcs = c.outs[:0], c.found[:0], c.pcs[:0]
		c.closer.reset()
		for _, pc := range c.p.bases[base].pcs {
			c.cross(pc, holds, class)
		}
		c.closeOuts(to, nil)
		of = crossed{slices.Clone(c.found), slices.Clone(c.pcs)}
		c.fromBase[key] = of
	}
	return of
}

// closeOuts adds to pcs what follows outs, without the instructions of a base and others that are known.
func (c *cache) closeOuts(base uint32, known []uint32) {
	c.closer.reset()
	for _, pc := range c.p.bases[base].pcs {
		c.closer.seen[pc] = c.closer.gen
	}
	for _, pc := range known {
		c.closer.seen[pc] = c.closer.gen
	}
	for _, pc := range c.outs {
		c.pcs = c.closer.close(c.pcs, pc, 0)
	}
}

// cross takes one instruction over a symbol of the class: to outs, and to found what ends before it.
func (c *cache) cross(pc uint32, holds syntax.EmptyOp, class int) {
	c.leaves = append(c.leaves[:0], pc)
	if c.p.inst[pc].op != symbol { // the most frequent
		c.leaves = c.closer.close(c.leaves[:0], pc, holds)
	}
	for _, pc := range c.leaves {
		if in := &c.p.inst[pc]; in.op == match {
			c.found = append(c.found, c.p.found[in.arg]...)
		} else if c.p.sets[in.arg].has(class) {
			c.outs = append(c.outs, in.out)
		}
	}
}
