package pii_test

import (
	"maps"
	"testing"

	"github.com/evenhand/evenhand/detectors/pii"
)

// What leaves later has the placeholders of what left before, and a draft leaves nothing behind but what is kept.
func TestMemory(t *testing.T) {
	m := masker(t)
	var memory pii.Memory
	mask := func(memory *pii.Memory, text string) string {
		t.Helper()
		out, err := m.More(t.Context(), memory, text)
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Text
	}
	for _, tc := range []struct{ text, want string }{
		{"Ask rosa@werft.example. My SSN is 536228745.", "Ask [EMAIL_1]. My SSN is [US_SSN_1]."},
		{"rosa@werft.example and emil@werft.example for 536228745", "[EMAIL_1] and [EMAIL_2] for [US_SSN_1]"},
	} {
		if got := mask(&memory, tc.text); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	before := memory.Values()
	if got := mask(memory.Draft(), "to otto@werft.example, rosa@werft.example, ida@werft.example"); got != "to [EMAIL_3], [EMAIL_1], [EMAIL_4]" || !maps.Equal(before, memory.Values()) {
		t.Errorf("%q %v", got, memory.Values())
	}
	memory.Keep("ida@werft.example", "[EMAIL_4]")
	memory.Keep("rosa@werft.example", "[EMAIL_9]") // it has one
	if got := mask(&memory, "uwe@werft.example, ida@werft.example, rosa@werft.example"); got != "[EMAIL_5], [EMAIL_4], [EMAIL_1]" {
		t.Error(got)
	}
	if got := memory.Values(); got["[EMAIL_2]"] != "emil@werft.example" || got["[US_SSN_1]"] != "536228745" || len(got) != 5 {
		t.Error(got)
	}
	var empty pii.Memory
	empty.Draft().Keep("x", "[EMAIL_1]")
	if len(empty.Values()) != 0 || pii.EntityOf("[US_SSN_12]") != "US_SSN" || pii.EntityOf("[]") != "" {
		t.Error("of nothing")
	}
}
