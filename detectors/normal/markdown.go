package normal

import (
	"cmp"
	"slices"
	"strings"
)

// markdown takes the marks off: emphasis, code, headings, bullets, links, simple HTML tags, and the edges of
// table cells, which become line breaks. Code keeps its words.
func markdown(w *rewriter) {
	m := marker{w: w}
	if w.everywhere {
		for i := 0; i < len(w.src); i++ {
			i = m.line(i)
		}
		return
	}
	done := 0
	for _, at := range w.lines.at[:w.lines.n] {
		if at >= done {
			done = m.line(strings.LastIndexByte(w.src[:at], '\n') + 1)
		}
	}
}

// marker handles lines.
type marker struct {
	w    *rewriter
	open [16]int // runs of the line that may open emphasis: where they begin, and 1; by sign and length
}

type cut struct {
	from, to int
	with     string
}

func (m *marker) cut(from, to int, with string) { m.w.cuts = append(m.w.cuts, cut{from, to, with}) }

// line handles the line that begins at from, and gives where it ends.
func (m *marker) line(from int) (to int) {
	s := m.w.src
	if to = len(s); from < to {
		if n := strings.IndexByte(s[from:], '\n'); n >= 0 {
			to = from + n
		}
	}
	m.w.cuts = m.w.cuts[:0]
	clear(m.open[:])
	from = m.head(from, to)
	if from < to && s[from] == '|' && strings.Count(s[from:to], "|") > 1 {
		for i := from; i < to; i++ {
			if s[i] == '|' {
				m.cut(i, i+1, "\n") // cells are lines of their own in the next round
			}
		}
	} else {
		m.spans(from, to)
	}
	if len(m.w.cuts) > 1 {
		slices.SortFunc(m.w.cuts, func(a, b cut) int { return cmp.Compare(a.from, b.from) })
	}
	for _, c := range m.w.cuts {
		m.w.put(c.from, c.to, c.with)
	}
	return to
}

// bullets begin items of a list, beside - * + .
const bullets = "•‣◦▪●○■□▶►➤✓✔→"

// head takes off what begins a line: headings, bullets and the fences of code. It gives where the text begins.
func (m *marker) head(from, to int) int {
	s := m.w.src
	for {
		for from < to && (s[from] == ' ' || s[from] == '\t') {
			from++
		}
		at := from
		switch {
		case at == to:
			return from
		case s[at] == '#':
			for at < to && s[at] == '#' && at-from < 6 {
				at++
			}
		case strings.HasPrefix(s[at:to], "```"), strings.HasPrefix(s[at:to], "~~~"):
			for at < to && s[at] == s[from] {
				at++
			}
			m.cut(from, at, "")
			return at
		case strings.IndexByte("-*+", s[at]) >= 0:
			at++
		case s[at] >= 0x80:
			for _, b := range bullets {
				if strings.HasPrefix(s[at:to], string(b)) {
					at += len(string(b))
					break
				}
			}
		}
		if at == from || at == to || s[at] != ' ' && s[at] != '\t' {
			return from
		}
		m.cut(from, at+1, "")
		from = at + 1
	}
}

// spans handles what stands within a line.
func (m *marker) spans(from, to int) {
	s := m.w.src
	for i := from; i < to; {
		switch c := s[i]; {
		case kinds[c]&opens == 0:
			i++
		case c == '[':
			i = m.link(i, from, to)
		case c == '<':
			i = m.tag(i, to)
		default:
			i = m.delimiter(i, from, to)
		}
	}
}

// delimiter handles a run of one of * _ ~ ` and gives where it ends. A run that may close takes the one of
// its sign and length that was opened in the line off with it.
func (m *marker) delimiter(i, from, to int) int {
	s, j := m.w.src, i
	for j < to && s[j] == s[i] {
		j++
	}
	n := j - i
	if n > 3 || s[i] == '~' && n != 2 {
		return j
	}
	before, after := byte(' '), byte(' ')
	if i > from {
		before = s[i-1]
	}
	if j < to {
		after = s[j]
	}
	inWord := isWord(before) && isWord(after)
	if inWord && s[i] == '`' && n == 1 { // don`t
		m.cut(i, j, "'")
		return j
	}
	// Within a word only ** and ~~ emphasise: a*b*c may be a product and a_b_c a name.
	if inWord && (n == 1 || s[i] == '_') {
		return j
	}
	code := s[i] == '`'
	slot := &m.open[strings.IndexByte("*_~`", s[i])<<2+n]
	switch {
	case *slot > 0 && !isSpace(before) && (code || !isWord(after) || inWord):
		m.cut(*slot-1, *slot-1+n, "")
		m.cut(i, j, "")
		*slot = 0
	case !isSpace(after) && (code || !isWord(before) || inWord):
		*slot = i + 1
	}
	return j
}

// link keeps the text of the link or image at i, drops its address, and gives where to go on.
func (m *marker) link(i, from, to int) int {
	s := m.w.src
	end := strings.Index(s[i:min(to, i+longestLink)], "](")
	if end < 0 {
		return i + 1
	}
	end += i
	if strings.IndexByte(s[i+1:end], '[') >= 0 {
		return i + 1
	}
	closing := strings.IndexByte(s[end:min(to, end+longestLink)], ')')
	if closing < 0 || !strings.ContainsAny(s[end+2:end+closing], "./#:") {
		return i + 1
	}
	start := i
	if i > from && s[i-1] == '!' {
		start--
	}
	m.cut(start, i+1, "")
	m.cut(end, end+closing+1, "")
	return i + 1
}

// longestLink bounds a link's text, and its address.
const longestLink = 1000

// tags are HTML elements that only dress text; the first ones also end a line.
var tags = []string{"br", "p", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "b", "i", "u", "s", "em", "strong", "span", "sub", "sup", "small", "mark", "font", "a", "del", "ins", "ul", "ol", "table", "code", "pre", "wbr"}

const lineTags = 10

// tag drops a tag or comment at i and gives where to go on.
func (m *marker) tag(i, to int) int {
	s := m.w.src[i:min(to, i+longestLink)]
	if strings.HasPrefix(s, "<!--") {
		if end := strings.Index(s, "-->"); end > 0 {
			m.cut(i, i+end+3, "")
			return i + end + 3
		}
		return i + 1
	}
	name := strings.TrimPrefix(s[1:], "/")
	n := 0
	for n < len(name) && kinds[name[n]]&(letter|digit) != 0 {
		n++
	}
	end := strings.IndexByte(s, '>')
	if n == 0 || end < 0 || strings.IndexByte(" />", name[n%len(name)]) < 0 || n < len(name) && name[n] == ' ' && !strings.Contains(s[:end], "=") {
		return i + 1
	}
	for k, t := range tags {
		if strings.EqualFold(t, name[:n]) {
			with := ""
			if k < lineTags {
				with = "\n"
			}
			m.cut(i, i+end+1, with)
			return i + end + 1
		}
	}
	return i + 1
}

func isWord(c byte) bool { return kinds[c]&(letter|digit|wide) != 0 }

func isSpace(c byte) bool { return c == ' ' || c == '\t' }
