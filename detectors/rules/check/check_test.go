package check

import (
	"slices"
	"strings"
	"testing"
)

// TestChecks cuts the match out of «…» and keeps what stands around it.
func TestChecks(t *testing.T) {
	for _, tc := range []struct {
		check, text string
		want        bool
	}{
		{"luhn", "«4111 1111 1111 1111»", true},
		{"luhn", "«4111111111111112»", false},
		{"luhn", "«4222222222222»", true},               // Visa of 13
		{"luhn", "«378282246310005»", true},             // Amex
		{"luhn", "«6011000990139424»", true},            // Discover
		{"luhn", "«3530111333300000»", true},            // JCB
		{"luhn", "«2223003122003222»", true},            // Mastercard, series 2
		{"luhn", "«1234567890123452»", false},           // right digit, no issuer
		{"luhn", "«0000000000000000»", false},           // right digit, no issuer
		{"luhn", "«41111111111111»", false},             // a length that Visa does not have
		{"luhn", "0.«4111111111111111»", false},         // a fraction
		{"luhn", "7f3c-«4111111111111111»", false},      // part of an id
		{"luhn", "«4111111111111111»-22", false},        // part of an id
		{"luhn", "«4111111111111111».", true},           // end of a sentence
		{"luhn", "id_«4111111111111111»", false},        // part of a name
		{"iban", "«DE89 3704 0044 0532 0130 00»", true}, //
		{"iban", "«de89370400440532013000»", true},      //
		{"iban", "«DE88370400440532013000»", false},
		{"iban", "«DE8937040044053201300»", false},
		{"iban", "«XX89370400440532013000»", false},
		{"iban", "«MT84MALT011000012345MTLCAST001S»", true},
		{"iban", "«NO9386011117947»", true},
		{"iban", "x-«NO9386011117947»", false},
		{"ssn", "«536-22-8745»", true},
		{"ssn", "«000-22-8745»", false},
		{"ssn", "«666-22-8745»", false},
		{"ssn", "«900-22-8745»", false},
		{"ssn", "«899-22-8745»", true},
		{"ssn", "«536-00-8745»", false},
		{"ssn", "«536-22-0000»", false},
		{"ssn", "«078-05-1120»", false},
		{"ssn", "«219-09-9999»", false},
		{"ssn", "1-«536-22-8745»", false},
		{"ssn", "«SSN: 536228745»", true},
		{"secret", "«AKIAIOSFODNN7EXAMPLE»", true},
		{"secret", "«akiaiosfodnn7example»", false},
		{"secret", "«ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx»", false},
		{"secret", "«sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa»", false},
		{"secret", "«sk-abc123DEF456ghi789JKL»", true},
		{"secret", "«password: hunter2»", true},
		{"secret", "«password: required»", false},
		{"secret", "«password is Tr0ub4dor&3»", true},
		{"secret", "«password: a:b=c99x»", true},
		{"secret", "«password: ${DB_PASSWORD_1}»", false},
		{"secret", "«password = os.environ[\"P1\"]»", false},
		{"secret", "«password: <your-password-1>»", false},
		{"secret", "«password»", false},
		{"secret", "«postgres://app:Xk29vLq8@db»", true},
		{"secret", "«postgres://user:password@db»", false},
		{"secret", "«-----BEGIN RSA PRIVATE KEY-----»", true},
		{"secret", "«пароль: пароль7я»", true},
		{"secret", "«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlMQ»", true},
		{"secret", "«eyJub3QiOiJqd3QifQ.eyJzdWIiOiIxIn0.c2lnbmF0dXJlMQ»", false}, // no alg
		{"token", "«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»", true},
		{"token", "«shpat_00000000000000000000000000000000»", false},
		{"de_tax_id", "«86095742719»", true},
		{"de_tax_id", "«86095742718»", false},
		{"de_tax_id", "«12345678903»", false}, // right digit, but none stands twice
		{"de_id_card", "«T220001293»", true},
		{"de_id_card", "«T220001294»", false},
		{"fr_nir", "«2 55 08 14 168 025 38»", true},
		{"fr_nir", "«1 80 03 2A 004 123 75»", true}, // Corsica
		{"fr_nir", "«1 80 13 20 004 123 75»", false},
		{"es_nif", "«12345678Z»", true},
		{"es_nif", "«12345678z»", false},
		{"es_nif", "«X1234567L»", true},
		{"it_fiscal_code", "«RSSMRA85T10A562S»", true},
		{"it_fiscal_code", "«RSSMRA85T10A56NH»", true}, // omocodia
		{"it_fiscal_code", "«RSSMRA85T10A562T»", false},
		{"nl_bsn", "«111222333»", true},
		{"nl_bsn", "«111111111»", false},
		{"pl_pesel", "«44051401359»", true},
		{"pl_pesel", "«44131401359»", false},
		{"pl_nip", "«526-104-08-28»", true},
		{"be_nrn", "«85.07.30-033.28»", true},
		{"be_nrn", "«17.07.30-033.84»", true}, // born in 2017
		{"be_nrn", "«85.07.30-033.29»", false},
		{"se_personnummer", "«811218-9876»", true},
		{"se_personnummer", "«701063-2391»", true}, // coordination number
		{"se_personnummer", "«811332-9876»", false},
		{"uk_nino", "«AB123456C»", true},
		{"uk_nino", "«GB123456C»", false},
		{"uk_nino", "«ab123456c»", false},
		{"uk_nino_any_case", "«ab123456c»", true},
		{"uk_nino_any_case", "«gb123456c»", false},
		{"uk_nino_any_case", "x-«ab123456c»", false},
		{"es_nif_any_case", "dni «12345678z».", true},
		{"es_nif_any_case", "dni «12345678a»", false},
		{"de_pension_any_case", "«15070649c103»", true},
		{"passport", "«x1234567»", true},
		{"passport", "«room1234»", false},
		{"phone_labelled", "llama «1.250.000»", false},
		{"phone_labelled", "llama «612.405.581»", true},
		{"phone_labelled", "tel «1 250 000»", false},
		{"uk_nhs", "«943 476 5919»", true},
		{"pt_nif", "«123456789»", true},
		{"de_pension", "«65 170839 J 003»", true},
		{"de_pension", "«15070649C103»", true},
		{"de_pension", "«15070649C104»", false},
		{"de_pension", "«15450649C103»", false}, // the 45th
		{"de_health", "«A123456780»", true},
		{"de_health", "«A123456781»", false},
		{"de_health", "«A123456780»1", false},
		{"pl_id_card", "«AYE348201»", true},
		{"pl_id_card", "«AYE 348201»", true},
		{"pl_id_card", "«AYE348202»", false},
		{"fi_hetu", "«131052-308T»", true},
		{"ie_pps", "«1234567FA»", true},
		{"ch_ahv", "«756.9217.0769.85»", true},
		{"itin", "«912-70-1234»", true},
		{"itin", "«912-10-1234»", false},
		{"wallet", "«1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa»", true},
		{"wallet", "«1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb»", false},
		{"ip", "«203.0.113.7»", true},
		{"ip", "«127.0.0.1»", false},
		{"ip", "Chrome/«120.0.12.3»", false},
		{"ip", "«10.0.0.0»/8", false},
		{"mac", "«3c:22:fb:9a:01:d4»", true},
		{"mac", "aa:«3c:22:fb:9a:01:d4»", false},
		{"luhn", "PL52 «2714 7682 8131 2335» 1598 5345", false},
		{"luhn", "PL53 «2714 7682 8131 2335» 1598 5345", true}, // no IBAN
		{"luhn", "to DE «4111 1111 1111 1111»", true},
		{"phone_labelled", "«116 123»", false},
		{"phone_labelled", "«1-800-273-8255»", false},
		{"phone", "«0800 1110111»", false},
		{"phone", "«(555) 123-4567»", true},
		{"phone", "«123-456-7890»", false},
		{"phone_international", "«+44 20 7946 0958»", true},
		{"phone_international", "«+1234567»", false},
		{"phone_labelled", "«12.05.2024»", false},
		{"date", "«29/02/1987»", false},
		{"date", "«29 février 1988»", true},
	} {
		start := strings.Index(tc.text, "«")
		text := strings.Replace(tc.text, "«", "", 1)
		end := strings.Index(text, "»")
		text = strings.Replace(text, "»", "", 1)
		if got := Named(tc.check)(text, start, end); got != tc.want {
			t.Errorf("%s of %s: %v", tc.check, tc.text, got)
		}
	}
}

