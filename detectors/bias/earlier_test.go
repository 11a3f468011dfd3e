package bias

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/evenhand/evenhand/detectors/rules"
)

// TestEarlierSentences holds what the packs of version 2026.11.1 found by their own sentences: at least
// 3 of 4 that they had to match are still found by some rule, although rules that found nothing else
// went, and hardly any that they had not to.
// The file is evidence for `rules prune`, too; its rows name the rule that they were written for.
func TestEarlierSentences(t *testing.T) {
	raw, err := os.ReadFile("testdata/sentences-2026.11.1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	scales, err := rules.NewScales(loadShipped(t))
	if err != nil {
		t.Fatal(err)
	}
	var of, fired [2]int
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var row struct {
			Text  string
			Label struct{ Bias int }
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		of[row.Label.Bias]++
		if len(scales.Add(row.Text, false, "")) > 0 {
			fired[row.Label.Bias]++
		}
	}
	if of[1] < 1400 || fired[1] < of[1]*3/4 {
		t.Errorf("%d of %d are found", fired[1], of[1])
	}
	if fired[0] > of[0]*2/100 {
		t.Errorf("%d of %d are false alarms", fired[0], of[0])
	}
}
