package bias

import (
	"testing"

	"github.com/evenhand/evenhand/detectors/detectortest"
)

// TestForeignHarmless holds that rules fire on next to none of the harmless texts in other languages, where "hun", "Abo" and "retard" are everyday words.
func TestForeignHarmless(t *testing.T) {
	d := mustShipped(t)
	a := detectortest.Analyzer(t, d)
	texts := lines(t, "testdata/foreign.txt")
	fired := firingOf(t, d, a, texts)
	if len(texts) < 300 || len(fired) > 2 { // "Lefty Kreh was een bekende sportvisser." is a name and little else
		t.Errorf("%d of %d: %q", len(fired), len(texts), fired)
	}
}
