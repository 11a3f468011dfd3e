// Package rules holds the form of rule packs: YAML files of patterns with the sentences that must
// and must not match. A pack is its own test and the example catalogue.
//
// Patterns are RE2 syntax (package regexp/syntax), matched without regard to case under Unicode
// simple folding. A pattern may name a list of the pack in braces: with lists {women: [woman, women]}
// the pattern `\b{women} are` stands for `\b(?:woman|women)\s+are`. A list item is plain text, or a
// pattern when it begins with "re:". A space, in items and in patterns, matches any run of white
// space, and an apostrophe the typographic one too.
//
// Loading expands lists, compiles guards and reports every fault of every file at once; Lint and
// Test then hold what a pack must keep before it ships. Nothing here runs per interaction but
// Suppressed, on matches only.
package rules

import "github.com/evenhand/evenhand/audit"

// Pack is one YAML file. Exactly one of Ground, Category and Gate is set.
type Pack struct {
	ID       string       `yaml:"pack"`     // "charter.sex.en", "safety.violence.en", "gate.builtin.en"
	Title    string       `yaml:"title"`    // for people
	Version  string       `yaml:"version"`  // date-like, "2026.11.1"; stored with every finding
	Language string       `yaml:"language"` // BCP 47, "en"
	Ground   audit.Ground `yaml:"ground,omitempty"`
	Category string       `yaml:"category,omitempty"` // safety category
	Gate     bool         `yaml:"gate,omitempty"`     // rules carry their own category and no severity
	// Lists are named alternatives for use in patterns.
	Lists map[string][]string `yaml:"lists,omitempty"`
	// Unless holds patterns; a hit in whose sentence one of them matches is dropped.
	Unless []string `yaml:"unless,omitempty"`
	Rules  []*Rule  `yaml:"rules"`
}

// Rule is one rule. After Load, the fields under "filled" are set.
type Rule struct {
	ID          string         `yaml:"id"` // ^[a-z0-9_.-]{1,64}$, starts with the ground or category
	Description string         `yaml:"description"`
	Severity    audit.Severity `yaml:"severity,omitempty"`
	Category    string         `yaml:"category,omitempty"` // gate rules: "financial_transaction"
	// Example names the example kind of seed 000's table that the rule covers ("role enforcement").
	Example  string   `yaml:"example,omitempty"`
	Patterns []string `yaml:"patterns"`
	Unless   []string `yaml:"unless,omitempty"`
	// Check names a validator of the matched text: luhn, iban, ssn, secret. See package check.
	Check   string   `yaml:"check,omitempty"`
	Entity  string   `yaml:"entity,omitempty"` // type of personal data, "CREDIT_CARD"
	Abusive bool     `yaml:"abusive,omitempty"`
	Match   []string `yaml:"match"`    // must match, at least two
	NoMatch []string `yaml:"no_match"` // must not match, at least two
	// Confidence is how sure a match means what the rule says, (0, 1]. Default 0.8.
	Confidence float64 `yaml:"confidence,omitempty"`

	// Filled by Load.
	Pack     *Pack    `yaml:"-"`
	Kind     string   `yaml:"-"` // charter.sex, safety.violence, gate.<id>
	Expanded []string `yaml:"-"` // patterns with lists put in
	Guards   []*Guard `yaml:"-"` // unless patterns of rule and pack, without regard to case
}
