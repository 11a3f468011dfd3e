package normal

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxGap   = 3  // bytes between two letters of a spaced word
	minSpell = 4  // letters of it
	maxRun   = 96 // single letters in a row
)

// spaced joins letters that stand one by one, "w o m e n" or "w.o.m.e.n": four at least in a row, with the
// same between them. A wider gap is the border of a word; without any, the letters are cut into the
// fewest words. Unless all of it is words, it stays.
func spaced(w *rewriter) {
	s := w.src
	run := w.run[:0]
	for i := 0; i < len(s); {
		if !wordAt(s, i) {
			i++
			continue
		}
		end := i + 1
		for end < len(s) && wordAt(s, end) {
			end++
		}
		c := cell{from: i, to: end}
		if end-i <= utf8.UTFMax {
			c = single(s, i, end)
		}
		if n := len(run); n == maxRun {
			run = append(run[:0], run[w.join(run):]...)
		} else if n > 0 && (c.options == "" || i-run[n-1].to > maxGap) {
			w.join(run)
			run = run[:0]
		} else if n > 1 && !alikeGaps(s[run[0].to:run[1].from], s[run[n-1].to:i]) {
			last := run[n-1]
			if w.join(run); n < minSpell {
				run = append(run[:0], last)
			} else {
				run = run[:0]
			}
		}
		if c.options != "" {
			run = append(run, c)
		}
		i = end
	}
	w.join(run)
}

// wordAt says that a byte belongs to a word. Raised dots do not.
func wordAt(s string, i int) bool {
	return isWord(s[i]) && (s[i] < utf8.RuneSelf || !(s[i] == 0xb7 && s[max(i-1, 0)] == 0xc2 || strings.HasPrefix(s[i:], "·")))
}

// alikeGaps says that two gaps can stand in one run: they are the same, or one of them is the border of words.
func alikeGaps(first, gap string) bool {
	return first == gap || len(first) != len(gap) && (strings.ContainsAny(first, " \n") || strings.ContainsAny(gap, " \n"))
}

// single gives the cell of a letter that stands alone, without options if there is none.
func single(s string, from, to int) cell {
	c := cell{from: from, to: to}
	r, size := utf8.DecodeRuneInString(s[from:to])
	if size < to-from {
		return c
	}
	switch c.is = r; {
	case r < utf8.RuneSelf && kinds[r]&letter != 0:
		c.options = letters[r|0x20-'a' : r|0x20-'a'+1]
	case likeness(r).letter != 0:
		c.options = letters[likeness(r).letter|0x20-'a' : likeness(r).letter|0x20-'a'+1]
	default:
		c.options = leet(r)
	}
	return c
}

// join puts a run of single letters together and says how many it is done with: all, but of a run that is
// cut short by maxRun only up to the last border.
func (w *rewriter) join(run []cell) (done int) {
	done = len(run)
	if done < minSpell {
		return done
	}
	plain := ""
	for i := 1; i < len(run); i++ {
		if gap := w.src[run[i-1].to:run[i].from]; plain == "" || len(gap) < len(plain) {
			plain = gap
		}
	}
	r := &w.reader
	var borders [maxRun + 1]bool // before which cells a word begins
	last := 0
	for i := 1; i < len(run); i++ {
		switch gap := w.src[run[i-1].to:run[i].from]; {
		case gap == plain:
		case len(gap) == len(plain) || !strings.ContainsAny(gap, " \n"):
			return done
		default:
			borders[i], last = true, i
		}
	}
	full := len(run) == maxRun
	switch {
	case last > 0 && full:
		run = run[:last]
	case last == 0 && !r.read(run, minSpell):
		n := segment(r, run, &borders, full)
		if n == 0 {
			return done
		}
		run = run[:n]
	}
	borders[len(run)] = true
	if !w.areWords(run, &borders) {
		return done
	}
	for from, to := 0, 1; to <= len(run); to++ {
		if !borders[to] {
			continue
		}
		if from > 0 {
			w.gap(run[from-1].to, run[from].from, " ")
		}
		part := run[from:to]
		if len(part) > 1 && r.read(part, 2) {
			w.spell(r, part)
		}
		from = to
	}
	return len(run)
}

// areWords says that what stands between borders are words.
func (w *rewriter) areWords(run []cell, borders *[maxRun + 1]bool) bool {
	for from, to := 0, 1; to <= len(run); to++ {
		if !borders[to] {
			continue
		}
		if part := run[from:to]; len(part) > 1 && (isNumber(part) || !w.reader.read(part, 2)) || len(part) == 1 && strings.IndexByte("ai", part[0].options[0]) < 0 {
			return false
		}
		from = to
	}
	return true
}

// isNumber says that there is no letter among some cells: digits apart are no word, however they look.
func isNumber(part []cell) bool {
	return !slices.ContainsFunc(part, func(c cell) bool { return unicode.IsLetter(c.is) })
}

// spell writes a word that was read from spaced letters.
func (w *rewriter) spell(r *reader, part []cell) {
	upper := shouts(part)
	for i, c := range part {
		if i > 0 {
			w.gap(part[i-1].to, c.from, "")
		}
		w.put(c.from, c.to, cased(c, r.picks[i], upper))
	}
}

// short are the words of one or two letters that people stretch or space out.
const short = " a i am an as at be by do go he if in is it me my no of on or so to up us we da du er es im ja so wo zu "

// isShort says that a word of one or two letters is one of the common ones.
func isShort(word []byte) bool { return strings.Contains(short, " "+string(word)+" ") }

// segment cuts letters into the fewest words, marks where each begins and gives how many letters that are:
// all of them, or if some may be left over as many as can be; 0 if words would be too short on average.
func segment(r *reader, run []cell, borders *[maxRun + 1]bool, leave bool) int {
	const never = 1 << 20
	if r.left -= 8 * len(run); r.left < 0 {
		return 0
	}
	var word [maxRun]byte
	for i, c := range run {
		word[i] = c.options[0]
	}
	var cost, from [maxRun + 1]int
	for to := 1; to <= len(run); to++ {
		cost[to] = never
		for at := max(0, to-16); at < to; at++ {
			if part := word[at:to]; cost[at]+1 < cost[to] && (len(part) > 2 && known(part) || isShort(part)) {
				cost[to], from[to] = cost[at]+1, at
			}
		}
	}
	n := len(run)
	for leave && n > 0 && cost[n] >= never {
		n--
	}
	if cost[n]*5 > n*2 {
		return 0
	}
	for at := n; at > 0; at = from[at] {
		borders[at] = true
	}
	return n
}
