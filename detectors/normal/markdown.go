package normal

import (
	"cmp"
	"slices"
	"strings"
)

// markdown takes the marks off: emphasis, code, headings, bullets, links, tags of HTML and XML, and the edges of
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

	ends [maxEnds]string // names of the text's closing tags, once closes has looked for them
	n    int             // how many they are
	seen bool            // closes has looked
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

// tags are HTML elements that only dress text; the first ones also end a line, as all others do (see element).
var tags = []string{"br", "p", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "hr", "b", "i", "u", "s", "em", "strong", "span", "sub", "sup", "small", "mark", "font", "a", "del", "ins", "ul", "ol", "table", "code", "pre", "wbr"}

const lineTags = 11

// tag drops a tag or comment at i and gives where to go on.
func (m *marker) tag(i, to int) int {
	s := m.w.src[i:min(to, i+longestLink)]
	switch {
	case strings.HasPrefix(s, "<!--"):
		return m.drop(i, strings.Index(s, "-->"), 3, "")
	case strings.HasPrefix(s, cdata):
		if end := strings.Index(s, "]]>"); end > 0 {
			m.cut(i+end, i+end+3, "\n")
		}
		return m.drop(i, 0, len(cdata), "\n")
	case strings.HasPrefix(s, "<?xml"):
		return m.drop(i, strings.Index(s, "?>"), 2, "\n")
	case len(s) > 9 && strings.EqualFold(s[:9], "<!doctype"):
		return m.drop(i, strings.IndexByte(s, '>'), 1, "\n")
	}
	name := strings.TrimPrefix(s[1:], "/")
	n := 0
	for n < len(name) && kinds[name[n]]&(letter|digit) != 0 {
		n++
	}
	end := strings.IndexByte(s, '>')
	if n == 0 || end < 0 {
		return i + 1
	}
	if k := slices.IndexFunc(tags, func(t string) bool { return strings.EqualFold(t, name[:n]) }); k >= 0 &&
		strings.IndexByte(" />", name[n]) >= 0 && (name[n] != ' ' || strings.Contains(s[:end], "=")) {
		with := ""
		if k < lineTags {
			with = "\n"
		}
		return m.drop(i, end, 1, with)
	}
	return m.element(i, s)
}

const cdata = "<![CDATA["

// drop cuts what begins at i and has its last n bytes end bytes further on, and gives where to go on. Where it does not
// end nothing is cut.
func (m *marker) drop(i, end, n int, with string) int {
	if end < 0 {
		return i + 1
	}
	m.cut(i, i+end+n, with)
	return i + end + n
}

// element drops the tag of XML that s begins with, which stands at i, and gives where to go on. Of the values of its
// attributes those stay that are prose. A name alone, as in List<String> or "Dear <name>", is a tag only if one of that
// name closes.
func (m *marker) element(i int, s string) int {
	n, closing := 1, false
	if strings.HasPrefix(s, "</") {
		n, closing = 2, true
	}
	from := n
	if n = nameEnd(s, n); n == from {
		return i + 1
	}
	name, at, told := s[from:n], i, len(m.w.cuts)
	given := false // an attribute has a value
	for {
		end := blanksEnd(s, n)
		if rest := s[end:]; strings.HasPrefix(rest, ">") || strings.HasPrefix(rest, "/>") && !closing {
			if !closing && !given && rest[0] == '>' && !m.closes(name) {
				break
			}
			end += strings.IndexByte(rest, '>') + 1
			m.cut(at, i+end, "\n")
			return i + end
		}
		key := nameEnd(s, end)
		if closing || end == n || key == end {
			break
		}
		value, to, next := attribute(s, key)
		given = given || value > 0
		if value > 0 && value < to && isProse(s[value:to]) {
			m.cut(at, i+value, "\n")
			at = i + to
		}
		n = next
	}
	m.w.cuts = m.w.cuts[:told]
	return i + 1
}

// attribute gives the value of the attribute whose name ends at key, without its quotation marks, and where the attribute
// ends. One without a value has none at 0.
func attribute(s string, key int) (from, to, next int) {
	is := blanksEnd(s, key)
	if !strings.HasPrefix(s[is:], "=") {
		return 0, 0, key
	}
	from = blanksEnd(s, is+1)
	if from < len(s) && (s[from] == '"' || s[from] == '\'') {
		if n := strings.IndexByte(s[from+1:], s[from]); n >= 0 {
			return from + 1, from + 1 + n, from + n + 2
		}
		return 0, 0, len(s)
	}
	to = from
	for to < len(s) && strings.IndexByte(" \t\"'<>=`", s[to]) < 0 {
		to++
	}
	if to > from && s[to-1] == '/' {
		to--
	}
	return from, to, to
}

// maxEnds bounds the names of closing tags that are known of a text.
const maxEnds = 32

// closes says whether the text has a closing tag of that name. It looks through the text once.
func (m *marker) closes(name string) bool {
	rest := m.w.src
	for found := !m.seen; found && m.n < maxEnds; {
		if _, rest, found = strings.Cut(rest, "</"); !found {
			break
		}
		if end := nameEnd(rest, 0); end > 0 && !slices.Contains(m.ends[:m.n], rest[:end]) {
			m.ends[m.n] = rest[:end]
			m.n++
		}
	}
	m.seen = true
	return slices.Contains(m.ends[:m.n], name)
}

// nameEnd gives where the name of XML that begins at i ends: i where there is none, or one longer than any in use.
func nameEnd(s string, i int) int {
	end := i
	for end < len(s) && (kinds[s[end]]&(letter|digit) != 0 || end > i && strings.IndexByte("-_:.", s[end]) >= 0) {
		end++
	}
	if end == i || kinds[s[i]]&letter == 0 || end-i > 64 {
		return i
	}
	return end
}

// blanksEnd gives where spaces and tabs from i end.
func blanksEnd(s string, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

func isWord(c byte) bool { return kinds[c]&(letter|digit|wide) != 0 }

func isSpace(c byte) bool { return c == ' ' || c == '\t' }
