package bias

import (
	"testing"

	"github.com/evenhand/evenhand/detectors/detectortest"
)

// TestHitsStayInTheirParagraph: the last word of a paragraph, an item or a cell and the first of the next are not said together; a line that is only
// wrapped, and words that stand alone in their lines, are.
func TestHitsStayInTheirParagraph(t *testing.T) {
	d := mustShipped(t)
	for text, want := range map[string]bool{
		"Is that movie stupid\n\nWomen in science is a better film":                                  false,
		"The room was dirty\r\n\r\nGypsies are a travelling people":                                  false,
		"- Nobody here may be lazy\n- Old people are welcome here":                                   false,
		"1. Nobody here may be lazy\n2. Old people are welcome here":                                 false,
		"| mood | who |\n|---|---|\n| lazy | old people |":                                           false,
		"Nobody here is lazy\n\nOld people are welcome to join us":                                   false,
		"Minutes of the meeting\n\nWomen are\ntoo emotional to lead.":                                true,
		"The board has thought about it for a while and says that women\nare too emotional to lead.": true,
		"Women\n\nare\n\ntoo\n\nemotional\n\nto\n\nlead.":                                            true,
	} {
		if fs := detectortest.Findings(t, d, text); len(fs) > 0 != want {
			t.Errorf("%q: %s", text, detectortest.Describe(fs))
		}
	}
}
