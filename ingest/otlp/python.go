package otlp

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// python reads a literal as Python's repr writes it: dicts, lists, tuples, texts, numbers, True, False, None. What is
// anything else, or nests deeper than 32, is nil.
func python(s string) any {
	p := &literal{s: s}
	v, ok := p.value(32)
	if p.space(); !ok || p.i < len(p.s) {
		return nil
	}
	return v
}

// literal is a reader at byte i.
type literal struct {
	s string
	i int
}

func (p *literal) space() {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *literal) eat(b byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == b {
		p.i++
		return true
	}
	return false
}

func (p *literal) value(levels int) (any, bool) {
	p.space()
	if p.i == len(p.s) || levels == 0 {
		return nil, false
	}
	switch c := p.s[p.i]; c {
	case '{':
		return p.dict(levels)
	case '[':
		return p.list(']', levels)
	case '(':
		return p.list(')', levels)
	case '\'', '"':
		return p.text(c)
	}
	return p.word()
}

func (p *literal) dict(levels int) (any, bool) {
	p.i++
	m := map[string]any{}
	for !p.eat('}') {
		k, ok := p.value(levels - 1)
		if !ok || !p.eat(':') {
			return nil, false
		}
		v, ok := p.value(levels - 1)
		if !ok {
			return nil, false
		}
		m[scalar(k)] = v
		if !p.eat(',') && (p.i >= len(p.s) || p.s[p.i] != '}') {
			return nil, false
		}
	}
	return m, true
}

func (p *literal) list(end byte, levels int) (any, bool) {
	p.i++
	all := []any{}
	for !p.eat(end) {
		v, ok := p.value(levels - 1)
		if !ok {
			return nil, false
		}
		all = append(all, v)
		if !p.eat(',') && (p.i >= len(p.s) || p.s[p.i] != end) {
			return nil, false
		}
	}
	return all, true
}

// text reads to the closing quote and undoes escapes.
func (p *literal) text(quote byte) (any, bool) {
	var b strings.Builder
	for p.i++; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; c {
		case quote:
			p.i++
			return b.String(), true
		case '\\':
			if !p.escape(&b) {
				return nil, false
			}
		default:
			b.WriteByte(c)
		}
	}
	return nil, false
}

// escape stands on a backslash and ends on the escape's last byte.
func (p *literal) escape(b *strings.Builder) bool {
	if p.i++; p.i == len(p.s) {
		return false
	}
	switch c := p.s[p.i]; c {
	case 'n', 'r', 't', '\\', '\'', '"':
		b.WriteString(map[byte]string{'n': "\n", 'r': "\r", 't': "\t", '\\': `\`, '\'': "'", '"': `"`}[c])
		return true
	case 'x', 'u', 'U':
		n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if p.i+n >= len(p.s) {
			return false
		}
		r, err := strconv.ParseUint(p.s[p.i+1:p.i+1+n], 16, 32)
		if err != nil || r > utf8.MaxRune {
			return false
		}
		b.WriteRune(rune(r))
		p.i += n
		return true
	}
	return false
}

// word reads a number or a name.
func (p *literal) word() (any, bool) {
	from := p.i
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n,:}])", p.s[p.i]) < 0 {
		p.i++
	}
	switch w := p.s[from:p.i]; w {
	case "None":
		return nil, true
	case "True":
		return true, true
	case "False":
		return false, true
	default:
		n := json.Number(w)
		if _, err := n.Float64(); err != nil || !json.Valid([]byte(w)) { // inf, nan and 1_000 are no JSON
			return nil, false
		}
		return n, true
	}
}
