package identity

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func TestData(t *testing.T) {
	l := English()
	marks := []Mark{Neutral, Reclaimed, Outdated, Slur}
	neutral := map[audit.Ground]map[Form]int{}
	for _, term := range l.terms {
		if !slices.Contains(audit.Grounds, term.Ground) || !slices.Contains(marks, term.Mark) || strings.TrimSpace(term.Text) != term.Text || term.Text == "" {
			t.Errorf("%+v", term)
		}
		if neutral[term.Ground] == nil {
			neutral[term.Ground] = map[Form]int{}
		}
		if term.Mark == Neutral {
			neutral[term.Ground][term.Form]++
		}
	}
	for _, g := range audit.Grounds {
		if n := neutral[g]; n[Plural] < 10 || n[Singular] < 5 || n[Adjective] < 5 {
			t.Errorf("%s: %v", g, n)
		}
	}
	if len(l.terms) < 2500 {
		t.Errorf("%d terms", len(l.terms))
	}
}

// TestLoad holds that every embedded file is sound.
func TestLoad(t *testing.T) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil || len(names) != len(lexicons) {
		t.Errorf("%v, %d lexicons: %v", names, len(lexicons), err)
	}
	if _, err := Parse([]byte("sections: 1"), "en"); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("a broken file: %v", err)
	}
}

// TestGerman holds that every ground has terms of each form that the common lists name, and what is made of stems.
func TestGerman(t *testing.T) {
	l := In("de")
	for _, g := range audit.Grounds {
		lists := l.Lists(g)
		for _, name := range []string{"id_plural", "id_singular", "id_adjective", "id_trait", "id_basis", "id_slur"} {
			if len(lists[name]) < 2 {
				t.Errorf("%s: %s has %v", g, name, lists[name])
			}
		}
	}
	for text, want := range map[string]string{
		"Mit Ausländern und ÄLTEREN":                  "nationality:Ausländern age:ÄLTEREN",
		"türkischen Kunden, Menschen mit Behinderung": "ethnic_origin:türkischen disability:Menschen mit Behinderung",
		"braune Schuhe, schwarze Liste":               "",
		"schwarze Kunden":                             "race:schwarze",
	} {
		var got []string
		for _, m := range l.Find(text) {
			got = append(got, fmt.Sprintf("%s:%s", m.Ground, text[m.Start:m.End]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestSources holds that each section of the data says what it was checked against.
func TestSources(t *testing.T) {
	for _, name := range []string{"terms.en.yaml", "terms.de.yaml"} {
		raw, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sections := strings.Count(string(raw), "  - ground: ")
		if sources := strings.Count(string(raw), "    source: "); sources != sections {
			t.Errorf("%s: %d sections, %d sources", name, sections, sources)
		}
	}
}

func TestFind(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "The meeting is at nine.", ""},
		{"one", "Women lead.", "sex:Women"},
		{"longest", "People with disabilities apply.", "disability:People with disabilities"},
		{"hyphen and white space are alike", "a working  class person", "social_origin:working  class person"},
		{"homonym", "Paint the black box with nail polish.", ""},
		{"an everyday word needs a person", "An old car and old drivers.", "age:old"},
		{"not over the end of a clause", "He is old. Drivers stop.", ""},
		{"two grounds", "Armenians", "ethnic_origin:Armenians nationality:Armenians"},
		{"apostrophe", "Jehovah’s Witnesses", "religion:Jehovah’s Witnesses"},
		{"outside ASCII", "Él y los SÁMI.", "national_minority:SÁMI"},
		{"inside a word", "semen, womenfolk", ""},
		{"broken bytes", "\xff women \xff", "sex:women"},
		{"pronouns are none", "She said so herself.", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, m := range English().Find(tc.text) {
				got = append(got, fmt.Sprintf("%s:%s", m.Ground, tc.text[m.Start:m.End]))
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("got %q", s)
			}
		})
	}
}

func TestLists(t *testing.T) {
	lists := English().Lists(audit.Religion)
	if !slices.Contains(lists["id_plural"], "Muslims") || !slices.Contains(lists["id_adjective"], "Jewish") || len(lists["id_slur"]) == 0 {
		t.Error(lists)
	}
	if In("xx") != nil {
		t.Error("a lexicon for no language")
	}
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("The committee met on Tuesday and heard that older workers and women apply for fewer of the open posts. ", 20)[:2048]
	b.ReportAllocs()
	for b.Loop() {
		English().Find(text)
	}
}
