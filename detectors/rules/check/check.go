// Package check validates what a pattern matched where its shape alone is not enough: check digits
// of cards, IBANs and national numbers, dates within them, numbering rules of phones, network and
// wallet addresses, and whether something that looks like a credential is one or only a placeholder.
//
// A check sees the whole text and the match's byte range, so that it can refuse a match that is part
// of a longer number. Cost is linear in the match; nothing leaves the process; a check cannot fail.
package check

import (
	"maps"
	"slices"
	"strings"
)

// Func tells whether text[start:end] is what the rule is after.
type Func func(text string, start, end int) bool

var byName = withAnyCase(map[string]Func{
	"luhn":         Card,
	"card_grouped": CardGrouped,
	"iban":         IBAN,
	"ssn":          SSN,
	"secret":       Secret,

	"password_said": PasswordSaid, "password_given": PasswordGiven, "password_quoted": PasswordQuoted, "password_before": PasswordBefore,
	"key_said": KeySaid, "digits_key": DigitsKey, "pin": PIN, "seed_phrase": SeedPhrase, "secret_column": SecretColumn, "secret_list": SecretList,

	"token": Token, "wallet": Wallet,
	"email": Email, "ip": IP, "mac": MAC,
	"phone": Phone, "phone_international": PhoneInternational, "phone_labelled": PhoneLabelled, "phone_called": PhoneCalled,
	"date": Date, "passport": Passport, "mrz": MRZ, "licence": Licence,
	"itin": ITIN, "de_tax_id": DETaxID, "de_id_card": DEIDCard, "de_pension": DEPension, "de_health": DEHealth, "fr_nir": FRNIR, "es_nif": ESNIF,
	"it_fiscal_code": ITFiscalCode, "nl_bsn": NLBSN, "pl_pesel": PLPESEL, "pl_nip": PLNIP, "pl_id_card": PLIDCard, "be_nrn": BENRN,
	"se_personnummer": SEPersonnummer, "uk_nino": UKNINO, "uk_nhs": UKNHS, "pt_nif": PTNIF, "fi_hetu": FIHETU,
	"dk_cpr": DKCPR, "ie_pps": IEPPS, "ch_ahv": CHAHV, "br_cpf": BRCPF, "at_svnr": ATSVNR,
})

// withAnyCase adds <name>_any_case for checks whose rules may ask for the word beside it: whoever types "dni 12345678z" means the number, while
// letters and digits that stand alone are an identifier in capitals only.
func withAnyCase(checks map[string]Func) map[string]Func {
	for _, name := range []string{"es_nif", "uk_nino", "ie_pps", "de_pension", "de_health", "pl_id_card"} {
		checks[name+"_any_case"] = anyCase(checks[name])
	}
	checks["de_id_card_any_case"] = anyCase(DEIDCardLabelled)
	return checks
}

// anyCase reads the match in capitals.
func anyCase(strict Func) Func {
	return func(text string, start, end int) bool {
		from, to := max(0, start-2), min(len(text), end+2) // as much as a check looks at
		return strict(text[from:start]+upper(text[start:end])+text[end:to], start-from, end-from)
	}
}

// upper gives s with capitals for the small letters of ASCII, so that no place in it moves.
func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c &^ 0x20
		}
	}
	return string(b)
}

// values find what is to be masked where it is not the whole match.
var values = map[string]func(text string, start, end int) (from, to int){
	"luhn": cardValue, "iban": ibanValue, "ip": ipValue, "ssn": ssnValue, "secret": secretRange, "email": emailValue, "licence": licenceValue, "token": tokenValue,
	"phone": phoneValue, "phone_international": phoneValue, "phone_labelled": phoneValue, "phone_called": phoneValue, "date": dateValue,
	"password_said": saidValue(passwordHead), "password_given": saidValue(passwordHead), "password_quoted": quotedValue, "password_before": valueAtBegin,
	"key_said": saidValue(keyHead), "digits_key": digitsAtEnd, "pin": pinValue, "seed_phrase": seedValue,
}

// Range is a part of a text, in bytes.
type Range struct{ From, To int }

// Values gives where the values stand of a match that passed the named check, one as a rule: without a label that the
// pattern holds, whole where the pattern marks a part only, and of the name of a column, or of the line before a list, all that are in it.
func Values(name, text string, start, end int) []Range {
	switch name {
	case "secret_column":
		return secretCells(text, start, end)
	case "secret_list":
		return secretItems(text, start, end)
	}
	if f := values[name]; f != nil {
		start, end = f(text, start, end)
	}
	if start >= end {
		return nil
	}
	return []Range{{start, end}}
}

