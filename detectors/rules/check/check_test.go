package check

import (
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

func TestNames(t *testing.T) {
	if got := strings.Join(Names(), " "); got != "iban luhn secret ssn" {
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
			Named(name)(text, start, end)
		}
	})
}
