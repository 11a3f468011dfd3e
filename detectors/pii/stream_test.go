package pii_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evenhand/evenhand/detectors/pii"
)

// However far a text has come, what is not open any more begins the masked text of the whole.
func TestStreamsKeepWhatIsOut(t *testing.T) {
	m := masker(t)
	mask := func(text string) pii.Masked {
		out, err := m.Texts(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	var values []string
	for i, l := range formats(t) {
		if i%4 == 0 {
			values = append(values, l.Text)
		}
	}
	prose := strings.Repeat("She asked what the others made of it. ", 6)
	for name, text := range map[string]string{
		"SSN":     prose + "Her SSN is 536228193, and " + prose,
		"behind":  prose + "536-22-8193 is her SSN. " + prose,
		"address": prose + "Write to jane.roe@example.com. " + prose + "Use [EMAIL_1] or joe@example.com. " + prose,
		"JSON":    `{"n": 4532871148309266, "s": "` + prose + `4532871148309266", "t": "{\"n\": 4532871148309266, \"s\": \"` + prose + `\"}"}`,
		"a key":   prose + "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7bq3\n", 40) + "-----END RSA PRIVATE KEY-----\n" + prose,
		"values":  strings.Join(values, " "+prose),
	} {
		whole, step := mask(text), 1+len(text)/150
		for n := 0; n <= len(text); n += step {
			if !utf8.ValidString(text[:n]) {
				continue
			}
			got := mask(text[:n])
			runes := []rune(got.Text)
			if out := string(runes[:len(runes)-got.Open()]); !strings.HasPrefix(whole.Text, out) {
				t.Errorf("%s: out is\n%q of\n%q", name, out, whole.Text[:min(len(whole.Text), len(out)+40)])
				break
			}
		}
	}
	if got := mask(prose + "Her SSN is 536"); got.Open() < len("Her SSN is 536") || got.Open() > 250 {
		t.Error(got.Open())
	}
	if got := mask("é"); got.Open() != 1 || mask("").Open() != 0 {
		t.Error(got.Open())
	}
}
