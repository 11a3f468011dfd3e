// Package judge holds the JSON Schema (2020-12) of the Compliance Evaluator's verdict, and the form of it that
// servers with strict structured output take.
package judge

import (
	_ "embed"
	"encoding/json"
)

// Verdict is the schema of a verdict, verdict.json.
//
//go:embed verdict.json
var Verdict []byte

// unsupported are the keywords that not every server with strict structured output takes (OpenAI's list, and what
// Azure's leaves out of it). An answer that keeps the rest is still checked against Verdict.
var unsupported = []string{"$schema", "$id", "title", "minimum", "maximum", "minItems", "maxItems", "format"}

// Strict is Verdict for strict structured output: the same document without the keywords that servers refuse. Every
// object already forbids other properties and requires all of its own.
func Strict() (json.RawMessage, error) {
	var doc any
	if err := json.Unmarshal(Verdict, &doc); err != nil {
		return nil, err
	}
	strip(doc, false)
	return json.Marshal(doc)
}

// strip removes keywords in place. names says that doc maps names of properties or definitions, not keywords.
func strip(doc any, names bool) {
	switch v := doc.(type) {
	case map[string]any:
		if !names {
			for _, k := range unsupported {
				delete(v, k)
			}
		}
		for k, sub := range v {
			strip(sub, !names && (k == "properties" || k == "$defs"))
		}
	case []any:
		for _, sub := range v {
			strip(sub, false)
		}
	}
}
