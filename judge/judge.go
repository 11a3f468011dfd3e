// Package judge chooses the interactions that a judging model looks at, and says how they are asked for.
//
// Rules catch what is said outright; a judge catches what is only meant, and is slow and dear. So it looks at a part:
// what the rules are in doubt about, what matters most, and a random share that shows what everybody missed.
// A [Selector] is a pure function of the interaction and the rules' verdict: each delivery of an
// interaction is chosen or not alike, in every process. A [Request] is a reference: it holds no text.
//
// What answers requests is package judge/lane; how the model is asked is package judge/compliance.
// Choosing costs some nanoseconds and allocates nothing.
package judge

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/evenhand/evenhand/audit"
)

// Reason tells why an interaction is judged.
type Reason string

// The reasons; of several the first holds.
const (
	Asked  Reason = "asked"  // by a person or a program
	Grey   Reason = "grey"   // the rules found something that is near the threshold either way
	Domain Reason = "domain" // of a domain that is judged whole
	Sample Reason = "sample" // chosen by chance
	Again  Reason = "again"  // another attempt
)

// Known tells whether it is one of them: a request comes from a topic.
func (r Reason) Known() bool { return slices.Contains([]Reason{Asked, Grey, Domain, Sample, Again}, r) }

// Config says what is chosen. Start from DefaultConfig.
type Config struct {
	// Band is how far from its domain's threshold a bias sum is in doubt, as a share of the threshold. What only a
	// learned detector found has no sum and always is. Default 0.5; 0..10; 0 chooses nobody for doubt.
	Band float64
	// Domains are judged whole. Default hr, high-risk under the EU AI Act.
	Domains []audit.Domain
	// RandomPercent of all others, by a hash of the id. Default 1; 0..100.
	RandomPercent float64
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{Band: 0.5, Domains: []audit.Domain{audit.HR}, RandomPercent: 1}
}

// Validate reports every fault, keys as an operator writes them.
func (c Config) Validate() error {
	var errs []error
	if !(c.Band >= 0 && c.Band <= 10) {
		errs = append(errs, fmt.Errorf("judge.select.band: %v is not in 0..10", c.Band))
	}
	if !(c.RandomPercent >= 0 && c.RandomPercent <= 100) {
		errs = append(errs, fmt.Errorf("judge.select.random_percent: %v is not in 0..100", c.RandomPercent))
	}
	for _, d := range c.Domains {
		if !d.Known() {
			errs = append(errs, fmt.Errorf("judge.select.domains: %q is not one of %v", d, audit.Domains))
		}
	}
	return errors.Join(errs...)
}

// Facts are what the choice goes by: known on the hot path and stored.
type Facts struct {
	ID        audit.ID
	Domain    audit.Domain
	Response  bool // there is a response to judge
	Detected  bool
	BiasSum   audit.Score
	Threshold audit.Score
}

// FactsOf are those of a record.
func FactsOf(in *audit.Interaction, v *audit.Verdict) Facts {
	return Facts{ID: in.ID, Domain: in.Domain, Response: in.Response != "", Detected: v.Detected, BiasSum: v.BiasSum, Threshold: v.Threshold}
}

// Selector chooses. It is safe for concurrent use.
type Selector struct {
	band    float64
	domains []audit.Domain
	below   uint64 // hashes that are chosen by chance
	all     bool
}

// NewSelector checks the configuration; a fault is of KindInvalid.
func NewSelector(c Config) (*Selector, error) {
	if err := c.Validate(); err != nil {
		return nil, audit.E("judge: new selector", audit.KindInvalid, err)
	}
	s := &Selector{band: c.Band, domains: slices.Clone(c.Domains), all: c.RandomPercent == 100}
	if !s.all { // a float64 of 2^64 is no uint64
		s.below = uint64(c.RandomPercent / 100 * math.MaxUint64)
	}
	return s, nil
}

// Select tells whether an interaction is judged, and why.
func (s *Selector) Select(f Facts) (why Reason, ok bool) {
	switch {
	case !f.Response:
		return "", false
	case s.Grey(f):
		return Grey, true
	case slices.Contains(s.domains, f.Domain):
		return Domain, true
	case s.all || xxhash.Sum64(f.ID[:]) < s.below:
		return Sample, true
	}
	return "", false
}

// Grey tells whether the rules are in doubt: they found something, and its sum is within the band around the threshold,
// or there is no sum.
func (s *Selector) Grey(f Facts) bool {
	if !f.Detected || s.band == 0 {
		return false
	}
	off := math.Abs(float64(f.BiasSum - f.Threshold))
	return f.BiasSum == 0 || off <= s.band*float64(f.Threshold)
}
