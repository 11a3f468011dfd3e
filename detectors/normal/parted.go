package normal

import (
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
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		if lastOfLine(text, i+1) && strings.IndexByte(strings.TrimSpace(line), ' ') > 0 {
			return true
		}
	}
}

// structure is what parts texts inside a line or at the beginning of one: marks of items and headings, and the edges of cells and blocks.
var structure = regexp.MustCompile(`(?i)\n[ \t>]*(?:[-*+•–]|\d{1,3}[.)]|#{1,6})[ \t]|[^|]\|[^|]|</?(?:t[dhr]|li|[uo]l|p|div|h[1-6]|table)\b`)
