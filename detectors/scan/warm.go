package scan

import (
	_ "embed"
	"strings"
)

// ordinary is prose such as models write, of our own, in English and German.
//
//go:embed warm.txt
var ordinary string

// Warm scans ordinary text, a few milliseconds' work, so that the first texts of a new Scanner find most of the
// states that any text needs.
func (s *Scanner) Warm() {
	var found []Match
	for text := range strings.SplitSeq(ordinary, "\n\n") {
		found = s.Scan(text, found[:0])
	}
}
