package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
)

const address = "Write to jane@example.org, not to joe@example.org."

// hasty looks for personal data with a deadline that no text meets.
func hasty(t *testing.T) *detectors.Current {
	t.Helper()
	p := detectors.DefaultPolicy()
	p.DetectTimeout = time.Nanosecond
	a, err := detectors.NewAnalyzer(p, guardtest.Personal(t))
	if err != nil {
		t.Fatal(err)
	}
	return detectors.NewCurrent(a)
}

// blindfold looks for personal data and cannot.
type blindfold struct{}

func (blindfold) Info() detectors.Info { return detectors.Info{ID: "pii", Family: detectors.PII} }
func (blindfold) Detect(context.Context, *detectors.Input) ([]audit.Finding, error) {
	return nil, errors.New("it is dark")
}

func current(t *testing.T, ds ...detectors.Detector) *detectors.Current {
	t.Helper()
	a, err := detectors.NewAnalyzer(detectors.DefaultPolicy(), ds...)
	if err != nil {
		t.Fatal(err)
	}
	return detectors.NewCurrent(a)
}

// The deadline of decisions leaves nothing unmasked: a long text in which the analyzer finds nothing in time is masked to its end.
func TestMaskKnowsNoDeadline(t *testing.T) {
	c := hasty(t)
	long := "ana@firma.es " + strings.Repeat("She asked what the others made of it. ", 3000)
	text := long + "address 203.0.113.7"
	if v := c.Analyze(t.Context(), detectortest.Interaction("", text)); v.Status != audit.Failed {
		t.Fatalf("the analysis is %s", v.Status)
	}
	got, err := guard.New(c, guard.Config{}).Mask(t.Context(), []string{text})
	if want := strings.Replace(long, "ana@firma.es", "[EMAIL_1]", 1) + "address [IP_ADDRESS_1]"; err != nil || !got[0].Changed() || got[0].Text != want {
		t.Error(err)
	}
}

func TestMaskNotLookedAt(t *testing.T) {
	for name, c := range map[string]*detectors.Current{"it fails": current(t, blindfold{}), "nothing looks": current(t, fine{})} {
		for _, open := range []bool{false, true} {
			if out, err := guard.New(c, guard.Config{FailOpen: open}).Mask(t.Context(), []string{address}); !errors.Is(err, guard.ErrNotMasked) || audit.KindOf(err) != audit.KindUnavailable || out != nil || strings.Contains(err.Error(), "jane") {
				t.Errorf("%s: %v %v", name, out, err)
			}
		}
	}
	if guard.New(current(t, fine{}), guard.Config{}).Masks() || !guard.New(current(t, blindfold{}), guard.Config{}).Masks() {
		t.Error("Masks")
	}
}

// New rules mask from the next call on.
func TestMaskTakesRulesInUse(t *testing.T) {
	c := current(t, blindfold{})
	g := guard.New(c, guard.Config{})
	if _, err := g.Mask(t.Context(), []string{address}); err == nil {
		t.Fatal("masked")
	}
	c.Use(guardtest.Current(t).Analyzer())
	for range 2 {
		if got, err := g.Mask(t.Context(), []string{address, clean, ""}); err != nil || got[0].Text != "Write to [EMAIL_1], not to [EMAIL_2]." || got[1].Text != clean || got[2].Text != "" {
			t.Errorf("%v %v", got, err)
		}
	}
}
