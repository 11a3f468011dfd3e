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
	opens  // may begin markup within a line
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
	for _, c := range "#-]{[" {
		k[c] |= near
	}
	for _, c := range "[<*_~`" {
		k[c] |= opens
	}
	return k
}()
