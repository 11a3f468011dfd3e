package main

import (
	"strings"
	"testing"

	"github.com/evenhand/evenhand/store"
)

// Faults that a command mends name it, each once; others name none.
func TestCheckNamesTheMend(t *testing.T) {
	for _, tc := range []struct {
		faults []store.Fault
		mends  []string
	}{
		{[]store.Fault{{Code: store.FaultCurrentUnequal, Count: 3, Columns: []string{"user_sort"}}}, []string{"evenhand jobs run audit_current_repair"}},
		{[]store.Fault{{Code: store.FaultCurrentMissing}, {Code: store.FaultCurrentUnequal}}, []string{"evenhand jobs run audit_current_repair"}},
		{[]store.Fault{{Code: store.FaultRollupUnequal, Day: "2026-11-30"}, {Code: store.FaultRollupDayUnequal, Day: "2026-11-30"}, {Code: store.FaultRollupUnequal, Day: "2026-12-31"}},
			[]string{"evenhand rollups rebuild --from 2026-11-30 --to 2026-12-01", "evenhand rollups rebuild --from 2026-12-31 --to 2027-01-01"}},
		{[]store.Fault{{Code: store.FaultCurrentUnequal}, {Code: store.FaultCurrentMissing}, {Code: store.FaultFactAltered}}, // the repair would carry on what was changed
			[]string{"set jobs.audit_current_repair.schedule to off until it is known who changed the facts by hand: the job would bring that into records and rates"}},
		{[]store.Fault{{Code: store.FaultFactAltered}, {Code: store.FaultTextAltered}}, nil},
		{[]store.Fault{{Code: store.FaultGap}, {Code: store.FaultTextOrphan}, {Code: store.FaultCurrentOrphan}}, nil},
	} {
		var out strings.Builder
		printReport(&out, &store.Report{Faults: tc.faults})
		var got []string
		for line := range strings.SplitSeq(out.String(), "\n") {
			if m, ok := strings.CutPrefix(line, "MEND  "); ok {
				m, _, _ = strings.Cut(m, "   (")
				got = append(got, m)
			}
		}
		if strings.Join(got, "\n") != strings.Join(tc.mends, "\n") {
			t.Errorf("%+v: mends %q, want %q", tc.faults, got, tc.mends)
		}
	}
}
