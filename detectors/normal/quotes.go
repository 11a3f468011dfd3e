package normal

import (
	"strings"
	"unicode/utf8"
)

// quotes are pairs of quotation marks.
var quotes = [...][2]string{{"“", "”"}, {"„", "“"}, {"„", "”"}, {"«", "»"}, {"»", "«"}, {"‹", "›"}, {"‘", "’"}, {"「", "」"}, {"'", "'"}}

// unquote drops the quotation marks around the whole text, if they stand nowhere in it. One string of JSON is decoded.
func (w *rewriter) unquote() {
	from, to := edges(w.src)
	if from, to, ok := literal(w.src); ok {
		w.put(from-1, from, "")
		w.unescape(from, to)
		w.put(to, to+1, "")
		return
	}
	text := w.src[from:to]
	for _, q := range quotes {
		inside, ok := strings.CutPrefix(text, q[0])
		if !ok {
			continue
		}
		if inside, ok = strings.CutSuffix(inside, q[1]); ok && !strings.Contains(inside, q[0]) && !strings.Contains(inside, q[1]) {
			w.put(from, from+len(q[0]), "")
			w.put(to-len(q[1]), to, "")
			return
		}
	}
}

// literal gives the string of JSON, without its quotation marks, that a text wholly is.
func literal(s string) (from, to int, ok bool) {
	if from, to = edges(s); to-from < 2 || s[from] != '"' || s[to-1] != '"' {
		return 0, 0, false
	}
	return from + 1, to - 1, stringEnd(s, from+1) == to-1
}

// edges gives where a text begins and ends without the white space around it.
func edges(s string) (from, to int) {
	blank := func(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
	for to = len(s); to > 0 && blank(s[to-1]); to-- {
	}
	for from < to && blank(s[from]) {
		from++
	}
	return from, to
}

// inQuotes says that a text may be wholly in quotation marks.
func inQuotes(s string) bool {
	from, to := edges(s)
	return to-from > 1 && (s[from] >= utf8.RuneSelf || s[from] == s[to-1] && (s[from] == '"' || s[from] == '\''))
}
