package scan

import (
	"regexp/syntax"
	"slices"
)

// emit appends the instructions of an expression and gives where they begin; they go on at out. What they prefer is
// of no matter to a part, which is found or is not.
func (l *linker) emit(re *syntax.Regexp, out uint32) uint32 {
	switch re.Op {
	case syntax.OpNoMatch:
		return l.emitOne(inst{op: fail})
	case syntax.OpLiteral:
		for _, r := range slices.Backward(re.Rune) {
			out = l.emitOne(inst{op: symbol, arg: l.setOf(r, re.Flags), out: out})
		}
	case syntax.OpCharClass:
		return l.emitOne(inst{op: symbol, arg: l.set(re.Rune), out: out})
	case syntax.OpAnyChar:
		return l.emitOne(inst{op: symbol, arg: l.set(anyRune), out: out})
	case syntax.OpAnyCharNotNL:
		return l.emitOne(inst{op: symbol, arg: l.set(notNL), out: out})
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return l.emitOne(inst{op: assert, arg: uint32(assertionOf[re.Op]), out: out})
	case syntax.OpCapture:
		return l.emit(re.Sub[0], out)
	case syntax.OpConcat:
		for _, sub := range slices.Backward(re.Sub) {
			out = l.emit(sub, out)
		}
	case syntax.OpAlternate:
		var all uint32
		for i, sub := range slices.Backward(re.Sub) {
			begin := l.emit(sub, out)
			if i < len(re.Sub)-1 {
				begin = l.emitOne(inst{op: alt, out: begin, arg: all})
			}
			all = begin
		}
		return all
	case syntax.OpQuest:
		return l.emitOne(inst{op: alt, out: l.emit(re.Sub[0], out), arg: out})
	case syntax.OpStar:
		return l.emitLoop(re.Sub[0], out)
	case syntax.OpPlus:
		return l.emit(re.Sub[0], l.emitLoop(re.Sub[0], out))
	case syntax.OpRepeat:
		return l.emitRepeat(re, out)
	}
	return out
}

// emitRepeat emits a counted repeat. Large counts are widened, x{3,40} to x{3,} and x{16} to x{6,}: counting is the business of
// the exact match; in the common automaton it would multiply states.
func (l *linker) emitRepeat(re *syntax.Regexp, out uint32) uint32 {
	lo, hi := re.Min, re.Max
	if hi > maxCount || lo > maxCount {
		lo, hi = min(lo, maxCount), -1
	}
	if hi < 0 {
		out = l.emitLoop(re.Sub[0], out)
	}
	end := out
	for range hi - lo {
		out = l.emitOne(inst{op: alt, out: l.emit(re.Sub[0], out), arg: end})
	}
	for range lo {
		out = l.emit(re.Sub[0], out)
	}
	return out
}

// emitLoop emits any number of repetitions, none included.
func (l *linker) emitLoop(re *syntax.Regexp, out uint32) uint32 {
	loop := l.emitOne(inst{op: alt, arg: out})
	begin := l.emit(re, loop)
	l.inst[loop].out = begin
	return loop
}

func (l *linker) emitOne(in inst) uint32 {
	l.inst = append(l.inst, in)
	return uint32(len(l.inst) - 1)
}

var assertionOf = map[syntax.Op]syntax.EmptyOp{
	syntax.OpBeginLine: syntax.EmptyBeginLine, syntax.OpEndLine: syntax.EmptyEndLine,
	syntax.OpBeginText: syntax.EmptyBeginText, syntax.OpEndText: syntax.EmptyEndText,
	syntax.OpWordBoundary: syntax.EmptyWordBoundary, syntax.OpNoWordBoundary: syntax.EmptyNoWordBoundary,
}
