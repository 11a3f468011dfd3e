package terms

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

func evaluate(t *testing.T, cfg Config, input, output string) Result {
	t.Helper()
	r, err := Evaluate(context.Background(), cfg, input, output)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestScores holds seed 002's arithmetic. want is "score pass: side.category/term[start,end)…".
func TestScores(t *testing.T) {
	custom := func(terms ...string) func(*Config) { return func(c *Config) { c.CustomTerms = terms } }
	for _, tc := range []struct {
		name, input, output string
		set                 func(*Config)
		want                string
	}{
		{"clean", "", "She passed the coding test.", nil, "1 true:"},
		{"empty", "", "", nil, "1 true:"},
		{"white space alone", "", " \n\t", nil, "1 true:"},
		{"one term", "", "He is too old to learn Go.", nil, "0.85 false: output.age/too old to learn[6,22)"},
		{"case and offsets in code points", "", "Élan 😀: TOO OLD TO LEARN", nil, "0.85 false: output.age/too old to learn[8,24)"},
		{"typographic apostrophe", "", "Real men don’t cry", nil, "0.85 false: output.gender/real men don't cry[0,18)"},
		{"a distinct term counts once", "", "chairman, Chairman, CHAIRMAN", custom("chairman"), "0.85 false: output.custom/chairman[0,8)[10,18)[20,28)"},
		{"seed's custom terms", "", "The chairman wants manpower, not the elderly.", custom("manpower", "chairman", "elderly"),
			"0.55 false: output.custom/chairman[4,12) output.custom/manpower[19,27) output.custom/elderly[37,44)"},
		{"substring, as the contract says", "", "chairmanship", custom("chairman"), "0.85 false: output.custom/chairman[0,8)"},
		{"longest wins on overlap", "", "the elderly", custom("elderly", "the elderly"), "0.85 false: output.custom/the elderly[0,11)"},
		{"longest wins even when it starts later", "", "abcdefgh", custom("abcd", "cdefgh"), "0.85 false: output.custom/cdefgh[2,8)"},
		{"the shorter still counts elsewhere", "", "the elderly and elderly", custom("elderly", "the elderly"),
			"0.7 false: output.custom/the elderly[0,11) output.custom/elderly[16,23)"},
		{"never below zero", "", "t1 t2 t3 t4 t5 t6 t7 t8", custom("t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"),
			"0 false: output.custom/t1[0,2) output.custom/t2[3,5) output.custom/t3[6,8) output.custom/t4[9,11) output.custom/t5[12,14) output.custom/t6[15,17) output.custom/t7[18,20) output.custom/t8[21,23)"},
		{"other categories are silent", "", "too old to learn", func(c *Config) { c.Categories = []string{"gender"} }, "1 true:"},
		{"custom is on whatever the categories", "", "manpower", func(c *Config) { c.Categories = []string{"race"}; c.CustomTerms = []string{"ManPower"} },
			"0.85 false: output.custom/manpower[0,8)"},
		{"output alone by default", "deaf and dumb", "fine", nil, "1 true:"},
		{"input", "deaf and dumb", "too old to hire", func(c *Config) { c.Check = "input" }, "0.85 false: input.disability/deaf and dumb[0,13)"},
		{"both: the lower score", "deaf and dumb", "too old to hire, greedy jews", func(c *Config) { c.Check = "both" },
			"0.7 false: input.disability/deaf and dumb[0,13) output.age/too old to hire[0,15) output.religion/greedy jews[17,28)"},
		{"both with one side empty", "", "too old to hire", func(c *Config) { c.Check = "both" }, "0.85 false: output.age/too old to hire[0,15)"},
		{"lower case of another length", "", "K K", custom("k"), "0.85 false: output.custom/k[0,1)[2,3)"},
		{"upper-case custom in another script", "", "ein МУЖИК", custom("Мужик"), "0.85 false: output.custom/мужик[4,9)"},
		{"broken bytes count one each", "", "\xff\xfemanpower", custom("manpower"), "0.85 false: output.custom/manpower[2,10)"},
		{"a broken byte ends a term", "", "man\xffpower", custom("manpower"), "1 true:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := DefaultConfig()
			if tc.set != nil {
				tc.set(&cfg)
			}
			r := evaluate(t, cfg, tc.input, tc.output)
			got := fmt.Sprintf("%v %v:", r.Score, r.Pass)
			for _, m := range r.Terms {
				got += fmt.Sprintf(" %s.%s/%s", m.Side, m.Category, m.Term)
				for _, s := range m.Spans {
					got += fmt.Sprintf("[%d,%d)", s.Start, s.End)
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if r.Status != audit.Done || r.Reasoning == "" {
				t.Errorf("status %q, reasoning %q", r.Status, r.Reasoning)
			}
		})
	}
}

func TestReasoningListsTermsByCategory(t *testing.T) {
	cfg := DefaultConfig()
	cfg.CustomTerms = []string{"manpower"}
	r := evaluate(t, cfg, "", "manpower; greedy jews; too old to hire; past his prime")
	want := `Found 4 biased terms. age: "too old to hire", "past his prime"; religion: "greedy jews"; custom: "manpower".`
	if r.Reasoning != want {
		t.Errorf("got  %s\nwant %s", r.Reasoning, want)
	}
}

// TestWithoutModel holds that a mode that asks a model never passes in silence when there is none.
func TestWithoutModel(t *testing.T) {
	for _, tc := range []struct{ mode, output, want string }{
		{"llm", "Fine.", `{"score":null,"pass":null,"terms":[],"status":"skipped","reason":"no_llm"}`},
		{"llm", "", `{"score":1,"pass":true,"terms":[],"status":"done"}`},
		{"both", "Fine.", `{"score":1,"pass":true,"terms":[],"status":"partial","reason":"no_llm"}`},
		{"both", "too old to hire", `{"score":0.85,"pass":false,"terms":[{"term":"too old to hire","category":"age","side":"output","spans":[{"start":0,"end":15}]}],"status":"partial","reason":"no_llm"}`},
	} {
		cfg := DefaultConfig()
		cfg.Mode = tc.mode
		r := evaluate(t, cfg, "", tc.output)
		if r.Status != audit.Done && !strings.Contains(r.Reasoning, "none is configured") {
			t.Errorf("%s: reasoning %q does not say what is missing", tc.mode, r.Reasoning)
		}
		if r.Status == audit.Skipped && r.Pass {
			t.Errorf("%s: passes without a score", tc.mode)
		}
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "reasoning")
		got, _ := json.Marshal(m)
		var want any
		_ = json.Unmarshal([]byte(tc.want), &want)
		sorted, _ := json.Marshal(want)
		if !jsonEqual(t, got, sorted) {
			t.Errorf("%s: got %s\nwant %s", tc.mode, got, sorted)
		}
	}
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	canonical := func(raw []byte) string {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	return canonical(a) == canonical(b)
}

func TestConfigReportsEveryFault(t *testing.T) {
	cfg := Config{Mode: "fast", Check: "all", Categories: []string{"gender", "colour"}, CustomTerms: []string{"ok", " ", strings.Repeat("x", 201)}}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`mode: "fast" is not one of deterministic, llm, both`, `check: "all" is not one of input, output, both`,
		`categories[1]: "colour" is not one of gender, race, age, disability, religion`, "model: is missing",
		"custom_terms[1]: is empty", "custom_terms[2]: 201 bytes; at most 200",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("kind %s", audit.KindOf(err))
	}
	if _, err := Evaluate(context.Background(), cfg, "", "x"); err == nil {
		t.Error("Evaluate takes a faulty configuration")
	}
	if _, err := New(cfg); err == nil {
		t.Error("New takes a faulty configuration")
	}
}

func TestDefaults(t *testing.T) {
	cfg := DefaultConfig()
	if err := json.Unmarshal([]byte(`{"custom_terms":["x"]}`), &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Mode != "deterministic" || cfg.Model != "gpt-4o-mini" || cfg.Check != "output" || len(cfg.Categories) != 0 {
		t.Errorf("%+v", cfg)
	}
	cfg.APIKey = "sk-very-secret"
	shown, _ := json.Marshal(cfg)
	if out := string(shown) + fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg.APIKey); strings.Contains(out, "very-secret") {
		t.Errorf("the key shows: %s", out)
	}
}

// TestBuiltInList holds the list's size and that its terms stay silent on harmless neighbours.
func TestBuiltInList(t *testing.T) {
	s, err := setOf(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.terms); n < 28 || n > 40 {
		t.Errorf("%d terms; want about thirty", n)
	}
	for _, category := range Categories {
		if !slices.ContainsFunc(s.terms, func(x term) bool { return x.category == category }) {
			t.Errorf("no term for %s", category)
		}
	}
	for _, x := range s.terms {
		if x.text != lower(x.text) || len(x.rule) > 64 {
			t.Errorf("%+v", x)
		}
	}
	for _, harmless := range []string{
		"The human upgrade went well.", "He took boomerangs to the beach.", "She looked like a girlfriend of his.",
		"The sun rose over the hill.", "National Association for the Advancement of Colored People",
		"Women work in mathematics, and men do too.", "An old dog learned a new trick.",
		"The wheelchair is bound for the airport.", "Older people learn new languages well.",
	} {
		if found := s.automaton.find(harmless); len(found) > 0 {
			t.Errorf("%q fires in %q", s.terms[found[0].term].text, harmless)
		}
	}
}

// FuzzAutomaton compares every occurrence with a plain search: of words as they are, and repeated until they are long enough for the sieve.
func FuzzAutomaton(f *testing.F) {
	f.Add("the elderly and ELDERLY", "elderly", "the elderly")
	f.Add("ababababa", "aba", "bab")
	f.Add("K’É\xff", "k'", "é")
	f.Add(strings.Repeat("a", 40), "a", "aab")
	f.Add("go BacK, go bacK; Ⱥgo backgo back ⱥgo backⱥgo back", "go back", "ⱥgo back")
	f.Fuzz(func(t *testing.T, text, one, two string) {
		one, two = lower(one), lower(two)
		if one == "" || two == "" || one == two || strings.ContainsRune(one+two, utf8.RuneError) || len(one)+len(two) > 200 || len(text) > 4000 {
			t.Skip() // of longer words the plain search takes the square
		}
		compareWithPlainSearch(t, text, one, two)
		one, two = strings.Repeat(one, 2*block), strings.Repeat(two, 2*block)
		compareWithPlainSearch(t, text+one+text+two+strings.ToUpper(two)+text, one, two)
	})
}

// compareWithPlainSearch takes words in lower case.
func compareWithPlainSearch(t *testing.T, text string, words ...string) {
	t.Helper()
	if words[0] == words[1] {
		return
	}
	a := newAutomaton(words)
	var want []string
	// The lower-cased text, one entry for each code point, with a byte that no term holds for a broken one.
	var units []string
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			units = append(units, "\xff")
		} else {
			units = append(units, string(lowerRune(r)))
		}
	}
	for w, word := range words {
		n := utf8.RuneCountInString(word)
		for i := 0; i+n <= len(units); i++ {
			if strings.Join(units[i:i+n], "") == word {
				want = append(want, fmt.Sprint(w, i, i+n))
			}
		}
	}
	var got []string
	for _, o := range a.all(text) {
		s := audit.SpanOf(text, o.start, o.end)
		got = append(got, fmt.Sprint(o.term, s.Start, s.End))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%q in %q: got %v, want %v", words, text, got, want)
	}
	for kept, i := a.find(text), 1; i < len(kept); i++ {
		if kept[i-1].end > kept[i].start {
			t.Fatalf("overlap in %v", kept)
		}
	}
}

