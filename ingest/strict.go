package ingest

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// strict reads one JSON value exactly as RFC 8259 has it and refuses everything else. It stands in
// front of fastjson, whose own validator lets raw control characters pass in strings with escapes,
// recurses without a bound, and quotes the input in its errors.
//
// Lone surrogate escapes (\ud800 without its partner) are allowed by the grammar; their places are
// kept so that they can be read as U+FFFD, as encoding/json does.
type strict struct {
	b        []byte
	i        int
	maxDepth int
	lone     []int // offsets of lone surrogate escapes
	code     string
}

// value reads b as a whole. The code is "" when all is well; otherwise at is the offset of the fault.
func (s *strict) value(b []byte, maxDepth int) (code string, at int) {
	s.b, s.i, s.maxDepth, s.lone, s.code = b, 0, maxDepth, s.lone[:0], ""
	if !utf8.Valid(b) {
		return InvalidUTF8, firstInvalid(b)
	}
	s.space()
	if !s.any(0) {
		return s.code, s.i
	}
	if s.space(); s.i < len(b) {
		return BadJSON, s.i
	}
	return "", 0
}

func firstInvalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(b)
}

func (s *strict) bad() bool {
	s.code = BadJSON
	return false
}

func (s *strict) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *strict) any(depth int) bool {
	if s.i >= len(s.b) {
		return s.bad()
	}
	switch c := s.b[s.i]; c {
	case '{', '[':
		if depth >= s.maxDepth {
			s.code = TooDeep
			return false
		}
		s.i++
		if c == '{' {
			return s.object(depth + 1)
		}
		return s.array(depth + 1)
	case '"':
		s.i++
		return s.str()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *strict) object(depth int) bool {
	if s.space(); s.eat('}') {
		return true
	}
	for {
		if s.space(); !s.eat('"') || !s.str() {
			return s.bad()
		}
		if s.space(); !s.eat(':') {
			return s.bad()
		}
		if s.space(); !s.any(depth) {
			return false
		}
		s.space()
		if s.eat('}') {
			return true
		}
		if !s.eat(',') {
			return s.bad()
		}
	}
}

func (s *strict) array(depth int) bool {
	if s.space(); s.eat(']') {
		return true
	}
	for {
		if s.space(); !s.any(depth) {
			return false
		}
		s.space()
		if s.eat(']') {
			return true
		}
		if !s.eat(',') {
			return s.bad()
		}
	}
}

func (s *strict) eat(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *strict) literal(want string) bool {
	if !bytes.HasPrefix(s.b[s.i:], []byte(want)) {
		return s.bad()
	}
	s.i += len(want)
	return true
}

func (s *strict) number() bool {
	s.eat('-')
	if !s.eat('0') && !s.digits() {
		return s.bad()
	}
	if s.eat('.') && !s.digits() {
		return s.bad()
	}
	if s.eat('e') || s.eat('E') {
		if !s.eat('-') {
			s.eat('+')
		}
		if !s.digits() {
			return s.bad()
		}
	}
	return true
}

func (s *strict) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// str reads the rest of a string after its opening quote.
func (s *strict) str() bool {
	for {
		s.i += plain(s.b[s.i:])
		if s.i >= len(s.b) {
			return s.bad()
		}
		switch s.b[s.i] {
		case '"':
			s.i++
			return true
		case '\\':
			if !s.escape() {
				return s.bad()
			}
		default:
			return s.bad() // a raw control character
		}
	}
}

func (s *strict) escape() bool {
	if s.i+1 >= len(s.b) {
		return false
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return true
	case 'u':
		r, ok := hex4(s.b[s.i:])
		if !ok {
			return false
		}
		if r&0xf800 == 0xd800 {
			low, ok := hex4(s.b[s.i+6:])
			if r < 0xdc00 && ok && low&0xfc00 == 0xdc00 {
				s.i += 12
				return true
			}
			s.lone = append(s.lone, s.i)
		}
		s.i += 6
		return true
	}
	return false
}

// hex4 reads \uXXXX.
func hex4(b []byte) (r uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | uint16(c)
	}
	return r, true
}

// plain counts the bytes before the first quote, backslash or control character, eight at a time.
func plain(b []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	rest := b
	for len(rest) >= 8 {
		x := binary.LittleEndian.Uint64(rest)
		quote, slash := x^ones*'"', x^ones*'\\'
		// A byte's top bit is set where it is zero (quote, slash) or below a space (x); bits above
		// the first true one may be false, so only the lowest counts.
		hit := ((quote - ones) &^ quote) | ((slash - ones) &^ slash) | ((x - ones*' ') &^ x)
		if hit &= tops; hit != 0 {
			return len(b) - len(rest) + bits.TrailingZeros64(hit)/8
		}
		rest = rest[8:]
	}
	for i, c := range rest {
		if c == '"' || c == '\\' || c < ' ' {
			return len(b) - len(rest) + i
		}
	}
	return len(b)
}

// runes counts the code points of valid UTF-8, the bytes that do not continue one, eight at a time.
func runes(s string) int {
	const ones = 0x0101010101010101
	n := len(s)
	for ; len(s) >= 8; s = s[8:] {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		n -= bits.OnesCount64(x >> 7 &^ (x >> 6) & ones)
	}
	for i := range len(s) {
		if s[i]&0xc0 == 0x80 {
			n--
		}
	}
	return n
}
