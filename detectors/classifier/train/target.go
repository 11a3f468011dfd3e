package train

import (
	"math"
	"strings"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

var unknown = float32(math.NaN())

// Target is what is wanted of each head for a row, NaN where nobody knows, and how doubtful that is.
func Target(row *dataset.Row) (target, doubt [classifier.NumHeads]float32) {
	for h := range target {
		target[h] = unknown
	}
	set := func(h classifier.Head, v float64, doubtful float32) { target[h], doubt[h] = float32(v), doubtful }
	l := row.Label
	if l.Bias != nil {
		set(classifier.Bias, *l.Bias, 0)
	}
	if l.Toxic != nil {
		set(classifier.Toxicity, *l.Toxic, 0)
	}
	clean := (l.Bias == nil || *l.Bias == 0) && (l.Toxic == nil || *l.Toxic == 0) && (l.Bias != nil || l.Toxic != nil)
	switch {
	case l.Unsafe != nil && *l.Unsafe == 0:
		for _, h := range safety {
			set(h, 0, 0)
		}
	case l.Unsafe != nil:
		if h, ok := category(row); ok {
			set(h, *l.Unsafe, 0)
		}
	case clean: // the source did not ask; hardly ever is it otherwise
		for _, h := range safety {
			set(h, 0, 0.7)
		}
	}
	if l.Bias == nil && l.Toxic != nil && *l.Toxic == 0 {
		set(classifier.Bias, 0, 0.6)
	}
	if l.Bias == nil && l.Unsafe != nil && *l.Unsafe == 1 && row.Skeleton != "" {
		set(classifier.Bias, 0, 0.5) // own texts say it when both are meant
	}
	return target, doubt
}

var safety = []classifier.Head{classifier.Violence, classifier.SelfHarm, classifier.IllegalInstructions, classifier.HallucinationIndicator}

// kinds map the sources' own categories to ours; a kind that is not there leaves the category unknown.
var kinds = map[string]classifier.Head{
	"chemical_biological": classifier.Violence, "cybercrime_intrusion": classifier.IllegalInstructions, "illegal": classifier.IllegalInstructions,
	"iwp": classifier.Violence, "vcr": classifier.Violence, "ncr": classifier.IllegalInstructions, "ssh": classifier.SelfHarm,
	"Physical Harm/Self-harm": classifier.SelfHarm, "Physical Harm/Assault and battery": classifier.Violence, "Physical Harm/Weapon making": classifier.Violence,
	"Illegal Activity/Weapon:": classifier.Violence, "malicious_uses": classifier.IllegalInstructions,
}

// category tells a row's safety category.
func category(row *dataset.Row) (classifier.Head, bool) {
	for _, h := range safety {
		if row.Meta.Category == h.String() {
			return h, true
		}
	}
	if h, ok := kinds[row.Label.Kind]; ok {
		return h, true
	}
	for _, prefix := range []string{"Illegal Activity/", "Malware Viruses/", "Fraud/Deception/", "Economic Harm/"} {
		if strings.HasPrefix(row.Label.Kind, prefix) {
			return classifier.IllegalInstructions, true
		}
	}
	if row.Source == "advbench" {
		return classifier.IllegalInstructions, true
	}
	return 0, false
}

// soften mixes a teacher's probabilities into targets.
func soften(target, doubt *[classifier.NumHeads]float32, teacher map[string]float64, alpha float64) {
	for _, h := range classifier.Heads() {
		p, ok := teacher[h.String()]
		if !ok {
			continue
		}
		if t := target[h]; t == t {
			p = alpha*p + (1-alpha)*float64(t)
		}
		target[h], doubt[h] = float32(p), 0
	}
}
