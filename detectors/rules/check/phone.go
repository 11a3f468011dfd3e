package check

import (
	"regexp"
	"slices"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// PhoneInternational tells whether the match, with + or 00 in front, is a number of its country's plan by
// libphonenumber's tables; one of the ranges that are kept for fiction is too.
func PhoneInternational(text string, start, end int) bool {
	from, to := phoneValue(text, start, end)
	if bounded(text, from, to) {
		return false
	}
	number := text[from:to]
	if rest, ok := strings.CutPrefix(number, "00"); ok {
		number = "+" + rest
	}
	p, err := phonenumbers.Parse(strings.ReplaceAll(number, "(0)", ""), "")
	if err != nil {
		return false
	}
	if phonenumbers.IsValidNumber(p) {
		return true
	}
	return p.GetCountryCode() == 1 && northAmerican(digits(number)) || grouped(number) && phonenumbers.IsPossibleNumber(p)
}

// grouped tells whether somebody wrote the number in groups, as one does for people.
func grouped(s string) bool {
	return groups(s) >= 4 || groups(s) == 3 && !isDigit(s[0])
}

// Phone tells whether the match is a number as it is written within a country: its pattern holds the
// country's grouping, the tables its numbering.
func Phone(text string, start, end int) bool {
	from, to := phoneValue(text, start, end)
	if bounded(text, from, to) {
		return false
	}
	match := text[from:to]
	if pairsGoOn(text[to:]) {
		return false
	}
	ds := digits(match)
	if helpline(ds) {
		return false
	}
	if len(ds) >= 10 && match[0] != '0' {
		main, _, _ := strings.Cut(strings.ToLower(match), "x")
		main, _, _ = strings.Cut(main, "e")
		return northAmerican(digits(main))
	}
	for _, region := range []string{"GB", "FR", "DE", "NL", "BE", "IT", "SE", "ES", "PL"} {
		if p, err := phonenumbers.Parse(match, region); err == nil && phonenumbers.IsValidNumber(p) {
			return true
		}
	}
	return false
}

// pairsGoOn tells whether another pair of digits follows: a list of numbers, not one.
func pairsGoOn(after string) bool {
	return len(after) >= 3 && (after[0] == ' ' || after[0] == '.') && isDigit(after[1]) && isDigit(after[2]) && (len(after) == 3 || !isDigit(after[3]))
}

// PhoneLabelled tells whether the match, which has a word for a phone beside it, can be a number at all:
// six to fifteen digits that are no date, amount, address or year.
func PhoneLabelled(text string, start, end int) bool {
	from, to := phoneValue(text, start, end)
	match := text[from:to]
	ds := digits(match)
	if len(ds) < 6 || len(ds) == 6 && len(match) == 6 || len(ds) > 20 || helpline(ds) || same(ds) || bounded(text, from, to) || amount.MatchString(match) {
		return false
	}
	if from > 0 && strings.ContainsAny(text[max(0, from-4):from], "$€£#") || Date(text, from, to) || strings.Count(match, ".") == 1 && !strings.ContainsAny(match, "-() /") {
		return false
	}
	if strings.Count(match, ".") == 3 && strings.Trim(match, "0123456789.") == "" && IP(text, from, to) {
		return false
	}
	return !compactDate(match) || len(ds) != len(match)
}

// PhoneCalled is PhoneLabelled for words that mean other things too ("ring 1234567 times"): the number looks like one of a telephone, by what
// it begins with, its length or its groups, or a sign or word leads to it ("call me on").
func PhoneCalled(text string, start, end int) bool {
	if !PhoneLabelled(text, start, end) {
		return false
	}
	from, to := phoneValue(text, start, end)
	match := text[from:to]
	if contains("+(0", match[0]) || len(digits(match)) >= 10 || groups(match) >= 3 {
		return true
	}
	before := strings.ToLower(strings.TrimRight(text[max(0, from-24):from], " \t\"'"))
	return strings.HasSuffix(before, ":") || strings.HasSuffix(before, "=") || slices.Contains(leading, before[strings.LastIndexAny(before, " \t\n")+1:])
}

// leading are words between a word for calling and the number.
var leading = []string{"me", "us", "him", "her", "them", "on", "at", "under", "number", "no", "no.", "is", "#"}

// groups counts the groups of digits.
func groups(s string) (n int) {
	for i := range len(s) {
		if isDigit(s[i]) && (i == 0 || !isDigit(s[i-1])) {
			n++
		}
	}
	return n
}

// amount is a large number in groups of thousands.
var amount = regexp.MustCompile(`^(?:[1-9]\d?(?:\.\d{3}){2,}|[1-9](?: \d{3}){2,})$`)

// helplines are lines for anybody in distress, with and without their country's code: a person's number is not among them. The
// European Union keeps 116 000 to 116 123 for them (Decision 2007/116/EC).
var helplines = []int{800_111_0111, 800_111_0222, 800_273_8255, 845_790_9090}

func helpline(ds []byte) bool {
	if len(ds) == 6 && number(ds[:3]) == 116 {
		return number(ds[3:]) <= 123
	}
	return len(ds) >= 10 && slices.Contains(helplines, number(ds[len(ds)-10:]))
}

// northAmerican holds the rules of the plan: area and exchange begin with 2 to 9 and do not end in 11. It
// takes the area for fiction (555) as well.
func northAmerican(ds []byte) bool {
	if len(ds) == 11 && ds[0] == 1 {
		ds = ds[1:]
	}
	if len(ds) == 10 && number(ds[:3]) == 555 {
		return true
	}
	return len(ds) == 10 && ds[0] >= 2 && ds[3] >= 2 && number(ds[1:3]) != 11 && number(ds[4:6]) != 11 && ds[1] != 9
}

// phoneValue leaves out what cannot end or begin a number.
func phoneValue(text string, start, end int) (from, to int) {
	from, to = start, end
	for from < to && !isDigit(text[from]) && text[from] != '+' && text[from] != '(' {
		from++
	}
	for to > from && !isDigit(text[to-1]) {
		to--
	}
	return from, to
}

// bounded tells whether a number goes on before or behind: a digit, a letter, a decimal. What stands before a + or a bracket is another
// column or item; behind the + of one that is written in one piece, a comma or a colon begins another, too.
func bounded(text string, from, to int) bool {
	if from == to {
		return true
	}
	match := text[from:to]
	if from > 0 && !escaped(text, from) {
		c := text[from-1]
		if isAlnum(c) || c == '_' || c == '+' {
			return true
		}
		if from > 1 && isDigit(text[from-2]) {
			switch {
			case match[0] == '+', match[0] == '(' && c != '-':
			case c == '.', c == '-', c == '/', c == ',' && counted(match):
				return true
			}
		}
	}
	if to == len(text) {
		return false
	}
	c := text[to]
	if isAlnum(c) || c == '_' || c == '%' {
		return true
	}
	if to+1 == len(text) || !isDigit(text[to+1]) {
		return false
	}
	switch c {
	case '.', '-', '/':
		return true
	case ',':
		return counted(match)
	case ':': // the minutes of an hour
		return match[0] != '+' && !isDigits(match[max(0, len(match)-3):])
	}
	return false
}

// counted tells whether the number may count something, so that a comma parts its decimals: in groups of thousands, or in one piece
// and shorter than most numbers of telephones.
func counted(s string) bool { return len(s) < 10 && isDigits(s) || thousands.MatchString(s) }

var thousands = regexp.MustCompile(`^\+? ?\d{1,3}(?:[ .]\d{3})+$`)

func isDigits(s string) bool { return len(digits(s)) == len(s) }
