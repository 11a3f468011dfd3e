package normal

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Spelled gives a text with the characters that a reader sees, and nothing else undone: entities of HTML are decoded,
// invisible characters are gone, and letters, digits and signs in their wide or mathematical forms are in
// their common one. Numbers and addresses are looked for in it: markdown, digits among letters and the like mean
// what they say there. Nearly all texts are spelled so as they came, which costs one look.
func Spelled(text string) Text {
	t := Text{normal: text, original: text}
	w := rewriters.Get().(*rewriter)
	defer w.free()
	for range maxEncodings {
		if !t.apply(spelling, w) {
			break
		}
	}
	return t
}

// maxEncodings bounds how often a text may be encoded upon itself: an entity of a wide digit is undone in two rounds.
const maxEncodings = 3

// spelling is the pass of Spelled.
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
		case r >= 0xc0 && r < 0x34f, r >= 0x370 && r < 0x600: // Latin, Greek, Cyrillic, Hebrew
		case invisible(r):
			if !joins(s, i, size, r) {
				w.put(i, i+size, "")
			}
		case r > 0xff00 && r < 0xff5f, r >= 0x1d400 && r < 0x1d800:
			w.put(i, i+size, norm.NFKC.String(s[i:i+size]))
		}
		i += size
	}
}
