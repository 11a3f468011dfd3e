package check

// PLPESEL tells whether the match is a Polish PESEL: a birth date, its century added to the month, and a
// check digit.
func PLPESEL(text string, start, end int) bool {
	ds := whole(text, start, end, 11)
	if ds == nil {
		return false
	}
	century := [...]int{1900, 2000, 2100, 2200, 1800}[number(ds[2:4])/20]
	return day(century+number(ds[:2]), number(ds[2:4])%20, number(ds[4:6])) && weighted(ds, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)%10 == 0
}

// PLNIP tells whether the match is a Polish tax number: ten digits, the last the remainder modulo 11.
func PLNIP(text string, start, end int) bool {
	ds := whole(text, start, end, 10)
	return ds != nil && number(ds[:3]) >= 100 && weighted(ds, 6, 5, 7, 2, 3, 4, 5, 6, 7)%11 == int(ds[9])
}

// PLIDCard tells whether the match is the number of a Polish identity card: three letters, a check digit, five digits (weights 7-3-1, the check
// digit's 9).
func PLIDCard(text string, start, end int) bool {
	b := letters(text[start:end])
	if len(b) != 9 || !capitals(text[start:end]) || partOfLonger(text, start, end) {
		return false
	}
	sum := 0
	for i, w := range [...]int{7, 3, 1, 9, 7, 3, 1, 7, 3} {
		switch c := b[i]; {
		case isAlpha(c) != (i < 3):
			return false
		case i < 3:
			sum += w * int(c-'A'+10)
		default:
			sum += w * int(c-'0')
		}
	}
	return sum%10 == 0
}
