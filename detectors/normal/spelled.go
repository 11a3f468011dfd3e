package normal

import (
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Spelled gives a text with the characters that a reader sees, in their common form, and nothing else undone: entities of
// HTML and escapes in strings of JSON are decoded, invisible characters are gone, letters, digits and signs are those of a
// keyboard where theirs are wide or mathematical, and so are spaces, hyphens, minus signs and quotation marks. Numbers and
// addresses are looked for in it: markdown, digits among letters and the like mean what they say there, and JSON stays
// JSON around its strings. Nearly all texts in plain ASCII are spelled so as they came, which costs one look.
func Spelled(text string) Text {
	t := Text{normal: text, original: text}
	w := rewriters.Get().(*rewriter)
	defer w.free()
	read := -1 // layers of the text in which escapes were looked for
	for range maxEncodings {
		before := len(t.layers)
		// JSON in JSON first: quotation marks in it must not change before it is read.
		for n := 0; n < maxEncodings && strings.IndexByte(t.normal, '\\') >= 0; n++ {
			since := read
			read = len(t.layers)
			if !t.apply(func(w *rewriter) { w.decode(func(at int) bool { return since < 0 || t.made(at, since) }) }, w) {
				break
			}
		}
		if t.apply(spelling, w); len(t.layers) == before {
			break
		}
	}
	return t
}

// maxEncodings bounds how often a text may be encoded upon itself: an entity of a wide digit is undone in two rounds.
const maxEncodings = 3

// decode decodes the escapes in the strings of JSON whose first quotation mark is fresh: those of a document once.
func (w *rewriter) decode(fresh func(at int) bool) {
	j := &w.json
	j.begin(w.src)
	if from, to, ok := literal(w.src); ok && fresh(from-1) {
		w.unescape(from, to)
		return
	}
	for from, to, ok := j.next(0); ok; from, to, ok = j.next(to) {
		if !fresh(from + strings.IndexByte(w.src[from:to], '"')) {
			continue
		}
		for _, token := range j.tokens {
			if token.kind != plainToken {
				w.unescape(int(token.from), int(token.to))
			}
		}
	}
}

// made says that a byte came from an edit of the layers from since on.
func (t *Text) made(at, since int) bool {
	for i := len(t.layers) - 1; i >= since; i-- {
		edits := t.layers[i]
		if k := sort.Search(len(edits), func(k int) bool { return int(edits[k].ns) > at }); k > 0 && at < int(edits[k-1].ne) {
			return true
		}
		at, _ = sourceOf(edits, at)
	}
	return false
}

// spelling brings characters and entities into their common form.
func spelling(w *rewriter) {
	s := w.src
	for i := plainFrom(s, 0); i < len(s); {
		if s[i] < utf8.RuneSelf {
			if s[i] == '&' {
				w.entity(i)
			}
			i = plainFrom(s, i+1)
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r >= 0xc0 && r < 0x2b0, r >= 0x370 && r < 0x600: // Latin, Greek, Cyrillic, Hebrew
		case invisible(r):
			if !joins(s, i, size, r) {
				w.put(i, i+size, "")
			}
		case space(r):
			w.put(i, i+size, " ")
		case r > 0xff00 && r < 0xff5f, r >= 0x1d400 && r < 0x1d800:
			w.put(i, i+size, norm.NFKC.String(s[i:i+size]))
		case r < 0x3040 || r >= 0xfe00:
			if sign := signs[r]; len(sign) == 1 { // a dash between words and an ellipsis stay
				w.put(i, i+size, sign)
			}
		}
		i += size
	}
}

// SpelledPattern gives a pattern of RE2 as it is to be for a spelled text: signs that stand in none are in the form that stands
// there, so that “…” written in a pattern goes on matching “…” and "…". What the pattern writes as \x{201c} stays.
func SpelledPattern(pattern string) string {
	if isASCII(pattern) {
		return pattern
	}
	var b strings.Builder
	for _, r := range pattern {
		switch sign := signs[r]; {
		case space(r):
			b.WriteByte(' ')
		case sign == "-": // no range, should it stand in brackets
			b.WriteString(`\-`)
		case len(sign) == 1:
			b.WriteString(regexp.QuoteMeta(sign))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
