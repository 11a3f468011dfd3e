package check

import "strings"

// icaoDigit is the check digit of ICAO 9303: weights 7-3-1, letters count from 10, the filler < nothing.
func icaoDigit(b []byte) (sum int) {
	for i, c := range b {
		v := 0
		switch {
		case isDigit(c):
			v = int(c - '0')
		case isAlpha(c):
			v = int(c&^0x20-'A') + 10
		}
		sum += v * [...]int{7, 3, 1}[i%3]
	}
	return sum % 10
}

// Passport tells whether the match has the shape of a passport number: six to ten letters and digits, at
// most three letters in a row, at least four digits, or one in a German one, which mixes digits with letters that are no vowels; six with small letters.
// Its rule needs the word beside it.
func Passport(text string, start, end int) bool {
	match := text[start:end]
	n := len(digits(match))
	german := n >= 1 && len(match) == 9 && strings.Trim(match, "CFGHJKLMNPRTVWXYZ0123456789") == "" && strings.IndexByte("CFGHJK", match[0]) >= 0
	return (n >= 4 || german) && len(match) >= 6 && len(match) <= 10 && (capitals(match) || n >= 6) && !partOfLonger(text, start, end) && !(len(match) == 8 && n == 8 && compactDate(match))
}

// compactDate tells a date written as 20260131 or 31012026.
func compactDate(s string) bool {
	ds := digits(s)
	if len(ds) != 8 {
		return false
	}
	iso, back := number(ds[:4]), number(ds[4:])
	return iso >= 1900 && iso < 2100 && day(iso, number(ds[4:6]), number(ds[6:])) || back >= 1900 && back < 2100 && day(back, number(ds[2:4]), number(ds[:2]))
}

// MRZ tells whether the match holds the line of a machine readable zone with the document's number, birth
// date and expiry, and their check digits are right. The line is the last of the match, or (in the form of
// three lines) the number stands in the first and the dates in the second.
func MRZ(text string, start, end int) bool {
	match := text[start:end]
	if !capitals(match) {
		return false
	}
	lines := strings.Fields(match)
	if len(lines) == 0 {
		return false
	}
	last := lines[len(lines)-1]
	right := func(s string, from, to int) bool {
		return isDigit(s[to]) && icaoDigit([]byte(s[from:to])) == int(s[to]-'0')
	}
	switch {
	case len(last) == 30 && len(lines) == 2 && len(lines[0]) == 30:
		return right(lines[0], 5, 14) && right(last, 0, 6) && right(last, 8, 14)
	case len(last) == 36 || len(last) == 44:
		return right(last, 0, 9) && right(last, 13, 19) && right(last, 21, 27)
	}
	return false
}

// Licence tells whether the token at the end of the match can be the number of a driver's licence: five to
// eighteen letters, digits and hyphens, at least three digits, five with small letters. Its pattern holds the word.
func Licence(text string, start, end int) bool {
	from, to := licenceValue(text, start, end)
	n := len(digits(text[from:to]))
	return n >= 3 && len(letters(text[from:to])) >= 5 && (capitals(text[from:to]) || n >= 5) && (to == len(text) || !isAlnum(text[to]))
}

func licenceValue(text string, start, end int) (from, to int) {
	return start + strings.LastIndexAny(text[start:end], " \t\r\n:#=\"'") + 1, end
}
