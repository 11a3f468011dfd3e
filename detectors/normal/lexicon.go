package normal

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:generate go run ./words words.txt

// wordList is what an ambiguous spelling may be read as: the words of the rule packs and of more.txt, made
// by ./words.
//
//go:embed words.txt
var wordList string

// lexicon holds the words, 3 MB with its map.
type lexicon struct {
	words  map[string]struct{}
	masked map[mask][]string // those of four characters or more
}

// mask is what a masked word shows surely: its first letter and its length in bytes.
type mask struct {
	first byte
	size  int
}

var vocabulary = sync.OnceValue(func() *lexicon {
	l := &lexicon{words: map[string]struct{}{}, masked: map[mask][]string{}}
	for line := range strings.Lines(wordList) {
		word := strings.TrimSpace(line)
		l.words[word] = struct{}{}
		if len(word) > 3 && isASCII(word) {
			m := mask{word[0], len(word)}
			l.masked[m] = append(l.masked[m], word)
		}
	}
	return l
})

// known says that a word in lower case is one of the vocabulary, or the plural of one.
func known(word []byte) bool {
	l := vocabulary()
	if _, ok := l.words[string(word)]; ok {
		return true
	}
	if n := len(word); n > 4 && word[n-1] == 's' && word[n-2] != 's' {
		_, ok := l.words[string(word[:n-1])]
		return ok
	}
	return false
}

// unmask gives the one word that a word with * for letters can be, "" if there are several or none.
func unmask(word []byte) string {
	found := ""
	for _, candidate := range vocabulary().masked[mask{word[0], len(word)}] {
		if fits(word, candidate) {
			if found != "" {
				return ""
			}
			found = candidate
		}
	}
	return found
}

func fits(word []byte, candidate string) bool {
	for i, c := range word {
		if c != '*' && c != candidate[i] {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
