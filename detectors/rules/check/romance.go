package check

// FRNIR tells whether the match is a French social security number: sex, year, month, place of birth (2A and
// 2B are Corsica), order, and the key, which is 97 less the remainder of the rest modulo 97.
func FRNIR(text string, start, end int) bool {
	b := letters(text[start:end])
	if len(b) != 15 || partOfLonger(text, start, end) || (b[0] != '1' && b[0] != '2' && b[0] != '7' && b[0] != '8') {
		return false
	}
	less := 0
	if b[5] == '2' && (b[6] == 'A' || b[6] == 'B') {
		less = 1_000_000 * int(1+b[6]-'A') // 2A counts as 19, 2B as 18
		b[6] = '0'
	}
	ds := digits(string(b))
	if len(ds) != 15 {
		return false
	}
	month := number(ds[3:5])
	if month == 0 || month > 12 && month < 20 || month > 42 && month < 50 {
		return false
	}
	return number(ds[5:7]) > 0 && number(ds[13:]) == 97-(number(ds[:13])-less)%97
}

const dniLetters = "TRWAGMYFPDXBNJZSQVHLCKE"

// ESNIF tells whether the match is a Spanish DNI (eight digits) or NIE (X, Y or Z and seven) with the letter
// that the remainder modulo 23 gives.
func ESNIF(text string, start, end int) bool {
	b := letters(text[start:end])
	if len(b) != 9 || !capitals(text[start:end]) || partOfLonger(text, start, end) || !isAlpha(b[8]) {
		return false
	}
	if b[0] >= 'X' && b[0] <= 'Z' {
		b[0] = '0' + b[0] - 'X'
	}
	ds := digits(string(b[:8]))
	return len(ds) == 8 && !same(ds) && dniLetters[number(ds)%23] == b[8]
}

// PTNIF tells whether the match is a Portuguese tax number of a person: nine digits, first one 1, 2, 3 or
// 45, and a check digit modulo 11.
func PTNIF(text string, start, end int) bool {
	ds := whole(text, start, end, 9)
	if ds == nil || (ds[0] == 0 || ds[0] > 3) && number(ds[:2]) != 45 {
		return false
	}
	digit := 11 - weighted(ds, 9, 8, 7, 6, 5, 4, 3, 2)%11
	if digit > 9 {
		digit = 0
	}
	return int(ds[8]) == digit
}

// Values of characters at odd places of a codice fiscale, digits and letters alike; at even places a
// character counts for itself.
var fiscalOdd = [...]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}

// ITFiscalCode tells whether the match is an Italian codice fiscale: names, birth date and place, and the
// control character. Digits may be letters of LMNPQRSTUV, where two persons would have the same (omocodia).
func ITFiscalCode(text string, start, end int) bool {
	b := letters(text[start:end])
	if len(b) != 16 || partOfLonger(text, start, end) {
		return false
	}
	sum := 0
	for i, c := range b[:15] {
		v := int(c) - 'A'
		if isDigit(c) {
			v = int(c) - '0'
		}
		if i%2 == 0 {
			v = fiscalOdd[v]
		}
		sum += v
	}
	if int(b[15]) != 'A'+sum%26 {
		return false
	}
	const shape = "AAAAAA00A00A000"
	for i := range shape {
		if shape[i] == 'A' {
			if !isAlpha(b[i]) {
				return false
			}
			continue
		}
		for j := range omocodia {
			if b[i] == omocodia[j] {
				b[i] = '0' + byte(j)
			}
		}
		if !isDigit(b[i]) {
			return false
		}
	}
	born := int(b[9]-'0')*10 + int(b[10]-'0')
	return contains("ABCDEHLMPRST", b[8]) && (born >= 1 && born <= 31 || born >= 41 && born <= 71)
}

const omocodia = "LMNPQRSTUV"

// BRCPF tells whether the match is a Brazilian CPF: nine digits and two check digits modulo 11.
func BRCPF(text string, start, end int) bool {
	ds := whole(text, start, end, 11)
	if ds == nil {
		return false
	}
	for n := 9; n < 11; n++ {
		sum := 0
		for i := range n {
			sum += (n + 1 - i) * int(ds[i])
		}
		if sum*10%11%10 != int(ds[n]) {
			return false
		}
	}
	return true
}
