package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// keywords are those of JSON schema that strict mode knows.
// https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
var keywords = []string{"$schema", "$defs", "$ref", "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
	"title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}

// Strict tells why OpenAI would not take a schema in strict mode: every object has additionalProperties false and requires all
// its properties, known keywords only, at most 10 levels and 5,000 properties.
func Strict(schema []byte) error {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	w := &walk{}
	if root["type"] != "object" {
		w.bad("", "the root is no object")
	}
	if root["anyOf"] != nil {
		w.bad("", "the root has anyOf")
	}
	w.node("", root, 1)
	if w.properties > 5000 {
		w.bad("", "%d properties; at most 5000", w.properties)
	}
	return errors.Join(w.errs...)
}

type walk struct {
	properties int
	errs       []error
}

func (w *walk) bad(at, format string, args ...any) {
	w.errs = append(w.errs, fmt.Errorf("schema"+at+": "+format, args...))
}

func (w *walk) node(at string, n map[string]any, depth int) {
	if depth > 10 {
		w.bad(at, "below 10 levels")
		return
	}
	for _, k := range slices.Sorted(maps.Keys(n)) {
		if !slices.Contains(keywords, k) {
			w.bad(at, "keyword %s is not supported", k)
		}
	}
	if n["type"] == nil && n["$ref"] == nil && n["anyOf"] == nil && n["enum"] == nil && n["const"] == nil {
		w.bad(at, "has no type")
	}
	if ref, ok := n["$ref"].(string); ok && ref != "#" && !strings.HasPrefix(ref, "#/$defs/") {
		w.bad(at, "$ref leads outside")
	}
	if is(n["type"], "object") {
		w.object(at, n, depth)
	}
	if is(n["type"], "array") && n["items"] == nil {
		w.bad(at, "an array without items")
	}
	w.child(at+".items", n["items"], depth+1)
	if list, ok := n["anyOf"].([]any); ok {
		for i, e := range list {
			w.child(fmt.Sprintf("%s.anyOf[%d]", at, i), e, depth)
		}
	}
	if defs, ok := n["$defs"].(map[string]any); ok {
		for _, k := range slices.Sorted(maps.Keys(defs)) {
			w.child(at+".$defs."+k, defs[k], depth)
		}
	}
}

func (w *walk) object(at string, n map[string]any, depth int) {
	if n["additionalProperties"] != false {
		w.bad(at, "additionalProperties is not false")
	}
	properties, _ := n["properties"].(map[string]any)
	list, _ := n["required"].([]any)
	required := map[string]bool{}
	for _, r := range list {
		if s, ok := r.(string); ok {
			required[s] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		w.properties++
		if !required[k] {
			w.bad(at, "%s is not required", k)
		}
		delete(required, k)
		w.child(at+"."+k, properties[k], depth+1)
	}
	for _, k := range slices.Sorted(maps.Keys(required)) {
		w.bad(at, "requires %s, which is no property", k)
	}
}

func (w *walk) child(at string, v any, depth int) {
	if v == nil {
		return
	}
	n, ok := v.(map[string]any)
	if !ok {
		w.bad(at, "is no schema")
		return
	}
	w.node(at, n, depth)
}

// is tells whether a type, which may be a list of types, is or has t.
func is(v any, t string) bool {
	list, ok := v.([]any)
	return v == t || ok && slices.Contains(list, any(t))
}
