package audit

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func finding(rule string, g Ground, s Severity, d Domain, start, end uint32) Finding {
	p, _ := ProfileOf(d)
	return Finding{Kind: "charter." + string(g), Rule: rule, Ground: g, Severity: s, Score: s.Weight().Times(p.Multiplier(g)), Side: Output, Span: Span{start, end}}
}

// The cases that float64 gets wrong: 0.1×1.5 > 0.15 and 0.1+0.1+0.1 > 0.3 are both true there.
func TestThresholdIsStrictInMillionths(t *testing.T) {
	low := func(rule string, d Domain, at uint32) Finding { return finding(rule, Language, Low, d, at, at+1) }
	for _, tc := range []struct {
		name   string
		domain Domain
		fs     []Finding
		flag   bool
	}{
		{"one LOW at 1.5× in HR does not flag", HR, []Finding{finding("a", Religion, Low, HR, 0, 1)}, false},
		{"three LOW in general do not", General, []Finding{low("a", General, 0), low("b", General, 2), low("c", General, 4)}, false},
		{"one more does", General, []Finding{low("a", General, 0), low("b", General, 2), low("c", General, 4), low("d", General, 6)}, true},
		{"one MEDIUM in general does not", General, []Finding{finding("a", Sex, Medium, General, 0, 1)}, false},
		{"one MEDIUM at 2.0× in HR does", HR, []Finding{finding("a", Sex, Medium, HR, 0, 1)}, true},
		{"one LOW at 1.0× in finance does not", Finance, []Finding{low("a", Finance, 0)}, false},
		{"two LOW at 1.0× in finance do not: 0.2 is not above 0.2", Finance, []Finding{low("a", Finance, 0), low("b", Finance, 2)}, false},
		{"one HIGH anywhere does", General, []Finding{finding("a", Nationality, High, General, 0, 1)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, _ := ProfileOf(tc.domain)
			if sum := Sum(tc.fs); (sum > p.Threshold) != tc.flag {
				t.Errorf("sum %v against %v: flag %v, want %v", sum, p.Threshold, sum > p.Threshold, tc.flag)
			}
		})
	}
}

func TestSumCountsARuleOnceAndOverlapsOnce(t *testing.T) {
	a := finding("a", Sex, Medium, General, 0, 10)
	again := finding("a", Sex, Medium, General, 20, 30)
	stronger := finding("b", Sex, High, General, 5, 12)
	elsewhere := finding("c", Sex, Medium, General, 40, 50)
	otherGround := finding("d", Age, Medium, General, 0, 10)
	for _, tc := range []struct {
		name string
		fs   []Finding
		want Score
	}{
		{"none", nil, 0},
		{"a rule counts once", []Finding{a, again}, 300_000},
		{"of overlapping findings the strongest", []Finding{a, stronger}, 600_000},
		{"a weaker finding elsewhere still counts", []Finding{a, again, stronger}, 900_000},
		{"apart they add", []Finding{stronger, elsewhere}, 900_000},
		{"grounds do not hide each other", []Finding{a, otherGround}, 600_000},
		{"the sum may pass 1", []Finding{stronger, finding("e", Race, Critical, General, 0, 3)}, 1_600_000},
	} {
		if got := Sum(tc.fs); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestSumDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "n")
		var fs []Finding
		for range n {
			start := rapid.Uint32Range(0, 20).Draw(t, "start")
			fs = append(fs, finding(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "rule"), rapid.SampledFrom(Grounds).Draw(t, "ground"),
				rapid.SampledFrom(Severities).Draw(t, "severity"), HR, start, start+rapid.Uint32Range(1, 5).Draw(t, "len")))
		}
		want := Sum(fs)
		if got := Sum(rapid.Permutation(fs).Draw(t, "permuted")); got != want && len(fs) > 0 {
			// Equal scores may hide different neighbours; then at least no sum is below the strongest.
			var top Score
			for _, f := range fs {
				top = max(top, f.Score)
			}
			if got < top {
				t.Fatalf("sum %v below the strongest finding %v", got, top)
			}
		}
	})
}

