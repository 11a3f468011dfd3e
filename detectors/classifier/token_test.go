package classifier

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Words that are read eight letters at once are the words read letter by letter, at every cut.
func TestWordsAgreeWithPlainOnes(t *testing.T) {
	for _, text := range []string{ordinaryWords, "a abcdefg abcdefgh abcdefghi ABCDEFGHIJKLMNOPQ", "@[`{ Zz-aA\x80zz z\xffz abcdefg\xc3\xa9 abc'defgh abcd’s abcd'", "12 ab12 12ab 3 ３x abcdefgh7"} {
		for from := range text {
			comparePlain(t, text, from, len(text))
			comparePlain(t, text, 0, from)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "Bcd", "efghijkl", "é", " ", "'", "’", "\xff", "5", ".", "日", "-", "@", "[", "\x60", "{"})).Draw(t, "text"), "")
		comparePlain(t, text, 0, len(text))
	})
}

const ordinaryWords = "Everyone's neighbourhood organisation didn't (yet) publish 12 of its “responsibilities”, Über-Größe or 日本語; see p. 3."

func comparePlain(t interface{ Fatalf(string, ...any) }, text string, from, to int) {
	if got, want := words(nil, text, from, to), plainWords(nil, text, from, to); !slices.Equal(got, want) {
		t.Fatalf("%q[%d:%d]:\n got %+v\nwant %+v", text, from, to, got, want)
	}
}

// plainWords is words letter by letter.
func plainWords(dst []token, text string, from, to int) []token {
	for i := from; i < to; {
		c := text[i]
		switch kinds[c] {
		case kindMark:
			dst = append(dst, plainMark(c, i, 1))
			i++
		case kindLetter, kindDigit:
			var t token
			t, i = plainWord(text, i, to)
			dst = append(dst, t)
		case kindHigh:
			r, size := utf8.DecodeRuneInString(text[i:to])
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r):
				var t token
				t, i = plainWord(text, i, to)
				dst = append(dst, t)
			case r == '“' || r == '”' || r == '«' || r == '»' || r == '„':
				dst = append(dst, plainMark('"', i, size))
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

func plainMark(c byte, at, size int) token {
	h := uint32(fnvOffset)
	h = (h ^ uint32(c)) * fnvPrime
	return token{word: h, prefix: h, suffix: h, raw: h, start: int32(at), end: int32(at + size), mark: c}
}

// plainWord reads the word that begins at byte i.
func plainWord(text string, i, to int) (token, int) {
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
