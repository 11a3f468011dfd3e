package normal

import (
	"strings"
	"unicode/utf8"
)

// unwrap takes the words out of what a program would: the strings of JSON stand on lines of their own, and an answer that
// is wholly in quotation marks stands without them.
func unwrap(w *rewriter) {
	j := &w.json
	j.begin(w.src)
	for from, to, ok := j.next(0); ok; from, to, ok = j.next(to) {
		w.document(from, to)
	}
	if len(w.edits) == 0 {
		w.unquote()
	}
}

// document writes the JSON [from, to) as lines: a value that is prose alone, another one behind its key, an item of an
// array alone too, unless it is a single word or number in a row of them. Signs go, words stay: a key can say as much as
// a value.
func (w *rewriter) document(from, to int) {
	s, tokens := w.src, w.json.tokens
	single := func(t token) bool {
		return t.kind != keyToken && wordsIn(s[t.from:t.to]) < 2 && !isProse(s[t.from:t.to])
	}
	at, between := from, "\n" // what was written ends at at
	if firstOfLine(s, from) {
		between = ""
	}
	for n, t := range tokens {
		start, end := int(t.from), int(t.to)
		switch {
		case t.named && (t.kind == plainToken || !isProse(s[start:end])):
			between = ": "
		case n > 0 && single(tokens[n-1]) && single(t) && strings.Trim(s[at:start], "\", \t\r\n") == "":
			between = ", "
		}
		w.put(at, start, between)
		if t.kind != plainToken {
			w.unescape(start, end)
		}
		at, between = end, "\n"
	}
	if to == len(s) || s[to] == '\n' || s[to] == '\r' {
		between = ""
	}
	w.put(at, to, between)
}

// isProse says that a string of JSON is told for people: four words, or two and an end mark.
func isProse(s string) bool {
	n := wordsIn(s)
	if n < 2 {
		r, _ := utf8.DecodeLastRuneInString(s)
		return r == '。' || r == '！' || r == '？'
	}
	return n > 3 || s[len(s)-1] == '.' || s[len(s)-1] == '!' || s[len(s)-1] == '?'
}

// wordsIn counts the words of a string of JSON, up to four. Escaped line breaks and tabs part words.
func wordsIn(s string) (n int) {
	inside := false
	for i := 0; i < len(s) && n < 4; i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			if i++; s[i] == 'n' || s[i] == 't' || s[i] == 'r' {
				c = ' '
			}
		}
		blank := c <= ' '
		if !blank && !inside {
			n++
		}
		inside = !blank
	}
	return n
}
