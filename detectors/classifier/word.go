package classifier

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"

	"github.com/evenhand/evenhand/detectors/language"
)

// word is what is read of a word.
type word struct {
	letters          int
	hash, head, tail uint32 // of all letters, of the first four, the last ones
}

var noWord = word{hash: fnvOffset}

// add reads a letter.
func (w *word) add(c uint32) {
	w.hash = (w.hash ^ c) * fnvPrime
	w.tail = w.tail<<8 ^ c
	if w.letters < 4 {
		w.head = w.hash
	}
	w.letters++
}

// become makes t a word that ends before byte end.
func (t *token) become(w word, end int) int {
	t.word, t.raw, t.prefix, t.suffix, t.end = w.hash, w.hash, w.head^prefixSalt, (w.tail&0xffffff)*fnvPrime^suffixSalt, int32(end)
	return end
}

// read makes t the word that begins with an ASCII letter at byte i, and gives its end. It takes up to eight letters at
// once, for nearly all words have no more, and where one ends a processor cannot guess; the rest is spelt.
func (t *token) read(text string, i, to int) int {
	if i+8 > len(text) {
		return t.spell(text, i, to, noWord)
	}
	b := binary.LittleEndian.Uint64([]byte(text[i : i+8]))
	n := letters(b)
	if i+n >= to {
		return t.spell(text, i, to, noWord)
	}
	t.start = int32(i)
	shift := (64 - 8*n) & 63
	b = (b | 0x20*ones) << shift // nothing but the letters, in lower case
	w := word{letters: n, tail: uint32(bits.ReverseBytes64(b))}
	b >>= shift
	w.head = four(fnvOffset, uint32(b))
	w.hash = four(w.head, uint32(b>>32)) * noZeros[n].ofEight
	w.head *= noZeros[n].ofFour
	if i += n; kinds[text[i]] < kindLetter {
		return t.become(w, i)
	}
	return t.spell(text, i, to, w)
}

// spell reads the rest of a word letter by letter, from byte i on.
func (t *token) spell(text string, i, to int, w word) int {
	t.start = int32(i - w.letters)
	number := w.letters == 0
	for i < to {
		c := text[i]
		switch kinds[c] {
		case kindLetter:
			number = false
			w.add(uint32(lower[c]))
			i++
		case kindDigit:
			w.add(uint32(c))
			i++
		case kindApostrophe:
			if i+1 >= to || kinds[text[i+1]] != kindLetter {
				goto end
			}
			w.add('\'')
			i++
		case kindHigh:
			r, size := utf8.DecodeRuneInString(text[i:to])
			if r == '’' && i+size < to && kinds[text[i+size]] == kindLetter {
				r = '\''
			} else if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
				goto end
			}
			number = number && unicode.IsDigit(r)
			w.add(uint32(unicode.ToLower(r)))
			i += size
		default:
			goto end
		}
	}
end:
	t.become(w, i)
	if number {
		t.word, t.prefix, t.suffix = numberHash, numberHash, numberHash
	}
	return i
}

const ones = 0x0101010101010101

// letters counts the ASCII letters that eight bytes begin with.
func letters(b uint64) int {
	return bits.TrailingZeros64(^language.Letters(b)&(0x80*ones)) / 8
}

// four hashes four bytes.
func four(h, b uint32) uint32 {
	h = (h ^ b&0xff) * fnvPrime
	h = (h ^ b>>8&0xff) * fnvPrime
	h = (h ^ b>>16&0xff) * fnvPrime
	return (h ^ b>>24) * fnvPrime
}

// noZeros takes the zero bytes behind n letters, filled up to four or to eight, out of a hash again: each is
// one more factor of fnvPrime.
var noZeros = func() (out [9]struct{ ofFour, ofEight uint32 }) {
	const inverse = 0x359c449b // of fnvPrime, modulo 2³²
	out[8].ofFour, out[8].ofEight = 1, 1
	for n := 7; n >= 0; n-- {
		out[n] = out[n+1]
		out[n].ofEight *= inverse
		if n < 4 {
			out[n].ofFour *= inverse
		}
	}
	return out
}()
