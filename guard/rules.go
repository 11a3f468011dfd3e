package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/scan"
	"github.com/evenhand/evenhand/ingest"
)

// ownRules are a caller's gate rules, compiled.
type ownRules struct {
	rules   []*rules.Rule
	scanner *scan.Scanner
	cost    int // steps that a byte of text may take
}

// maxSteps bounds what a caller's rules may take of one core, about a second: no match can be broken off.
const maxSteps = 500_000_000

// scanStates bounds what one list of rules may hold in memory: some hundred kilobytes.
const scanStates = 1024

// compile names every fault by the option and the rule.
func compile(o *Options) (*ownRules, error) {
	d, err := gate.NewNamed([2]string{"hitlGateRules", "hitlGateExtraRules"}, o.HITLGateRules, o.HITLGateExtraRules)
	if err != nil {
		return nil, &OptionError{ruleFaults(err)}
	}
	out := &ownRules{}
	var patterns []string
	for _, r := range d.Rules() {
		if r.Pack.ID == gate.CustomPack { // the built-in ones are in the common scanner
			out.rules, patterns = append(out.rules, r), append(patterns, r.Expanded...)
			for _, p := range r.Expanded {
				out.cost += gate.Cost(p)
			}
		}
	}
	if out.scanner, err = scan.Compile(patterns, scan.Options{MaxStates: scanStates}); err != nil {
		return nil, &OptionError{[]ingest.Fault{{Field: "hitlGateRules", Code: ingest.BadValue, Message: err.Error()}}}
	}
	return out, nil
}

// ruleFaults takes the faults of package gate apart: "hitlGateRules[1].pattern: …".
func ruleFaults(err error) (faults []ingest.Fault) {
	var classed *audit.Error
	if errors.As(err, &classed) {
		err = classed.Err
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		field, message, _ := strings.Cut(line, ": ")
		faults = append(faults, ingest.Fault{Field: field, Code: ingest.BadValue, Message: message})
	}
	return faults
}

// affords says that the rules would take too long for an interaction's checked texts.
func (r *ownRules) affords(in *audit.Interaction, o *Options) error {
	n := 0
	for _, side := range o.Check.sides() {
		n += len(in.Text(side))
	}
	if r == nil || n == 0 || r.cost <= maxSteps/n {
		return nil
	}
	field := "hitlGateRules"
	if len(o.HITLGateRules) == 0 {
		field = "hitlGateExtraRules"
	}
	return &OptionError{[]ingest.Fault{{Field: field, Code: ingest.BadValue,
		Message: fmt.Sprintf("the patterns are too costly for a text of %d bytes; name fewer or shorter ones, without repetitions of repetitions", n)}}}
}

// find gives the matches of the rules in one text.
func (r *ownRules) find(text string, side audit.Side) (fs []audit.Finding) {
	points := audit.PointsOf(text)
	for _, m := range r.scanner.Scan(text, nil) {
		rule := r.rules[m.Pattern]
		fs = append(fs, audit.Finding{
			Kind: rule.Kind, Rule: rule.ID, RuleVersion: rule.Pack.Version, Confidence: audit.One, Side: side, Span: points.Span(int(m.Start), int(m.End)),
		})
	}
	return fs
}

// ruleCache keeps the rules that were asked for lately, two times half of them at most.
type ruleCache struct {
	mu         sync.Mutex
	young, old map[string]*ownRules
}

const halfCache = 16

// of gives the rules that a caller brings along, nil when it brings none.
func (c *ruleCache) of(o *Options) (*ownRules, error) {
	if !o.HITLGate || len(o.HITLGateRules)+len(o.HITLGateExtraRules) == 0 {
		return nil, nil
	}
	key := cacheKey(o)
	if r := c.get(key); r != nil {
		return r, nil
	}
	r, err := compile(o)
	if err == nil {
		c.put(key, r)
	}
	return r, err
}

func (c *ruleCache) get(key string) *ownRules {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.young[key]
	if r == nil {
		if r = c.old[key]; r != nil {
			c.keep(key, r)
		}
	}
	return r
}

func (c *ruleCache) put(key string, r *ownRules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(key, r)
}

func (c *ruleCache) keep(key string, r *ownRules) {
	if c.young == nil || len(c.young) >= halfCache {
		c.young, c.old = map[string]*ownRules{}, c.young
	}
	c.young[key] = r
}

func cacheKey(o *Options) string {
	var b strings.Builder
	for _, list := range [][]gate.Custom{o.HITLGateRules, o.HITLGateExtraRules} {
		for _, r := range list {
			for _, s := range []string{r.ID, r.Description, r.Pattern, r.Category} {
				b.WriteString(s)
				b.WriteByte(0)
			}
		}
		b.WriteByte(1)
	}
	return b.String()
}

// whole keeps the longest of what one rule found from one place on, so that who decides sees all of it. The
// findings are sorted.
func whole(fs []audit.Finding) []audit.Finding {
	out := fs[:0]
	for i, f := range fs {
		longer := false
		for _, g := range fs[i+1:] {
			if g.Side != f.Side || g.Span.Start != f.Span.Start {
				break
			}
			longer = longer || g.Kind == f.Kind && g.Rule == f.Rule
		}
		if !longer {
			out = append(out, f)
		}
	}
	return out
}

// matched gives the gate rule that stands first in the checked texts, nil when none does: those in use, unless the
// caller replaces them, and the caller's.
func matched(a *detectors.Analyzer, v *audit.Verdict, own *ownRules, in *audit.Interaction, o *Options) *GateMatch {
	var fs []audit.Finding
	if len(o.HITLGateRules) == 0 {
		for i := range v.Findings {
			if f := &v.Findings[i]; strings.HasPrefix(f.Kind, gateKinds) && slices.Contains(o.Check.sides(), f.Side) {
				fs = append(fs, *f)
			}
		}
	}
	if own != nil {
		for _, side := range o.Check.sides() {
			fs = append(fs, own.find(in.Text(side), side)...)
		}
	}
	if len(fs) == 0 {
		return nil
	}
	audit.SortFindings(fs)
	fs = whole(fs)
	m := &GateMatch{Findings: fs, rules: make([]gate.Custom, len(fs))}
	var known []*rules.Rule
	if own != nil {
		known = own.rules
	}
	for _, d := range a.Detectors() {
		if by, ok := d.(detectors.RuleBased); ok && d.Info().Family == detectors.Gates {
			known = append(slices.Clip(known), by.Rules()...)
		}
	}
	for i := range fs {
		m.rules[i] = gate.Custom{ID: fs[i].Rule}
		if at := slices.IndexFunc(known, func(r *rules.Rule) bool { return r.Kind == fs[i].Kind }); at >= 0 {
			r := known[at]
			m.rules[i] = gate.Custom{ID: r.ID, Description: r.Description, Category: r.Category, Pattern: strings.Join(r.Patterns, "|")}
		}
	}
	m.Rule = m.rules[0]
	return m
}
