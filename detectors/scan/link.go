package scan

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// linker joins compiled parts into one program. Equal ones are held once.
type linker struct {
	program
	signs []byte                  // of each class set, see signOf
	runes []runeSet               // by number of the class set
	ids   map[string]int32        // by content of a compiled part: its number
	quick map[partKey]int32       // the same by the node of the tree
	seen  map[*syntax.Regexp]bool // nodes whose characters are known
	lists *trie
	said  map[*syntax.Regexp]listing
	text  []byte // of a phrase, or the content of a list
	lines bool   // some assertion looks for ends of lines

	emitted map[uint64][]emitted // parts that are no lists, by digest

	folded [utf8.RuneSelf]uint32 // by character: 1 more than the number of its class set, without regard to case
	links  []link                // of phrases that are being listed
}

type partKey struct {
	re          *syntax.Regexp
	left, right bool
}

func newLinker() *linker {
	return &linker{
		program: program{setIDs: map[string]uint32{}},
		ids:     map[string]int32{}, emitted: map[uint64][]emitted{}, quick: map[partKey]int32{}, lists: newTrie(), said: map[*syntax.Regexp]listing{}, seen: map[*syntax.Regexp]bool{},
	}
}

// part adds a part and gives its number, which equal parts have in common.
func (l *linker) part(j *planned) int32 {
	key := partKey{j.re, j.left, j.right}
	id, ok := l.quick[key]
	if !ok {
		id = l.newPart(j)
		l.quick[key] = id
	}
	return id
}

func (l *linker) newPart(j *planned) int32 {
	next := int32(l.size)
	if said := l.list(j.re); said.ok && !said.isEverywhere() {
		list := said.phrases
		l.text = appendContent(l.text[:0], list, j.left, j.right)
		id, ok := l.ids[string(l.text)]
		if !ok {
			id = next
			l.ids[string(l.text)] = id
			l.size++
			for _, p := range list {
				l.lists.add(p.steps, uint32(id), j.left, j.right && !p.cut)
			}
		}
		return id
	}
	from := len(l.inst)
	entry := l.emitPart(j)
	digest := digestOf(l.inst[from:], from)
	for _, e := range l.emitted[digest] {
		if equal(l.inst[e.from:e.to], l.inst[from:], from-e.from) {
			l.inst = l.inst[:from]
			return e.part
		}
	}
	l.emitted[digest] = append(l.emitted[digest], emitted{from, len(l.inst), next})
	l.inst[from].arg = uint32(len(l.found))
	l.found, l.entries = append(l.found, []uint32{uint32(next)}), append(l.entries, entry)
	l.size++
	return next
}

// emitPart emits a part that is no list, with the assertions that its ends ask for. Its first instruction is its end.
func (l *linker) emitPart(j *planned) (entry uint32) {
	end := l.emitOne(inst{op: match})
	if j.right {
		end = l.emitOne(inst{op: assert, arg: uint32(notInside), out: end})
	}
	entry = l.emit(j.re, end)
	if j.left {
		entry = l.emitOne(inst{op: assert, arg: uint32(notInside), out: entry})
	}
	return entry
}

// emitted is where the instructions of a part are.
type emitted struct {
	from, to int
	part     int32
}

// digestOf is the same for instructions that are equal but for where they are.
func digestOf(all []inst, from int) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, by words
	for _, in := range all[1:] {
		arg := in.arg
		if in.op == alt {
			arg -= uint32(from)
		}
		for _, v := range [...]uint64{uint64(in.op), uint64(in.out - uint32(from)), uint64(arg)} {
			h = (h ^ v) * 1099511628211
		}
	}
	return h
}

// equal says whether b is a, apart by some instructions, but for the number of the part at their ends.
func equal(a, b []inst, apart int) bool {
	if len(a) != len(b) {
		return false
	}
	by := uint32(apart)
	for i, in := range b[1:] {
		in.out -= by
		if in.op == alt {
			in.arg -= by
		}
		if in != a[i+1] {
			return false
		}
	}
	return true
}

// learn takes note of the characters that a pattern tells apart.
func (l *linker) learn(re *syntax.Regexp) {
	if len(re.Sub) > 0 {
		if l.seen[re] {
			return
		}
		l.seen[re] = true
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			l.setOf(r, re.Flags)
		}
	case syntax.OpCharClass:
		l.set(re.Rune)
	case syntax.OpAnyChar:
		l.set(anyRune)
	case syntax.OpAnyCharNotNL:
		l.set(notNL)
	case syntax.OpBeginLine, syntax.OpEndLine:
		l.lines = true
	}
	for _, sub := range re.Sub {
		l.learn(sub)
	}
}

// set gives the number of the class set of some runes.
func (l *linker) set(s runeSet) uint32 {
	var buf [64]byte
	key := appendNumbers(buf[:0], s)
	id, ok := l.setIDs[string(key)]
	if !ok {
		id = uint32(len(l.runes))
		l.setIDs[string(key)] = id
		l.runes, l.signs = append(l.runes, s), append(l.signs, signOf(s))
	}
	return id
}

// setOf gives the number of the class set of one rune of a literal.
func (l *linker) setOf(r rune, flags syntax.Flags) uint32 {
	fold := flags&syntax.FoldCase != 0
	if !fold || uint32(r) >= utf8.RuneSelf {
		return l.set(orbit(r, fold))
	}
	if l.folded[r] == 0 {
		l.folded[r] = l.set(orbit(r, fold)) + 1
	}
	return l.folded[r] - 1
}

