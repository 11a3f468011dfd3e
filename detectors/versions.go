package detectors

import (
	"maps"
	"slices"
	"strings"
)

// Kinded is a Detector that finds kinds without rule packs and says which. Its version is that of each.
type Kinded interface {
	Detector
	Kinds() []string
}

// RuleVersions gives of each kind that the detectors can find the version of its rules: that of its
// pack, or of several packs (and detectors) all of them, joined. It changes when what is found of the
// kind may change, where RuleSet changes with any rule of any kind.
func (a *Analyzer) RuleVersions() map[string]string {
	of := map[string]map[string]string{} // kind -> pack or detector -> version
	put := func(kind, source, version string) {
		if of[kind] == nil {
			of[kind] = map[string]string{}
		}
		of[kind][source] = version
	}
	for _, d := range a.ds {
		if rb, ok := d.(RuleBased); ok {
			for _, r := range rb.Rules() {
				put(r.Kind, r.Pack.ID, r.Pack.Version)
			}
		}
		if k, ok := d.(Kinded); ok {
			for _, kind := range k.Kinds() {
				put(kind, d.Info().ID, d.Info().Version)
			}
		}
	}
	out := make(map[string]string, len(of))
	for kind, versions := range of {
		var joined []string
		for _, source := range slices.Sorted(maps.Keys(versions)) {
			if len(versions) == 1 {
				joined = append(joined, versions[source])
				continue
			}
			joined = append(joined, source+"@"+versions[source])
		}
		out[kind] = strings.Join(joined, " ")
	}
	return out
}
