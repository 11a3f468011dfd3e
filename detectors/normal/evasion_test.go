package normal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
	"github.com/evenhand/evenhand/detectors/scan"
)

// rows reads a JSONL file.
func rows[T any](t *testing.T, file string) (all []T) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var row T
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, row)
	}
	return all
}

// finder says whether a rule of bias or safety that reads normal text fires on a text as it is.
var finder = sync.OnceValues(func() (func(text string) bool, error) {
	var patterns []string
	var owners []*rules.Rule
	for _, fsys := range []fs.FS{bias.Packs(), safety.Packs()} {
		packs, err := rules.Load(fsys)
		if err != nil {
			return nil, err
		}
		for _, r := range rules.All(packs) {
			if r.Pack.Raw {
				continue
			}
			for _, p := range r.Expanded {
				patterns, owners = append(patterns, p), append(owners, r)
			}
		}
	}
	s, err := scan.Compile(patterns, scan.Options{})
	if err != nil {
		return nil, err
	}
	return func(text string) bool {
		for _, m := range s.Scan(text, nil) {
			if !rules.Suppressed(owners[m.Pattern], text, int(m.Start), int(m.End)) {
				return true
			}
		}
		return false
	}, nil
})

func form(text string) string {
	x := normal.Of(text)
	return x.String()
}

type tally struct{ of, before, after int }

// Evasions are found once normalised. Counted are those whose plain sentence is found.
func TestEvasions(t *testing.T) {
	type row struct{ ID, Kind, Text, Plain string }
	all := rows[row](t, "testdata/evasions.jsonl")
	if len(all) < 300 {
		t.Errorf("%d evasions, want 300", len(all))
	}
	finds, err := finder()
	if err != nil {
		t.Fatal(err)
	}
	byKind, total, restored, beyond := map[string]*tally{}, &tally{}, 0, 0
	for _, e := range all {
		if strings.EqualFold(form(e.Text), form(e.Plain)) {
			restored++
		}
		if !finds(form(e.Plain)) {
			beyond++
			continue
		}
		if byKind[e.Kind] == nil {
			byKind[e.Kind] = &tally{}
		}
		before, after := finds(e.Text), finds(form(e.Text))
		for _, c := range []*tally{byKind[e.Kind], total} {
			c.of++
			if before {
				c.before++
			}
			if after {
				c.after++
			}
		}
		if !after {
			t.Logf("%s %s: %q becomes %q", e.ID, e.Kind, e.Text, form(e.Text))
		}
	}
	var table strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		c := byKind[kind]
		fmt.Fprintf(&table, "%-22s %4d  before %3d %%  after %3d %%\n", kind, c.of, 100*c.before/c.of, 100*c.after/c.of)
	}
	t.Logf("\n%s%-22s %4d  before %3d %%  after %3d %%; %d of %d restored to the letter, %d plain sentences beyond the packs",
		&table, "all", total.of, 100*total.before/total.of, 100*total.after/total.of, restored, len(all), beyond)
	if total.after*100 < 93*total.of {
		t.Errorf("%d of %d evasions are found, want 93 %%", total.after, total.of)
	}
	if restored*100 < 85*len(all) {
		t.Errorf("%d of %d evasions read like their plain sentence, want 85 %%", restored, len(all))
	}
}

// Innocent texts keep what they mean: they stay, or become what is stated, and no rule fires on them that did
// not before.
func TestInnocents(t *testing.T) {
	type row struct{ ID, Kind, Text, Want string }
	all := rows[row](t, "testdata/innocent.jsonl")
	if len(all) < 150 {
		t.Errorf("%d innocent texts, want 150", len(all))
	}
	finds, err := finder()
	if err != nil {
		t.Fatal(err)
	}
	same, before := 0, 0
	for _, in := range all {
		want := in.Want
		if want == "" {
			want = in.Text
			same++
		}
		if got := form(in.Text); got != want {
			t.Errorf("%s: %q becomes %q, want %q", in.ID, in.Text, got, want)
		}
		if finds(in.Text) {
			before++
		} else if finds(form(in.Text)) {
			t.Errorf("%s: %q fires", in.ID, form(in.Text))
		}
	}
	t.Logf("%d texts, %d stay byte for byte, %d fire as they are, none more when normalised", len(all), same, before)
}
