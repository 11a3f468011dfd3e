package toolcall

import (
	"strings"
	"testing"
)

// Pieces that all came under one index, each an id, a name and arguments, are put to calls.
func TestCalls(t *testing.T) {
	type piece = [3]string
	for name, tc := range map[string]struct {
		pieces []piece
		want   string
	}{
		"each an id":           {[]piece{{"a", "lookup", "{}"}, {"b", "pay", "{}"}}, "a lookup {}|b pay {}"},
		"one tool twice":       {[]piece{{"a", "pay", "{}"}, {"b", "pay", "{}"}}, "a pay {}|b pay {}"},
		"no ids":               {[]piece{{"", "lookup", "{}"}, {"", "pay", "{}"}}, " lookup {}| pay {}"},
		"one tool, no ids":     {[]piece{{"", "pay", `{"to":"a}\\"}"}`}, {"", "pay", `{"to":"b"}`}}, ` pay {"to":"a}\\"}"}| pay {"to":"b"}`},
		"no ids, in pieces":    {[]piece{{"", "pay", `{"to":{`}, {"", "pay", `"n":"{"}`}, {"", "pay", `}`}, {"", "pay", ` {}`}}, ` pay {"to":{"n":"{"}}| pay  {}`},
		"in pieces":            {[]piece{{"a", "lookup", ""}, {"", "", "{"}, {"", "", "}"}, {"b", "", ""}, {"", "pay", ""}, {"", "", "{}"}}, "a lookup {}|b pay {}"},
		"told again and again": {[]piece{{"a", "pay", "{"}, {"a", "pay", "}"}}, "a pay {}"},
		"again without ids":    {[]piece{{"", "pay", "{"}, {"", "pay", "}"}}, " pay {}"},
		"an id for each piece": {[]piece{{"a", "pay", ""}, {"b", "", "{"}, {"c", "", "}"}}, "a pay {}"},
		"a name in pieces":     {[]piece{{"a", "look", ""}, {"", "up", ""}, {"", "", "{}"}}, "a lookup {}"},
	} {
		c, args := Call{}, ""
		var all []string
		end := func() { all = append(all, c.ID+" "+c.Name+" "+args) }
		for _, p := range tc.pieces {
			if c.Over(p[0], p[1], p[2]) {
				end()
				c, args = Call{}, ""
			}
			c.Note(p[0], p[1], p[2])
			args += p[2]
		}
		if end(); strings.Join(all, "|") != tc.want {
			t.Errorf("%s: %q, want %q", name, all, tc.want)
		}
	}
}
