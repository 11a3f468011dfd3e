package scan

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// inst is an instruction of the common non-deterministic automaton.
type inst struct {
	op       op
	out, arg uint32
}

type op uint8

const (
	fail   op = iota
	alt       // go on at out, then at arg
	pass      // go on at out
	assert    // go on at out if the assertions arg hold
	symbol    // consume a symbol of the class set arg, go on at out
	match     // the end of part arg
)

// program holds the instructions of the parts that the filter looks for all at once.
type program struct {
	alphabet *alphabet
	inst     []inst
	sets     []bitset          // class sets
	setIDs   map[string]uint32 // their numbers, by content of the set of runes
	entries  []uint32          // where the parts begin
	found    [][]uint32        // the parts that end at each match instruction, by its argument
	size     int               // the number of parts

	// bases are the distinct sets of instructions that the entries of all parts become after one
	// symbol; base[k][c] is the one after class c where the symbol before was of kind k.
	bases []base
	base  [kinds][]uint32
}

// base is a sorted set of instructions and the kind of the symbol before them.
type base struct {
	kind kind
	pcs  []uint32
}

// The first two bases have no instructions: what was before the text, and what comes after it.
const (
	baseBegin = iota
	baseEnd
)

// prepare fills the bases.
func (p *program) prepare() {
	c := newCloser(p.inst)
	p.bases = []base{baseBegin: {kind: edge}, baseEnd: {kind: edge}}
	ids := map[string]uint32{}
	for prev := range kinds {
		p.base[prev] = make([]uint32, p.alphabet.size)
		outs := make([][]uint32, p.alphabet.size) // by class: where the entries of all parts go
		for next := range edge {
			var pcs []uint32
			c.reset()
			for _, pc := range p.entries {
				pcs = c.close(pcs, pc, assertions[prev][next])
			}
			for _, pc := range pcs {
				in := p.inst[pc] // a symbol: no part can be empty
				for class := range p.sets[in.arg].all() {
					if p.alphabet.kind[class] == next {
						outs[class] = append(outs[class], in.out)
					}
				}
			}
		}
		for class := firstClass; class < p.alphabet.size; class++ {
			p.base[prev][class] = p.addBase(ids, c, p.alphabet.kind[class], outs[class])
		}
	}
}

// addBase gives the number of the base with what is reached from the instructions.
func (p *program) addBase(ids map[string]uint32, c *closer, k kind, from []uint32) uint32 {
	var pcs []uint32
	c.reset()
	for _, pc := range from {
		pcs = c.close(pcs, pc, 0)
	}
	slices.Sort(pcs)
	key := string(appendNumbers([]byte{byte(k)}, pcs))
	id, ok := ids[key]
	if !ok {
		id = uint32(len(p.bases))
		ids[key] = id
		p.bases = append(p.bases, base{k, pcs})
	}
	return id
}

// bytesOf is the set of bytes with which a rune of the classes may begin.
func (p *program) bytesOf(set bitset) bytes {
	var b bytes
	for c, class := range p.alphabet.ascii[:128] {
		if set.has(int(class)) {
			b.add(byte(c))
		}
	}
	for class, foreign := range p.alphabet.foreign {
		if foreign && set.has(class) {
			return b.or(foreignBytes)
		}
	}
	return b
}

// closer follows instructions that consume nothing. It visits an instruction once between resets.
type closer struct {
	inst  []inst
	seen  []uint32 // generation in which an instruction was visited
	gen   uint32
	stack []uint32
}

func newCloser(inst []inst) *closer { return &closer{inst: inst, seen: make([]uint32, len(inst))} }

func (c *closer) reset() {
	c.gen++
	if c.gen == 0 { // after 2^32 resets old marks could be taken for new ones
		clear(c.seen)
		c.gen = 1
	}
}

// close appends the instructions reached from pc without consuming anything, in order of preference:
// symbols, matches, and the assertions that do not hold under the given ones. With no assertions
// given, every assertion is left for later, when the next symbol is known.
func (c *closer) close(dst []uint32, pc uint32, holds syntax.EmptyOp) []uint32 {
	c.stack = append(c.stack[:0], pc)
	for len(c.stack) > 0 {
		pc := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		if c.seen[pc] == c.gen {
			continue
		}
		c.seen[pc] = c.gen
		switch in := &c.inst[pc]; in.op {
		case alt:
			c.stack = append(c.stack, in.arg, in.out)
		case pass:
			c.stack = append(c.stack, in.out)
		case assert:
			if syntax.EmptyOp(in.arg)&^holds == 0 {
				c.stack = append(c.stack, in.out)
			} else if holds == 0 {
				dst = append(dst, pc)
			}
		case symbol, match:
			dst = append(dst, pc)
		}
	}
	return dst
}

func appendNumbers[N ~int | ~int32 | ~uint32](b []byte, ns []N) []byte {
	for _, n := range ns {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// bytes is a set of byte values.
type bytes [4]uint64

// wordBytes are the ASCII word characters.
var wordBytes = bytesOfRunes(wordRunes)

// foreignBytes are the bytes of runes above 0x7f.
var foreignBytes = bytes{2: ^uint64(0), 3: ^uint64(0)}

func (b *bytes) add(c byte)      { b[c>>6] |= 1 << (c & 63) }
func (b *bytes) has(c byte) bool { return b[c>>6]>>(c&63)&1 != 0 }
func (b bytes) and(o bytes) bytes {
	for i := range b {
		b[i] &= o[i]
	}
	return b
}
func (b bytes) or(o bytes) bytes {
	for i := range b {
		b[i] |= o[i]
	}
	return b
}
