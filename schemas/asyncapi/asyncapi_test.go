package asyncapi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func document(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(Document, &doc); err != nil {
		t.Fatal(err)
	}
	return plain(doc).(map[string]any)
}

// plain turns YAML's whole numbers into those of JSON.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	case int:
		return float64(v)
	}
	return v
}

// find follows a pointer such as #/components/messages/interaction.
func find(doc any, ref string) (any, bool) {
	for key := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, ok := doc.(map[string]any)
		if !ok {
			return nil, false
		}
		if doc, ok = m[key]; !ok {
			return nil, false
		}
	}
	return doc, true
}

func TestEveryTopicIsDescribed(t *testing.T) {
	doc := document(t)
	if !strings.HasPrefix(doc["asyncapi"].(string), "3.") {
		t.Error("not AsyncAPI 3")
	}
	var got []string
	for _, c := range doc["channels"].(map[string]any) {
		channel := c.(map[string]any)
		got = append(got, channel["address"].(string))
		if len(channel["messages"].(map[string]any)) == 0 || channel["description"] == "" {
			t.Errorf("%s has no messages or no description", channel["address"])
		}
	}
	slices.Sort(got)
	want := []string{
		"bias.audit.stream", "evenhand.calls", "evenhand.checkpoints", "evenhand.decisions", "evenhand.feedback", "evenhand.jobs",
		"evenhand.judge", "evenhand.remediation", "llm.interactions", "llm.interactions.dlq",
	}
	if !slices.Equal(got, want) {
		t.Errorf("topics %v", got)
	}
}

func TestReferencesResolve(t *testing.T) {
	doc := document(t)
	n := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				n++
				if _, ok := find(doc, ref); strings.HasPrefix(ref, "#") && !ok {
					t.Errorf("%s leads nowhere", ref)
				} else if _, err := os.Stat(filepath.FromSlash(ref)); !strings.HasPrefix(ref, "#") && err != nil {
					t.Error(err)
				}
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(doc)
	if n < 10 {
		t.Errorf("only %d references seen", n)
	}
}

// TestExamples holds every example of a message to the message's payload.
func TestExamples(t *testing.T) {
	doc := document(t)
	interaction, err := os.Open("../events/interaction.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = interaction.Close() }()
	events, err := jsonschema.UnmarshalJSON(interaction)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///asyncapi/evenhand.yaml", doc); err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("mem:///events/interaction.v1.json", events); err != nil {
		t.Fatal(err)
	}
	examples := 0
	for name, m := range doc["components"].(map[string]any)["messages"].(map[string]any) {
		message := m.(map[string]any)
		for _, part := range []string{"payload", "headers"} {
			if message[part] == nil {
				continue
			}
			schema, err := c.Compile(fmt.Sprintf("mem:///asyncapi/evenhand.yaml#/components/messages/%s/%s", name, part))
			if err != nil {
				t.Fatal(err)
			}
			list, _ := message["examples"].([]any)
			for _, e := range list {
				value, ok := e.(map[string]any)[part]
				if !ok {
					continue
				}
				examples++
				if err := schema.Validate(value); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				delete(value.(map[string]any), "tenant_id")
				value.(map[string]any)["respose"] = "x"
				if schema.Validate(value) == nil {
					t.Errorf("%s: the schema takes anything", name)
				}
			}
		}
	}
	if examples < 2 {
		t.Errorf("only %d examples", examples)
	}
}
