package judge

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func TestSelect(t *testing.T) {
	s, err := NewSelector(Config{Band: 0.5, Domains: []audit.Domain{audit.HR}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		f    Facts
		want Reason
	}{
		{"clean", Facts{Response: true, Threshold: 300_000}, ""},
		{"at the threshold", Facts{Response: true, Detected: true, BiasSum: 300_000, Threshold: 300_000}, Grey},
		{"at the band's lower end", Facts{Response: true, Detected: true, BiasSum: 150_000, Threshold: 300_000}, Grey},
		{"below the band", Facts{Response: true, Detected: true, BiasSum: 149_999, Threshold: 300_000}, ""},
		{"at the band's upper end", Facts{Response: true, Detected: true, BiasSum: 450_000, Threshold: 300_000}, Grey},
		{"beyond doubt", Facts{Response: true, Detected: true, BiasSum: 450_001, Threshold: 300_000}, ""},
		{"learned alone", Facts{Response: true, Detected: true, Threshold: 300_000}, Grey},
		{"a domain of its own", Facts{Response: true, Domain: audit.HR, Threshold: 150_000}, Domain},
		{"doubt comes before the domain", Facts{Response: true, Domain: audit.HR, Detected: true, BiasSum: 150_000, Threshold: 150_000}, Grey},
		{"beyond doubt, of the domain", Facts{Response: true, Domain: audit.HR, Detected: true, BiasSum: 900_000, Threshold: 150_000}, Domain},
		{"nothing to judge", Facts{Domain: audit.HR, Detected: true, BiasSum: 150_000, Threshold: 150_000}, ""},
	} {
		if why, ok := s.Select(tc.f); why != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q %v, want %q", tc.name, why, ok, tc.want)
		}
	}
}

func ids(n int, each func(audit.ID)) {
	for i := range n {
		id := audit.DeriveID("judge", string(binary.BigEndian.AppendUint64(nil, uint64(i))))
		each(id)
	}
}

// A share by chance is the share, the same in every process, and grows by adding.
func TestSample(t *testing.T) {
	few, _ := NewSelector(Config{RandomPercent: 1})
	more, _ := NewSelector(Config{RandomPercent: 10})
	all, _ := NewSelector(Config{RandomPercent: 100})
	none, _ := NewSelector(Config{})
	var n [4]int
	ids(100_000, func(id audit.ID) {
		var in [4]bool
		for i, s := range []*Selector{few, more, all, none} {
			why, ok := s.Select(Facts{ID: id, Response: true})
			if in[i] = ok; ok {
				n[i]++
			}
			if ok && why != Sample {
				t.Fatal(why)
			}
		}
		if in[0] && !in[1] {
			t.Fatal("a larger share leaves one out that a smaller one has")
		}
	})
	if n[0] < 900 || n[0] > 1100 || n[1] < 9_700 || n[1] > 10_300 || n[2] != 100_000 || n[3] != 0 { // five standard deviations and more
		t.Error(n)
	}
	id, _ := audit.ParseID("01a1fdf4-1904-7055-bf3b-caa280a64776")
	if _, ok := more.Select(Facts{ID: id, Response: true}); ok != golden {
		t.Error("another hash: what was chosen before an upgrade is not what is chosen after it")
	}
}

// golden is whether the id above is among ten percent.
const golden = false

func TestSelectAllocatesNothing(t *testing.T) {
	s, _ := NewSelector(DefaultConfig())
	f := Facts{Response: true, Domain: audit.General, Threshold: 300_000}
	if n := testing.AllocsPerRun(1000, func() { s.Select(f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSelect(b *testing.B) {
	s, _ := NewSelector(DefaultConfig())
	f := Facts{Response: true, Domain: audit.General, Threshold: 300_000}
	for b.Loop() {
		s.Select(f)
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	_, err := NewSelector(Config{Band: -1, RandomPercent: 101, Domains: []audit.Domain{"law"}})
	for _, key := range []string{"judge.select.band", "judge.select.random_percent", "judge.select.domains"} {
		if audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
