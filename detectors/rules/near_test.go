package rules

import (
	"strings"
	"testing"
)

// «» stands around the match.
func TestInContext(t *testing.T) {
	both := &Rule{near: phrases([]string{"tel", "phone number", "bsn"}), notNear: phrases([]string{"order"})}
	not := &Rule{notNear: phrases([]string{"order", "facture"})}
	before := &Rule{notBefore: phrases([]string{"order", "facture"})}
	rows := strings.Repeat("\n8,9,Paris", 7) // the words of the head are out of reach
	for _, tc := range []struct {
		name string
		r    *Rule
		text string
		want bool
	}{
		{"no words asked for", &Rule{}, "«1»", true},
		{"before", both, "Tel. «1»", true},
		{"a phrase", both, "my PHONE NUMBER: «1»", true},
		{"behind", both, "«1» (tel)", true},
		{"absent", both, "see «1»", false},
		{"part of a word", both, "hotel «1»", false},
		{"part of a word, then whole", both, "tel, hotel «1»", true},
		{"part of a name in code", both, "user_tel=«1»", true},
		{"too far", both, "tel " + strings.Repeat("and so on ", 7) + "«1»", false},
		{"the other word is nearer", both, "tel for order «1»", false},
		{"the other word is farther", both, "order by tel «1»", true},
		{"head of its column", both, "id,bsn,town" + rows + "\n7,«1»,Ghent", true},
		{"head of another column", both, "id,bsn,town" + rows + "\n«1»,7,Ghent", false},
		{"no table", both, "bsn, they say, matters" + rows + "\nsee «1»", false},
		{"only the other word: absent", not, "see «1»", true},
		{"only the other word: there", not, "Order «1»", false},
		{"only the other word: in the head", not, "a;facture" + rows + "\n7;«1»", false},
		{"behind a quote beyond ASCII", both, "“BSN «1»”", true},
		{"a letter beyond ASCII before it", both, "ätel «1»", false},
		{"the other word behind a quote", not, "“Order «1»", false},
		{"only the other word: in another clause", not, "The order is late, «1»", true},
		{"only the other word: in another sentence", not, "See the order. «1»", true},
		{"only the other word: in another line", not, "Order 5\n«1»", true},
		{"only the other word: a label in a line of its own", not, "Order:\n«1»", false},
		{"only the other word: cut short", not, "order no. «1»", false},
		{"right before", before, "Facture n° «1»", false},
		{"right before, with a filler", before, "the order number is: «1»", false},
		{"before other words", before, "the order of Jane «1»", true},
		{"right before: part of a word", before, "border «1»", true},
		{"letters beyond ASCII", &Rule{near: phrases([]string{"née le"})}, "Née le «1»", true},
	} {
		start := strings.Index(tc.text, "«")
		text := strings.Replace(tc.text, "«", "", 1)
		end := strings.Index(text, "»")
		text = strings.Replace(text, "»", "", 1)
		if got := InContext(tc.r, text, start, end); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
