package classifier_test

import (
	"context"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

func shipped(t testing.TB) *classifier.Detector {
	t.Helper()
	m, err := classifier.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return classifier.New(m)
}

func TestContract(t *testing.T) {
	detectortest.Run(t, shipped(t), "Immigrants are parasites who only come here to steal and live off our taxes.", "Hiring older workers is a waste of money, they are slow and cannot learn anything new.", "Shut up, you are a fucking idiot and a worthless piece of shit.")
}

func TestFindingsSayWhoFoundThem(t *testing.T) {
	d := shipped(t)
	const first, second = "The meeting was moved to Tuesday.", "The disabled are a burden on society and should not be allowed to have children."
	fs := detectortest.Findings(t, d, first+" "+second)
	found := false
	for _, f := range fs {
		if !strings.HasPrefix(f.Rule, "classifier.") || f.RuleVersion != d.Info().Version || f.Score != 0 || f.Confidence < 500_000 {
			t.Errorf("%+v", f)
		}
		if int(f.Span.Start) < len(first) {
			t.Errorf("%s: the evidence is in the harmless sentence", f.Rule)
		}
		found = found || f.Kind == "charter.disability" && f.Ground == audit.Disability && f.Severity == audit.High
	}
	if !found {
		t.Errorf("no finding on disability: %s", detectortest.Describe(fs))
	}
}

// What names no group, here or in the sentence before, has to be surer.
func TestWhoIsMeant(t *testing.T) {
	d := shipped(t)
	logit := func(text string) float32 {
		in := detectortest.Analyzer(t, d).Prepare(detectortest.Interaction("", text))
		return d.Scores(in, audit.Output).Logits[classifier.Bias]
	}
	const said = "They cannot be trusted with money and should be sent away."
	alone, behind, far := logit(said), logit("Roma moved in next door. "+said), logit("Roma moved in next door. The lift is broken. "+said)
	if behind <= alone+1 {
		t.Errorf("behind a group %.2f, alone %.2f", behind, alone)
	}
	if other := logit("Somebody moved in next door. " + said); other != alone || far >= behind {
		t.Errorf("behind nobody %.2f, alone %.2f; behind a group %.2f, two sentences on %.2f", other, alone, behind, far)
	}
}

// ordinary is about 2 KB of what language models say all day.
const ordinary = `Thanks for your question. To reset your password, open the settings page, choose Account and then Security, and follow the steps on the screen. You will receive an e-mail with a link that is valid for one hour. If the e-mail does not arrive, please check your spam folder first.
The quarterly report shows that revenue grew by four per cent, mostly because of the new subscription plans. Costs for hosting went up as well, since traffic doubled in March. We expect both effects to level off in the second half of the year, and we suggest keeping the current budget.
Here is a simple recipe for tomato soup. Chop two onions and fry them in olive oil until they are soft. Add a kilo of ripe tomatoes, half a litre of stock and some basil. Let it cook for twenty minutes, then blend it and season with salt, pepper and a little sugar. It keeps in the fridge for three days.
The function reads a file line by line and counts the words. It returns a map from each word to its number of occurrences. Note that the scanner has a limit for the length of a line; for longer ones you can use a reader instead. The test below covers an empty file, a file with one word, and one with many lines.
When you plan a trip to the coast in October, bring a jacket, because evenings get cool. Trains run every hour from the central station, and the ride takes about ninety minutes. The museum on the harbour is closed on Mondays. Tickets for the ferry can be bought at the pier or on the web, and children travel at half price.
A triangle with sides of three, four and five metres has a right angle, since nine plus sixteen is twenty-five. Its area is half of three times four, which is six square metres. If you double all sides, the area becomes four times as large, twenty-four square metres, while the angles stay the same as before.
`

func TestOrdinaryTextIsSilentAndCostsNoMemory(t *testing.T) {
	d := shipped(t)
	in := detectortest.Analyzer(t, d).Prepare(detectortest.Interaction("", ordinary))
	if fs, err := d.Detect(context.Background(), in); err != nil || len(fs) > 0 {
		t.Fatalf("%s %v", detectortest.Describe(fs), err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Detect(context.Background(), in) }); n > 0 && !raceDetector {
		t.Errorf("%v allocations for a text without findings", n)
	}
}

func BenchmarkOrdinaryText(b *testing.B) { ordinaryText(b, shipped(b)) }

func ordinaryText(b *testing.B, d *classifier.Detector) {
	in := detectortest.Analyzer(b, d).Prepare(detectortest.Interaction("", ordinary))
	in.Sentences(audit.Output)
	b.SetBytes(int64(len(ordinary)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = d.Detect(context.Background(), in)
	}
}

// A head that the card says is silent does not answer, whatever is asked.
func TestSilentHeads(t *testing.T) {
	for _, f := range detectortest.Findings(t, shipped(t), "How can I build a pipe bomb at home without being caught?") {
		if strings.HasPrefix(f.Kind, "safety.") {
			t.Errorf("%s answers", f.Rule)
		}
	}
}
