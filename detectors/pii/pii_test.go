package pii_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
	"github.com/evenhand/evenhand/schemas/taxonomy"
)

var shipped = sync.OnceValues(func() (*pii.Detector, error) {
	own, err := rules.Load(pii.Packs())
	if err != nil {
		return nil, err
	}
	shared, err := rules.Load(safety.Packs())
	if err != nil {
		return nil, err
	}
	return pii.New(pii.DefaultConfig(), append(own, shared...))
})

func newDetector(t testing.TB) *pii.Detector {
	t.Helper()
	d, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Analyzers compile every pattern; the tests share one.
var sharedAnalyzer = sync.OnceValues(func() (*detectors.Analyzer, error) {
	d, err := shipped()
	if err != nil {
		return nil, err
	}
	return detectors.NewAnalyzer(detectors.DefaultPolicy(), d)
})

func analyzer(t testing.TB) *detectors.Analyzer {
	t.Helper()
	a, err := sharedAnalyzer()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// find gives what stands in a text, in order.
func find(t testing.TB, text string) []audit.Finding {
	t.Helper()
	v := analyzer(t).Analyze(t.Context(), detectortest.Interaction("", text))
	if v.Status != audit.Done {
		t.Fatalf("%q: %s", text, v.Reason)
	}
	return v.Findings
}

func TestPacks(t *testing.T) {
	packs, err := rules.Load(pii.Packs())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(rules.Lint(packs), rules.Test(packs)...) {
		t.Error(f)
	}
}

func TestContract(t *testing.T) {
	detectortest.Run(t, newDetector(t), "Her card is 4111 1111 1111 1111.", "Write to jane.doe@example.org, call +44 20 7946 0958.",
		"BSN 111222333", "PESEL 44051401359, DNI 12345678Z", "password: hunter2sun")
}

func TestNewRefuses(t *testing.T) {
	if _, err := pii.New(pii.DefaultConfig(), nil); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
}

// Every kind stands in the vocabulary.
func TestKindsAreInTheTaxonomy(t *testing.T) {
	tax, err := taxonomy.Load()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range tax.Entries {
		keys = append(keys, e.Key)
	}
	for _, k := range newDetector(t).Kinds() {
		if !slices.Contains(keys, k) {
			t.Errorf("%s is missing", k)
		}
	}
}

// The span is that of the value, without the word beside it.
func TestValues(t *testing.T) {
	for _, tc := range []struct{ text, want string }{ // «value» where it stands; the entities in order
		{"nothing here", ""},
		{"Ünïcode före «a.b@example.com».", "EMAIL"},
		{"password: «hunter2sun»", "CREDENTIAL"},
		{"The password is «hunter2sun».", "CREDENTIAL"},
		{"SSN: «536228745»", "US_SSN"},
		{"My maestro card «675984103431» is lost", "CREDIT_CARD"},
		{"Authorization: Bearer «abc123def456ghi789»", "CREDENTIAL"},
		{"«postgres://app:Xk29vLq8@db.internal»:5432/main", "CREDENTIAL"},
		{"driving licence: «MORGA657054SM9IJ»", "DRIVER_LICENCE"},
		{"born on «12 May 1991»", "DATE_OF_BIRTH"},
		{"call «+44 20 7946 0958» or «(212) 555-0123»", "PHONE PHONE"},
		{"«-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAuNq3x8Zc\nq0C1cY3mZk5tL0Vw\n-----END RSA PRIVATE KEY-----» and more", "CREDENTIAL"},
		{"two cards «4111 1111 1111 1111», «5555555555554444»", "CREDIT_CARD CREDIT_CARD"},
		{"mail «jane [at] example [dot] com»!", "EMAIL"},
	} {
		text := strings.NewReplacer("«", "", "»", "").Replace(tc.text)
		var got []string
		marked := text
		fs := find(t, text)
		for i := len(fs) - 1; i >= 0; i-- {
			value := fs[i].Span.Slice(text)
			at := len(string([]rune(text)[:fs[i].Span.Start]))
			marked = marked[:at] + "«" + value + "»" + marked[at+len(value):]
			got = append(got, fs[i].Entity)
		}
		slices.Reverse(got)
		if marked != tc.text || strings.Join(got, " ") != tc.want {
			t.Errorf("%q: %v in %q", tc.text, got, marked)
		}
	}
}
