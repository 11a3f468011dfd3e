package pii_test

import (
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
)

// masked is a text, and what becomes of it; "" where nothing is found in it.
type masked []struct{ text, want string }

func (rows masked) test(t *testing.T) {
	t.Helper()
	for _, tc := range rows {
		want := tc.want
		if want == "" {
			want = tc.text
		}
		if got := pii.Mask(tc.text, audit.Output, find(t, tc.text)); got != want {
			t.Errorf("%q becomes %q, want %q", tc.text, got, want)
		}
	}
}

// Signs between the columns of a table or the items of a list are no part of the telephone number beside them.
func TestPhonesInLists(t *testing.T) {
	masked{
		{"phones: +14158672210,+14158672211,+14158672212", "phones: [PHONE],[PHONE],[PHONE]"},
		{"order_id,phone\n4821,+14158672210", "order_id,phone\n4821,[PHONE]"},
		{"order_id,phone\n4821,4158672210", "order_id,phone\n4821,[PHONE]"},
		{"2024-05-23,+14158672210,ok", "2024-05-23,[PHONE],ok"},
		{"x,+14158672210,12.50", "x,[PHONE],12.50"},
		{"[17,+14158672210]", "[17,[PHONE]]"},
		{"17/+14158672210:80", "17/[PHONE]:80"},
		{"call (415) 867-2210,(415) 867-2211", "call [PHONE],[PHONE]"},
		{"415-867-2210,415-867-2211", "[PHONE],[PHONE]"},
		{"call 415-867-2210:22", "call [PHONE]:22"},
		{"Il appelle 12 345 678 901,50 €", ""},
		{"ring at 2024-11-29 10:30", ""},
		{"tel 1,250000000", ""},
		{"tel 250000000,50", ""},
	}.test(t)
}
