package main

import (
	"context"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/linguistic"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/internal/obs"
)

// graded makes an analyzer that also says how sure the learned detectors are.
func graded(p *detectors.Policy) { p.Grades = true }

// patient makes an analyzer for texts that nobody waits for one by one: a busy machine shall not decide what is found.
func patient(p *detectors.Policy) { p.DetectTimeout = 30 * min(p.DetectTimeout, time.Hour) }

// encoderAnswers counts what the encoders of an analyzer's classifier have answered.
func encoderAnswers(a *detectors.Analyzer) (all []obs.Answers) {
	for _, d := range a.Detectors() {
		c, ok := d.(*classifier.Detector)
		if !ok {
			continue
		}
		for _, of := range c.Answered() {
			all = append(all, obs.Answers{Encoder: of.Encoder, How: "read", N: of.Read}, obs.Answers{Encoder: of.Encoder, How: "stopped", N: of.Stopped},
				obs.Answers{Encoder: of.Encoder, How: "remembered", N: of.Remembered})
		}
	}
	return all
}

// newAnalyzer lists the detectors: this is the one place that knows them all.
func newAnalyzer(s settings, with ...func(*detectors.Policy)) (*detectors.Analyzer, error) {
	shipped, err := shippedPacks()
	if err != nil {
		return nil, err
	}
	own, err := s.Rules.load(shipped)
	if err != nil {
		return nil, err
	}
	packs := byDetector(append(shipped, own...))
	b, err := bias.New(packs.bias)
	if err != nil {
		return nil, err
	}
	sf, err := safety.New(packs.safety)
	if err != nil {
		return nil, err
	}
	g, err := gate.New(s.Detect.GateRules, s.Detect.GateExtraRules, byDetector(own).gates...)
	if err != nil {
		return nil, &settingsError{err}
	}
	t, err := terms.New(s.termsConfig())
	if err != nil {
		return nil, &settingsError{err}
	}
	l, err := linguistic.New(packs.wording)
	if err != nil {
		return nil, err
	}
	ds := []detectors.Detector{b, sf, g, t, l}
	if s.PII.Enabled {
		p, err := pii.New(s.PII.config(), append(packs.pii, packs.safety...)) // it reads the leaked numbers' rules, too
		if err != nil {
			return nil, err
		}
		ds = append(ds, p)
	}
	if s.Classifier.Enabled {
		c, err := s.Classifier.detector()
		if err != nil {
			return nil, err
		}
		ds = append(ds, c)
	}
	p := s.policy()
	for _, set := range with {
		set(&p)
	}
	return detectors.NewAnalyzer(p, ds...)
}

// newMasking gives what the pipeline keeps of a record by pii.mask, nil for all of it.
func newMasking(s settings) (func(context.Context, audit.Record) audit.Record, error) {
	if s.PII.Mask != maskStore {
		return nil, nil
	}
	m, err := newMasker(s)
	if err != nil {
		return nil, err
	}
	return m.Record, nil
}

// newMasker gives what masks texts that leave to a judging model by pii.mask, nil where they leave as they are. It finds
// what the shipped packs find and those of rules.dir as they are now. Texts that the store gives under before_store are
// masked already; those of a call in line are not.
func newMasker(s settings) (*pii.Masker, error) {
	if s.PII.Mask == maskOff {
		return nil, nil
	}
	shipped, err := shippedPacks()
	if err != nil {
		return nil, err
	}
	own, err := s.Rules.load(shipped)
	if err != nil {
		return nil, err
	}
	packs := byDetector(append(shipped, own...))
	d, err := pii.New(s.PII.config(), append(packs.pii, packs.safety...))
	if err != nil {
		return nil, err
	}
	return pii.NewMasker(d)
}

// shippedPacks are the packs that come with the program. The list is the caller's, the packs are everybody's.
func shippedPacks() ([]*rules.Pack, error) {
	all, err := loadShipped()
	return slices.Clone(all), err
}

var loadShipped = sync.OnceValues(func() (all []*rules.Pack, err error) {
	for _, fsys := range []fs.FS{bias.Packs(), safety.Packs(), gate.Packs(), pii.Packs(), linguistic.Packs()} {
		packs, err := rules.Load(fsys)
		if err != nil {
			return nil, err
		}
		all = append(all, packs...)
	}
	return all, nil
})

// packSet are rule packs by the detector that they belong to.
type packSet struct{ bias, safety, gates, pii, wording []*rules.Pack }

func byDetector(packs []*rules.Pack) (s packSet) {
	for _, p := range packs {
		of := &s.gates
		switch {
		case p.Ground != "":
			of = &s.bias
		case p.Category != "":
			of = &s.safety
		case p.PII:
			of = &s.pii
		case p.Wording != "":
			of = &s.wording
		}
		*of = append(*of, p)
	}
	return s
}
