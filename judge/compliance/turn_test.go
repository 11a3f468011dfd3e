package compliance

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/schemas/judge"
)

// items are those of a list as a text has it.
func (l list) items(text string) (out []string) {
	m := l.in.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	for _, x := range l.item.FindAllStringSubmatch(m[1], -1) {
		out = append(out, x[1])
	}
	return out
}

func strictSchema(t testing.TB) json.RawMessage {
	t.Helper()
	s, err := judge.Strict()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func indented(t testing.TB, s json.RawMessage) string {
	t.Helper()
	var doc strings.Builder
	e := json.NewEncoder(&doc)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return doc.String()
}

// What is listed is what was meant to be.
func TestListsOfCriteria(t *testing.T) {
	for i, want := range []string{
		"Bias|DEI compliance|Offensive/abusive language", "Bias|DEI compliance|Offensive language", "race|ethnicity|nationality|religion|caste|sex|gender identity/expression|sexual orientation|disability|age|socioeconomic status",
		`"bias"|"dei"|"offensive_language"`,
		"stereotype|othering|unequal_standards|dehumanization|microaggression|generalization",
		"inclusive_language|people_first_language|representation|equitable_framing|gender_inclusivity|accessibility|cultural_sensitivity",
		"profanity|slur|harassment|threat|sexual_insult", "profanity|slur|harassment|threat|sexual_insult", "race|religion|gender|disability", "religion|gender|race",
	} {
		got := inPrompt[i].items((marks{}).system())
		for j := range got {
			got[j] = name(got[j])
		}
		if strings.Join(got, "|") != want {
			t.Errorf("list %d: %q, want %s", i, got, want)
		}
	}
	schema := indented(t, strictSchema(t))
	for i, want := range []int{3, 3, 6, 7, 5} {
		if got := inSchema[i].items(schema); len(got) != want {
			t.Errorf("list %d of the schema: %q", i, got)
		}
	}
}

// Whatever the turn, each criterion is listed once, nothing else moves, and no turn is the specification's order itself.
func TestTurnsHoldEveryCriterionOnce(t *testing.T) {
	system, schema := marks{"nonce", "canary-x"}.system(), strictSchema(t)
	wide := indented(t, schema)
	if turned(system, inPrompt, 0) != system {
		t.Error("without a turn the prompt changes")
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000).Draw(t, "turn")
		s, err := turnedSchema(schema, n)
		if err != nil {
			t.Fatal(err)
		}
		prompt := turned(system, inPrompt, n)
		once(t, inPrompt, system, prompt, n)
		var doc any
		if err := json.Unmarshal(s, &doc); err != nil {
			t.Fatal(err)
		}
		spread, _ := json.MarshalIndent(s, "", "  ")
		once(t, inSchema, wide, string(spread)+"\n", n)
		if !slices.Equal(words(prompt), words(system)) {
			t.Error("the prompt has other words")
		}
		if !slices.Equal(words(string(s)), words(string(schema))) {
			t.Error("the schema has other words")
		}
	})
}

// once holds that a list turned by n has every item where it belongs.
func once(t *rapid.T, lists []list, before, after string, n int) {
	for i, l := range lists {
		was, is := l.items(before), l.items(after)
		if len(is) != len(was) || len(was) < 3 {
			t.Fatalf("list %d has %d items, had %d", i, len(is), len(was))
		}
		for j := range was {
			// A whole section of the prompt has lists of its own, which turn too: its name is compared.
			if a, b := name(is[j]), name(was[(j+n)%len(was)]); a != b {
				t.Errorf("list %d turned by %d has %q at %d, want %q", i, n, a, j, b)
			}
		}
	}
}

func name(item string) string {
	head, _, _ := strings.Cut(item, "\n")
	head, _, _ = strings.Cut(head, ":")
	return head
}

var wordly = regexp.MustCompile(`[\w$#/-]+`)

func words(text string) []string {
	w := wordly.FindAllString(text, -1)
	slices.Sort(w)
	return w
}

// A turned schema takes and refuses what the schema does.
func TestTurnedSchemaTakesTheSame(t *testing.T) {
	for n := range 8 {
		s, err := turnedSchema(strictSchema(t), n)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(s)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("s.json", doc); err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile("s.json")
		if err != nil {
			t.Fatal(err)
		}
		for words, good := range map[string]bool{edited(found("othering", "race", "x", 0)): true, edited(found("something", "race", "x", 0)): false, `{}`: false} {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(words))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(v); (err == nil) != good {
				t.Errorf("turned by %d: %v", n, err)
			}
		}
	}
}

// The order is turned where that is asked for, under a version of its own; else the prompt is the one that is on record.
func TestTurnIsAskedFor(t *testing.T) {
	m := says(edited())
	e := evaluator(t, m)
	for n, version := range []string{PromptVersion, PromptVersion + "-turn1"} {
		r, err := e.Evaluate(t.Context(), Input{Text: "x", Turn: n})
		if err != nil || r.PromptVersion != version {
			t.Errorf("%+v %v", r, err)
		}
	}
	if !strings.Contains(m.asked[0].System, "for (A) Bias, (B) DEI compliance, and (C) Offensive/abusive language.") ||
		!strings.Contains(m.asked[1].System, "for (A) DEI compliance, (B) Offensive/abusive language, and (C) Bias.") || string(m.asked[0].Schema.JSON) == string(m.asked[1].Schema.JSON) {
		t.Errorf("%s", m.asked[1].System)
	}
	if len(m.asked[1].System) != len(m.asked[0].System) {
		t.Errorf("%d bytes and %d", len(m.asked[0].System), len(m.asked[1].System))
	}
}
