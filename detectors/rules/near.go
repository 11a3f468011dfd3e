package rules

import "strings"

const (
	contextBefore = 60 // bytes before a match in which a word counts
	contextAfter  = 24 // bytes behind it
)

// InContext tells whether the match text[start:end] has the words beside it that the rule asks for: one of
// Near before it, closer than any of NotNear, or right behind it, or in the head of its column where
// the text is a table. A rule that names neither is always in context.
//
// Words are whole: "id" does not stand in "paid", but does in "user_id". Cost is a few searches in a hundred
// bytes, so it comes last, after the check.
func InContext(r *Rule, text string, start, end int) bool {
	if len(r.near)+len(r.notNear) == 0 {
		return true
	}
	before := strings.ToLower(text[max(0, start-contextBefore):start])
	near, not := lastOf(before, r.near), lastOf(before, r.notNear)
	if len(r.near) == 0 {
		return not < 0 && lastOf(columnHead(text, start), r.notNear) < 0
	}
	if near >= 0 || not >= 0 {
		return near > not
	}
	after := strings.ToLower(text[end:min(len(text), end+contextAfter)])
	return lastOf(after, r.near) >= 0 || lastOf(columnHead(text, start), r.near) >= 0
}

// phrase is a word or several, in lower case, and which letters stand in it.
type phrase struct {
	text    string
	letters uint32
}

func phrases(words []string) (ps []phrase) {
	for _, w := range words {
		w = strings.ToLower(w)
		ps = append(ps, phrase{w, lettersOf(w)})
	}
	return ps
}

// lettersOf has a bit for each of a to z that stands in s: most phrases are ruled out by it.
func lettersOf(lower string) (bits uint32) {
	for i := range len(lower) {
		if c := lower[i] - 'a'; c < 26 {
			bits |= 1 << c
		}
	}
	return bits
}

// lastOf gives where the last of some phrases begins, -1 when none stands there.
func lastOf(lower string, ps []phrase) int {
	last, has := -1, lettersOf(lower)
	if has == 0 {
		return last
	}
	for _, p := range ps {
		if p.letters&^has != 0 {
			continue
		}
		for i := len(lower) - len(p.text); i > last; i-- { // a handful of bytes: what package strings prepares costs more
			if lower[i] == p.text[0] && lower[i:i+len(p.text)] == p.text && isWhole(lower, i, i+len(p.text)) {
				last = i
			}
		}
	}
	return last
}

func isWhole(s string, from, to int) bool {
	return (from == 0 || !isWordByte(s[from-1]) || !isWordByte(s[from])) && (to == len(s) || !isWordByte(s[to]) || !isWordByte(s[to-1]))
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 0x80
}

// columnHead gives, in lower case, the name of the column that a value of a table of text stands in: the
// paragraph's first line has as many signs between columns as the value's own, at least one.
func columnHead(text string, at int) string {
	const most = 1 << 12
	from := max(0, at-most)
	if i := strings.LastIndex(text[from:at], "\n\n"); i >= 0 {
		from += i + 2
	}
	line := from + strings.LastIndexByte(text[from:at], '\n') + 1
	if line == from {
		return ""
	}
	head, _, _ := strings.Cut(text[from:line], "\n")
	whole, _, _ := strings.Cut(text[line:min(len(text), at+most)], "\n")
	for _, sep := range [...]string{",", ";", "\t", "|"} {
		if n := strings.Count(head, sep); n > 0 && n == strings.Count(whole, sep) {
			return strings.ToLower(strings.Split(head, sep)[strings.Count(text[line:at], sep)])
		}
	}
	return ""
}
