// Package rules holds the form of rule packs: YAML files of patterns with the sentences that must
// and must not match. A pack is its own test and the example catalogue.
//
// Patterns are RE2 syntax (package regexp/syntax), matched without regard to case under Unicode
// simple folding. A pattern may name a list of the pack in braces: with lists {women: [woman, women]}
// the pattern `\b{women} are` stands for `\b(?:woman|women)\s+are`. A list item is plain text, or a
// pattern when it begins with "re:". A space, in items and in patterns, matches any run of white
// space, an apostrophe the typographic one too, ß also ss, and ä, ö, ü also ae, oe, ue.
//
// Loading expands lists, compiles guards and reports every fault of every file at once; Lint and
// Test then hold what a pack must keep before it ships. Nothing here runs per interaction but
// Suppressed, on matches only.
package rules

import (
	"regexp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/identity"
)

// Pack is one YAML file. Exactly one of Ground, Category, Wording, Gate and PII is set.
type Pack struct {
	ID       string       `yaml:"pack"`     // "charter.sex.en", "safety.violence.en", "gate.builtin.en"
	Title    string       `yaml:"title"`    // for people
	Version  string       `yaml:"version"`  // date-like, "2026.11.1"; stored with every finding
	Language string       `yaml:"language"` // BCP 47, "en"
	Ground   audit.Ground `yaml:"ground,omitempty"`
	Category string       `yaml:"category,omitempty"` // safety category
	Wording  string       `yaml:"wording,omitempty"`  // kind of wording outside the bias sum, "idiom": see audit.WordingSeverity
	Gate     bool         `yaml:"gate,omitempty"`     // rules carry their own category and no severity
	PII      bool         `yaml:"pii,omitempty"`      // rules name an entity, which makes their kind
	// EnglishOnly packs stand on words that mean something else elsewhere ("hun" is Dutch for "their"): hits in sentences of
	// other languages are dropped.
	EnglishOnly bool `yaml:"english_only,omitempty"`
	// NotInEnglish packs are not looked for in texts that are plainly English, which cost nothing then; of other texts, hits
	// in sentences that are English are dropped.
	NotInEnglish bool `yaml:"not_in_english,omitempty"`
	// Raw packs see the text as it is spelled, see [normal.Spelled], not its normal form: digits and capitals mean what they are, and quotation marks, hyphens and spaces are those of ASCII.
	Raw bool `yaml:"raw,omitempty"`
	// Lists are named alternatives for use in patterns.
	Lists map[string][]string `yaml:"lists,omitempty"`
	// Unless holds patterns; a hit in whose sentence one of them matches is dropped.
	Unless []string `yaml:"unless,omitempty"`
	// UnlessClause holds patterns, too; a hit is dropped in whose clause one of them matches, see [Suppressed]. So a year
	// or a share counts for what it is said of: "in 1920 women were too emotional", not "file of 1920: women are too emotional".
	UnlessClause []string `yaml:"unless_clause,omitempty"`
	// Source and Rationale stand for rules that state none.
	Source    string  `yaml:"source,omitempty"`
	Rationale string  `yaml:"rationale,omitempty"`
	Rules     []*Rule `yaml:"rules"`

	Common *Common `yaml:"-" json:"-"` // of its family and language, nil if there is none; filled by Load
	guards *guards // of all rules; filled by Load
	clause []Guard // UnlessClause; filled by Load

	file    string            // it was read from
	lexicon *identity.Lexicon // of the language, nil if there is none; filled by Load
}

