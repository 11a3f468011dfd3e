package normal

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words restores words that are written with digits, symbols, letters of other scripts, accents, repeated
// letters, dots or asterisks. What becomes a word must be one of the vocabulary; what could be a number with
// its unit, a code, a name of a product, an address or a path is left alone.
func words(w *rewriter) {
	if w.everywhere {
		for i := 0; i < len(w.src); i++ {
			i = w.chunk(i)
		}
		return
	}
	done := 0
	for _, at := range w.words.at[:w.words.n] {
		if at >= done {
			for at > done && (kinds[w.src[at-1]] != 0 || w.src[at-1] > ' ') {
				at--
			}
			done = w.chunk(at)
		}
	}
}

// chunk restores words of the text without spaces that begins at i, if it can hold any, and gives where it ends.
func (w *rewriter) chunk(i int) int {
	s := w.src
	var seen uint8
	triple := false
	start := i
	for ; i < len(s); i++ {
		c := s[i]
		k := kinds[c]
		if k == 0 && c <= ' ' {
			break
		}
		seen |= k
		if k&letter != 0 && i > start+1 && c|0x20 == s[i-1]|0x20 && c|0x20 == s[i-2]|0x20 {
			triple = true
		}
	}
	if seen&(letter|wide) != 0 && (seen&(digit|symbol|joint|wide) != 0 || triple) {
		w.tokens(start, i)
	}
	return i
}

// longestAddress bounds, to either side of a word, how much is looked at to tell an address.
const longestAddress = 200

// isAddress says that text without spaces is a URL, an e-mail address or a path.
func isAddress(s string) bool {
	if strings.Contains(s, "://") || strings.Contains(s, "www.") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~/") || strings.Contains(s, `\`) {
		return true
	}
	if at := strings.IndexByte(s, '@'); at > 0 && strings.IndexByte(s[at:], '.') > 0 && kinds[s[at-1]]&(letter|digit) != 0 && !strings.HasSuffix(s, ".") {
		return true
	}
	slash := strings.IndexByte(s, '/')
	return slash > 0 && (strings.IndexByte(s[slash+1:], '/') >= 0 || strings.IndexByte(s[:slash], '.') > 0)
}

// tokens cuts text without spaces, [from, to), into what may be words.
func (w *rewriter) tokens(from, to int) {
	for i := from; i < to; {
		start := i
		for i < to {
			r, size := utf8.DecodeRuneInString(w.src[i:to])
			if r < utf8.RuneSelf && kinds[r]&(letter|digit|symbol|joint) == 0 || r >= utf8.RuneSelf && likeness(r).letter == 0 && !unicode.IsLetter(r) && leet(r) == "" {
				break
			}
			i += size
		}
		if i > start {
			w.token(start, i, from, to)
			continue
		}
		_, size := utf8.DecodeRuneInString(w.src[i:to])
		i += size
	}
}

// census counts the characters of a token by what they are.
type census struct{ letters, digits, symbols, joints, alikes, accents, others int }

// token restores one word, if it is one, of the text without spaces [lo, hi).
func (w *rewriter) token(from, to, lo, hi int) {
	s := w.src
	for from < to && kinds[s[from]]&(joint|symbol) != 0 && s[from] != '@' && s[from] != '$' {
		from++
	}
	for to > from && kinds[s[to-1]]&(joint|symbol) != 0 && s[to-1] != '$' {
		to--
	}
	if to-from < 3 || to-from > 4*maxCells || !disguised(s[from:to]) {
		return
	}
	if token := s[from:to]; strings.Contains(token, "ß") && known([]byte(strings.ToLower(token))) {
		return // weiß is a word of its own, though ß looks like b
	}
	cells, n, ok := w.takeApart(from, to)
	chunk := s[max(lo, from-longestAddress):min(hi, to+longestAddress)]
	switch {
	case !ok || n.letters+n.alikes+n.accents+n.others < 1:
	case n.joints > 0:
		if n.digits+n.symbols+n.alikes == 0 {
			w.jointed(cells, chunk)
		}
	case n.digits+n.symbols == 0 || !isCode(s[from:to], n, from > lo && s[from-1] == '-' || to < hi && s[to] == '-'):
		w.spelled(cells, n, chunk)
	}
}

