package normal

import (
	"sort"
	"sync"
)

// edit says that [ns, ne) of a pass's result stands for [os, oe) of what it read. What lies between two
// edits was copied.
type edit struct{ ns, ne, os, oe uint32 }

// rewriter collects the edits of one pass, front to back, and holds room that passes share.
type rewriter struct {
	src   string
	out   []byte
	done  int // bytes of src that are in out
	edits []edit

	survey       // of src
	cells, plain [maxCells]cell
	run          [maxRun]cell
	cuts         []cut // of a line
	reader       reader
	json         jsonReader
}

var rewriters = sync.Pool{New: func() any { return new(rewriter) }}

// free gives the rewriter back, without the text.
func (w *rewriter) free() {
	w.src, w.json.s = "", ""
	rewriters.Put(w)
}

// begin makes ready for a pass over a text.
func (w *rewriter) begin(src string) {
	w.src, w.out, w.done, w.edits = src, w.out[:0], 0, w.edits[:0]
	w.reader.left = freeReadings + readingsPerByte*len(src)
}

// put replaces [from, to) of the source. A place that an earlier edit covers is left for the next round.
func (w *rewriter) put(from, to int, with string) {
	if from < w.done || w.src[from:to] == with {
		return
	}
	w.out = append(w.out, w.src[w.done:from]...)
	at := len(w.out)
	w.out = append(w.out, with...)
	w.edits = append(w.edits, edit{uint32(at), uint32(len(w.out)), uint32(from), uint32(to)})
	w.done = to
}

// text gives the result; the rewriter is spent then.
func (w *rewriter) text() string {
	w.out = append(w.out, w.src[w.done:]...)
	return string(w.out)
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
