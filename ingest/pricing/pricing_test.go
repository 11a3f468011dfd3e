package pricing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/pricing"
)

func TestCost(t *testing.T) {
	table, err := pricing.Parse([]byte("gpt-4o*: {prompt: 2.5, response: 10}\ngpt-4o-mini*: {prompt: 0.15, response: 0.6}\nazure/gpt-4o: {prompt: 3, response: 12}\nembed-*: {prompt: 0.02, response: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	n := func(i int32) *int32 { return &i }
	for _, tc := range []struct {
		name, provider, model string
		tokens                [2]*int32
		want                  float64 // -1: none
	}{
		{"the most letters hold", "openai", "gpt-4o-mini-2024", [2]*int32{n(1000), n(100)}, 0.00021},
		{"the shorter pattern", "", "GPT-4o-2024", [2]*int32{n(10), n(1)}, 0.000035},
		{"with its provider", "Azure", "gpt-4o", [2]*int32{n(10), n(1)}, 0.000042},
		{"a count that costs nothing may be missing", "", "embed-3", [2]*int32{n(50), nil}, 0.000001},
		{"a count that costs something may not", "", "gpt-4o", [2]*int32{n(50), nil}, -1},
		{"no price", "", "llama-3", [2]*int32{n(50), n(1)}, -1},
		{"no model", "", "", [2]*int32{n(50), n(1)}, -1},
	} {
		got := table.Cost(tc.provider, tc.model, tc.tokens)
		if got == nil && tc.want >= 0 || got != nil && *got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if (*pricing.Table)(nil).Cost("", "gpt-4o", [2]*int32{n(1), n(1)}) != nil {
		t.Error("no table has a price")
	}
}

func TestFaults(t *testing.T) {
	for file, want := range map[string]string{
		"[":                              "not YAML",
		"- a":                            "line 1: wants lines such as",
		"a: 3":                           "line 1: a: wants {prompt: …, response: …}",
		"a: {prompt: 1}":                 "line 1: a: wants both",
		"a: {prompt: 1, reply: 1}":       "a.reply: unknown key",
		"a: {prompt: -1, response: 1}":   "a.prompt: wants US dollars",
		"a: {prompt: .nan, response: 1}": "a.prompt: wants US dollars",
		"a: {prompt: x, response: 1}":    "a.prompt: wants US dollars",
		"a: {prompt: 1, response: 1}\nA: {prompt: 1, response: 1}": "line 2: a: stands there twice",
	} {
		_, err := pricing.Parse([]byte(file))
		if audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
	if _, err := pricing.Load(filepath.Join(t.TempDir(), "none")); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte(`{"m": {"prompt": 1, "response": 2}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if table, err := pricing.Load(path); err != nil || table.Cost("", "m", [2]*int32{new(int32), new(int32)}) == nil {
		t.Error(err)
	}
}

// The example is read as it stands.
func TestExample(t *testing.T) {
	if _, err := pricing.Load("../../examples/prices.yaml"); err != nil {
		t.Error(err)
	}
}
