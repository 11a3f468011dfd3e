package failpoint_test

import (
	"testing"

	"github.com/evenhand/evenhand/internal/failpoint"
)

// The binary that people run holds no way to end it: without the tag nothing happens at a point,
// armed or not.
func TestNothingHappensWithoutTheTag(t *testing.T) {
	if failpoint.Enabled {
		t.Skip("built with the tag failpoints")
	}
	t.Setenv("FAILPOINT", failpoint.Decoded)
	failpoint.Hit(failpoint.Decoded, "")
	if n := testing.AllocsPerRun(100, func() { failpoint.Hit(failpoint.Inserted, "verdicts") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPointsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range append(failpoint.All(), failpoint.Calls()...) {
		if p == "" || seen[p] {
			t.Errorf("point %q", p)
		}
		seen[p] = true
	}
}
