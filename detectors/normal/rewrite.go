package normal

import (
	"sort"
	"strings"
	"sync"
)

// edit says that [ns, ne) of a pass's result stands for [os, oe) of what it read. What lies between two
// edits was copied.
type edit struct{ ns, ne, os, oe uint32 }

// rewriter collects the edits of one pass, front to back.
type rewriter struct {
	src   string
	out   strings.Builder
	done  int // bytes of src that are in out
	edits []edit
	*scratch
}

// scratch is room that passes share.
type scratch struct {
	cells, plain [maxCells]cell
	run          [maxRun]cell
	reader       reader
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// put replaces [from, to) of the source. A place that an earlier edit covers is left for the next round.
func (w *rewriter) put(from, to int, with string) {
	if from < w.done || w.src[from:to] == with {
		return
	}
	if w.edits == nil {
		w.out.Grow(len(w.src) + len(w.src)/8)
		w.edits = make([]edit, 0, 16)
	}
	w.out.WriteString(w.src[w.done:from])
	at := w.out.Len()
	w.out.WriteString(with)
	w.edits = append(w.edits, edit{uint32(at), uint32(w.out.Len()), uint32(from), uint32(to)})
	w.done = to
}

// text gives the result; the rewriter is spent then.
func (w *rewriter) text() string {
	w.out.WriteString(w.src[w.done:])
	return w.out.String()
}

// source gives the range that [start, end) was made of.
func source(edits []edit, start, end int) (from, to int) {
	if start >= end {
		if start > 0 {
			_, from = sourceOf(edits, start-1)
		}
		return from, from
	}
	from, _ = sourceOf(edits, start)
	_, to = sourceOf(edits, end-1)
	return from, to
}

// sourceOf gives the range that one byte was made of.
func sourceOf(edits []edit, b int) (from, to int) {
	k := sort.Search(len(edits), func(i int) bool { return int(edits[i].ns) > b })
	if k == 0 {
		return b, b + 1
	}
	e := edits[k-1]
	if b < int(e.ne) {
		return int(e.os), int(e.oe)
	}
	at := int(e.oe) + b - int(e.ne)
	return at, at + 1
}
