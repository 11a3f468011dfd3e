package classifier

import (
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

// suspects tells whether a text is suspicious on a side.
func suspects(t *testing.T, d *Detector, side audit.Side, text string) bool {
	t.Helper()
	in := detectortest.Interaction("", text)
	if side == audit.Input {
		in = detectortest.Interaction(text, "Yes.")
	}
	x := detectortest.Analyzer(t, d).Prepare(in)
	text = x.Normal(side).String()
	b, ws := d.buffers(), d.ways(side, text)
	defer d.pool.Put(b)
	d.model.readAll(b, text, x.Sentences(side), func(s detectors.Sentence, ts []token, first float32, _ bool) {
		b.excerpts = append(b.excerpts, excerpt{sentence: s, from: ts[0].start, first: first})
	})
	got := d.suspect(b, &ws, side, text)
	if got != (ws.list[0] == d.seconds[0].suspect) {
		t.Errorf("suspicious %v, and it is read otherwise", got)
	}
	return got
}

// Of long harmful texts two in five are suspicious, and more of them are found than without suspicion, at no more false alarms than one in ten of their twins.
func TestHarmfulTextsAreSuspicious(t *testing.T) {
	d, without := shippedWithEncoders(t), shippedWithEncoders(t)
	without.seconds[0].suspect = nil
	for _, file := range []string{"testdata/strangers.long.jsonl", "testdata/long.harm.jsonl"} {
		var harmful, suspicious, found, before, twins, wrong int
		for _, row := range detectortest.Rows[dataset.Row](t, file) {
			harm := func(d *Detector) bool {
				return slices.ContainsFunc(detectortest.Findings(t, d, row.Text), func(f audit.Finding) bool { return strings.HasPrefix(f.Kind, "safety.") })
			}
			switch {
			case row.Label.Unsafe == nil:
			case *row.Label.Unsafe == 1:
				harmful++
				suspicious += count(suspects(t, d, audit.Output, row.Text))
				found += count(harm(d))
				before += count(harm(without))
			default:
				twins++
				wrong += count(harm(d))
			}
		}
		t.Logf("%s: %d of %d are suspicious; %d found, without suspicion %d; %d false alarms of %d", file, suspicious, harmful, found, before, wrong, twins)
		if 5*suspicious < 2*harmful || found <= before || 10*wrong > twins {
			t.Errorf("%s: %d of %d are suspicious; %d found, without suspicion %d; %d false alarms of %d", file, suspicious, harmful, found, before, wrong, twins)
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Only long responses are read otherwise, those of which both means are above the limits.
func TestSuspicion(t *testing.T) {
	d := shippedWithEncoders(t)
	ships := d.seconds[0].long.Suspicious
	long := strings.Repeat("The library opens at nine. Bring your card and a quiet friend, please. ", 30)
	always := encoder.Suspicion{First: -100, Harm: -100}
	for name, tc := range map[string]struct {
		text   string
		side   audit.Side
		limits encoder.Suspicion
		want   bool
	}{
		"an ordinary text":              {long, audit.Output, ships, false},
		"any":                           {long, audit.Output, always, true},
		"a prompt":                      {long, audit.Input, always, false},
		"a medium one":                  {long[:MediumText], audit.Output, always, false},
		"a short one":                   {long[:ShortText], audit.Output, always, false},
		"one sentence":                  {"They " + strings.Repeat("went on and ", 120) + "slept.", audit.Output, always, true},
		"no sentence":                   {strings.Repeat("- ", 600), audit.Output, always, false},
		"no first score is high enough": {long, audit.Output, encoder.Suspicion{First: 100, Harm: -100}, false},
		"no logit is":                   {long, audit.Output, encoder.Suspicion{First: -100, Harm: 100}, false},
	} {
		d.seconds[0].long.Suspicious = tc.limits
		if got := suspects(t, d, tc.side, tc.text); got != tc.want {
			t.Errorf("%s: suspicious %v", name, got)
		}
	}
}
