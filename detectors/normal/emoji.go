package normal

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

// emojiWords is our own table: an emoji, its word, and the word for several if it has one.
//
//go:embed emoji.txt
var emojiWords string

// emojiTable gives the words of emoji: one, several.
var emojiTable = sync.OnceValue(func() map[string][2]string {
	table := map[string][2]string{}
	for line := range strings.Lines(emojiWords) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		one := strings.ReplaceAll(fields[1], "_", " ")
		several := one
		if len(fields) > 2 {
			several = strings.ReplaceAll(fields[2], "_", " ")
		}
		table[fields[0]] = [2]string{one, several}
	}
	return table
})

func isEmoji(r rune) bool {
	switch {
	case r >= 0x1f000 && r < 0x1f100, r >= 0x1f150 && r < 0x1f200, r >= 0x1f300 && r < 0x1f900 && (r < 0x1f650 || r >= 0x1f680), r >= 0x1f900 && r < 0x1fb00:
		return true
	case r >= 0x2600 && r < 0x27c0:
		return r < 0x2776 || r > 0x2793
	}
	return r == 0x231a || r == 0x231b || r >= 0x23e9 && r <= 0x23fa || r == 0x2b50 || r == 0x2b55 || r == 0x2b1b || r == 0x2b1c
}

// emoji writes the emoji at i in words and gives its length: a word for each part that the table has, a
// space when there is none. Skin tones and signs of sex within one go. Enclosed letters are letters.
func (w *rewriter) emoji(i int) int {
	r, size := utf8.DecodeRuneInString(w.src[i:])
	switch {
	case r >= 0x1f1e6 && r <= 0x1f1ff:
		return w.flags(i)
	case r >= 0x1f150 && r <= 0x1f169:
		w.put(i, i+size, string('A'+r-0x1f150))
		return size
	case r >= 0x1f170 && r <= 0x1f189:
		w.put(i, i+size, string('A'+r-0x1f170))
		return size
	}
	n, parts := sequence(w.src[i:])
	end := i + n
	for strings.HasPrefix(w.src[end:], w.src[i:i+n]) { // the same again says the same
		end += n
	}
	several := 0
	if end > i+n || followsPlural(w.src[:i]) {
		several = 1
	}
	var words []string
	if whole, ok := emojiTable()[parts]; ok {
		words = append(words, whole[several])
	} else {
		for _, part := range parts {
			if one, ok := emojiTable()[string(part)]; ok {
				words = append(words, one[several])
			}
		}
	}
	w.put(i, end, w.apart(i, end, strings.Join(words, " ")))
	return end - i
}

// sequence gives the length of the emoji at the front and the characters that tell it from others.
func sequence(s string) (n int, parts string) {
	var b strings.Builder
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		switch {
		case n == 0:
			b.WriteRune(r)
		case r == 0xfe0f || r == 0xfe0e || r == 0x20e3 || r >= 0x1f3fb && r <= 0x1f3ff || r >= 0xe0020 && r <= 0xe007f:
		case r == 0x200d:
			next, wide := utf8.DecodeRuneInString(s[n+size:])
			if !isEmoji(next) {
				return n + size, b.String()
			}
			if next != '♀' && next != '♂' {
				b.WriteRune(next)
			}
			size += wide
		default:
			return n, b.String()
		}
		n += size
	}
	return n, b.String()
}

// followsPlural says that a text ends in a word that several of something follow.
func followsPlural(s string) bool {
	s = strings.TrimRight(s[max(0, len(s)-10):], " ")
	word := s[strings.LastIndexByte(s, ' ')+1:]
	for _, plural := range []string{"are", "were", "these", "those", "like", "sind", "wie"} {
		if strings.EqualFold(word, plural) {
			return true
		}
	}
	return false
}

// apart puts spaces around words where none are.
func (w *rewriter) apart(from, to int, words string) string {
	if from > 0 && w.src[from-1] != ' ' && w.src[from-1] != '\n' || words == "" {
		words = " " + words
	}
	if to < len(w.src) && kinds[w.src[to]]&(letter|digit|wide) != 0 && words != " " {
		words += " "
	}
	return words
}

// flags writes the regional letters at i and gives their length. A pair is a country's flag, and so are
// several; what makes a word, or no flags, was meant as letters.
func (w *rewriter) flags(i int) int {
	var letters []byte
	j := i
	for j < len(w.src) {
		r, size := utf8.DecodeRuneInString(w.src[j:])
		if r < 0x1f1e6 || r > 0x1f1ff {
			break
		}
		letters, j = append(letters, byte('a'+r-0x1f1e6)), j+size
	}
	var countries []string
	for k := 0; k+1 < len(letters); k += 2 {
		if c, ok := emojiTable()[w.src[i+4*k:i+4*k+8]]; ok {
			countries = append(countries, c[0])
		}
	}
	switch {
	case len(letters) == 2 && len(countries) == 0:
		w.put(i, j, w.apart(i, j, "flag"))
	case len(letters)%2 == 0 && len(countries) == len(letters)/2 && (len(letters) < 4 || !known(letters)):
		w.put(i, j, w.apart(i, j, strings.Join(countries, " ")))
	default:
		for k, c := range letters {
			w.put(i+4*k, i+4*k+4, string(c))
		}
	}
	return j - i
}
