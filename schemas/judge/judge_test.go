package judge

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is a schema that asserts formats too.
func compiled(t *testing.T, doc []byte) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("verdict.json", v); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("verdict.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// example is an answer as seed 004 describes it, every array with one element.
const example = `{"overall":{"assessment":"non_compliant","confidence":0.9,"summary":"s"},
"bias":{"score":70,"risk":"high","findings":[{"type":"stereotype","target":"group","protected_class":null,"excerpt":"e","span":[0,1],"rationale":"r"}]},
"dei":{"score":40,"risk":"moderate","violations":[{"guideline":"accessibility","excerpt":"e","span":[0,1],"issue":"i","recommendation":"r"}]},
"offensive_language":{"score":10,"severity":"low","categories":["slur"],"instances":[{"category":"slur","excerpt":"e","span":[0,1],"severity":"low","rationale":"r"}]},
"protected_classes_mentioned":[{"class":"religion","context":"neutral","excerpt":"e","span":[0,1]}],
"red_flags":["f"],
"suggested_remediations":[{"issue":"i","original_excerpt":"e","span":[0,1],"suggested_rewrite":"w"}],
"meta":{"version":"1.0","evaluated_at":"2026-11-22T12:00:00Z","input_length":1}}`

func TestVerdictTakesWhatTheSpecificationShows(t *testing.T) {
	full := compiled(t, Verdict)
	strict, err := Strict()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, old, new string
		full, strict   bool
	}{
		{"as it stands", "", "", true, true},
		{"a class", `"protected_class":null`, `"protected_class":"caste"`, true, true},
		{"score above the range", `"score":70`, `"score":101`, false, true}, // a range is no keyword of the strict form
		{"confidence in per cent", `"confidence":0.9`, `"confidence":90`, false, true},
		{"score in words", `"score":70`, `"score":"70"`, false, false},
		{"unknown risk", `"risk":"high"`, `"risk":"severe"`, false, false},
		{"severity as risk", `"severity":"low","categories"`, `"severity":"moderate","categories"`, false, false},
		{"an instance without severity", `"severity":"low","rationale"`, `"severity":"none","rationale"`, false, false},
		{"unknown category", `["slur"]`, `["rude"]`, false, false},
		{"another key", `"red_flags"`, `"notes":[],"red_flags"`, false, false},
		{"a key less", `"red_flags":["f"],`, ``, false, false},
		{"null for an array", `"red_flags":["f"]`, `"red_flags":null`, false, false},
		{"span of one", `"span":[0,1],"rationale"`, `"span":[0],"rationale"`, false, true},
		{"span below zero", `"span":[0,1],"rationale"`, `"span":[-1,1],"rationale"`, false, true},
		{"another version", `"version":"1.0"`, `"version":"2.0"`, false, false},
		{"no time", `2026-11-22T12:00:00Z`, `yesterday`, false, true},
	} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(example, tc.old, tc.new, 1)))
		if err != nil {
			t.Fatal(tc.name, err)
		}
		if got := full.Validate(doc) == nil; got != tc.full {
			t.Errorf("%s: valid %t, want %t", tc.name, got, tc.full)
		}
		if got := compiled(t, strict).Validate(doc) == nil; got != tc.strict {
			t.Errorf("%s: valid by the strict form %t, want %t", tc.name, got, tc.strict)
		}
	}
}

// The strict form is the full one without keywords, and keeps what strict servers ask of every object.
func TestStrictAgrees(t *testing.T) {
	strict, err := Strict()
	if err != nil {
		t.Fatal(err)
	}
	var full, got any
	if err := json.Unmarshal(Verdict, &full); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(strict, &got); err != nil {
		t.Fatal(err)
	}
	less := cmp.FilterPath(func(p cmp.Path) bool {
		k, ok := p.Last().(cmp.MapIndex)
		if !ok || !slices.Contains(unsupported, k.Key().String()) {
			return false
		}
		parent, ok := p.Index(-3).(cmp.MapIndex) // -2 is the type assertion between
		return !ok || parent.Key().String() != "properties"
	}, cmp.Ignore())
	if diff := cmp.Diff(full, got, less); diff != "" {
		t.Error(diff)
	}
	for _, k := range unsupported {
		if bytes.Contains(strict, []byte(`"`+k+`":`)) {
			t.Errorf("%s stands in the strict form", k)
		}
	}
	objects(t, got)
}

func objects(t *testing.T, doc any) {
	switch v := doc.(type) {
	case []any:
		for _, sub := range v {
			objects(t, sub)
		}
	case map[string]any:
		if v["type"] == "object" {
			if v["additionalProperties"] != false {
				t.Errorf("an object takes other properties: %v", v)
			}
			required, _ := v["required"].([]any)
			properties, _ := v["properties"].(map[string]any)
			for name := range properties {
				if !slices.Contains(required, any(name)) {
					t.Errorf("%s is not required", name)
				}
			}
			if len(required) != len(properties) {
				t.Errorf("%d required of %d properties", len(required), len(properties))
			}
		}
		for _, sub := range v {
			objects(t, sub)
		}
	}
}
