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
//
// What a step costs is waiting for the entry, since a few thousand states are far more than the nearest
// memory holds. So an entry is 16 bits, and what each state does at the characters of most texts fills
// one cache line, those of all states lying together; the other symbols' entries lie behind.
type cache struct {
	p      *program
	ascii  [256]column // of each byte; undecoded's for those that are not ASCII
	column []column    // of each symbol that has one
	table  []uint32    // entries, two in each; see column
	far    []uint64    // entries of symbols without a column, by hash; see farSlot
	states []state     // by number
	told   uint32      // the numbers from 1 to told are those of states that have found something

	mu       sync.Mutex // guards what follows, and all writing
	n, nTold uint32     // the last numbers given away, of states above told and up to it
	numbers  map[string]uint32
	lists    map[string][]uint32 // what states have found, by content: many have found the same
	closer   *closer
	key      []byte
	outs     []uint32
	pcs      []uint32
	leaves   []uint32
	found    []uint32
	fromBase map[[2]uint32]crossed // by base and class
}

// column says where the entries of a symbol are: that of the state n is the half of table[n*stride+offset]
// that the shift brings to the right. An entry is the number of the next state, and 0 "not known yet".
type column struct {
	offset uint32
	stride uint16
	shift  uint16
}

// Every symbol has a column, up to maxColumns of them; that is enough for ASCII. Patterns in many scripts may
// tell thousands of characters apart. Their entries lie in a hash table that forgets: a lost one is computed again.
const (
	nearColumns = 32 // of the symbols of most texts: 64 bytes for each state
	maxColumns  = 144
	farBits     = 15        // the hash table has 1<<farBits entries
	mostStates  = 1<<16 - 1 // so many can be told apart in an entry, with 0
	entryBits   = 1<<16 - 1
	leastTold   = lanes + 2 // for where a walk is, and one step
	toldOf16    = 3         // of 16 states have found something; in texts that people write rather fewer
)

// columnsFor is the number of columns, a multiple of a cache line.
func columnsFor(a *alphabet) int { return min((a.size+nearColumns-1)&^(nearColumns-1), maxColumns) }

// state is written before its number is published, and never after.
type state struct {
	key   string   // see keyOf; enough to make the state anew
	found []uint32 // parts that ended before the last symbol
}

// newCache makes a cache that knows the beginning of a text alone.
func newCache(p *program, maxStates int) *cache {
	columns, numbers := columnsFor(p.alphabet), uint32(maxStates)+1
	c := &cache{
		p:        p,
		column:   make([]column, min(p.alphabet.size, columns)),
		table:    make([]uint32, int(numbers)*columns/2),
		states:   make([]state, numbers),
		told:     max(uint32(maxStates)*toldOf16/16, leastTold),
		numbers:  map[string]uint32{},
		lists:    map[string][]uint32{},
		fromBase: map[[2]uint32]crossed{},
		closer:   newCloser(p.inst),
	}
	for symbol := range uint32(len(c.column)) {
		at := &c.column[symbol]
		if *at = (column{symbol / 2, nearColumns / 2, uint16(symbol % 2 * 16)}); symbol >= nearColumns {
			at.offset, at.stride = (numbers*nearColumns+symbol-nearColumns)/2, uint16(columns-nearColumns)/2
		}
	}
	for b, class := range p.alphabet.ascii {
		c.ascii[b] = c.column[class]
	}
	if p.alphabet.size > columns {
		c.far = make([]uint64, 1<<farBits)
	}
	c.n = c.told
	c.key = keyOf(c.key, baseBegin, nil, nil)
	c.intern()
	return c
}

// grown is a cache for more states with everything that is in this one.
func (c *cache) grown(maxStates int) *cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := newCache(c.p, maxStates)
	number := func(n uint32) uint32 {
		if n > c.told {
			n += g.told - c.told
		}
		return n
	}
	for from := uint32(1); from <= c.n; from++ {
		if from > c.nTold && from <= c.told {
			continue
		}
		to := number(from)
		g.states[to] = c.states[from]
		for symbol, at := range c.column {
			if next := at.of(c.table, from); next != 0 {
				g.column[symbol].publish(g.table, to, number(next))
			}
		}
	}
	for key, n := range c.numbers {
		g.numbers[key] = number(n)
	}
	g.n, g.nTold = number(c.n), c.nTold
	g.lists, g.fromBase = maps.Clone(c.lists), maps.Clone(c.fromBase)
	return g
}

// begin is the state of the beginning of a text.
func (c *cache) begin() uint32 { return c.told + 1 }

// of reads the entry of a state.
func (at column) of(table []uint32, n uint32) uint32 {
	return atomic.LoadUint32(&table[n*uint32(at.stride)+at.offset]) >> (at.shift & 31) & entryBits
}

// publish writes the entry of a state. Calls hold cache.mu.
func (at column) publish(table []uint32, n, e uint32) {
	atomic.OrUint32(&table[n*uint32(at.stride)+at.offset], e<<(at.shift&31)) // written once: it was 0
}

// entry reads one entry.
func (c *cache) entry(n uint32, symbol int) uint32 {
	if symbol < len(c.column) {
		return c.column[symbol].of(c.table, n)
	}
	slot, tag := c.farSlot(n, symbol)
	if v := atomic.LoadUint64(slot); uint32(v>>32) == tag {
		return uint32(v)
	}
	return 0
}

func (c *cache) publish(n uint32, symbol int, e uint32) {
	if symbol < len(c.column) {
		c.column[symbol].publish(c.table, n, e)
		return
	}
	slot, tag := c.farSlot(n, symbol)
	atomic.StoreUint64(slot, uint64(tag)<<32|uint64(e))
}

func (c *cache) farSlot(n uint32, symbol int) (slot *uint64, tag uint32) {
	tag = n<<16 | uint32(symbol)
	return &c.far[tag*0x9e3779b1>>(32-farBits)], tag
}

// adopt gives the number of a state of another cache, or 0 if this one is full.
func (c *cache) adopt(s state) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key, c.found = append(c.key[:0], s.key...), append(c.found[:0], s.found...)
	return c.intern()
}

// intern gives the number of the state with c.key and c.found, a new one if need be. It returns 0 if the
// cache is full.
func (c *cache) intern() uint32 {
	if n, ok := c.numbers[string(c.key)]; ok {
		return n
	}
	last, most := &c.n, uint32(len(c.states)-1)
	if len(c.found) > 0 {
		last, most = &c.nTold, c.told
	}
	if *last == most {
		return 0
	}
	*last++
	key := string(c.key)
	found, ok := c.lists[key[4:8+4*len(c.found)]]
	if !ok {
		found = slices.Clone(c.found)
		c.lists[key[4:8+4*len(c.found)]] = found
	}
	c.states[*last] = state{key, found}
	c.numbers[key] = *last
	return *last
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
func (c *cache) step(n uint32, class int) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entry(n, class); e != 0 { // somebody else was faster
		return e
	}
	key := c.states[n].key
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
	if e != 0 {
		c.publish(n, class, e)
	}
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
