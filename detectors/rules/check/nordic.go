package check

// SEPersonnummer tells whether the match is a Swedish personal number of ten or twelve digits: a date (of a
// coordination number with 60 added to the day) and a check digit by Luhn over the last ten.
func SEPersonnummer(text string, start, end int) bool {
	ds := digits(text[start:end])
	if len(ds) == 12 && (number(ds[:2]) < 18 || number(ds[:2]) > 20) || len(ds) != 10 && len(ds) != 12 || partOfLonger(text, start, end) {
		return false
	}
	ten := ds[len(ds)-10:]
	dayOfMonth := number(ten[4:6])
	if dayOfMonth > 60 {
		dayOfMonth -= 60
	}
	return day(number(ten[:2]), number(ten[2:4]), dayOfMonth) && number(ten[6:9]) > 0 && luhn(ten)
}

// FIHETU tells whether the match is a Finnish personal identity code: a date, a sign for the century, an
// order from 002, and a control character modulo 31.
func FIHETU(text string, start, end int) bool {
	match := text[start:end]
	if len(match) != 11 {
		return false
	}
	ds := digits(match[:6] + match[7:10])
	if len(ds) != 9 || partOfLonger(text, start, end) || !contains("+-YXWVUABCDEF", match[6]) {
		return false
	}
	const control = "0123456789ABCDEFHJKLMNPRSTUVWXY"
	return day(number(ds[4:6]), number(ds[2:4]), number(ds[:2])) && number(ds[6:]) >= 2 && match[10] == control[number(ds)%31]
}

// DKCPR tells whether the match is a Danish CPR number: a date and four digits. Those before 2007 pass a
// test of eleven; later ones need not, so that the rule for them needs a word.
func DKCPR(text string, start, end int) bool {
	ds := whole(text, start, end, 10)
	return ds != nil && day(number(ds[4:6]), number(ds[2:4]), number(ds[:2]))
}
