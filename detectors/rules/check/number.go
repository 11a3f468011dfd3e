package check

import "regexp"

// Card tells whether the match is the number of a payment card: a known issuer's prefix, a length
// that issuer uses, and a right Luhn digit (ISO/IEC 7812). Groups within an IBAN are none.
func Card(text string, start, end int) bool {
	start, _ = cardValue(text, start, end)
	ds := digits(text[start:end])
	return !(chainedBefore(text, start) || partOfLonger(text, start, end) && !expiry.MatchString(text[end:])) && issued(ds) && luhn(ds) && !withinIBAN(text, start)
}

// CardGrouped is Card for numbers in other groups than those that stand on a card, which their pattern finds without a word.
func CardGrouped(text string, start, end int) bool {
	return Card(text, start, end) && !usual.MatchString(text[start:end])
}

var usual = regexp.MustCompile(`^(?:\d+|\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}|3\d{3}[ -]\d{6}[ -]\d{4,5})$`)

// expiry is when a card ends, written behind its number.
var expiry = regexp.MustCompile(`^-(?:0[1-9]|1[0-2])/\d\d\b`)

func luhn(ds []byte) bool {
	sum := 0
	for i := range ds {
		d := int(ds[len(ds)-1-i])
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// issuers holds the ranges of the first six digits and the lengths that go with them.
var issuers = []struct{ from, to, short, long int }{
	{400000, 499999, 13, 19}, // Visa
	{510000, 559999, 16, 16}, // Mastercard
	{222100, 272099, 16, 16}, // Mastercard, series 2
	{340000, 349999, 15, 15}, // American Express
	{370000, 379999, 15, 15},
	{601100, 601199, 16, 19}, // Discover
	{644000, 659999, 16, 19},
	{622126, 622925, 16, 19}, // Discover with UnionPay
	{620000, 629999, 16, 19}, // UnionPay
	{810000, 817199, 16, 19},
	{350000, 358999, 16, 19}, // JCB, issued from 3528
	{180000, 180099, 15, 15}, // JCB, old
	{213100, 213199, 15, 15},
	{300000, 305999, 14, 19}, // Diners Club
	{309500, 309599, 14, 19},
	{360000, 369999, 14, 19},
	{380000, 399999, 14, 19},
	{500000, 509999, 12, 19}, // Maestro
	{560000, 589999, 12, 19},
	{630000, 639999, 12, 19},
	{670000, 679999, 12, 19},
	{220000, 220499, 16, 19}, // Mir
}

func issued(ds []byte) bool {
	if len(ds) < 12 {
		return false
	}
	prefix := 0
	for _, d := range ds[:6] {
		prefix = prefix*10 + int(d)
	}
	for _, is := range issuers {
		if prefix >= is.from && prefix <= is.to && len(ds) >= is.short && len(ds) <= is.long {
			// A Visa number has 13, 16 or 19 digits.
			return prefix/100000 != 4 || len(ds)%3 == 1
		}
	}
	return false
}

// SSN tells whether the match can be a US social security number: area not 000, 666 or 900 and up,
// group not 00, serial not 0000, and none of the numbers that advertisements made invalid.
func SSN(text string, start, end int) bool {
	at, _ := ssnValue(text, start, end)
	ds := digits(text[at:end])
	if len(ds) != 9 || partOfLonger(text, at, end) {
		return false
	}
	n := number(ds)
	area, group, serial := n/1_000_000, n/10_000%100, n%10_000
	switch {
	case area == 0, area == 666, area >= 900, group == 0, serial == 0:
		return false
	case n == 78_05_1120, n == 219_09_9999:
		return false
	}
	return true
}

// ssnValue: the number stands at the end of the match; before it there may be a label.
func ssnValue(text string, start, end int) (from, to int) {
	from = end
	for n := 0; from > start && n < 9; from-- {
		if isDigit(text[from-1]) {
			n++
		}
	}
	return from, end
}

// cardValue leaves out a label before the number.
func cardValue(text string, start, end int) (from, to int) {
	for start < end && !isDigit(text[start]) {
		start++
	}
	return start, end
}

// ITIN tells whether the match can be a US individual taxpayer number: 9xx-gg-xxxx with a group that the
// IRS gives out.
func ITIN(text string, start, end int) bool {
	ds := whole(text, start, end, 9)
	if ds == nil || ds[0] != 9 {
		return false
	}
	group := number(ds[3:5])
	return group >= 50 && group <= 65 || group >= 70 && group <= 88 || group >= 90 && group <= 92 || group >= 94
}

// IBAN tells whether an account number begins with the match, of the length that its country uses and with a remainder of 1 modulo 97
// (ISO 13616). In groups of other than four, as countries write them, it is in capitals and mostly of digits.
func IBAN(text string, start, end int) bool {
	from, to := ibanValue(text, start, end)
	return from < to && !partOfLonger(text, from, to) && remainder(text[from:to]) == 1
}

// ibanValue gives the account number that begins with the match, an empty range where none can.
func ibanValue(text string, start, end int) (from, to int) {
	from = start
	if from+2 > len(text) {
		return start, start
	}
	most := ibanLength[string([]byte{text[from] &^ 0x20, text[from+1] &^ 0x20})]
	n, numbers, small, free := 0, 0, false, false
	for to = from; to < len(text) && n < most; to++ {
		c := text[to]
		switch {
		case isDigit(c):
			n, numbers = n+1, numbers+1
		case isAlpha(c):
			n, small = n+1, small || c >= 'a'
		case c != ' ' && c != '-' && c != '.', !isAlnum(text[to-1]):
			return start, start
		default:
			free = free || n%4 != 0
		}
	}
	if n < most || most == 0 || free && (small || 2*numbers < most) {
		return start, start
	}
	return from, to
}

// remainder takes an account number modulo 97, its first four characters behind the others.
func remainder(s string) (rest int) {
	b := letters(s)
	for _, c := range append(b[4:len(b):len(b)], b[:4]...) {
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest
}

// longestIBAN is in bytes, with a space between each four characters.
const longestIBAN = 34 + 8

// withinIBAN tells whether a place stands behind the beginning of an IBAN, before its end.
func withinIBAN(text string, at int) bool {
	for from := at - 1; from >= 0 && at-from < longestIBAN && (isAlnum(text[from]) || text[from] == ' '); from-- {
		if at-from < 4 || !isAlpha(text[from]) || !isAlpha(text[from+1]) || from > 0 && isAlnum(text[from-1]) {
			continue
		}
		to, length := from, ibanLength[string([]byte{text[from] &^ 0x20, text[from+1] &^ 0x20})]
		for n := 0; to < len(text) && n < length && (isAlnum(text[to]) || text[to] == ' '); to++ {
			if text[to] != ' ' {
				n++
			}
		}
		if to > at && IBAN(text, from, to) {
			return true
		}
	}
	return false
}

// ibanLength holds the length of each country's IBANs (ISO 13616 registry).
var ibanLength = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29, "BY": 28,
	"CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
	"FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28,
	"IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
	"LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28,
	"NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24,
	"SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26,
	"UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}
