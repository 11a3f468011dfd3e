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

const (
	kindOther byte = iota
	kindLetter
	kindDigit
	kindMark
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
		switch kinds[c] {
		case kindMark:
			dst = append(dst, mark(c, i, 1))
			i++
		case kindLetter, kindDigit:
			var t token
			t, i = word(text, i, to)
			dst = append(dst, t)
		case kindHigh:
			r, size := utf8.DecodeRuneInString(text[i:to])
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r):
				var t token
				t, i = word(text, i, to)
				dst = append(dst, t)
			case r == '“' || r == '”' || r == '«' || r == '»' || r == '„':
				dst = append(dst, mark('"', i, size))
				i += size
			default:
				i += size
			}
		default:
			i++
		}
	}
	return dst
}

func mark(c byte, at, size int) token {
	h := uint32(fnvOffset)
	h = (h ^ uint32(c)) * fnvPrime
	return token{word: h, prefix: h, suffix: h, raw: h, start: int32(at), end: int32(at + size), mark: c}
}

// word reads the word that begins at byte i.
func word(text string, i, to int) (token, int) {
	t := token{start: int32(i)}
	h, head, tail, letters, number := uint32(fnvOffset), uint32(0), uint32(0), 0, true
	for i < to {
		c := text[i]
		switch kinds[c] {
		case kindLetter:
			number = false
			for ; i < to && kinds[text[i]] == kindLetter; i++ { // most words are no more than one run of them
				c := uint32(lower[text[i]])
				h, tail = (h^c)*fnvPrime, tail<<8|c
				if letters++; letters == 4 {
					head = h
				}
			}
			continue
		case kindDigit:
			h = (h ^ uint32(c)) * fnvPrime
			tail = tail<<8 | uint32(c)
			i++
		case kindApostrophe:
			if i+1 >= to || kinds[text[i+1]] != kindLetter {
				goto end
			}
			h = (h ^ '\'') * fnvPrime
			tail = tail<<8 | '\''
			i++
		case kindHigh:
			r, size := utf8.DecodeRuneInString(text[i:to])
			if r == '’' && i+size < to && kinds[text[i+size]] == kindLetter {
				r = '\''
			} else if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
				goto end
			}
			number = number && unicode.IsDigit(r)
			h = (h ^ uint32(unicode.ToLower(r))) * fnvPrime
			tail = tail<<8 ^ uint32(unicode.ToLower(r))
			i += size
		default:
			goto end
		}
		if letters++; letters == 4 {
			head = h
		}
	}
end:
	if letters < 4 {
		head = h
	}
	t.end, t.word, t.raw, t.prefix, t.suffix = int32(i), h, h, head^prefixSalt, (tail&0xffffff)*fnvPrime^suffixSalt
	if number {
		t.word, t.prefix, t.suffix = numberHash, numberHash, numberHash
	}
	return t, i
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
