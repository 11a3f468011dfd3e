package normal

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// token is a string, a number or a literal of JSON: its bytes in the text, a string's without quotation marks.
type token struct {
	from, to uint32
	kind     tokenKind
	named    bool // it is the value of the key before it
}

type tokenKind uint8

const (
	keyToken    tokenKind = iota
	stringToken           // a string that is a value
	plainToken            // a number, true, false, null
)

// jsonReader finds the JSON that stands in a text: whole objects and arrays, and one that the end of the text cuts off.
// It forgives what models write: commas too many, line breaks and unknown escapes in strings. What is no JSON costs
// readsPerByte looks at each byte at most.
type jsonReader struct {
	s             string
	tokens        []token // of the document that was read last
	brace, square int     // the first { and [ that were not passed yet
	left          int     // bytes that attempts which find no JSON may still read
	named, cut    bool    // the document has a key, the text's end cuts it off
	lists         bool    // what begins and ends with its line counts whatever is in it
}

const (
	maxDepth     = 64 // of objects and arrays in each other; what is deeper is found from further inside
	readsPerByte = 4
	freeReads    = 4096
)

// begin makes ready for a text.
func (j *jsonReader) begin(s string) {
	j.s, j.brace, j.square, j.left = s, -1, -1, freeReads+readsPerByte*len(s)
}

// next gives the first document that begins at i or behind it, and leaves its tokens in j.tokens.
func (j *jsonReader) next(i int) (from, to int, ok bool) {
	for from = j.opening(i); from < len(j.s) && j.left > 0; from = j.opening(from + 1) {
		if !j.mayOpen(from) {
			continue
		}
		if to, ok = j.read(from); ok && j.counts(from, to) {
			return from, to, true
		}
		j.left -= to - from
	}
	return 0, 0, false
}

// opening gives the first { or [ from i on, or where the text ends.
func (j *jsonReader) opening(i int) int {
	if j.brace < i {
		j.brace = indexFrom(j.s, '{', i)
	}
	if j.square < i {
		j.square = indexFrom(j.s, '[', i)
	}
	return min(j.brace, j.square)
}

func indexFrom(s string, c byte, i int) int {
	if i < len(s) {
		if n := strings.IndexByte(s[i:], c); n >= 0 {
			return i + n
		}
	}
	return math.MaxInt
}

// mayOpen says that the { or [ at i can begin JSON, by what follows. A [ behind a word or a close is an index.
func (j *jsonReader) mayOpen(i int) bool {
	s := j.s
	if s[i] == '[' && i > 0 && (isWord(s[i-1]) || strings.IndexByte(`)]}"'`, s[i-1]) >= 0) {
		return false
	}
	next := blanks(s, i+1)
	if j.lists && s[i] == '[' && next < len(s) && firstOfLine(s, i) {
		return true
	}
	return next < len(s) && (s[next] == '"' || s[i] == '[' && (s[next] == '{' || s[next] == '['))
}

// counts says that a document is worth reading as JSON: it names something, or has a string of several words. Lists of
// words are code as often. Cut off, it names something or begins its line. An array before ( is a link's text.
func (j *jsonReader) counts(from, to int) bool {
	if j.s[from] == '[' && to < len(j.s) && j.s[to] == '(' {
		return false
	}
	if j.named || j.lists && firstOfLine(j.s, from) && lastOfLine(j.s, to) {
		return true
	}
	return (!j.cut || firstOfLine(j.s, from)) && slices.ContainsFunc(j.tokens, func(t token) bool { return t.kind == stringToken && wordsIn(j.s[t.from:t.to]) > 1 })
}

// What may come next inside JSON.
const (
	wantValue = iota // behind a colon
	wantItem         // a value or the array's end
	wantKey          // a key or the object's end
	wantColon
	wantComma // or an end
)

// read reads the JSON that begins at from, into j.tokens, and gives where it ends, or how far it was JSON.
func (j *jsonReader) read(from int) (to int, ok bool) {
	s, want, depth := j.s, wantItem, 0
	objects := uint64(0) // a bit for each level, the innermost lowest
	j.tokens, j.named, j.cut = j.tokens[:0], false, false
	for i := from; ; {
		if i = blanks(s, i); i == len(s) {
			j.cut = true
			return i, true
		}
		c := s[i]
		switch {
		case c == '"' && want <= wantKey:
			end := stringEnd(s, i+1)
			j.add(i+1, end, want)
			if want = wantComma; j.tokens[len(j.tokens)-1].kind == keyToken {
				want = wantColon
			}
			i = min(end+1, len(s))
			continue
		case c == ':' && want == wantColon:
			want, j.named = wantValue, true
		case c == ',' && want == wantComma:
			if want = wantItem; objects&1 != 0 {
				want = wantKey
			}
		case (c == '{' || c == '[') && want <= wantItem:
			if depth++; depth > maxDepth {
				return i, false
			}
			objects <<= 1
			if want = wantItem; c == '{' {
				objects |= 1
				want = wantKey
			}
		case c == '}' && objects&1 != 0 && (want == wantKey || want == wantComma), c == ']' && objects&1 == 0 && (want == wantItem || want == wantComma):
			if depth--; depth == 0 {
				return i + 1, true
			}
			objects >>= 1
			want = wantComma
		case want <= wantItem:
			end, is := plainEnd(s, i)
			if !is {
				return end, false
			}
			j.add(i, end, want)
			j.tokens[len(j.tokens)-1].kind = plainToken
			i, want = end, wantComma
			continue
		default:
			return i, false
		}
		i++
	}
}

func (j *jsonReader) add(from, to, want int) {
	t := token{from: uint32(from), to: uint32(to), kind: stringToken, named: want == wantValue}
	if want == wantKey {
		t.kind = keyToken
	}
	j.tokens = append(j.tokens, t)
}

// blanks gives the first place from i on where something visible stands.
func blanks(s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !space(r) && !invisible(r) {
			break
		}
		i += size
	}
	return i
}

// stringEnd gives where the quotation mark stands that ends the string of JSON from i on; without one, the text's end.
func stringEnd(s string, i int) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(s)
}

// plainEnd gives where the number or literal at i ends, and whether it is one. The text's end may cut it off.
func plainEnd(s string, i int) (end int, ok bool) {
	for end = i; end < len(s) && (kinds[s[end]]&(letter|digit) != 0 || strings.IndexByte("+-.", s[end]) >= 0); end++ {
	}
	switch word := s[i:end]; {
	case word == "":
		return end, false
	case word[0] == '-' || kinds[word[0]]&digit != 0:
		return end, strings.Trim(word, "0123456789+-.eE") == ""
	default:
		for _, literal := range [...]string{"true", "false", "null"} {
			if word == literal || end == len(s) && strings.HasPrefix(literal, word) {
				return end, true
			}
		}
	}
	return end, false
}
