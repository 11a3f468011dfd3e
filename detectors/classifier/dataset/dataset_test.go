package dataset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func TestRead(t *testing.T) {
	rows, err := Read(strings.NewReader(`{"id":"a","text":"x","label":{"bias":1,"kind":"k","span":[1]},"characteristic":["sex","height"],"meta":{"category":"violence","n":1}}

{"id":"b","text":"y","label":{"toxic":0,"bias":null,"kind":7,"sexist":1,"toxicity":0.2,"bias_type":"x"},"source":"s","meta":[1],"unknown":{}}
`), "file")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range rows {
		got += fmt.Sprintf("%s %s %v %v %q %v %s %d;", r.ID, r.Source, r.Label.Bias != nil, r.Label.Toxic != nil, r.Label.Kind, r.Grounds(), r.Meta.Category, r.Line)
	}
	if want := `a file true false "k" [sex] violence 1;b s false true "" []  3;`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	ids, err := Read(strings.NewReader(`{"id":7,"text":"x"}`+"\n"+`{"id":-1.50,"text":"x"}`+"\n"+`{"id":null,"text":"x"}`), "file")
	if err != nil || len(ids) != 3 || ids[0].ID != "7" || ids[1].ID != "-1.50" || ids[2].ID != "" {
		t.Errorf("%+v, %v", ids, err)
	}
	for name, bad := range map[string]string{
		"label.bias": `{"text":"secret","label":{"bias":"yes"}}`, "no JSON": `{"text":"secret"`, "text is missing": `{"id":"x"}`, "field text: want string": `{"text":5}`, "field id: want string or number": `{"id":["a"],"text":"secret"}`,
		"label.bais: is unknown; want label.bias": `{"text":"secret","label":{"bais":1}}`, "label.toxicity: is unknown; want label.toxic": `{"text":"secret","label":{"bias":0,"toxicity":1}}`,
	} {
		_, err := Read(strings.NewReader("{\"text\":\"ok\"}\n"+bad), "file")
		if audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"id":"a","text":"x","label":{"bias":1},"characteristic":null}`)
	f.Add("{\"text\":\"\\ud800\"}\n\n[]")
	f.Add(`{"text":"x","label":{"bias":-1},"meta":{"category":{}},"teacher":{"bias":1e400}}`)
	f.Fuzz(func(t *testing.T, lines string) {
		rows, err := Read(strings.NewReader(lines), "f")
		if err != nil && audit.KindOf(err) != audit.KindInvalid {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Text == "" || r.Source == "" {
				t.Fatalf("%+v", r)
			}
		}
	})
}