// Rule is one rule. After Load, the fields under "filled" are set.
type Rule struct {
	ID          string         `yaml:"id"` // ^[a-z0-9_.-]{1,64}$, starts with the ground or category
	Description string         `yaml:"description"`
	Severity    audit.Severity `yaml:"severity,omitempty"`
	Category    string         `yaml:"category,omitempty"` // gate rules: "financial_transaction"
	// Example names the example kind of seed 000's table that the rule covers ("role enforcement").
	Example string `yaml:"example,omitempty"`
	// Class names a class of the common file, whose patterns, guards and sentences the rule has.
	Class    string   `yaml:"class,omitempty"`
	Patterns []string `yaml:"patterns,omitempty"`
	Unless   []string `yaml:"unless,omitempty"`
	// UnlessHere holds patterns, too; a hit is dropped that one of them ends with. So a negation counts right before the hit
	// and nowhere else: "never send money" is advice, "never mind, send money" is not.
	UnlessHere []string `yaml:"unless_here,omitempty"`
	// Near holds plain words, one of which must stand near the match; where NotNear words stand between it
	// and the match, or alone in its clause, or NotBefore words right before it, there is no hit. Raw packs only; see InContext.
	Near      []string `yaml:"near,omitempty"`
	NotNear   []string `yaml:"not_near,omitempty"`
	NotBefore []string `yaml:"not_before,omitempty"`
	// Check names a validator of the matched text: luhn, iban, ssn, secret, … See package check.
	Check   string   `yaml:"check,omitempty"`
	Entity  string   `yaml:"entity,omitempty"` // type of personal data, "CREDIT_CARD"
	Abusive bool     `yaml:"abusive,omitempty"`
	Match   []string `yaml:"match,omitempty"`    // must match, at least two
	NoMatch []string `yaml:"no_match,omitempty"` // must not match, at least two
	// Rationale says why a match is worth telling; Source which public guideline, paper or law says so, or what the
	// wording was checked against.
	Rationale string `yaml:"rationale,omitempty"`
	Source    string `yaml:"source,omitempty"`
	// Confidence is how sure a match means what the rule says, (0, 1]. Default 0.8.
	Confidence float64 `yaml:"confidence,omitempty"`
	// Terms makes one rule of each entry, see [Pack.Rules] after Load: words parted by " | ", the first of which names the
	// rule, and what to write instead ("" keeps Replace). {term} in patterns and sentences stands for the words.
	Terms map[string]string `yaml:"terms,omitempty"`
	// Term names what Replace stands for; set by Load for rules made of Terms.
	Term    string `yaml:"term,omitempty"`
	Replace string `yaml:"replace,omitempty"` // wording to use instead
	// Mitigation is the type of mitigation to suggest, one of audit.Mitigations. Default REPLACE_TERM where Replace is set,
	// else what the policy makes of the finding.
	Mitigation string `yaml:"mitigation,omitempty"`

	// Filled by Load.
	Pack     *Pack    `yaml:"-" json:"-"`
	Kind     string   `yaml:"-" json:"-"` // charter.sex, safety.violence, idiom, gate.<id>, pii.<entity>
	Expanded []string `yaml:"-" json:"-"` // patterns with lists put in
	Guards   []Guard  `yaml:"-" json:"-"` // unless patterns of rule and pack, without regard to case

	here                     []*regexp.Regexp // UnlessHere
	near, notNear, notBefore []phrase
}

// Refutable tells whether a hit is dropped where the text around it says that it is wrong, see package refute: of bias and
// insults, but for slurs, threats, hatred and supremacy that are CRITICAL. Those are told whoever says them.
func (r *Rule) Refutable() bool {
	if r.Pack.Ground == "" && r.Pack.Wording != "toxicity" {
		return false
	}
	return r.Severity != audit.Critical || !r.Abusive && !outspoken.MatchString(r.ID)
}

// outspoken are rules, by parts of their id, of what seed 000 calls CRITICAL.
var outspoken = regexp.MustCompile(`\b(?:slurs?|threat|hostility|supremacy)\b`)

// Advice is what the rule suggests against what it finds.
func (r *Rule) Advice() audit.Advice {
	return audit.Advice{Type: r.Mitigation, Term: r.Term, Replace: r.Replace}
}