// disguised says that a token is not just letters with at most one accent.
func disguised(s string) bool {
	wides := 0
	for i := 0; i < len(s); i++ {
		k := kinds[s[i]]
		if k&(digit|symbol|joint) != 0 || k&letter != 0 && i > 1 && s[i]|0x20 == s[i-1]|0x20 && s[i]|0x20 == s[i-2]|0x20 {
			return true
		}
		if k&wide != 0 && utf8.RuneStart(s[i]) {
			r, _ := utf8.DecodeRuneInString(s[i:])
			if wides++; wides > 1 || bare(r) == 0 || r == 'ı' || r == 'İ' {
				return true
			}
		}
	}
	return false
}

// takeApart makes cells of a token; ok is false if it holds a letter of another script that looks like no Latin one.
func (w *rewriter) takeApart(from, to int) (cells []cell, n census, ok bool) {
	cells = w.cells[:0]
	for i := from; i < to; {
		r, size := rune(w.src[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(w.src[i:to])
		}
		if len(cells) == maxCells {
			return nil, n, false
		}
		c := cell{from: i, to: i + size, is: r}
		switch {
		case r < utf8.RuneSelf && kinds[r]&letter != 0:
			c.options = letters[r|0x20-'a' : r|0x20-'a'+1]
			n.letters++
		case r < utf8.RuneSelf && kinds[r]&joint != 0:
			n.joints++
		case leet(r) != "":
			c.options = leet(r)
			if r < utf8.RuneSelf && kinds[r]&digit != 0 {
				n.digits++
			} else {
				n.symbols++
			}
		case likeness(r).letter != 0:
			c.options = letters[likeness(r).letter|0x20-'a' : likeness(r).letter|0x20-'a'+1]
			n.alikes++
		case bare(r) != 0:
			c.options = w.lower(r, i, size)
			n.accents++
		case unicode.Is(unicode.Latin, r):
			c.options = w.lower(r, i, size)
			n.others++
		default:
			return nil, n, false
		}
		cells, i = append(cells, c), i+size
	}
	return cells, n, true
}

// lower gives the lower case of the character at i.
func (w *rewriter) lower(r rune, i, size int) string {
	if l := unicode.ToLower(r); l != r {
		return string(l)
	}
	return w.src[i : i+size]
}

// spelled restores a word whose letters are disguised one by one.
func (w *rewriter) spelled(cells []cell, n census, chunk string) {
	r := &w.reader
	if n.accents > 0 && (n.alikes+n.digits+n.symbols > 0 || oddAccents(cells)) {
		for i := range cells {
			if b := bare(cells[i].is); b != 0 {
				cells[i].options += letters[b|0x20-'a' : b|0x20-'a'+1]
			}
		}
	}
	least := 3
	if n.digits+n.symbols+n.alikes == 0 {
		least = 2 // sooo
		if n.accents > 1 {
			least = 4
		}
	}
	switch from, to := cells[0].from, cells[len(cells)-1].to; {
	case r.read(cells, least):
		if !isAddress(chunk) && (n.letters > 0 || n.alikes == 0 || latinAlikes(cells) || latinAround(w.src, from, to)) {
			r.write(w, cells)
		}
	case n.alikes > 0 && n.letters > 0 && n.digits+n.symbols+n.accents+n.others == 0:
		for _, c := range cells { // two scripts in one word: the letters that cannot be told apart are meant as Latin
			if c.is >= utf8.RuneSelf && !likeness(c.is).same {
				return
			}
		}
		for _, c := range cells {
			if c.is >= utf8.RuneSelf {
				w.put(c.from, c.to, string(likeness(c.is).letter))
			}
		}
	}
}

// oddAccents says that a word has accents of kinds that no language mixes in words that are also English:
// wömên has, général and Bašić have not.
func oddAccents(cells []cell) bool {
	first := rune(0)
	for _, c := range cells {
		mark := accents(c.is).mark
		if mark != 0 && first != 0 && mark != first {
			return true
		}
		first = max(first, mark)
	}
	return false
}

// latinAlikes says that all look-alikes are Latin letters themselves, such as small capitals.
func latinAlikes(cells []cell) bool {
	for _, c := range cells {
		if c.is >= utf8.RuneSelf && unicode.IsLetter(c.is) && !unicode.Is(unicode.Latin, c.is) {
			return false
		}
	}
	return true
}

// jointed restores a word with one sign between its letters, or with asterisks for letters.
func (w *rewriter) jointed(cells []cell, chunk string) {
	sign := rune(0)
	var wordBuf, partBuf [2 * maxCells]byte
	plain, word, part := w.plain[:0], wordBuf[:0], partBuf[:0]
	allKnown := true
	for _, c := range cells {
		if c.options != "" {
			plain = append(plain, c)
			word, part = append(word, c.options...), append(part, c.options...)
			continue
		}
		if sign != 0 && c.is != sign {
			return
		}
		sign = c.is
		allKnown = allKnown && known(part)
		word, part = append(word, byte(sign)), part[:0]
	}
	r := &w.reader
	method := sign == '.' && len(part) > 3 && known(part) // re.search
	if allKnown = allKnown && known(part); !allKnown && !method && r.read(plain, 4) && !isAddress(chunk) {
		for i := 1; i < len(plain); i++ {
			w.gap(plain[i-1].to, plain[i].from, "")
		}
		return
	}
	if sign != '*' || len(plain)*5 < len(cells)*3 || len(word) != len(cells) || len(word) < 4 || bytes.Contains(word, []byte("**")) {
		return
	}
	if found := unmask(word); found != "" {
		upper := shouts(plain)
		for i, c := range cells {
			if c.options == "" {
				w.put(c.from, c.to, cased(c, rune(found[i]), upper))
			}
		}
	}
}

// gap replaces what stands between two letters.
func (w *rewriter) gap(from, to int, with string) {
	if from < to {
		w.put(from, to, with)
	}
}

// isCode says that digits or symbols in a token are not meant as letters: all capitals and short or hyphened (H1B), a
// number with its unit or another word (21st, 5in, 3men), a word with its number (page5, covid19), a name
// or a variable with its sign ($table, @live), more digits than letters.
func isCode(s string, n census, hyphen bool) bool {
	if n.digits > 2*(n.letters+n.alikes+n.accents+n.others) || s[0] == '$' && kinds[s[1]]&digit != 0 {
		return true
	}
	low := bytes.ToLower([]byte(s))
	if s[0] == '@' || s[0] == '$' {
		return known(low[1:])
	}
	if n.symbols == 0 && (len(s) < 5 || hyphen) && n.alikes == 0 && s == strings.ToUpper(s) {
		return true
	}
	const figures = "0123456789"
	if rest := bytes.TrimLeft(low, figures); len(rest) < len(low) && !bytes.ContainsAny(rest, figures+"@$!|+") {
		return len(low)-len(rest) > 1 || known(rest) || units[string(rest)]
	}
	if rest := bytes.TrimRight(low, figures); len(rest) < len(low) && !bytes.ContainsAny(rest, figures+"@$!|+") {
		return len(low)-len(rest) > 1 || known(rest)
	}
	return false
}

// units stand behind a number.
var units = func() map[string]bool {
	m := map[string]bool{}
	for u := range strings.FieldsSeq("st nd rd th er am pm in ft yd mi lb lbs oz mm cm dm km kg mg ml cl dl hz kb mb gb tb kw hr hrs min mins sec secs yo yrs ton tons bn mn it et on en os ers") {
		m[u] = true
	}
	return m
}()