// A mailbox may be written with dots in brackets.
func TestEmailInWords(t *testing.T) {
	for text, want := range map[string]string{
		"to lucas (dot) meyer «(at) example (dot) com»": "lucas (dot) meyer (at) example (dot) com",
		"a [punkt] b [punkt] c «[at] example.de»":       "a [punkt] b [punkt] c [at] example.de",
		"see (that) jane «(at) example.com»":            "jane (at) example.com",
		"(dot) jane «[at] example.com»":                 "jane [at] example.com",
		"«[at] example.com»":                            "[at] example.com",
	} {
		start := strings.Index(text, "«")
		plain := strings.NewReplacer("«", "", "»", "").Replace(text)
		end := len(plain)
		if got := Values("email", plain, start, end); len(got) != 1 || plain[got[0].From:got[0].To] != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestNames(t *testing.T) {
	if got := strings.Join(Names(), " "); !strings.Contains(got, "iban") || !slices.IsSorted(Names()) {
		t.Error(got)
	}
	if Named("none") != nil {
		t.Error("a check that is not there")
	}
}

// FuzzChecks holds that no check fails on any text and range.
func FuzzChecks(f *testing.F) {
	f.Add("id-4111 1111 1111 1111.", 3, 22)
	f.Add("DE89370400440532013000", 0, 22)
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		if start < 0 || end < start || end > len(text) {
			t.Skip()
		}
		for _, name := range Names() {
			if !Named(name)(text, start, end) {
				continue
			}
			for _, r := range Values(name, text, start, end) {
				if r.From < 0 || r.From >= r.To || r.To > len(text) {
					t.Fatalf("%s: [%d,%d) of %d", name, r.From, r.To, len(text))
				}
			}
		}
	})
}
