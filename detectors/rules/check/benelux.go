package check

// NLBSN tells whether the match is a Dutch citizen service number: nine digits (eight, with a leading zero
// left out) that pass the test of eleven.
func NLBSN(text string, start, end int) bool {
	ds := digits(text[start:end])
	if len(ds) == 8 {
		ds = append([]byte{0}, ds...)
	}
	return len(ds) == 9 && !same(ds) && !partOfLonger(text, start, end) && number(ds[:2]) > 0 && weighted(ds, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0
}

// BENRN tells whether the match is a Belgian national number: birth date (of foreigners with 20 or 40 added
// to the month, or unknown), order, and 97 less the remainder modulo 97; born from 2000 on with a 2 in front.
func BENRN(text string, start, end int) bool {
	ds := whole(text, start, end, 11)
	if ds == nil {
		return false
	}
	month, dayOfMonth := number(ds[2:4])%20, number(ds[4:6])
	if number(ds[2:4]) >= 60 || month > 12 || month != 0 && dayOfMonth != 0 && !day(number(ds[:2]), month, dayOfMonth) || dayOfMonth > 31 {
		return false
	}
	order, key := number(ds[6:9]), number(ds[9:])
	if order == 0 || order == 999 {
		return false
	}
	n := number(ds[:9])
	return key == 97-n%97 || key == 97-(2_000_000_000+n)%97
}
