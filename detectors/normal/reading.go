package normal

import (
	"unicode"
	"unicode/utf8"
)

// cell is one character of a word that may be disguised, and the letters that it can stand for.
type cell struct {
	from, to int
	is       rune
	options  string // in lower case, the likeliest first; "" for what stands between letters
}

const (
	maxCells    = 40 // longer ones are no words
	maxReadings = 64 // of one word

	// Readings that a pass may try, beside some for each byte of the text.
	freeReadings, readingsPerByte = 500, 4
)

const (
	letters  = "abcdefghijklmnopqrstuvwxyz"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// leet gives the letters that a digit or symbol may stand for.
func leet(r rune) string {
	switch r {
	case '0':
		return "oö"
	case '1', '!', '¡':
		return "il"
	case '2':
		return "z"
	case '3', '€':
		return "e"
	case '4', '@':
		return "aä"
	case '5', '$', '§':
		return "s"
	case '6':
		return "gb"
	case '7', '+':
		return "t"
	case '8':
		return "b"
	case '9':
		return "g"
	case '|':
		return "li"
	case '£':
		return "l"
	case '¥':
		return "y"
	}
	return ""
}

// reader looks for a word that cells can spell.
type reader struct {
	picks [maxCells]rune
	word  []byte
	limit int // letters that stay of a run of three or more
	// shorter says that there were such runs.
	shorter bool
	// left is how many readings a pass may still try, so that text made for it costs little more.
	left int
	buf  [2 * maxCells]byte
}

// read says whether the cells spell a word of the vocabulary of at least so many bytes: as they stand, then
// with runs of letters cut to two, then to one. picks and limit are what did it.
func (r *reader) read(cells []cell, least int) bool {
	if len(cells) > maxCells {
		return false
	}
	readings := 1
	for i := range cells {
		readings *= max(1, utf8.RuneCountInString(cells[i].options))
		if readings > maxReadings {
			return false
		}
	}
	if r.left -= readings; r.left < 0 {
		return false
	}
	for r.limit = 2; r.limit > 0; r.limit-- {
		r.shorter = false
		for n := range readings {
			if r.spell(cells, n); len(r.word) >= least && known(r.word) && (len(r.word) > 2 || isShort(r.word)) {
				return true
			}
		}
		if !r.shorter {
			break
		}
	}
	return false
}

// spell fills picks and word with reading number n.
func (r *reader) spell(cells []cell, n int) {
	for i := range cells {
		options := cells[i].options
		if len(options) == 1 {
			r.picks[i] = rune(options[0])
			continue
		}
		count := utf8.RuneCountInString(options)
		k := n % count
		n /= count
		for _, o := range options {
			if k == 0 {
				r.picks[i] = o
			}
			k--
		}
	}
	r.word = r.buf[:0]
	for i := 0; i < len(cells); {
		end := r.run(i, len(cells))
		for range r.kept(end - i) {
			r.word = utf8.AppendRune(r.word, r.picks[i])
		}
		i = end
	}
}

// run gives where the equal letters from i end.
func (r *reader) run(i, n int) int {
	end := i + 1
	for end < n && r.picks[end] == r.picks[i] {
		end++
	}
	return end
}

// kept gives how many of n equal letters stay.
func (r *reader) kept(n int) int {
	if n > 2 {
		r.shorter = true
		return r.limit
	}
	return n
}

// write puts the word that was read in the place of its cells.
func (r *reader) write(w *rewriter, cells []cell) {
	upper := shouts(cells)
	for i := 0; i < len(cells); {
		end := r.run(i, len(cells))
		if kept := r.kept(end - i); kept < end-i {
			form := cased(cells[i], r.picks[i], upper)
			if kept == 2 {
				form += cased(cells[i+1], r.picks[i], upper)
			}
			w.put(cells[i].from, cells[end-1].to, form)
		} else {
			for k := i; k < end; k++ {
				w.put(cells[k].from, cells[k].to, cased(cells[k], r.picks[k], upper))
			}
		}
		i = end
	}
}

// cased gives the letter in the case of what stood for it.
func cased(c cell, letter rune, upper bool) string {
	capital := unicode.IsUpper(c.is) || upper && !unicode.IsLetter(c.is)
	switch {
	case letter >= utf8.RuneSelf && capital:
		return string(unicode.ToUpper(letter))
	case letter >= utf8.RuneSelf:
		return string(letter)
	case capital:
		return capitals[letter-'a' : letter-'a'+1]
	}
	return letters[letter-'a' : letter-'a'+1]
}

// shouts says that all letters are capitals.
func shouts(cells []cell) bool {
	some := false
	for _, c := range cells {
		if unicode.IsLower(c.is) {
			return false
		}
		some = some || unicode.IsUpper(c.is)
	}
	return some
}
