package terms

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/secret"
)

// The modes of an evaluation.
const (
	Deterministic = "deterministic"
	LLM           = "llm"
	Both          = "both" // as a mode: deterministic and llm; as a check: input and output
)

// Categories lists the five categories of built-in terms. Custom terms have their own, "custom".
var Categories = []string{"gender", "race", "age", "disability", "religion"}

const (
	customCategory = "custom"
	maxTermLength  = 200    // bytes
	maxCustomBytes = 20_000 // all custom terms together: bounds the automaton a request can ask for
)

// Config is what an operator or a caller may set. Start from DefaultConfig; decoding JSON or YAML
// over it keeps the default of every absent field.
type Config struct {
	// Mode is deterministic, llm or both. Default deterministic.
	Mode string `json:"mode" yaml:"mode"`
	// Model answers in the modes llm and both. Default gpt-4o-mini.
	Model string `json:"model" yaml:"model"`
	// APIKey is for that model; "" means the environment's OPENAI_API_KEY.
	APIKey secret.Text `json:"api_key" yaml:"api_key"`
	// Categories to check; none means all of gender, race, age, disability, religion.
	Categories []string `json:"categories" yaml:"categories"`
	// CustomTerms are flagged beside the built-in ones, whatever Categories holds. Each at most
	// 200 bytes, all together 20,000.
	CustomTerms []string `json:"custom_terms" yaml:"custom_terms"`
	// Check is input, output or both. Default output.
	Check string `json:"check" yaml:"check"`
}

// DefaultConfig gives seed 002's defaults.
func DefaultConfig() Config {
	return Config{Mode: Deterministic, Model: "gpt-4o-mini", Check: string(audit.Output)}
}

// Fault is one thing wrong with a Config, under its key as the caller wrote it.
type Fault struct{ Key, Say string }

func (f *Fault) Error() string { return f.Key + ": " + f.Say }

// Keyed gives key and text to whoever answers with both apart.
func (f *Fault) Keyed() (key, say string) { return f.Key, f.Say }

// Validate reports every fault at once, each a [*Fault].
func (c Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) { errs = append(errs, &Fault{key, fmt.Sprintf(format, args...)}) }
	oneOf := func(key, value string, want ...string) {
		if !slices.Contains(want, value) {
			bad(key, "%q is not one of %s", audit.Clip(value, 64), strings.Join(want, ", "))
		}
	}
	oneOf("mode", c.Mode, Deterministic, LLM, Both)
	oneOf("check", c.Check, string(audit.Input), string(audit.Output), Both)
	for i, category := range c.Categories {
		oneOf(fmt.Sprintf("categories[%d]", i), category, Categories...)
	}
	if c.Mode != Deterministic && strings.TrimSpace(c.Model) == "" {
		bad("model", "is missing, and mode %q asks one (default gpt-4o-mini)", c.Mode)
	}
	total := 0
	for i, term := range c.CustomTerms {
		total += len(term)
		switch {
		case strings.TrimSpace(term) == "":
			bad(fmt.Sprintf("custom_terms[%d]", i), "is empty, and would match every text")
		case len(term) > maxTermLength:
			bad(fmt.Sprintf("custom_terms[%d]", i), "%d bytes; at most %d", len(term), maxTermLength)
		}
	}
	if total > maxCustomBytes {
		bad("custom_terms", "%d bytes together; at most %d", total, maxCustomBytes)
	}
	return audit.E("terms: config", audit.KindInvalid, errors.Join(errs...))
}

// sides gives the texts to look at, in order.
func (c Config) sides() []audit.Side {
	if c.Check == Both {
		return []audit.Side{audit.Input, audit.Output}
	}
	return []audit.Side{audit.Side(c.Check)}
}
