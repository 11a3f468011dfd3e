package normal

import (
	"iter"
	"regexp"
	"strings"
)

// Parted tells whether text[start:end] of a normal text reaches over the end of a paragraph, of an item of a list or of a cell of a table:
// the words on either side are not said together. written is the same place as it was written, with the marks of lists and tables that the
// normal text has not. A line break alone parts nothing, since lines are wrapped anywhere; nor do blank lines between single words.
func Parted(text string, start, end int, written string) bool {
	broken := false
	for i := start; ; i++ {
		at := strings.IndexByte(text[i:end], '\n')
		if at < 0 {
			return broken && structure.MatchString(written)
		}
		broken, i = true, i+at
		if ends(text, i) {
			return true
		}
	}
}

// ends tells whether the line break at i ends a paragraph: a blank line is next, and more than one word before.
func ends(text string, i int) bool {
	return lastOfLine(text, i+1) && strings.IndexByte(strings.TrimSpace(text[strings.LastIndexByte(text[:i], '\n')+1:i]), ' ') > 0
}

// Paragraphs gives where the paragraphs of a normal text begin and end, the blank lines behind each with it. What reaches over an end is [Parted].
func Paragraphs(text string) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from := 0
		for i := 0; ; i++ {
			at := strings.IndexByte(text[i:], '\n')
			if at < 0 {
				if from < len(text) {
					yield(from, len(text))
				}
				return
			}
			if i += at; !ends(text, i) {
				continue
			}
			for i+1 < len(text) && strings.IndexByte(" \t\r\n", text[i+1]) >= 0 {
				i++
			}
			if !yield(from, i+1) {
				return
			}
			from = i + 1
		}
	}
}

// structure is what parts texts inside a line or at the beginning of one: marks of items and headings, and the edges of cells and blocks.
var structure = regexp.MustCompile(`(?i)\n[ \t>]*(?:[-*+•–]|\d{1,3}[.)]|#{1,6})[ \t]|[^|]\|[^|]|</?(?:t[dhr]|li|[uo]l|p|div|h[1-6]|table)\b`)
