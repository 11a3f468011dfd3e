// Package pricing tells what a call of a model costs, from a table that the operator keeps.
//
// The file is YAML (or JSON): patterns of models, in which * stands for any characters, each with US dollars per million tokens.
//
//	gpt-4o-mini*: {prompt: 0.15, response: 0.60}
//
// A pattern is held against the model and against provider/model, without regard to case; the one with the most letters
// holds. A call whose tokens are not known has no cost. Evenhand ships no prices: they are the provider's and change.
package pricing

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
)

// Table holds prices. It is safe for concurrent use; nil knows none.
type Table struct{ rows []row } // the most specific first

type row struct {
	pattern *regexp.Regexp
	letters int
	name    string
	price   [2]float64
}

// Load reads a file; its error names every fault with its line.
func Load(path string) (*Table, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, audit.E("pricing: load", audit.KindInvalid, err)
	}
	return Parse(b)
}

// Parse reads a table.
func Parse(file []byte) (*Table, error) {
	const op = "pricing: parse"
	var doc yaml.Node
	if err := yaml.Unmarshal(file, &doc); err != nil {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("not YAML: %w", err))
	}
	t := &Table{}
	if len(doc.Content) == 0 { // comments alone
		return t, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("line %d: wants lines such as gpt-4o-mini*: {prompt: 0.15, response: 0.60}", root.Line))
	}
	var errs []error
	for i := 0; i+1 < len(root.Content); i += 2 {
		r, err := readRow(root.Content[i], root.Content[i+1])
		switch {
		case err != nil:
			errs = append(errs, err)
		case slices.ContainsFunc(t.rows, func(o row) bool { return o.name == r.name }):
			errs = append(errs, fmt.Errorf("line %d: %s: stands there twice", root.Content[i].Line, r.name))
		default:
			t.rows = append(t.rows, r)
		}
	}
	if len(errs) > 0 {
		return nil, audit.E(op, audit.KindInvalid, errors.Join(errs...))
	}
	slices.SortStableFunc(t.rows, func(a, b row) int { return b.letters - a.letters })
	return t, nil
}

func readRow(key, value *yaml.Node) (row, error) {
	r := row{name: strings.ToLower(key.Value)}
	if r.name == "" || value.Kind != yaml.MappingNode {
		return r, fmt.Errorf("line %d: %s: wants {prompt: …, response: …}, US dollars per million tokens", key.Line, key.Value)
	}
	given := [2]bool{}
	for i := 0; i+1 < len(value.Content); i += 2 {
		name, n := value.Content[i].Value, value.Content[i+1]
		side := slices.Index([]string{"prompt", "response"}, name)
		if side < 0 {
			return r, fmt.Errorf("line %d: %s.%s: unknown key; a price has prompt and response", n.Line, key.Value, name)
		}
		if err := n.Decode(&r.price[side]); err != nil || !(r.price[side] >= 0 && r.price[side] <= 1e6) {
			return r, fmt.Errorf("line %d: %s.%s: wants US dollars per million tokens, from 0 to 1000000", n.Line, key.Value, name)
		}
		given[side] = true
	}
	if !given[0] || !given[1] {
		return r, fmt.Errorf("line %d: %s: wants both prompt and response; write 0 for what costs nothing", key.Line, key.Value)
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(r.name), `\*`, `.*`)
	re, err := regexp.Compile("^(?s:" + pattern + ")$")
	r.pattern, r.letters = re, len(strings.ReplaceAll(r.name, "*", ""))
	return r, err
}

// Cost gives US dollars, nil when the model has no price or a count that costs something is not known. tokens are those
// of the prompt and of the response.
func (t *Table) Cost(provider, model string, tokens [2]*int32) *float64 {
	if t == nil || model == "" {
		return nil
	}
	model = strings.ToLower(model)
	full := strings.ToLower(provider) + "/" + model
	for i := range t.rows {
		r := &t.rows[i]
		if !r.pattern.MatchString(model) && (provider == "" || !r.pattern.MatchString(full)) {
			continue
		}
		cost := 0.0
		for side, price := range r.price {
			switch {
			case tokens[side] != nil:
				cost += float64(*tokens[side]) * price
			case price > 0:
				return nil
			}
		}
		cost = math.Round(cost*1e3) / 1e9 // whole billionths of a dollar
		return &cost
	}
	return nil
}