// link finishes the program.
func (l *linker) link() (*program, error) {
	var err error
	if l.alphabet, l.sets, err = newAlphabet(l.runes, l.lines); err != nil {
		return nil, err
	}
	p := l.program
	var entry [roots]uint32
	p.inst, entry = l.lists.emit(p.inst, uint32(len(p.found)))
	p.found = append(p.found, l.lists.phrases...)
	p.entries = append(p.entries, entry[:]...)
	p.prepare()
	return &p, nil
}

// exact is one whole pattern.
type exact struct {
	inst   []inst
	entry  uint32
	first  bytes           // with which a match may begin
	begin  [kinds]branches // by kind before it
	pairs  []bitset        // by class of its first character: those of the second
	ahead  []bitset        // classes of the third character, the fourth, …, as far as no match ends before
	inside bool            // it may begin within a word
}

// branches says where a pattern goes on after its first character.
type branches struct {
	of []uint32 // by class: where its instructions begin in to, and, as the next one's, where they end
	to []uint32
}

func (b *branches) after(class int) []uint32 { return b.to[b.of[class]:b.of[class+1]] }

// exact compiles a pattern that was learned. It gives nil for one that package regexp must match.
func (p *program) exact(re *syntax.Regexp) *exact {
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil
	}
	all, ok := p.translate(prog)
	if !ok {
		return nil
	}
	x := &exact{inst: all, entry: uint32(prog.Start)}
	c := newCloser(all)
	x.setBegin(p, c)
	c.reset()
	for _, leaf := range c.close(nil, x.entry, ^syntax.EmptyWordBoundary) {
		x.inside = x.inside || all[leaf].op == symbol
	}
	c.reset()
	starts := c.close(nil, x.entry, ^syntax.EmptyOp(0))
	x.pairs = make([]bitset, p.alphabet.size)
	for _, leaf := range starts {
		in := all[leaf]
		if in.op != symbol {
			continue
		}
		x.first = x.first.or(p.bytesOf(p.sets[in.arg]))
		c.reset()
		second := newBitset(p.alphabet.size)
		for _, leaf := range c.close(nil, in.out, ^syntax.EmptyOp(0)) {
			if all[leaf].op == symbol {
				second.or(p.sets[all[leaf].arg])
			} else {
				second.fill()
			}
		}
		for class := range p.sets[in.arg].all() {
			if x.pairs[class] == nil {
				x.pairs[class] = newBitset(p.alphabet.size)
			}
			x.pairs[class].or(second)
		}
	}
	x.setAhead(p, c, starts)
	return x
}

// mostAhead bounds how far mayBegin looks.
const mostAhead = 12

// setAhead takes the pattern from the leaves at its start over any characters: what may stand third, fourth, …
func (x *exact) setAhead(p *program, c *closer, leaves []uint32) {
	for n := range mostAhead {
		classes, next := newBitset(p.alphabet.size), []uint32(nil)
		c.reset()
		for _, leaf := range leaves {
			in := x.inst[leaf]
			if in.op != symbol {
				return // a match may end here
			}
			classes.or(p.sets[in.arg])
			next = c.close(next, in.out, ^syntax.EmptyOp(0))
		}
		if n >= 2 {
			x.ahead = append(x.ahead, classes)
		}
		leaves = next
	}
}

// setBegin takes the pattern over each first character ahead: a pattern that begins with a list of a thousand
// words goes on with those of one letter.
func (x *exact) setBegin(p *program, c *closer) {
	to := make([][]uint32, p.alphabet.size)
	for prev := range kinds {
		for class := range to {
			to[class] = to[class][:0]
		}
		for next := range edge {
			c.reset()
			for _, leaf := range c.close(nil, x.entry, assertions[prev][next]) {
				in := x.inst[leaf] // a symbol: what can be empty is refused
				for class := range p.sets[in.arg].all() {
					if p.alphabet.kind[class] == next {
						to[class] = append(to[class], in.out)
					}
				}
			}
		}
		b := branches{of: make([]uint32, 1, len(to)+1)}
		for _, list := range to {
			b.to = append(b.to, list...)
			b.of = append(b.of, uint32(len(b.to)))
		}
		b.to = slices.Clip(b.to)
		x.begin[prev] = b
	}
}

// translate gives our instructions for those of a compiled expression. All its characters must have been learned, or
// else ok is false.
func (p *program) translate(prog *syntax.Prog) (all []inst, ok bool) {
	all, ok = make([]inst, len(prog.Inst)), true
	for i := range prog.Inst {
		in, to := &prog.Inst[i], &all[i]
		to.out = in.Out
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			to.op, to.arg = alt, in.Arg
		case syntax.InstCapture, syntax.InstNop:
			to.op = pass
		case syntax.InstEmptyWidth:
			to.op, to.arg = assert, in.Arg
		case syntax.InstMatch:
			to.op = match
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			var buf [64]byte
			var known bool
			to.op = symbol
			to.arg, known = p.setIDs[string(appendNumbers(buf[:0], runesOf(in)))]
			ok = ok && known
		}
	}
	return all, ok
}

// appendContent appends what is equal for lists that are equal.
func appendContent(b []byte, list []phrase, left, right bool) []byte {
	b = appendFlags(b, left, right)
	for _, p := range list {
		for _, s := range p.steps {
			b = appendNumbers(appendFlags(b, s.loop), []uint32{s.set})
		}
		b = append(appendFlags(b, p.cut), 0xff)
	}
	return b
}

func appendFlags(b []byte, flags ...bool) []byte {
	for _, f := range flags {
		if f {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}
