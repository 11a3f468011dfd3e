package check

// UKNINO tells whether the match is a British national insurance number: a prefix that is given out, six
// digits, and A to D.
func UKNINO(text string, start, end int) bool {
	b := letters(text[start:end])
	if len(b) != 9 || !capitals(text[start:end]) || partOfLonger(text, start, end) || len(digits(string(b[2:8]))) != 6 || same(b[2:8]) {
		return false
	}
	switch string(b[:2]) {
	case "BG", "GB", "KN", "NK", "NT", "TN", "ZZ":
		return false
	}
	return isAlpha(b[0]) && isAlpha(b[1]) && !contains("DFIQUV", b[0]) && !contains("DFIQUVO", b[1]) && b[8] >= 'A' && b[8] <= 'D'
}

// UKNHS tells whether the match is an NHS number: ten digits with a check digit modulo 11.
func UKNHS(text string, start, end int) bool {
	ds := whole(text, start, end, 10)
	if ds == nil {
		return false
	}
	digit := 11 - weighted(ds, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11
	return digit%11 == int(ds[9])
}

// IEPPS tells whether the match is an Irish PPS number: seven digits and a letter modulo 23; a second letter
// counts nine times.
func IEPPS(text string, start, end int) bool {
	b := letters(text[start:end])
	if (len(b) != 8 && len(b) != 9) || !capitals(text[start:end]) || partOfLonger(text, start, end) {
		return false
	}
	ds := digits(string(b[:7]))
	if len(ds) != 7 || !isAlpha(b[7]) {
		return false
	}
	sum := weighted(ds, 8, 7, 6, 5, 4, 3, 2)
	if len(b) == 9 {
		if !isAlpha(b[8]) || b[8] > 'I' && b[8] != 'W' {
			return false
		}
		if b[8] != 'W' {
			sum += 9 * int(1+b[8]-'A')
		}
	}
	return "WABCDEFGHIJKLMNOPQRSTUV"[sum%23] == b[7]
}
