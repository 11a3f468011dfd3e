package check

// DETaxID tells whether the match is a German tax number of a person (Steuer-IdNr): eleven digits, not
// beginning with 0, one digit twice or three times among the first ten and the others at most once, and the
// check digit of ISO 7064 MOD 11,10.
func DETaxID(text string, start, end int) bool {
	ds := whole(text, start, end, 11)
	if ds == nil || ds[0] == 0 {
		return false
	}
	var count [10]int
	for _, d := range ds[:10] {
		count[d]++
	}
	often := 0
	for _, n := range count {
		if n > 3 {
			return false
		}
		if n > 1 {
			often++
		}
	}
	product := 10
	for _, d := range ds[:10] {
		sum := (int(d) + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return often == 1 && int(ds[10]) == (11-product)%10
}

// DEIDCard tells whether the match is the number of a German identity card: nine characters of those in
// use; where a tenth follows it is their check digit (ICAO 9303, weights 7-3-1). Nine alone need a word.
func DEIDCard(text string, start, end int) bool {
	numbers, ok := deIDCard(text, start, end)
	return ok && numbers >= 3
}

// DEIDCardLabelled is DEIDCard beside the word, where few digits do, or none: no word is made of these letters.
func DEIDCardLabelled(text string, start, end int) bool {
	_, ok := deIDCard(text, start, end)
	return ok
}

// deIDCard counts the digits among the first nine characters.
func deIDCard(text string, start, end int) (numbers int, ok bool) {
	const inUse = "0123456789CFGHJKLMNPRTVWXYZ"
	b := letters(text[start:end])
	if (len(b) != 9 && len(b) != 10) || !capitals(text[start:end]) || partOfLonger(text, start, end) || !isAlpha(b[0]) {
		return 0, false
	}
	for _, c := range b[:9] {
		if !contains(inUse, c) {
			return 0, false
		}
		if isDigit(c) {
			numbers++
		}
	}
	return numbers, len(b) == 9 || isDigit(b[9]) && icaoDigit(b[:9]) == int(b[9]-'0')
}

// DEPension tells whether the match is the number of a German pension insurance (Versicherungsnummer, VKVV § 2): area, birth date, the first
// letter of the name, a serial number, and a check digit.
func DEPension(text string, start, end int) bool {
	b := letters(text[start:end])
	if len(b) != 12 || !isAlpha(b[8]) || !capitals(text[start:end]) || partOfLonger(text, start, end) {
		return false
	}
	ds := inDigits(b, 8)
	if len(ds) != 13 {
		return false
	}
	d, m := number(ds[2:4]), number(ds[4:6])
	return d >= 1 && d <= 31 && m >= 1 && m <= 12 && crossSums(ds[:12], 2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)%10 == int(ds[12])
}

// DEHealth tells whether the match is the number of a person in German health insurance (Krankenversichertennummer, SGB V § 290): a letter, eight
// digits and a check digit.
func DEHealth(text string, start, end int) bool {
	b := letters(text[start:end])
	if len(b) != 10 || !isAlpha(b[0]) || !capitals(text[start:end]) || partOfLonger(text, start, end) {
		return false
	}
	ds := inDigits(b, 0)
	return len(ds) == 11 && crossSums(ds[:10], 1, 2, 1, 2, 1, 2, 1, 2, 1, 2)%10 == int(ds[10])
}

// inDigits gives the digits with the letter at a place as two of them, its number in the alphabet.
func inDigits(b []byte, letter int) []byte {
	n := b[letter] - 'A' + 1
	return append(append(digits(string(b[:letter])), n/10, n%10), digits(string(b[letter+1:]))...)
}

// crossSums sums the digits of digits times weights.
func crossSums(ds []byte, weights ...int) (sum int) {
	for i, w := range weights {
		p := w * int(ds[i])
		sum += p/10 + p%10
	}
	return sum
}

// CHAHV tells whether the match is a Swiss AHV number: 756, nine digits, and the check digit of EAN-13.
func CHAHV(text string, start, end int) bool {
	ds := whole(text, start, end, 13)
	return ds != nil && number(ds[:3]) == 756 && weighted(ds, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1)%10 == 0
}

func contains(set string, c byte) bool {
	for i := range len(set) {
		if set[i] == c {
			return true
		}
	}
	return false
}

// ATSVNR tells whether the match is an Austrian social insurance number: three digits, a check digit modulo 11 over the others, and the date of
// birth, of which the month may be 13 and more where a day has no numbers left.
func ATSVNR(text string, start, end int) bool {
	ds := whole(text, start, end, 10)
	if ds == nil || ds[0] == 0 {
		return false
	}
	date, month := number(ds[4:6]), number(ds[6:8])
	return date >= 1 && date <= 31 && month >= 1 && month <= 15 && weighted(ds, 3, 7, 9, 0, 5, 8, 4, 2, 1, 6)%11 == int(ds[3])
}
