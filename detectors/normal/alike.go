package normal

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

//go:embed alike.txt
var alikeList string

// alike says what Latin letter another character looks like.
type alike struct {
	letter byte // 0 for none
	same   bool // it cannot be told from it
}

// alikes is for characters below U+0600, othersAlike for the rest.
var alikes, othersAlike = func() (low [0x600]alike, others map[rune]alike) {
	others = map[rune]alike{}
	for line := range strings.Lines(alikeList) {
		fields := strings.Fields(line)
		if len(fields) == 0 || line[0] == '#' {
			continue
		}
		for i, field := range fields[1:] {
			for _, r := range field {
				if r == '-' {
					continue
				}
				a := alike{fields[0][0], i == 0}
				if r >= rune(len(low)) {
					others[r] = a
				} else if low[r].letter == 0 { // the first line wins
					low[r] = a
				}
			}
		}
	}
	return low, others
}()

// likeness says what Latin letter a character looks like.
func likeness(r rune) alike {
	if r < rune(len(alikes)) {
		return alikes[r]
	}
	return othersAlike[r]
}

// accented is a Latin letter with accents.
type accented struct {
	bare byte // the ASCII letter under them, 0 if there is none
	mark rune // the last accent; acute, grave and caron count as one
}

// accents gives the parts of a letter.
func accents(r rune) accented {
	switch {
	case r >= 0xc0 && r < 0x250:
		return accentTable()[r-0xc0]
	case r >= 0x1e00 && r < 0x1f00:
		return accentTable()[r-0x1e00+0x250-0xc0]
	}
	return accented{}
}

// bare gives the ASCII letter under the accents of a Latin letter, 0 if there is none.
func bare(r rune) byte { return accents(r).bare }

var accentTable = sync.OnceValue(func() *[0x250 - 0xc0 + 0x100]accented {
	var table [0x250 - 0xc0 + 0x100]accented
	for i := range table {
		r := rune(i + 0xc0)
		if r >= 0x250 {
			r += 0x1e00 - 0x250
		}
		form := norm.NFD.String(string(r))
		if len(form) < 3 || kinds[form[0]]&letter == 0 {
			continue
		}
		mark, _ := utf8.DecodeLastRuneInString(form)
		if mark == 0x300 || mark == 0x30c {
			mark = 0x301
		}
		table[i] = accented{form[0], mark}
	}
	return &table
})

// latinAround says that a word of look-alikes stands among Latin text: in the stretch of its line around it
// there are letters of ASCII, and no letter of another script without a likeness.
func latinAround(s string, from, to int) bool {
	const around = 160
	lo, hi := max(0, from-around), min(len(s), to+around)
	if n := strings.LastIndexByte(s[lo:from], '\n'); n >= 0 {
		lo += n + 1
	}
	if n := strings.IndexByte(s[to:hi], '\n'); n >= 0 {
		hi = to + n
	}
	for lo < from && !utf8.RuneStart(s[lo]) {
		lo++
	}
	latin := false
	for i := lo; i < hi; {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r < utf8.RuneSelf:
			latin = latin || kinds[r]&letter != 0
		case r >= 0x370 && unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) && likeness(r).letter == 0:
			return false
		}
	}
	return latin
}
