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
	states []state     // by number, from the number first on
	first  uint32

	mu         sync.Mutex // guards what follows, and all writing
	lastTold   uint32     // numbers given to states that have found something: from silent-1 down to this one
	lastSilent uint32     // and to others: from silent up to this one
	numbers    map[string]uint32
	lists      map[string][]uint32 // what states have found, by content: many have found the same
	closer     *closer
	key        []byte
	outs       []uint32
	pcs        []uint32
	leaves     []uint32
	found      []uint32
	fromBase   map[[2]uint32]crossed // by base and class
}

// column says where the entries of a symbol are: that of the state n is the entry n*stride+offset of the table.
// An entry is the number of the next state, and 0 "not known yet".
type column struct{ offset, stride uint32 }

const (
	silent     = 18 << 10 // the states from this number on have found nothing: nearly all that a text goes through
	leastTold  = lanes + 2
	mostStates = 1<<16 - 1 // so many can be told apart in an entry
)

// Every symbol has a column, up to maxColumns of them; that is enough for ASCII. Patterns in many scripts may
// tell thousands of characters apart. Their entries lie in a hash table that forgets: a lost one is computed again.
const (
	nearColumns = 32 // of the symbols of most texts: 64 bytes for each state
	maxColumns  = 144
	farBits     = 15 // the hash table has 1<<farBits entries
)

// columnsFor is the number of columns, even.
func columnsFor(a *alphabet) int { return min(max(a.size+1, nearColumns)&^1, maxColumns) }

// state is written before its number is published, and never after.
type state struct {
	key   string   // see keyOf; enough to make the state anew
	found []uint32 // parts that ended before the last symbol
}

// newCache makes a cache that knows the beginning of a text alone.
func newCache(p *program, maxStates int) *cache {
	columns, told := columnsFor(p.alphabet), uint32(max(maxStates*silent>>16, leastTold)) // as many of them as there are numbers
	c := &cache{
		p:          p,
		column:     make([]column, min(p.alphabet.size, columns)),
		table:      make([]uint32, maxStates*columns/2),
		states:     make([]state, maxStates),
		first:      silent - told,
		lastTold:   silent,
		lastSilent: silent - 1,
		numbers:    map[string]uint32{},
		lists:      map[string][]uint32{},
		fromBase:   map[[2]uint32]crossed{},
		closer:     newCloser(p.inst),
	}
	for symbol := range uint32(len(c.column)) {
		begin, stride := symbol, uint32(nearColumns)
		if symbol >= nearColumns {
			begin, stride = uint32(maxStates*nearColumns)+symbol-nearColumns, uint32(columns-nearColumns)
		}
		c.column[symbol] = column{begin - c.first*stride, stride} // modulo 2^32, as sums are
	}
	for b, class := range p.alphabet.ascii {
		c.ascii[b] = c.column[class]
	}
	if p.alphabet.size > columns {
		c.far = make([]uint64, 1<<farBits)
	}
	c.key = keyOf(c.key, baseBegin, nil, nil)
	c.intern()
	return c
}

// grown is a cache for more states with everything that is in this one.
func (c *cache) grown(maxStates int) *cache { return c.copied(maxStates, 1) }

// halved is a cache with the half of the states that came first, of those that have found something and of the others: what most texts go through comes up in the first
// of them, and what comes late is rare. So a text of another kind finds room, and the next usual one all that it needs.
func (c *cache) halved() *cache { return c.copied(len(c.states), 2) }

// copied is a cache for so many states with one part of these: those that came first, and what leads from one of them to another.
func (c *cache) copied(maxStates int, part uint32) *cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := newCache(c.p, maxStates)
	g.lastTold, g.lastSilent = silent-(silent-c.lastTold)/part, silent+(c.lastSilent-silent)/part
	for n := g.lastTold; n <= g.lastSilent; n++ {
		s := c.state(n)
		*g.state(n) = *s
		g.numbers[s.key] = n
		if len(s.found) > 0 {
			g.lists[listOf(s.key)] = s.found
		}
		for symbol, at := range c.column {
			if next := at.of(c.table, n); g.lastTold <= next && next <= g.lastSilent {
				g.column[symbol].publish(g.table, n, next)
			}
		}
	}
	g.fromBase = maps.Clone(c.fromBase)
	return g
}

// begin is the state of the beginning of a text.
func (c *cache) begin() uint32 { return silent }

// state is the state with a number.
func (c *cache) state(n uint32) *state { return &c.states[n-c.first] }

// of reads the entry of a state.
func (at column) of(table []uint32, n uint32) uint32 {
	i := n*at.stride + at.offset
	return atomic.LoadUint32(&table[i/2]) >> (i % 2 * 16) & 0xffff
}

// publish writes the entry of a state, which is not known yet. Calls hold cache.mu.
func (at column) publish(table []uint32, n, e uint32) {
	i := n*at.stride + at.offset
	atomic.OrUint32(&table[i/2], e<<(i%2*16))
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
	n := c.lastSilent + 1
	if len(c.found) > 0 {
		n = c.lastTold - 1
	}
	if n < c.first || n-c.first == uint32(len(c.states)) {
		return 0
	}
	c.lastTold, c.lastSilent = min(c.lastTold, n), max(c.lastSilent, n)
	key := string(c.key)
	of := listOf(key)
	found, ok := c.lists[of]
	if !ok {
		found = slices.Clone(c.found)
		c.lists[of] = found
	}
	*c.state(n) = state{key, found}
	c.numbers[key] = n
	return n
}

// keyOf is base, number of found parts, found parts, instructions beyond the base; the last two sorted.
func keyOf(b []byte, base uint32, found, pcs []uint32) []byte {
	b = appendNumbers(b[:0], []uint32{base, uint32(len(found))})
	b = appendNumbers(b, found)
	return appendNumbers(b, pcs)
}

// listOf is the part of a key that says what has been found.
func listOf(key string) string { return key[4 : 8+4*number(key[4:])] }

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
	key := c.state(n).key
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
