package pii_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
)

// separators are what people and programs write between the groups of a number, and what it is read as.
var separators = []struct{ name, is, as string }{
	{"space", " ", " "}, {"hyphen", "-", "-"},
	{"no-break space", "\u00a0", " "}, {"narrow no-break space", "\u202f", " "}, {"thin space", "\u2009", " "}, {"figure space", "\u2007", " "}, {"ideographic space", "\u3000", " "},
	{"no-break hyphen", "\u2011", "-"}, {"figure dash", "\u2012", "-"}, {"en dash", "\u2013", "-"}, {"minus", "\u2212", "-"}, {"fullwidth hyphen", "\uff0d", "-"},
	{"zero-width space", "\u200b", ""}, {"soft hyphen", "\u00ad", ""}, {"zero-width space and space", "\u200b ", " "},
}

// Numbers of eleven kinds are found with any separator between their groups (here ·), the label's one too (here _), and masked whole.
func TestSeparators(t *testing.T) {
	found, of := 0, 0
	for _, tc := range []struct{ text, entity, signs string }{ // signs that the number is written with
		{"Her_card is 4532·8711·4830·9266 today.", "CREDIT_CARD", " -"},
		{"Transfer it to IBAN_DE89·3704·0044·0532·0130·00, please.", "IBAN", " "},
		{"Her_SSN is 536·22·8745 here.", "US_SSN", " -"},
		{"Her_ITIN is 912·78·1234 here.", "US_ITIN", " -"},
		{"The NHS_number is 943·476·5919 here.", "UK_NHS", " -"},
		{"National insurance_number: AB·12·34·56·C here.", "UK_NINO", " -"},
		{"Numéro de sécurité sociale_: 1·85·05·78·006·084·91 ici.", "FR_NIR", " "},
		{"Steuer-ID_86·095·742·719 liegt vor.", "DE_TAX_ID", " "},
		{"AHV-Nummer_756·9217·0769·85 liegt vor.", "CH_AHV", " "},
		{"Her_NIP is 526·104·08·28 here.", "PL_NIP", " -"},
		{"Please call_me: 212·555·0123 tonight.", "PHONE", " -"},
		{"Personnummer_811218·9876 finns.", "SE_PERSONNUMMER", "-"},
	} {
		for _, sep := range separators {
			for _, digits := range []string{"common", "fullwidth"} {
				if sep.as != "" && !strings.Contains(tc.signs, sep.as) {
					continue
				}
				label := "_"
				if sep.as == " " {
					label = sep.is
				}
				text := strings.NewReplacer("·", sep.is, "_", strings.ReplaceAll(label, "_", " ")).Replace(tc.text)
				if digits == "fullwidth" {
					text = strings.Map(func(r rune) rune {
						if r >= '0' && r <= '9' {
							return r - '0' + '０'
						}
						return r
					}, text)
				}
				fs := find(t, text)
				of++
				if len(fs) == 0 || fs[0].Entity != tc.entity {
					t.Errorf("%s, %s, %s: %v in %q", tc.entity, sep.name, digits, entities(fs), text)
					continue
				}
				if masked := pii.Mask(text, audit.Output, fs); strings.ContainsAny(masked, "0123456789０１２３４５６７８９") || !strings.Contains(masked, "["+tc.entity+"]") {
					t.Errorf("%s, %s, %s: masked as %q", tc.entity, sep.name, digits, masked)
					continue
				}
				found++
			}
		}
	}
	t.Logf("%d of %d", found, of)
}

