package scan

import (
	"regexp/syntax"
	"slices"
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
	text  []byte // of a phrase
	lines bool   // some assertion looks for ends of lines
}

type partKey struct {
	re          *syntax.Regexp
	left, right bool
}

func newLinker() *linker {
	return &linker{
		program: program{setIDs: map[string]uint32{}},
		ids:     map[string]int32{}, quick: map[partKey]int32{}, lists: newTrie(), said: map[*syntax.Regexp]listing{}, seen: map[*syntax.Regexp]bool{},
	}
}

// part adds a part and gives its number, which equal parts have in common.
func (l *linker) part(j *joint) (int32, error) {
	key := partKey{j.re, j.left, j.right}
	if id, ok := l.quick[key]; ok {
		return id, nil
	}
	id, err := l.newPart(j)
	l.quick[key] = id
	return id, err
}

func (l *linker) newPart(j *joint) (int32, error) {
	next := int32(l.size)
	if said := l.list(j.re); said.ok && !said.isEverywhere() {
		list := said.phrases
		text := contentOfList(list, j.left, j.right)
		id, ok := l.ids[text]
		if !ok {
			id = next
			l.ids[text] = id
			l.size++
			for _, p := range list {
				l.lists.add(p.steps, uint32(id), j.left, j.right && !p.cut)
			}
		}
		return id, nil
	}
	prog, err := syntax.Compile(clip(j.re).Simplify())
	if err != nil {
		return 0, err
	}
	text := content(prog, j.left, j.right)
	id, ok := l.ids[text]
	if !ok {
		id = next
		l.ids[text] = id
		l.size++
		l.add(prog, uint32(id), j.left, j.right)
	}
	return id, nil
}

// add copies a compiled part, with the assertions that its ends ask for.
func (l *linker) add(prog *syntax.Prog, part uint32, left, right bool) {
	off := uint32(len(l.inst))
	all, _ := l.translate(prog, off)
	l.inst = append(l.inst, all...)
	entry := off + uint32(prog.Start)
	end := inst{op: match, arg: uint32(len(l.found))}
	l.found = append(l.found, []uint32{part})
	if right {
		l.inst = append(l.inst, end)
		end = inst{op: assert, arg: uint32(notInside), out: uint32(len(l.inst) - 1)}
	}
	for i := range all {
		if l.inst[off+uint32(i)].op == match {
			l.inst[off+uint32(i)] = end
		}
	}
	if left {
		l.inst = append(l.inst, inst{op: assert, arg: uint32(notInside), out: entry})
		entry = uint32(len(l.inst) - 1)
	}
	l.entries = append(l.entries, entry)
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
			l.set(orbit(r, re.Flags&syntax.FoldCase != 0))
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
	all, ok := p.translate(prog, 0)
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

// translate gives our instructions for those of a compiled expression, which begin at off. All its
// characters must have been learned, or else ok is false.
func (p *program) translate(prog *syntax.Prog, off uint32) (all []inst, ok bool) {
	all, ok = make([]inst, len(prog.Inst)), true
	for i := range prog.Inst {
		in, to := &prog.Inst[i], &all[i]
		to.out = in.Out + off
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			to.op, to.arg = alt, in.Arg+off
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

// contentOfList is equal for lists that are equal.
func contentOfList(list []phrase, left, right bool) string {
	b := appendFlags(nil, left, right, true)
	for _, p := range list {
		for _, s := range p.steps {
			b = appendNumbers(appendFlags(b, s.loop), []uint32{s.set})
		}
		b = append(appendFlags(b, p.cut), 0xff)
	}
	return string(b)
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

// content is equal for parts that are equal.
func content(prog *syntax.Prog, left, right bool) string {
	b := appendNumbers(appendFlags(nil, left, right, false), []int{prog.Start})
	for i := range prog.Inst {
		in := &prog.Inst[i]
		b = append(b, byte(in.Op))
		b = appendNumbers(b, []uint32{in.Out, in.Arg, uint32(len(in.Rune))})
		b = appendNumbers(b, in.Rune)
	}
	return string(b)
}
