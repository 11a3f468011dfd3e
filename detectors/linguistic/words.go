package linguistic

import (
	_ "embed" // the list
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed words.txt
var wordsFile string

// entry is what the lexicon says of a word; the zero entry is an unknown word.
type entry struct {
	valence int8  // -4..4
	shift   shift // what it does to words behind it
	role    uint8 // 0: none
}

type shift uint8

const (
	keeps shift = iota
	negates
	strengthens
	weakens
	turns // "but": what follows weighs more than what went before
)

// lexicon maps lower-case words to what they say.
type lexicon struct {
	words map[string]entry
	roles []string // by number; 0 is no role
}

// parseWords reads words.txt, which ships with the program.
func parseWords(file string) *lexicon {
	l := &lexicon{words: map[string]entry{}, roles: []string{""}}
	shifts := map[string]shift{"not": negates, "more": strengthens, "less": weakens, "but": turns}
	for line := range strings.Lines(file) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		role, isRole := strings.CutPrefix(fields[0], "role:")
		if isRole {
			l.roles = append(l.roles, role)
		}
		for _, w := range fields[1:] {
			e := l.words[w]
			switch {
			case isRole:
				e.role = uint8(len(l.roles) - 1)
			case shifts[fields[0]] != keeps:
				e.shift = shifts[fields[0]]
			default:
				v, _ := strconv.Atoi(fields[0])
				e.valence = int8(v)
			}
			l.words[w] = e
		}
	}
	return l
}

// longestWord is more bytes than any word of the lexicon has.
const longestWord = 24

// look gives the words of a sentence, unknown ones too since distance counts; base is added to their places.
func (l *lexicon) look(s string, base int) (words []word, shouts int) {
	words = make([]word, 0, len(s)/6+1)
	var lower [longestWord]byte
	for at := range wordsOf(s) {
		w := word{start: base + at[0], end: base + at[1]}
		if n := at[1] - at[0]; n <= longestWord {
			key := lower[:0]
			for i := at[0]; i < at[1]; i++ {
				key = append(key, lowerASCII(s[i]))
			}
			w.entry = l.words[string(key)]
		}
		words = append(words, w)
	}
	return words, strings.Count(s, "!")
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// wordsOf yields runs of letters, digits, apostrophes and hyphens; every byte beyond ASCII counts as a letter.
func wordsOf(s string) func(yield func([2]int) bool) {
	return func(yield func([2]int) bool) {
		for i := 0; i < len(s); i++ {
			if !inWord(s[i]) {
				continue
			}
			from := i
			for i < len(s) && inWord(s[i]) {
				i++
			}
			if !yield([2]int{from, i}) {
				return
			}
		}
	}
}

func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '\'' || c == '-' || c >= utf8.RuneSelf
}
