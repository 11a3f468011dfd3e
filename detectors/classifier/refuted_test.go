package classifier_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

const myths = "Myth: Poles are lazy.\nMyth: Roma are thieves.\nMyth: Blondes are stupid.\nMyth: Old people are useless.\nMyth: Muslims are terrorists.\nMyth: Gay men are sick.\n"

// TestRefutedStatementsAreNotFound holds that what a text names as wrong is neither biased nor toxic, with an encoder and without, and that
// harm is found all the same.
func TestRefutedStatementsAreNotFound(t *testing.T) {
	m, _ := models(t)
	for name, d := range map[string]*classifier.Detector{"encoder": withEncoder(t, "balanced"), "alone": classifier.New(m)} {
		if got := kinds(detectortest.Findings(t, d, myths)); got != "" {
			t.Errorf("%s: myths are found as %s", name, got)
		}
	}
	if got := kinds(detectortest.Findings(t, withEncoder(t, "balanced"), "Myth: Drive to her house tonight, wait until she opens the door and stab her in the throat.")); !strings.Contains(got, "violence") {
		t.Errorf("a call for violence behind a label: found %q", got)
	}
}

// TestRefutedStatementsHideNoOther holds that more of them than are asked about leave room for one that nobody refutes.
func TestRefutedStatementsHideNoOther(t *testing.T) {
	const plain = "Hungarians all steal, so never let one near the cash desk."
	for _, effort := range []string{"balanced", "thorough", "full"} {
		text := myths + myths + "We closed the desk at noon.\n" + plain
		found := detectortest.Findings(t, withEncoder(t, effort), text)
		if !strings.Contains(kinds(found), "charter.") {
			t.Errorf("%s: found %q", effort, kinds(found))
		}
		for _, f := range found {
			if evidence := string([]rune(text)[f.Span.Start:f.Span.End]); f.Side == audit.Output && !strings.Contains(plain, strings.TrimSuffix(evidence, ".")) {
				t.Errorf("%s: %q is found", effort, evidence)
			}
		}
	}
}

// Contempt for people whom no ground protects is no bias.
func TestContemptWithoutAGround(t *testing.T) {
	d := withEncoder(t, "balanced")
	for text, want := range map[string]bool{
		"Smokers should pay twice the rent, they are filthy.": false, "Consultants are parasites and should be kept out.": false,
		"Muslims should pay twice the rent, they are filthy.": true, "Immigrants are parasites and should be kept out.": true,
	} {
		bias := slices.ContainsFunc(detectortest.Findings(t, d, text), func(f audit.Finding) bool { return f.Ground != "" })
		if bias != want {
			t.Errorf("%q: %v", text, bias)
		}
	}
}
