package eval

import (
	"strings"
	"testing"

	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

func TestAmong(t *testing.T) {
	ordinary := []dataset.Row{{Text: "Short. The depot opens at seven in the morning on weekdays. A line\nbreak is in this sentence, so it is left out of them all. " +
		"The invoice is due at the end of the month as always."}}
	neighbours := Neighbours(ordinary)
	if len(neighbours) != 2 {
		t.Fatalf("%q", neighbours)
	}
	rows := []dataset.Row{{ID: "1", Text: "They are lazy."}, {ID: "2", Text: "They sing."}}
	for _, n := range []int{1, 3} {
		out := Among(rows, neighbours, n)
		for i, r := range out {
			before, after, found := strings.Cut(r.Text, rows[i].Text)
			if !found || r.ID != rows[i].ID || strings.Count(before, ".") != n || strings.Count(after, ".") != n {
				t.Errorf("%d: %q", n, r.Text)
			}
		}
		if again := Among(rows, neighbours, n); again[0].Text != out[0].Text {
			t.Error("drawn anew")
		}
	}
	if rows[0].Text != "They are lazy." {
		t.Error("the rows were changed")
	}
}
