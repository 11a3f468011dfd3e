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

// isRare says whether a phrase, given as a text of signs, holds two words, or one that is neither frequent
// nor a single letter nor a number.
func isRare(text []byte) bool {
	words, begin := 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] == seldom {
			return true
		}
		if i < len(text) && text[i] != between {
			continue
		}
		w := text[begin:i]
		if slices.ContainsFunc(w, func(c byte) bool { return 'a' <= c && c <= 'z' }) {
			if words++; words > 1 || len(w) > 1 && !isFrequent[string(w)] {
				return true
			}
		}
		begin = i + 1
	}
	return false
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
