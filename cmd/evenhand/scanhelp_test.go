package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// TestScanHelpHasTheThresholds holds the table of the help to the shipped models.
func TestScanHelpHasTheThresholds(t *testing.T) {
	english, err := encoder.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	others, err := encoder.ShippedOthers()
	if err != nil {
		t.Fatal(err)
	}
	help := scanCmd{}.Help()
	for h, scale := range english.Meta.Decides {
		if scale.Head == classifier.HallucinationIndicator.String() { // never found by its grade
			continue
		}
		line := fmt.Sprintf("  %-20s", scale.Head)
		for _, m := range []*encoder.Model{english, others} {
			for _, name := range []string{"short", "medium", "balanced"} {
				e, ok := m.Meta.Effort(name)
				if !ok {
					t.Fatalf("no effort %s", name)
				}
				threshold := e.Heads[h].Threshold
				if m.Meta.Adviser != "" {
					threshold = e.Heads[h].Advice.Threshold
				}
				line += "   " + strings.TrimPrefix(fmt.Sprintf("%.2f", threshold), "0")
			}
			line += "     "
		}
		if line = strings.TrimRight(line, " "); !strings.Contains(help, "\n"+line+"\n") {
			t.Errorf("the help has no line %q", line)
		}
	}
	for i, want := range [][]string{{".74", ".75"}, {".92", ".96"}} {
		for h, p := range english.Meta.Others[i][:2] {
			if got := strings.TrimPrefix(fmt.Sprintf("%.2f", p), "0"); got != want[h] || !strings.Contains(help, got) {
				t.Errorf("%s is found above %s where no encoder reads; the help says %s", english.Meta.Decides[h].Head, got, want[h])
			}
		}
	}
}
