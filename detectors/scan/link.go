package scan

import "regexp/syntax"

// linker joins compiled parts and patterns into one program. Equal ones are held once.
type linker struct {
	program
	whole  []*syntax.Prog    // the patterns
	runes  []runeSet         // by number of the class set
	sets   map[string]uint32 // numbers of the above by content
	copies map[string]uint32 // by content of a compiled program: its entry
	ids    map[uint32]int32  // by entry: number of the part
	lines  bool              // some assertion looks for ends of lines
}

func newLinker() *linker {
	return &linker{sets: map[string]uint32{}, copies: map[string]uint32{}, ids: map[uint32]int32{}}
}

// part adds a part and gives its number, which equal parts have in common.
func (l *linker) part(prog *syntax.Prog) int32 {
	next := len(l.parts)
	entry := l.add(prog, next)
	id, ok := l.ids[entry]
	if !ok {
		id = int32(next)
		l.ids[entry] = id
		l.parts = append(l.parts, entry)
	}
	return id
}

// pattern adds the next pattern.
func (l *linker) pattern(prog *syntax.Prog) { l.whole = append(l.whole, prog) }

// link finishes the program. Patterns come last, so that one that is a part, too, shares its
// instructions and not the other way round: only a part's end is told apart from others.
func (l *linker) link() (*program, error) {
	for _, prog := range l.whole {
		l.patterns = append(l.patterns, l.add(prog, 0))
	}
	var err error
	if l.alphabet, l.program.sets, err = newAlphabet(l.runes, l.lines); err != nil {
		return nil, err
	}
	p := l.program
	p.prepare()
	return &p, nil
}

// add copies a compiled program unless there is a copy, and gives its entry.
func (l *linker) add(prog *syntax.Prog, part int) uint32 {
	key := content(prog)
	if entry, ok := l.copies[key]; ok {
		return entry
	}
	off := uint32(len(l.inst))
	for i := range prog.Inst {
		l.inst = append(l.inst, l.translate(&prog.Inst[i], off, uint32(part)))
	}
	entry := off + uint32(prog.Start)
	l.copies[key] = entry
	return entry
}

func (l *linker) translate(in *syntax.Inst, off, part uint32) inst {
	to := inst{out: in.Out + off}
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		to.op, to.arg = alt, in.Arg+off
	case syntax.InstCapture, syntax.InstNop:
		to.op = pass
	case syntax.InstEmptyWidth:
		to.op, to.arg = assert, in.Arg
		l.lines = l.lines || syntax.EmptyOp(in.Arg)&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0
	case syntax.InstMatch:
		to.op, to.arg = match, part
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		set := runesOf(in)
		key := string(appendNumbers(nil, set))
		id, ok := l.sets[key]
		if !ok {
			id = uint32(len(l.runes))
			l.sets[key] = id
			l.runes = append(l.runes, set)
		}
		to.op, to.arg = symbol, id
	}
	return to
}

// content is equal for programs that are equal.
func content(prog *syntax.Prog) string {
	b := appendNumbers(nil, []int{prog.Start})
	for i := range prog.Inst {
		in := &prog.Inst[i]
		b = append(b, byte(in.Op))
		b = appendNumbers(b, []uint32{in.Out, in.Arg, uint32(len(in.Rune))})
		b = appendNumbers(b, in.Rune)
	}
	return string(b)
}
