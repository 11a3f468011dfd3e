package normal

// What a byte can be.
const (
	letter uint8 = 1 << iota // a-z A-Z
	digit
	symbol // may stand for a letter: @ $ ! | +
	joint  // may stand between the letters of a word: . _ * ~
	wide   // begins or continues a character beyond ASCII
	mark   // begins markup or an entity wherever it stands, or is a control character
	near   // to be looked at with its neighbours
)

var kinds = func() (k [256]uint8) {
	for c := range k {
		switch b := byte(c); {
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			k[c] = letter
		case b >= '0' && b <= '9':
			k[c] = digit | near
		case b >= 0x80:
			k[c] = wide | mark
		case b < ' ' && b != '\n' && b != '\t' && b != '\r' || b == 0x7f:
			k[c] = mark
		}
	}
	for _, c := range "&`~*_|<" {
		k[c] |= mark
	}
	for _, c := range "@$!|+" {
		k[c] |= symbol | near
	}
	for _, c := range "._*~" {
		k[c] |= joint | near
	}
	for _, c := range "#-]" {
		k[c] |= near
	}
	return k
}()

// clean says that no pass can change a text, in one pass over it. It may say no of a text that is.
func clean(s string) bool {
	var (
		letters       uint // one bit a byte, the newest lowest
		last, run     int  // end and number of single letters in a row
		before, prior byte
	)
	for i := 0; i < len(s); i++ {
		c := s[i]
		k := kinds[c]
		letters = letters<<1 | uint(k&letter)
		if c == before && c == prior && k&letter != 0 {
			return false
		}
		prior, before = before, c
		if letters&7 == 2 || k&(mark|near) != 0 {
			if k&mark != 0 || k&near != 0 && suspect(s, i) {
				return false
			}
			if letters&7 == 2 {
				if i-last > maxGap+1 {
					run = 0
				}
				last = i
				if run++; run > 2 {
					return false
				}
			}
		}
	}
	return true
}

// suspect looks at a byte that needs its neighbours to tell.
func suspect(s string, i int) bool {
	var before, after byte = '\n', '\n'
	if i > 0 {
		before = s[i-1]
	}
	if i+1 < len(s) {
		after = s[i+1]
	}
	word := kinds[before]&letter != 0 || kinds[after]&letter != 0
	switch s[i] {
	case '@', '$', '+':
		if s[i] == '+' && (after == ' ' || after == '\t') {
			return before == '\n' || before == ' ' || before == '\t'
		}
		return word
	case '.', '!':
		return kinds[before]&(letter|digit|symbol) != 0 && kinds[after]&(letter|digit|symbol) != 0
	case '#':
		return before == '\n' || before == '\t' || before == ' ' || after == '#'
	case '-':
		return (after == ' ' || after == '\t') && (before == '\n' || before == '\t' || before == ' ' && (i < 2 || s[i-2] <= ' '))
	case ']':
		return after == '('
	}
	return word // a digit
}
