package bias

import (
	"strings"
	"testing"

	"github.com/evenhand/evenhand/detectors/detectortest"
)

// TestRefutedHits holds that a rule's hit is dropped where the text around it says that it is wrong, and that slurs and hatred that are CRITICAL
// are told whoever says them.
func TestRefutedHits(t *testing.T) {
	d := mustShipped(t)
	for text, want := range map[string]string{
		"Women are too emotional to lead.":                                        "sex.",
		"**Myth:** Women are too emotional to lead.\n**Fact:** Studies disagree.": "",
		"Myth: women can lead. Fact: women are too emotional to lead.":            "sex.",
		`{"post": "Women are too emotional to lead.", "label": "hate"}`:           "",
		`{"post": "Women are too emotional to lead.", "is_biased": false}`:        "sex.",
		"Comments that we removed:\n- Heil Hitler, the white race is superior.":   "race.",
	} {
		got := detectortest.Describe(detectortest.Findings(t, d, text))
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}
