package audit

import "testing"

// What is stored of a long text ends with a whole code point.
func TestStored(t *testing.T) {
	for _, tc := range []struct {
		limit      int
		text, want string
	}{{0, "abc", "abc"}, {3, "abc", "abc"}, {2, "abc", "ab"}, {4, "aééé", "aé"}, {1, "é", ""}} {
		if got := (&Interaction{TextBytes: tc.limit}).Stored(tc.text); got != tc.want {
			t.Errorf("%d of %q: %q, want %q", tc.limit, tc.text, got, tc.want)
		}
	}
}
