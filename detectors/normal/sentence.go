package normal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxSentence bounds a sentence in bytes; a longer stretch without an end is cut at a space.
const MaxSentence = 600

// SentenceEnd gives where the sentence ends that begins at from: behind its end mark and the quotes or
// brackets that close after it, at a line break, so that items of lists and cells of tables are sentences
// of their own, unless the line was only wrapped there, or at [MaxSentence]. Points of abbreviations, initials, decimals and numbers of items end
// none. It takes normal text.
func SentenceEnd(text string, from int) int {
	limit := min(len(text), from+MaxSentence)
	for i := from; i < limit; i++ {
		if mayEnd[text[i]] {
			if end, ok := endAt(text, i); ok {
				return end
			}
		}
	}
	if limit == len(text) {
		return limit
	}
	if space := strings.LastIndexByte(text[from:limit], ' '); space > MaxSentence/2 {
		return from + space + 1
	}
	for limit > from+1 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return limit
}

// SentenceAround gives the sentence in which [start, end) of a normal text lies, at most [MaxSentence] to
// either side. It ends at the same places as by [SentenceEnd].
func SentenceAround(text string, start, end int) (from, to int) {
	from, to = max(0, start-MaxSentence), min(len(text), end+MaxSentence)
	for i := start - 1; i >= from; i-- {
		if mayEnd[text[i]] {
			if at, ok := endAt(text, i); ok && at <= start {
				from = at
				break
			}
		}
	}
	for i := end; i < to; i++ {
		if mayEnd[text[i]] {
			if at, ok := endAt(text, i); ok {
				return from, min(at, len(text))
			}
		}
	}
	return from, to
}

// mayEnd holds the bytes at which a sentence can end; the wide ones begin 。 । ؟ and ۔.
var mayEnd = [256]bool{'.': true, '!': true, '?': true, '\n': true, 0xe3: true, 0xe0: true, 0xd8: true, 0xdb: true}

// closes holds the quotes and brackets that can stand behind an end mark.
var closes = [256]bool{'"': true, '\'': true, ')': true, ']': true, '*': true}

// endAt says where the sentence ends whose end mark is at i, if it is one.
func endAt(text string, i int) (end int, ok bool) {
	switch c := text[i]; {
	case c == '\n':
		return i + 1, !wrapped(text, i)
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(text[i:])
		return i + size, r == '。' || r == '।' || r == '؟' || r == '۔'
	}
	dots := true
	for end = i; end < len(text) && (text[end] == '.' || text[end] == '!' || text[end] == '?'); end++ {
		dots = dots && text[end] == '.'
	}
	marks := end - i
	for end < len(text) && closes[text[end]] {
		end++
	}
	if end < len(text) && text[end] != ' ' && text[end] != '\n' && text[end] != '\t' && text[end] != '\r' {
		return 0, false
	}
	switch {
	case dots && marks == 1 && (i == 0 || text[i-1] != '.'):
		return end, !abbreviates(text, i, end)
	case dots: // "well... perhaps"
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[end:], " "))
		return end, !unicode.IsLower(next)
	}
	return end, true
}

// shortestWrapped is how many bytes a line has at least that is wrapped: items of lists and verses are shorter.
const shortestWrapped = 28

// wrapped says that the line break at i only wraps a line, as mail programs do: a long line ends in the middle of a sentence, and the next one goes
// on with a small letter, and is neither item nor field.
func wrapped(text string, i int) bool {
	next := i + 1
	if i < shortestWrapped || next == len(text) || text[next] < utf8.RuneSelf && !('a' <= text[next] && text[next] <= 'z') || strings.IndexByte(text[i-shortestWrapped:i], '\n') >= 0 {
		return false
	}
	if c := text[i-1]; c != ',' && !isWord(c) {
		return false
	}
	if r, _ := utf8.DecodeRuneInString(text[next:]); !unicode.IsLower(r) {
		return false
	}
	end := next
	for end < len(text) && (isWord(text[end]) || text[end] == '-') {
		end++
	}
	if end == len(text) || text[end] == '\n' {
		return end == len(text)
	}
	for end < len(text) && text[end] == ' ' {
		end++
	}
	return end == len(text) || strings.IndexByte(":=|)", text[end]) < 0
}

// abbreviates says that the point at i ends no sentence: it belongs to an abbreviation, an initial or the
// number of an item. The text goes on at end.
func abbreviates(text string, i, end int) bool {
	from := i
	for from > 0 && isWord(text[from-1]) {
		from--
	}
	word := text[from:i]
	switch {
	case word == "":
		return false
	case kinds[word[0]]&digit != 0:
		return len(word) < 3 && (firstOfLine(text, from) || months[nextWord(text, end)])
	case len(word) == 1 && kinds[word[0]]&letter != 0: // "U.S.", "e.g.", "J. Smith"
		return end < len(text) && text[end] != '\n' && !starters[nextWord(text, end)]
	case len(word) > 7 || !mayAbbreviate(word):
		return false
	}
	if end == len(text) || text[end] == '\n' {
		return false
	}
	switch next := nextWord(text, end); abbreviations[strings.ToLower(word)] {
	case always:
		return true
	case often:
		return !starters[next]
	case numbering:
		return next != "" && kinds[next[0]]&digit != 0
	}
	return false
}

// firstOfLine says that nothing but white space stands between byte i and the line's beginning.
func firstOfLine(text string, i int) bool {
	for i > 0 && (text[i-1] == ' ' || text[i-1] == '\t') {
		i--
	}
	return i == 0 || text[i-1] == '\n'
}

// lastOfLine says that only blanks follow in the line of i.
func lastOfLine(text string, i int) bool {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i >= len(text) || text[i] == '\n'
}

// mayAbbreviate is false for most words that are no abbreviation, by their first and last letter.
func mayAbbreviate(word string) bool {
	first, last := word[0], word[len(word)-1]
	return first >= utf8.RuneSelf || last >= utf8.RuneSelf || lastLetters[first&31]&(1<<(last&31)) != 0
}

// nextWord gives the word after a place.
func nextWord(text string, i int) string {
	for i < len(text) && !isWord(text[i]) && text[i] != '\n' {
		i++
	}
	start := i
	for i < len(text) && isWord(text[i]) {
		i++
	}
	return text[start:i]
}

// When the point of an abbreviation ends no sentence.
const (
	always    = iota + 1
	often     // but before a word that begins sentences
	numbering // before a number
)

var (
	abbreviations = func() map[string]int {
		m := map[string]int{}
		for kind, list := range map[int]string{
			always:    "dr mr mrs ms prof vs cf ca approx bzw ggf vgl sog evtl inkl exkl",
			often:     "st gen gov sen hon rev dept hr fr etc inc ltd corp jr sr usw al co pp bspw zzgl phd",
			numbering: "fig art sec vol nr no max min abs mind ed",
		} {
			for a := range strings.FieldsSeq(list) {
				m[a] = kind
			}
		}
		return m
	}()
	lastLetters = func() (bits [32]uint32) { // of the abbreviations that begin with a letter; case and all but letters fall together
		for a := range abbreviations {
			bits[a[0]&31] |= 1 << (a[len(a)-1] & 31)
		}
		return bits
	}()
	starters = set("He She It They We You The This That These Those But And Or So In On At If When My Our Your His Her Their There Then However Women Men People No Not All Please Der Die Das Er Sie Es Wir Ihr Ich Aber Und Ein Eine Frauen Alle")
	months   = set("Januar Februar März April Mai Juni Juli August September Oktober November Dezember")
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
