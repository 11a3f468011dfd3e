package scan

import (
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"
)

// frequentWords are words that any text holds.
//
//go:embed frequent.txt
var frequentWords string

// commonWords are words that many texts hold, the most frequent ones of ordinary sentences in English and German.
//
//go:embed common.txt
var commonWords string

var isFrequent, isCommon = wordSet(frequentWords), wordSet(commonWords)

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// Signs stand for class sets in the text of a phrase, besides lower-case letters and digits.
const (
	manyLetters = '_' // one of several letters
	between     = ' ' // a mark that any text holds
	seldom      = '@' // another
)

// signOf gives the sign of a set of runes.
func signOf(s runeSet) byte {
	b := bytesOfRunes(s)
	var letter byte
	for c := range byte(utf8.RuneSelf) {
		if !b.has(c) || !wordBytes.has(c) && c != '\'' && c != '-' {
			continue
		}
		low := c
		if 'A' <= c && c <= 'Z' {
			low += 'a' - 'A'
		}
		if letter != 0 && letter != low {
			return manyLetters
		}
		letter = low
	}
	switch {
	case letter != 0:
		return letter
	case b.and(frequentMarks) != bytes{}:
		return between
	}
	return seldom
}

func isLetter(sign byte) bool { return sign != between && sign != seldom }

var frequentMarks = bytesOfRunes(runeSet{'\t', '\r', ' ', '"', '(', ')', ',', '/', ':', ';'}).or(foreignBytes)

// grade says in how many texts a phrase stands.
type grade uint8

const (
	everywhere grade = iota // in nearly all
	common                  // in many
	rare
)

// gradeOf gives the grade of a phrase, given as a text of signs. It is rare with two words, or a word and a number of
// several digits, or one word that is neither frequent nor common nor a single letter.
func gradeOf(text []byte) grade {
	words, numbers, begin := 0, 0, 0
	g := everywhere
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] == seldom {
			return rare
		}
		if i < len(text) && text[i] != between {
			continue
		}
		w := text[begin:i]
		switch {
		case slices.ContainsFunc(w, func(c byte) bool { return 'a' <= c && c <= 'z' }):
			if words++; len(w) > 1 && !isFrequent[string(w)] {
				if !isCommon[string(w)] {
					return rare
				}
				g = common
			}
		case slices.ContainsFunc(w, func(c byte) bool { return '0' <= c && c <= '9' }) && len(w) > 1:
			numbers = 1
		}
		if words > 0 && words+numbers > 1 {
			return rare
		}
		begin = i + 1
	}
	return g
}

// isTellingWord says whether a word is neither frequent nor a single letter nor a number.
func isTellingWord(w []byte) bool {
	letters := 0
	for _, c := range w {
		if 'a' <= c && c <= 'z' {
			letters++
		}
	}
	return letters > 1 && !isFrequent[string(w)]
}
