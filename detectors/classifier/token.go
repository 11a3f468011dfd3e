package classifier

import (
	"unicode"
	"unicode/utf8"
)

// token is a word, a number, a kept mark of punctuation or an identity term, which is one token however
// many words it has.
type token struct {
	word, prefix, suffix uint32 // hashes: of the token, of its first four letters, of its last three
	raw                  uint32 // hash of the word as written; of an identity term that of the term
	start, end           int32  // bytes of the text
	ground               uint8  // of an identity term: index in audit.Grounds plus one; else 0
	mark                 byte   // of punctuation: itself; else 0
}

// maxTokens is the length of the windows that a model reads; longer sentences are read in several.
const maxTokens = 64

const (
	fnvOffset = 2166136261
	fnvPrime  = 16777619
)

// Hashes that stand for more than one word.
const (
	numberHash   = 0x6e756d62
	prefixSalt   = 0x9e3779b9
	suffixSalt   = 0x85ebca6b
	boundaryHash = 0x5f5f5f5f
)

// Kinds of bytes; from kindLetter on they can go on a word.
const (
	kindOther byte = iota
	kindMark
	kindLetter
	kindDigit
	kindApostrophe
	kindHigh
)

var kinds, lower = func() (kinds, lower [256]byte) {
	for c := range 256 {
		lower[c] = byte(c)
		switch {
		case c >= utf8.RuneSelf:
			kinds[c] = kindHigh
		case c >= 'A' && c <= 'Z':
			kinds[c], lower[c] = kindLetter, byte(c)+'a'-'A'
		case c >= 'a' && c <= 'z':
			kinds[c] = kindLetter
		case c >= '0' && c <= '9':
			kinds[c] = kindDigit
		}
	}
	kinds['\''] = kindApostrophe
	for _, c := range `.,;:!?"()*@#%$` {
		kinds[c] = kindMark
	}
	return kinds, lower
}()

// words appends the words, numbers and marks of text[from:to]. Letters count without regard to case; an
// apostrophe inside a word belongs to it, a hyphen parts words.
func words(dst []token, text string, from, to int) []token {
	for i := from; i < to; {
		c := text[i]
		kind := kinds[c]
		if kind == kindOther || kind == kindApostrophe {
			i++
			continue
		}
		dst = append(dst, token{})
		t := &dst[len(dst)-1] // filled where it lies: copying a token costs as much as reading one
		switch kind {
		case kindLetter:
			i = t.read(text, i, to)
		case kindMark:
			i = t.becomeMark(c, i, 1)
		case kindDigit:
			i = t.spell(text, i, to, noWord)
		default:
			r, size := utf8.DecodeRuneInString(text[i:to])
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r):
				i = t.spell(text, i, to, noWord)
			case r == '“' || r == '”' || r == '«' || r == '»' || r == '„':
				i = t.becomeMark('"', i, size)
			default:
				dst = dst[:len(dst)-1]
				i += size
			}
		}
	}
	return dst
}

// becomeMark makes t a mark of size bytes and gives its end.
func (t *token) becomeMark(c byte, at, size int) int {
	h := (fnvOffset ^ uint32(c)) * fnvPrime
	t.word, t.prefix, t.suffix, t.raw, t.start, t.end, t.mark = h, h, h, h, int32(at), int32(at+size), c
	return at + size
}

// mix spreads a hash over all bits, so that its upper ones choose a bucket.
func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x7feb352d
	h ^= h >> 15
	h *= 0x846ca68b
	return h ^ h>>16
}

// pair is the hash of two tokens in a row.
func pair(a, b uint32) uint32 { return mix(a*0x9e3779b1 ^ (b + 0x7f4a7c15)) }
