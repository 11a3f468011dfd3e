// Package taxonomy holds the controlled vocabulary that comes with Evenhand: the keys of bias types,
// finding kinds and human tags with their severity levels 1 to 5. Administrators may add keys to the
// table bias_taxonomy; this file is what every installation starts with.
package taxonomy

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

//go:embed taxonomy.yaml
var source []byte

// Entry is one key of the vocabulary.
type Entry struct {
	ID            uint32 `yaml:"id"`  // stable, never reused
	Key           string `yaml:"key"` // unique: "charter.sex", "representation"
	Description   string `yaml:"description"`
	SeverityLevel uint8  `yaml:"severity"` // 1..5
}

// Taxonomy is the vocabulary of one version.
type Taxonomy struct {
	Version uint64  `yaml:"version"` // grows whenever a row changes; rows of higher versions win
	Entries []Entry `yaml:"entries"`
}

// Load reads the embedded vocabulary and checks it.
func Load() (*Taxonomy, error) { return Parse(source) }

// KeyPattern is the form of a key; the table holds it as a constraint too.
var KeyPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*([.][a-z0-9_]+)?$`)

// Parse reads a vocabulary and reports every fault at once.
func Parse(b []byte) (*Taxonomy, error) {
	var t Taxonomy
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&t); err != nil {
		return nil, fmt.Errorf("schemas/taxonomy: %w", err)
	}
	var errs []error
	fault := func(format string, a ...any) { errs = append(errs, fmt.Errorf("schemas/taxonomy: "+format, a...)) }
	if t.Version == 0 {
		fault("version is missing")
	}
	ids, keys := map[uint32]string{}, map[string]bool{}
	for _, e := range t.Entries {
		if !KeyPattern.MatchString(e.Key) {
			fault("key %q: want lower_snake_case with at most one dot", e.Key)
		}
		if keys[e.Key] {
			fault("key %q stands twice", e.Key)
		}
		if other, ok := ids[e.ID]; ok || e.ID == 0 {
			fault("id %d of %q is zero or taken by %q", e.ID, e.Key, other)
		}
		if e.SeverityLevel < 1 || e.SeverityLevel > 5 {
			fault("severity %d of %q is not in 1..5", e.SeverityLevel, e.Key)
		}
		keys[e.Key], ids[e.ID] = true, e.Key
	}
	return &t, errors.Join(errs...)
}
