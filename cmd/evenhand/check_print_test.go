package main

import (
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/store"
)

// What nobody proves is told in words, not in the JSON alone.
func TestReportTellsWhatNobodyProves(t *testing.T) {
	var b strings.Builder
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	printReport(&b, &store.Report{
		Seals:     &store.SealReport{Markers: 7, Since: &since, UnsignedMarkers: 3, UnsignedInteractions: 31, Unsealed: 2, UnsealedInteractions: 21, SealedElsewhere: 11},
		FactSeals: &store.FactSealReport{Rows: 5, UnsignedRows: 4, UnsignedFacts: 41, TextsErasedUnsigned: 42},
	})
	for _, want := range []string{
		"31 interactions of 3 markers without a signature", "2 markers of an older program without seals: their interactions, of which 21 stand,", "11 interactions of them came again",
		"(4 without a signature,", "41 have seals that nobody signed", "42 texts are gone by erasures that nobody signed",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// Without a public key seals are compared and prove nothing against who can write them: a clean check ends with that.
func TestACheckWithoutKeysSaysWhatItDoesNotProve(t *testing.T) {
	const unproved = "facts.\n    That nobody changed rows and seals alike by hand is not proved: no signature was checked.\n"
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		report store.Report
		says   bool
	}{
		{store.Report{Seals: &store.SealReport{Markers: 7, Since: &since}}, true},
		{store.Report{Seals: &store.SealReport{Markers: 7, Since: &since, Signed: 7, Signers: []string{"84aa7dbb0d1fd846"}}}, false},
		{store.Report{}, false}, // nothing is stored
		{store.Report{Seals: &store.SealReport{Markers: 7, Since: &since}, Faults: []store.Fault{{Code: store.FaultGap}}}, false},
	} {
		var b strings.Builder
		if printReport(&b, &tc.report); strings.HasSuffix(b.String(), unproved) != tc.says {
			t.Errorf("%+v:\n%s", tc.report.Seals, b.String())
		}
	}
}
