package normal

import (
	"encoding/binary"
	"html"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// characters brings single characters into their common form: entities, invisible characters,
// compatibility forms, marks on letters, typographic signs and emoji.
func characters(w *rewriter) {
	s := w.src
	base := 0 // where the last visible character begins
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '&':
				w.entity(i)
			case c == '\v':
				w.put(i, i+1, " ")
			case c < ' ' && kinds[c]&mark != 0 && c != '\f', c == 0x7f:
				w.put(i, i+1, "")
			}
			i = plainFrom(s, i+1)
			base = i - 1
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError || plain(r):
			base = i
		case combining(r):
			size = w.marks(base, i)
		case invisible(r):
			if !joins(s, i, size, r) {
				w.put(i, i+size, "")
			}
		case isEmoji(r):
			base, size = i, w.emoji(i)
		default:
			base, size = i, w.common(i, size, r)
		}
		i += size
	}
}

// plainFrom gives the first place from i on before which all is ASCII that characters leaves as it is; it may be nearer
// than need be.
func plainFrom(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		x := binary.LittleEndian.Uint64([]byte(s[i : i+8]))
		and := x ^ ones*'&'
		// A byte below another borrows from the one above it: so the top bit of the lowest one that is meant is right.
		if odd := (x | x + ones | (x-ones*' ')&^x | (and-ones)&^and) & tops; odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
	return i
}

// plain says that a character is in its common form already, by far the most of those beyond ASCII: Latin
// with accents, Greek, Cyrillic, Armenian, Hebrew to Myanmar, Kana, Han and Hangul.
func plain(r rune) bool {
	switch {
	case r < 0xc0:
		return r == '£' || r == '€' || r == '°' || r == '§'
	case r < 0x250:
		return unicode.IsLetter(r) && (r < 0x132 || r > 0x1cc || r > 0x133 && r < 0x13f || r > 0x140 && r < 0x149 || r > 0x149 && r < 0x17f || r > 0x17f && r < 0x1c4) && (r < 0x1f1 || r > 0x1f3)
	case r < 0x2b0:
		return true
	case r >= 0x388 && r < 0x3cf, r >= 0x400 && r < 0x530, r >= 0x531 && r < 0x557, r >= 0x561 && r < 0x587:
		return true
	case r >= 0x590 && r < 0x10a0:
		return !unicode.Is(unicode.Cf, r)
	case r >= 0x3041 && r < 0x3097, r >= 0x30a1 && r < 0x30fb, r >= 0x4e00 && r < 0xa000, r >= 0xac00 && r < 0xd7a4:
		return true
	}
	return false
}

// combining says that a mark may sit on letters of any script.
func combining(r rune) bool {
	return r >= 0x300 && r < 0x370 && r != 0x34f || r >= 0x1ab0 && r < 0x1b00 || r >= 0x1dc0 && r < 0x1e00 || r >= 0x20d0 && r < 0x2100 || r >= 0xfe20 && r < 0xfe30
}

// marks handles the combining marks at i that sit on the character at base, and gives their length. One or
// two that make an accented letter do; more on one letter, and those that make none, go.
func (w *rewriter) marks(base, i int) int {
	s, j, n := w.src, i, 0
	for j < len(s) {
		r, size := utf8.DecodeRuneInString(s[j:])
		if !combining(r) && !invisible(r) {
			break
		}
		j, n = j+size, n+1
	}
	on, size := utf8.DecodeRuneInString(s[base:i])
	switch {
	case base < w.done && w.done > 0: // the letter changed: the next round sees
	case unicode.Is(unicode.Latin, on) && base+size == i:
		letter := on
		if n < 3 {
			letter, _ = utf8.DecodeRuneInString(norm.NFC.String(s[base:j]))
		}
		w.put(base, j, string(letter))
	case n > 2 || on < utf8.RuneSelf:
		w.put(i, j, "")
	default:
		w.put(base, j, norm.NFC.String(s[base:j]))
	}
	return j - i
}

