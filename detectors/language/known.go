package language

import (
	_ "embed"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed small.txt
var smallFile string

// learnt are how many languages of small.txt the detectors know: the first ones.
const learnt = 8

// languagesOf tells by a small word in which languages it is frequent, a bit for each line of small.txt; telling are the words that no learnt language has.
var languagesOf, telling = func() (languages map[string]uint64, telling map[string]bool) {
	languages, telling = map[string]uint64{}, map[string]bool{}
	i := 0
	for line := range strings.Lines(smallFile) {
		_, words, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for w := range strings.FieldsSeq(words) {
			languages[w] |= 1 << i
		}
		i++
	}
	for w, of := range languages {
		if weight, known := weights[w]; of&(1<<learnt-1) == 0 && (!known || weight >= 0) {
			telling[w] = true
		}
	}
	return languages, telling
}()

// foreign are Latin letters that no word of a learnt language has.
const foreign = "åøðþőűşğıțșăčřěůďťľĺŕđāēīūģķļņėųįħơư"

// How a text is told.
const (
	least  = 3    // letters of another script make a text of it, or small words and letters of another language
	enough = 12   // by so many small words a text leads to be known without reading on
	most   = 4000 // letters are read
)

// Known tells whether a text is in one of the languages that the detectors have learnt (English, German, Spanish, French, Italian, Dutch, Polish,
// Portuguese), as far as its script and its small words tell. Of others nothing is found but what stands in every language: numbers, addresses.
// A text of a few words may be in any.
func Known(text string) bool {
	latin, other := 0, 0 // letters
	told := 0            // words that no learnt language has
	theirs := 0          // of them, those of foreign letters that no language has for a small word: they count for all others
	var count [64]int    // small words by language
	for at := 0; at < len(text) && latin+other < most; {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case !unicode.IsLetter(r):
			at += size
			continue
		case !unicode.Is(unicode.Latin, r):
			n := 0
			for at < len(text) && unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) {
				n++
				at += size
				r, size = utf8.DecodeRuneInString(text[at:])
			}
			if n > 1 { // a Greek letter alone is a number's
				other += n
			}
			continue
		}
		from, strange := at, false
		for at < len(text) && (unicode.Is(unicode.Latin, r) || r == '\'' || unicode.Is(unicode.Mn, r)) {
			strange = strange || r >= utf8.RuneSelf && strings.ContainsRune(foreign, unicode.ToLower(r))
			latin++
			at += size
			r, size = utf8.DecodeRuneInString(text[at:])
		}
		word := strings.ToLower(strings.TrimRight(text[from:at], "'"))
		of := languagesOf[word]
		for left := of; left != 0; left &= left - 1 {
			count[bits.TrailingZeros64(left)]++
		}
		if strange = strange && of == 0; strange {
			theirs++
		}
		if strange || telling[word] {
			told++
		}
		if of&(1<<learnt-1) != 0 && told == 0 && other == 0 && maxOf(count[:learnt]) >= enough {
			return true
		}
	}
	if other > latin {
		return other < least
	}
	theirs += maxOf(count[learnt:])
	return told < least-1 || theirs < least-1 || theirs <= maxOf(count[:learnt])
}

func maxOf(n []int) (most int) {
	for _, n := range n {
		most = max(most, n)
	}
	return most
}