// BenchmarkEvaluate: seed 002 wants less than a millisecond for a text.
func BenchmarkEvaluate(b *testing.B) {
	e, err := NewEvaluator(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("The committee read each application twice and wrote down what it found. ", 56)[:4000]
	text += " He is too old to learn."
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if r, err := e.Evaluate(context.Background(), "", text); err != nil || r.Pass {
			b.Fatal(r, err)
		}
	}
}

// TestContract runs the detectors' contract on the hot path's form.
func TestContract(t *testing.T) {
	cfg := DefaultConfig()
	cfg.CustomTerms = []string{"manpower"}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	detectortest.Run(t, d, "He is too old to learn.", "We lack manpower.", "Deaf and dumb; greedy Jews.")
	got := detectortest.Describe(detectortest.Findings(t, d, "Manpower: too old to learn. Manpower!"))
	want := "terms.custom/terms.custom.manpower[0,8) terms.age/terms.age.too_old_to_learn[10,26) terms.custom/terms.custom.manpower[28,36)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestHotPathScore holds that the verdict's score is the evaluator's.
func TestHotPathScore(t *testing.T) {
	d, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	a := detectortest.Analyzer(t, d)
	for _, text := range []string{"too old to learn, too old to learn", "deaf and dumb, past his prime", "fine"} {
		v := a.Analyze(context.Background(), detectortest.Interaction("", text))
		r := evaluate(t, DefaultConfig(), "", text)
		if got := v.Score(audit.ScoreTerms); len(r.Terms) > 0 && got != r.Score || v.Detected != !r.Pass {
			t.Errorf("%q: verdict %v (detected %v), evaluator %v", text, got, v.Detected, r.Score)
		}
	}
}
