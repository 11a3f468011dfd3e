package audit

import (
	"strings"
	"testing"
)

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

func TestShown(t *testing.T) {
	for _, name := range []string{"respose", "_x", "gen_ai.request.model", "X-Team", "field_199999", strings.Repeat("a", 40)} {
		if got := Shown(name); got != name {
			t.Errorf("%q: %s", name, got)
		}
	}
	for name, want := range map[string]string{
		"": "(a name of 0 characters)", "two words": "(a name of 9 characters)", "mary@example.com": "(a name of 16 characters)", "größe": "(a name of 5 characters)",
		"4111111111111111": "(a name of 16 characters)", "CH9300762011623852957": "(a name of 21 characters)", "7": "(a name of 1 characters)",
		"a\n": "(a name of 2 characters)", strings.Repeat("a", 41): "(a name of 41 characters)", "\xff": "(a name of 1 characters)",
	} {
		if got := Shown(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