// What only looks like a number of a person stays, whatever stands between.
func TestSeparatorsOfOthers(t *testing.T) {
	for _, text := range []string{
		"He lived there 1990–1995 and 1998–2001.", "See pages 12–34, 101–117 and 220–228.", "The price is 1\u00a0234\u00a0567\u00a0€.", "La France compte 68\u202f373\u202f433 habitants.",
		"Le budget est de 12\u202f345\u202f678\u202f901,50\u202f€.", "Open 9:00–17:30, Monday–Friday.", "It was −12\u202f°C to −3\u202f°C.", "A 3–2 win after 2–1, 0–0 and 4–3.", "Chapters 1–3 and 5–9, §§\u00a012–15.",
		"The range is 10–20\u00a0kg, 100–200\u00a0m.", "1\u2009000\u2009000 people, 2\u2009500\u2009000 homes.", "In 2024–25 we sold 123–456 units.", "Order 2024–11–29–0042 has shipped.", "ISBN 978–3–16–148410–0",
		"x − y = 123 − 456 − 789", "Il a dit « 12 345 678 ».", "„100 000“ Stück", "Die Auflage liegt bei 250\u00a0000 Exemplaren.", "From 01–02 to 03–04, 1234–5678.", "Population: 1\u202f234\u202f567 (2020–2024).",
		"Room 101–117, desk 12–34–56.", "call 3–5 people", "Versions 1.2–1.4 and 2.0–2.3", "The years 1914–1918, 1939–1945",
	} {
		if fs := find(t, text); len(fs) > 0 {
			t.Errorf("%v in %q", entities(fs), text)
		}
	}
}

// Escapes of JSON hide nothing, and a masked answer is the JSON that it was, but for the values.
func TestInJSON(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"behind a line break", `{"reply":"Customer data:\n4532871148309266"}`, `{"reply":"Customer data:\n[CREDIT_CARD]"}`},
		{"between breaks", `{"reply":"Data:\n4532871148309266\tIBAN\u00a0DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000\r\nBye"}`, `{"reply":"Data:\n[CREDIT_CARD]\tIBAN\u00a0[IBAN]\r\nBye"}`},
		{"written in escapes", `{"card":"\u0034532871148309266"}`, `{"card":"[CREDIT_CARD]"}`},
		{"beside quotes", `{"reply":"the card \"4532871148309266\" of \"jane@example.org\""}`, `{"reply":"the card \"[CREDIT_CARD]\" of \"[EMAIL]\""}`},
		{"in JSON in JSON", `{"args":"{\"to\":\"jane@example.org\",\"body\":\"card:\\n4532871148309266\"}"}`, `{"args":"{\"to\":\"[EMAIL]\",\"body\":\"card:\\n[CREDIT_CARD]\"}"}`},
		{"in a fence", "Here:\n```json\n{\n  \"reply\": \"call:\\n+44 20 7946 0958\\nnow\"\n}\n```\nBye", "Here:\n```json\n{\n  \"reply\": \"call:\\n[PHONE]\\nnow\"\n}\n```\nBye"},
		{"numbers", `Here: {"card":4532871148309266,"n":[1,4532871148309266],"s":"4532871148309266"} and 4532871148309266, ok`, `Here: {"card":"[CREDIT_CARD]","n":[1,"[CREDIT_CARD]"],"s":"[CREDIT_CARD]"} and [CREDIT_CARD], ok`},
		{"cut off", `{"reply":"Card:\n4532871148309266\nBest wish`, `{"reply":"Card:\n[CREDIT_CARD]\nBest wish`},
		{"a string of JSON", `"Card:\n4532871148309266\nBye"`, `"Card:\n[CREDIT_CARD]\nBye"`},
		{"a password ends where its string does", `{"note":"password: hunter2sun\nsecond line"}`, `{"note":"password: [CREDENTIAL]\nsecond line"}`},
	} {
		fs := find(t, tc.text)
		if got := pii.Mask(tc.text, audit.Output, fs); got != tc.want {
			t.Errorf("%s: %q becomes %q, want %q", tc.name, tc.text, got, tc.want)
		}
	}
	for _, l := range formats(t) { // any value, in JSON as programs write it
		for _, before := range []string{"Data:\n", "", "\"x\"\t"} {
			raw, err := json.MarshalIndent(map[string]any{"n": 1, "reply": before + l.Text + "\n\"Bye\" \\"}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			masked := pii.Mask(string(raw), audit.Output, find(t, string(raw)))
			if !json.Valid([]byte(masked)) {
				t.Errorf("%s: %s becomes %s", l.ID, raw, masked)
			}
		}
	}
}