// Named gives the check of that name, nil when there is none.
func Named(name string) Func { return byName[name] }

// Names lists the checks in order.
func Names() []string { return slices.Sorted(maps.Keys(byName)) }

// partOfLonger tells whether the match is chained to another letter or digit, directly or by one of
// the signs that join numbers, as in "0.4111…", "id-4111…" and "4111…-22". A word behind a dot or a hyphen is the next
// sentence, a file's kind or a currency, and the match stands for itself; so it does behind a line break or a tab that is written as \n or \t.
func partOfLonger(text string, start, end int) bool {
	return chainedBefore(text, start) || chainedBehind(text, end) && !(contains("-.", text[end]) && word(text[end+1:]))
}

// chained is partOfLonger for what a word may belong to: a version, a host.
func chained(text string, start, end int) bool {
	return chainedBefore(text, start) || chainedBehind(text, end)
}

func chainedBefore(text string, start int) bool {
	if start == 0 || escaped(text, start) {
		return false
	}
	c := text[start-1]
	return isAlnum(c) || isJoint(c) && start > 1 && isAlnum(text[start-2]) && !labelBefore(text, start-1)
}

func chainedBehind(text string, end int) bool {
	if end == len(text) {
		return false
	}
	c := text[end]
	return isAlnum(c) || isJoint(c) && end+1 < len(text) && isAlnum(text[end+1])
}

// escaped tells whether a line break or a tab stands before a place, written with a backslash.
func escaped(text string, at int) bool {
	return at > 1 && text[at-2] == '\\' && contains("nrt", text[at-1])
}

// word tells whether letters begin the text, and no digits follow them.
func word(s string) bool {
	n := 0
	for n < len(s) && (isAlpha(s[n]) || s[n] >= 0x80) {
		n++
	}
	return n > 1 && (n == len(s) || !isDigit(s[n]) && s[n] != '_')
}

// fields are words of which names of files and fields are made that end in their value: "card_number_4111…".
var fields = []string{"card", "ssn", "number", "social", "iban", "account", "pan"}

// labelBefore tells whether an underscore at a place ends such a name.
func labelBefore(text string, at int) bool {
	from := at
	for from > 0 && isAlpha(text[from-1]) {
		from--
	}
	return text[at] == '_' && slices.Contains(fields, strings.ToLower(text[from:at]))
}

func isJoint(c byte) bool { return c == '-' || c == '.' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlpha(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }

func isAlnum(c byte) bool { return isDigit(c) || isAlpha(c) }

// digits gives the digits of s as numbers.
func digits(s string) []byte {
	ds := make([]byte, 0, 24)
	for i := range len(s) {
		if isDigit(s[i]) {
			ds = append(ds, s[i]-'0')
		}
	}
	return ds
}

// letters gives the letters and digits of s in upper case.
func letters(s string) []byte {
	b := make([]byte, 0, 48)
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			b = append(b, c)
		case isAlpha(c):
			b = append(b, c&^0x20)
		}
	}
	return b
}

// capitals tells whether s has no lower-case letter: identifiers are written so, words are not.
func capitals(s string) bool {
	for i := range len(s) {
		if s[i] >= 'a' && s[i] <= 'z' {
			return false
		}
	}
	return true
}

// number reads digits; at most 18 of them fit.
func number(ds []byte) (n int) {
	for _, d := range ds {
		n = n*10 + int(d)
	}
	return n
}

// weighted sums digits by weights; there must be as many of either.
func weighted(ds []byte, weights ...int) (sum int) {
	for i, w := range weights {
		sum += w * int(ds[i])
	}
	return sum
}

// whole gives the digits of a match that stands for itself, nil when there are not n of them.
func whole(text string, start, end, n int) []byte {
	ds := digits(text[start:end])
	if len(ds) != n || partOfLonger(text, start, end) || same(ds) {
		return nil
	}
	return ds
}

// same tells a run of one digit, which many check sums accept.
func same(ds []byte) bool {
	for _, d := range ds {
		if d != ds[0] {
			return false
		}
	}
	return true
}

// day tells whether the day exists; a year of two digits is taken for one of the last hundred years and
// for a leap year if either century has one.
func day(year, month, dayOfMonth int) bool {
	if month < 1 || month > 12 || dayOfMonth < 1 {
		return false
	}
	last := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0 || year < 100) {
		last = 29
	}
	return dayOfMonth <= last
}
