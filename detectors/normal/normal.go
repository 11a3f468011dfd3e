// Package normal undoes what makes text look other than it reads: JSON around words, compatibility forms,
// invisible characters, letters of other scripts that look Latin, digits in place of letters, spaced-out
// words, emoji, entities and markdown. Rules and models read the normal text; what they find is reported at
// its place in the original.
//
// Ambiguous spellings (h4te, wom*n, w.o.m.e.n, wоmen with a Cyrillic о) are read as a word only if that
// word is in words.txt, which holds the vocabulary of the rule packs: whatever a rule can match can be
// restored, and product names, codes, prices and formulas stay what they are. Letters keep their case
// and real accents; numbers, addresses and text in other scripts are left alone.
//
// Of is idempotent and never fails; bytes that are no UTF-8 stay. Clean ASCII text costs one look, about
// 1.5 µs for 2 KB, and no allocation; text with marks, digits or some characters beyond ASCII also the passes that it
// needs, at the places that need them, 5 to 20 µs for 2 KB; text mostly beyond ASCII all passes, 20 to 40 µs; and
// text made to be costly at most a millisecond or two. The normal text has at most [MaxGrowth] times the bytes of the
// original and mostly fewer. What cannot be settled in a few rounds of passes, which only text made for it needs,
// loses its punctuation.
package normal

import "slices"

// Version changes whenever the same text may get another normal form, words.txt apart.
const Version = "2026.11.4"

// MaxGrowth bounds the length of the normal text, in bytes of it for a byte of the original: one
// compatibility character of three bytes stands for eighteen letters of two.
const MaxGrowth = 12

// maxRounds bounds how often the passes run. Nearly all text settles in two rounds.
const maxRounds = 6

// Text is a text in normal form with the way back. The zero value is the empty text. It is read-only
// and safe for concurrent use.
type Text struct {
	normal   string
	original string
	layers   [][]edit // by pass that changed something, first pass first
}

// Of normalises a text. Text that is clean costs one look and no allocation.
func Of(text string) Text {
	t := Text{normal: text, original: text}
	if text == "" {
		return t
	}
	w := rewriters.Get().(*rewriter)
	defer w.free()
	w.look(text, true) // the first pass will rewrite most of what is beyond ASCII
	if w.need&unclean == 0 || t.settle(w) {
		return t
	}
	t.apply(blank, w)
	w.look(t.normal, false)
	t.settle(w)
	return t
}

// String gives the normal text.
func (t *Text) String() string { return t.normal }

// Same says whether normal and original text are byte for byte the same.
func (t *Text) Same() bool { return len(t.normal) == len(t.original) && t.normal == t.original }

// Original turns byte offsets of the normal text into byte offsets of the original: the shortest range of
// whole code points that the range was made of. What was removed at its edges is left out. An empty
// range gives an empty one.
func (t *Text) Original(start, end int) (from, to int) {
	for i := len(t.layers) - 1; i >= 0; i-- {
		start, end = source(t.layers[i], start, end)
	}
	return start, end
}

// passes in their order. What is wrapped is unwrapped to its end before another pass changes the quotation marks in it.
var passes = [...]struct {
	run   func(*rewriter)
	times int // at most, within a round
}{{unwrap, 4}, {characters, 1}, {markdown, 1}, {spaced, 1}, {words, 1}}

// settle runs the passes that the text needs until none changes anything, and says whether it came to that.
// The rewriter has surveyed the text.
func (t *Text) settle(w *rewriter) bool {
	same := 0 // passes in a row that changed nothing
	for range maxRounds {
		for i, pass := range passes {
			same++
			for n := 0; n < pass.times && w.need&(1<<i) != 0 && t.apply(pass.run, w); n++ {
				same = 0
				w.look(t.normal, false)
			}
			if w.brief && i > 0 {
				w.look(t.normal, false)
			}
			if same == len(passes) {
				return true
			}
		}
		if w.need&unclean == 0 {
			return true
		}
	}
	return false
}

// apply runs one pass and says whether it changed anything.
func (t *Text) apply(pass func(*rewriter), w *rewriter) bool {
	w.begin(t.normal)
	pass(w)
	if len(w.edits) == 0 {
		return false
	}
	t.normal, t.layers = w.text(), append(t.layers, slices.Clone(w.edits))
	return true
}

// blank takes away what passes feed on, so that the rest settles.
func blank(w *rewriter) {
	for i := range len(w.src) {
		if c := w.src[i]; c < 0x80 && c > ' ' && kinds[c]&(letter|digit) == 0 && c != '.' && c != ',' && c != '?' {
			w.put(i, i+1, " ")
		}
	}
}