func TestProfilesAreThoseOfTheSeed(t *testing.T) {
	for _, tc := range []struct {
		d         Domain
		threshold string
		x2, x15   string
	}{
		{General, "0.3", "", ""},
		{HR, "0.15", "sex race ethnic_origin disability age", "religion political_opinion sexual_orientation nationality"},
		{Finance, "0.2", "social_origin property", "race birth nationality"},
		{Healthcare, "0.2", "genetic_features disability", "sex race age"},
		{Education, "0.2", "social_origin disability age", "ethnic_origin language birth"},
	} {
		p, known := ProfileOf(tc.d)
		var x2, x15 []string
		for _, g := range Grounds {
			switch p.Multiplier(g) {
			case 2 * One:
				x2 = append(x2, string(g))
			case One + One/2:
				x15 = append(x15, string(g))
			case One:
			default:
				t.Errorf("%s: %s has multiplier %v", tc.d, g, p.Multiplier(g))
			}
		}
		if !known || p.Threshold.String() != tc.threshold || strings.Join(x2, " ") != tc.x2 || strings.Join(x15, " ") != tc.x15 {
			t.Errorf("%s: threshold %v, 2.0×: %v, 1.5×: %v", tc.d, p.Threshold, x2, x15)
		}
	}
	if p, known := ProfileOf("legal"); known || p.Domain != General {
		t.Error("an unknown domain must get the general profile and say so")
	}
	if len(Grounds) != 16 || len(GroundSeverity) != 16 {
		t.Error("there are 16 grounds")
	}
}

func TestIDs(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 123e6, time.UTC)
	id := NewID(now)
	back, err := ParseID(id.String())
	if at, ok := id.Time(); err != nil || back != id || !ok || !at.Equal(now) {
		t.Errorf("id %v, back %v, time %v", id, back, at)
	}
	if a, b := DeriveID("a", "bc"), DeriveID("ab", "c"); a == b || a[6]>>4 != 5 {
		t.Error("derived ids must tell their parts apart and be version 5")
	}
	for _, bad := range []string{"", "x", "00000000-0000-0000-0000-00000000000g", "000000000000000000000000000000000000"} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("%q is taken for a UUID", bad)
		}
	}
}

func TestFirstDeliveryHasTheHighestVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(1_600_000_000_000, 2_500_000_000_000).Draw(t, "ms")
		later := ms + rapid.Int64Range(1, 1<<36).Draw(t, "later")
		place := func(name string, ms int64) Origin {
			return Origin{Topic: "t", Partition: rapid.IntRange(0, 99).Draw(t, name+"p"), Offset: rapid.Int64Range(0, 1<<40).Draw(t, name+"o"), BrokerTime: time.UnixMilli(ms)}
		}
		a, b := place("a", ms), place("b", later)
		if a.Version() <= b.Version() || a.CurrentVersion(1) <= b.CurrentVersion(1) {
			t.Fatalf("the earlier delivery must win: %d %d", a.Version(), b.Version())
		}
		if b.CurrentVersion(2) <= a.CurrentVersion(1) {
			t.Fatal("more facts must win over an earlier delivery")
		}
	})
}

func TestSpanSlice(t *testing.T) {
	for _, tc := range []struct {
		text       string
		start, end uint32
		want       string
	}{{"héllo", 1, 3, "él"}, {"héllo", 0, 5, "héllo"}, {"😀a", 1, 2, "a"}, {"abc", 2, 9, "c"}, {"abc", 5, 9, ""}, {"", 0, 0, ""}} {
		if got := (Span{tc.start, tc.end}).Slice(tc.text); got != tc.want {
			t.Errorf("%q[%d,%d) = %q, want %q", tc.text, tc.start, tc.end, got, tc.want)
		}
	}
}

func TestTraceparent(t *testing.T) {
	tid, sid := "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	if a, b, ok := ParseTraceparent("00-" + tid + "-" + sid + "-01"); !ok || a != tid || b != sid {
		t.Error("a valid header is refused")
	}
	for _, bad := range []string{"", "00-" + tid, "ff-" + tid + "-" + sid + "-01", "00-" + strings.Repeat("0", 32) + "-" + sid + "-01", "00-" + strings.ToUpper(tid) + "-" + sid + "-01"} {
		if _, _, ok := ParseTraceparent(bad); ok {
			t.Errorf("%q is taken for a traceparent", bad)
		}
	}
}

func TestMitigations(t *testing.T) {
	for _, tc := range []struct{ a, b, want string }{
		{"", "", ""}, {"", MitigationReplace, MitigationReplace}, {MitigationBlock, MitigationReplace, MitigationBlock},
		{MitigationReplace, MitigationReview, MitigationReview}, {MitigationReview, "SHOUT", MitigationReview},
	} {
		if got := StrongerMitigation(tc.a, tc.b); got != tc.want {
			t.Errorf("%q, %q: %q, want %q", tc.a, tc.b, got, tc.want)
		}
	}
	chair := Advice{Type: MitigationReplace, Term: "chairman", Replace: "chair"}
	got := MitigationDetails(MitigationReplace, Advice{}, chair, chair, Advice{Replace: "say it plainly"})
	if want := `Some terms should be replaced: "chairman" → chair; say it plainly`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, kind := range Mitigations {
		if MitigationDetails(kind) == "" {
			t.Errorf("%s has no words", kind)
		}
	}
}
