package train

import (
	"slices"

	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// lose is the share of the sentences with something found that an early exit may stop at, of each head.
const lose = 0.005

// ExitOutcome is what an early exit does to the sentences of the texts that calibrated it.
type ExitOutcome struct {
	Found, Lost      int // above the lowest threshold of a head; of these, where it stops
	Ordinary, ReadOn int // sentences of ordinary texts; of these, where no exit up to it stops
}

// depth is what the encoder says of a sentence after each early exit and in the end.
type depth struct {
	exits           [][len(encoder.Heads)]float32
	all             encoder.Logits
	ordinary, found bool
}

// stop chooses, of each early exit and head, the logit below which no more is read: of the sentences that are above the head's lowest
// threshold in the end, the share lose is below it.
func (res *EncoderResult) stop(e *encoder.Model, rd *reader, rows []dataset.Row, r *Recipe) {
	var texts []string
	var depths []depth
	for i := range rows {
		for _, s := range rd.sentences(rows[i].Text) {
			if e.English(s) {
				texts, depths = append(texts, s), append(depths, depth{ordinary: r.ordinary(rows[i].Source)})
			}
		}
	}
	each(len(texts), func(i int) { depths[i].exits, depths[i].all = e.Depths("", texts[i], "") })
	stops := make([][]float64, e.Meta.Exits)
	for h, scale := range res.Meta.Decides {
		threshold, most := 1.0, never
		for _, f := range res.Meta.Efforts {
			a := &f.Heads[h]
			threshold, most = min(threshold, a.Threshold), min(most, a.Context)
		}
		early := make([][]float64, len(stops)) // what each exit says of what is found
		for n := range depths {
			d := &depths[n]
			if scale.Probability(d.all[h]) <= threshold {
				continue
			}
			d.found = true
			for i, z := range d.exits {
				early[i] = append(early[i], float64(z[h]))
			}
		}
		for i, found := range early {
			slices.Sort(found)
			at := min(most, scale.Logit(threshold/2))
			if len(found) > 0 {
				at = min(at, found[int(lose*float64(len(found)))])
			}
			stops[i] = append(stops[i], at)
		}
	}
	res.Meta.Stops, res.Exits = stops, make([]ExitOutcome, len(stops))
	for _, d := range depths {
		stopped := false
		for i, z := range d.exits {
			stopped = stopped || res.Meta.Stop(i, &z)
			o := &res.Exits[i]
			o.Found, o.Lost = o.Found+count(d.found), o.Lost+count(d.found && stopped)
			o.Ordinary, o.ReadOn = o.Ordinary+count(d.ordinary), o.ReadOn+count(d.ordinary && !stopped)
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
