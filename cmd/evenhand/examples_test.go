package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/config"
)

// The examples say in metadata.expect what each answer holds; an alternative is written a|b. Nothing
// may be found in the answers that expect nothing.
func TestExamplesSayWhatTheyHold(t *testing.T) {
	const file = "../../examples/interactions.jsonl"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	if code := run([]string{"scan"}, bytes.NewReader(raw), &out, &errw); code != 0 {
		t.Fatalf("scan: %d %s", code, errw.String())
	}
	lines, verdicts := strings.Split(strings.TrimSpace(string(raw)), "\n"), strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 90 || len(lines) != len(verdicts) {
		t.Fatalf("%d lines, %d verdicts", len(lines), len(verdicts))
	}
	clean, grounds := 0, map[string]bool{}
	for i := range lines {
		var event struct {
			Metadata struct{ Expect []string }
		}
		var v scanned
		if err := json.Unmarshal([]byte(lines[i]), &event); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if err := json.Unmarshal([]byte(verdicts[i]), &v); err != nil {
			t.Fatalf("verdict %d: %v", i+1, err)
		}
		var kinds []string
		for _, c := range v.Characteristics {
			kinds = append(kinds, "charter."+c)
			grounds[c] = true
		}
		for _, c := range v.Categories {
			if !strings.Contains(c, ".") {
				c = "safety." + c
			}
			kinds = append(kinds, c)
		}
		if len(event.Metadata.Expect) == 0 {
			clean++
			if len(kinds) > 0 {
				t.Errorf("line %d holds nothing, found %v", i+1, kinds)
			}
		}
		for _, want := range event.Metadata.Expect {
			if !slices.ContainsFunc(strings.Split(want, "|"), func(k string) bool { return slices.Contains(kinds, k) }) {
				t.Errorf("line %d holds %s, found %v", i+1, want, kinds)
			}
		}
	}
	if 100*clean < 55*len(lines) || len(grounds) != 16 {
		t.Errorf("%d of %d clean, %d grounds", clean, len(lines), len(grounds))
	}
}

func TestExampleSettingsLoad(t *testing.T) {
	c := cli{Config: "../../examples/evenhand.yaml"}
	if _, err := c.load(defaultSettings()); err != nil {
		t.Error(err)
	}
}

// docs/configuration.md has one row for each key, no more and no fewer.
func TestConfigurationPageIsWhole(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows, keys []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)`").FindAllSubmatch(page, -1) {
		rows = append(rows, string(m[1]))
	}
	for _, s := range config.List(defaultSettings()) {
		keys = append(keys, s.Key)
	}
	slices.Sort(rows)
	if !slices.Equal(rows, keys) {
		t.Errorf("the page has %v\nthe program has %v", rows, keys)
	}
}
