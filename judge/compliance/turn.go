package compliance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// A list is one place where criteria are listed: where it stands, its first group, and what in there is an item of it, the
// first group again. What stands between items stays where it is.
type list struct{ in, item *regexp.Regexp }

func listed(in, item string) list { return list{regexp.MustCompile(in), regexp.MustCompile(item)} }

// inPrompt and inSchema are the criteria that the model is asked to look for: sections, protected classes, types,
// guidelines, categories. Levels of risk and severity have an order of their own and keep it.
var (
	word     = `"([a-z_]+)"`
	inPrompt = []list{
		listed(`for (\(A\) .*)\. Do not infer`, `\([ABC]\) ([A-Za-z/ ]+)`),
		listed(`(?ms)^Operational definitions\n(.*?)^Instructions$`, `(?m)^- (.+)$`),
		listed(`protected classes \(e\.g\.(, .*?)\)`, `, ([^,]+)`),
		listed(`(?s)\n"overall": (.*\n)"protected_classes_mentioned"`, `(?s)\n("(?:bias|dei|offensive_language)": \{\n.*?\n)\},`),
		listed(`\n"type": (".*"),`, word), listed(`\n"guideline": (".*"),`, word), listed(`\n"category": (".*"),`, word), listed(`"categories": \[ (.*) \]`, word),
		listed(`"protected_class": .* e\.g\., (".*")`, word), listed(`"class": .* e\.g\., (".*")`, word),
	}
	inSchema = []list{
		listed(`(?s)\n  "properties": \{(.*)`, `(?s)\n    ("(?:bias|dei|offensive_language)": \{\n.*?\n    \})`),
		listed(`(?s)\n  "required": \[(.*?)\]`, `("bias"|"dei"|"offensive_language")`),
		listed(`(?s)"enum": \[([^]]*"stereotype".*?)\]`, word), listed(`(?s)"enum": \[([^]]*"representation".*?)\]`, word), listed(`(?s)"enum": \[([^]]*"profanity".*?)\]`, word),
	}
)

// turned lists the criteria of a text n places on: of each list the n-th stands first.
func turned(text string, lists []list, n int) string {
	for _, l := range lists {
		at := l.in.FindStringSubmatchIndex(text)
		if at == nil {
			continue // the prompts are ours and tested
		}
		text = text[:at[2]] + turnedItems(text[at[2]:at[3]], l.item, n) + text[at[3]:]
	}
	return text
}

func turnedItems(of string, item *regexp.Regexp, n int) string {
	at := item.FindAllStringSubmatchIndex(of, -1)
	var b strings.Builder
	end := 0
	for i := range at {
		from := at[(i+n)%len(at)]
		b.WriteString(of[end:at[i][2]])
		b.WriteString(of[from[2]:from[3]])
		end = at[i][3]
	}
	return b.String() + of[end:]
}

// turnedSchema is a schema with its criteria n places on; what it takes stays the same.
func turnedSchema(schema json.RawMessage, n int) (json.RawMessage, error) {
	var wide, tight bytes.Buffer
	if err := json.Indent(&wide, schema, "", "  "); err != nil {
		return nil, err
	}
	err := json.Compact(&tight, []byte(turned(wide.String(), inSchema, n)))
	return tight.Bytes(), err
}

// version names what was asked: in another order it is another prompt.
func (in Input) version() string {
	if in.Turn == 0 {
		return PromptVersion
	}
	return fmt.Sprintf("%s-turn%d", PromptVersion, in.Turn)
}