// invisible says that a character shows nothing: soft hyphens, zero-width characters, direction controls,
// variation selectors, fillers, tags and the rest of Unicode's default-ignorable ones.
func invisible(r rune) bool {
	switch {
	case r == 0xad || r == 0x34f || r == 0x61c || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xfeff || r == 0xffa0:
		return true
	case r >= 0x80 && r < 0xa0:
		return r != 0x85
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r == 0x17b4 || r == 0x17b5, r >= 0xfe00 && r <= 0xfe0f, r >= 0xfff9 && r <= 0xfffb, r >= 0x1d173 && r <= 0x1d17a:
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff
}

// joins says that a zero-width joiner or non-joiner does its work: inside a word of a script that needs it,
// from Hebrew to Mongolian.
func joins(s string, i, size int, r rune) bool {
	if r != 0x200c && r != 0x200d {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+size:])
	return before >= 0x590 && before < 0x1cd0 && after >= 0x590 && after < 0x1cd0
}

// common writes one character, with the marks that belong to it, in its compatibility form. Signs become
// what rules are written with. Raised and circled digits, fractions, ™ and the like keep their form:
// without it they would say something else.
func (w *rewriter) common(i, size int, r rune) int {
	if sign, ok := signs[r]; ok {
		w.put(i, i+size, sign)
		return size
	}
	switch {
	case space(r):
		w.put(i, i+size, " ")
		return size
	case r < 0xc0, r >= 0x2070 && r < 0x2090 && r != 0x2071 && r != 0x207f, r == 0x2122 || r == 0x2120, r >= 0x2150 && r < 0x2160, r >= 0x2460 && r < 0x249c, r >= 0x24ea && r < 0x2500:
		return size
	}
	n := norm.NFKC.NextBoundaryInString(w.src[i:], true)
	if n < size {
		return size
	}
	if part := w.src[i : i+n]; !norm.NFKC.IsNormalString(part) {
		if form := norm.NFKC.String(part); form[0] != ' ' { // a spacing accent stays
			w.put(i, i+n, form)
		}
	}
	return n
}

// space says that a character beyond ASCII is a space, of whatever width.
func space(r rune) bool {
	return r == '\u1680' || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000 || r == 0x2800 || r == 0xa0
}

// signs are written in ASCII, as patterns have them.
var signs = map[rune]string{
	'‘': "'", '’': "'", '‚': "'", '‛': "'", '′': "'", 'ʼ': "'", 'ʹ': "'", '´': "'", '＇': "'",
	'“': `"`, '”': `"`, '„': `"`, '‟': `"`, '″': `"`, '«': `"`, '»': `"`, '‹': `"`, '›': `"`, '〝': `"`, '〞': `"`,
	'‐': "-", '‑': "-", '‒': "-", '–': "-", '−': "-", '﹘': "-", '﹣': "-", '－': "-", '⁃': "-",
	'—': " - ", '―': " - ", '⸺': " - ", '…': "...", '\u0085': "\n", '\u2028': "\n", '\u2029': "\n",
	'⁄': "/", '∕': "/", '∗': "*", '⁎': "*", '∣': "|", '∼': "~",
}

const longestEntity = 32

// entity decodes the HTML entity at i, and those that its ampersand begins in turn: &amp;lt; is <.
func (w *rewriter) entity(i int) {
	is, end := "&", i+1
	for is == "&" {
		rest := w.src[end:]
		semi := strings.IndexByte(rest[:min(len(rest), longestEntity)], ';')
		if semi < 1 || !entityName(rest[:semi]) {
			break
		}
		form := "&" + rest[:semi+1]
		if is = html.UnescapeString(form); is == form || strings.HasSuffix(is, ";") && is != ";" {
			is = "&"
			break
		}
		end += semi + 1
	}
	if end > i+1 {
		w.put(i, end, is)
	}
}

// entityName says that text can stand between & and ; .
func entityName(s string) bool {
	for i := range len(s) {
		if kinds[s[i]]&(letter|digit) == 0 && (s[i] != '#' || i > 0) {
			return false
		}
	}
	return true
}
