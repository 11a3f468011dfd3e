// Package check validates what a pattern matched where its shape alone is not enough: check digits
// of cards and IBANs, the numbering rules of US social security numbers, and whether something that
// looks like a credential is one or only a placeholder.
//
// A check sees the whole text and the match's byte range, so that it can refuse a match that is part
// of a longer number. Cost is linear in the match; nothing leaves the process; a check cannot fail.
package check

import (
	"maps"
	"slices"
)

// Func tells whether text[start:end] is what the rule is after.
type Func func(text string, start, end int) bool

var byName = map[string]Func{
	"luhn":   Card,
	"iban":   IBAN,
	"ssn":    SSN,
	"secret": Secret,
}

// Named gives the check of that name, nil when there is none.
func Named(name string) Func { return byName[name] }

// Names lists the checks in order.
func Names() []string { return slices.Sorted(maps.Keys(byName)) }

// partOfLonger tells whether the match is chained to another letter or digit, directly or by one of
// the signs that join numbers, as in "0.4111…", "id-4111…" and "4111…-22".
func partOfLonger(text string, start, end int) bool {
	if start > 0 {
		if c := text[start-1]; isAlnum(c) || isJoint(c) && start > 1 && isAlnum(text[start-2]) {
			return true
		}
	}
	if end < len(text) {
		if c := text[end]; isAlnum(c) || isJoint(c) && end+1 < len(text) && isAlnum(text[end+1]) {
			return true
		}
	}
	return false
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
