package normal

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Spelled gives a text with the characters that a reader sees, in their common form, and nothing else undone: entities of
// HTML are decoded, invisible characters are gone, letters, digits and signs are those of a keyboard where theirs are wide
// or mathematical, and so are spaces, hyphens, minus signs and quotation marks. Numbers and addresses are looked for in it:
// markdown, digits among letters and the like mean what they say there. Nearly all texts in plain ASCII are spelled so as
// they came, which costs one look.
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
