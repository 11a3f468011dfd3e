package encoder

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Ids of XLM-R's vocabulary that stand for no piece of a text.
const (
	unigramFirst   = 0
	unigramLast    = 2
	unigramUnknown = 3
)

// space stands before a word's first letter.
const space = "▁"

// unigram cuts words into the likeliest pieces of a vocabulary (Kudo 2018, "Subword Regularization"), as XLM-R does, with case and accents.
type unigram struct {
	ids     map[string]int32
	scores  []float64 // log probabilities
	unknown float64   // what a character costs that no piece has
	longest int       // bytes of a piece
}

// newUnigram reads a vocabulary, a piece and its score a line, its id the line's number.
func newUnigram(vocabulary string) (*unigram, error) {
	u := &unigram{ids: make(map[string]int32, 1<<16)}
	least := math.Inf(1)
	for line := range strings.SplitSeq(vocabulary, "\n") {
		piece, number, _ := strings.Cut(line, "\t")
		score, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
			return nil, fmt.Errorf("piece %d has no score", len(u.scores))
		}
		if id := int32(len(u.scores)); id > unigramUnknown && piece != "<mask>" {
			u.ids[piece] = id
			u.longest = max(u.longest, len(piece))
		}
		u.scores = append(u.scores, score)
		least = min(least, score)
	}
	u.unknown = least - 10
	return u, nil
}

func (u *unigram) marks() (first, last int32) { return unigramFirst, unigramLast }

// append adds a text's ids; no more words once there are limit of them.
func (u *unigram) append(ids []int32, text string, limit int) []int32 {
	from := len(ids)
	for word := range strings.FieldsSeq(spoken(composed(text))) {
		if len(ids)-from >= limit {
			break
		}
		ids = u.word(ids, space+word)
	}
	return ids
}

// reads tells whether nearly all letters of a text are in the vocabulary.
func (u *unigram) reads(text string) bool {
	letters, unknown := 0, 0
	for _, r := range composed(text) {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		if _, ok := u.ids[string(r)]; !ok {
			unknown++
		}
	}
	return letters > 0 && 10*unknown <= letters
}

// reach is the best way to a place in a word: by which piece from where, and the sum of scores.
type reach struct {
	from int
	id   int32
	sum  float64
}

// word takes the pieces whose scores add up to the most (Viterbi). Unknown characters side by side are one piece.
func (u *unigram) word(ids []int32, word string) []int32 {
	var few [64]reach
	ways := few[:]
	if len(word) >= len(few) {
		ways = make([]reach, len(word)+1)
	}
	for i := range ways {
		ways[i] = reach{from: -1}
	}
	ways[0] = reach{}
	try := func(from, to int, id int32, score float64) {
		if sum := ways[from].sum + score; ways[to].from < 0 || sum > ways[to].sum {
			ways[to] = reach{from, id, sum}
		}
	}
	for at := 0; at < len(word); {
		_, size := utf8.DecodeRuneInString(word[at:])
		alone := false
		for end := at + size; end <= len(word) && end-at <= u.longest; {
			if id, ok := u.ids[word[at:end]]; ok {
				try(at, end, id, u.scores[id])
				alone = alone || end == at+size
			}
			_, next := utf8.DecodeRuneInString(word[end:])
			if next == 0 {
				break
			}
			end += next
		}
		if !alone {
			try(at, at+size, unigramUnknown, u.unknown)
		}
		at += size
	}
	begin := len(ids)
	for at := len(word); at > 0; at = ways[at].from {
		if id := ways[at].id; id != unigramUnknown || len(ids) == begin || ids[len(ids)-1] != unigramUnknown {
			ids = append(ids, id)
		}
	}
	slices.Reverse(ids[begin:])
	return ids
}

// shouted is from how many letters on a text without a small one is shouted, and no abbreviation.
const shouted = 8

// spoken is a text that is all in capitals in small letters: capitals are rare among what it was learnt from, and read as abuse.
func spoken(text string) string {
	capitals := 0
	for _, r := range text {
		switch {
		case unicode.IsLower(r):
			return text
		case unicode.IsUpper(r):
			capitals++
		}
	}
	if capitals < shouted {
		return text
	}
	return strings.ToLower(text)
}

// composed is a text in compatibility forms without what cannot be seen, as the data are that it was learnt from (tools/train/data.py).
func composed(text string) string {
	if isASCII(text) && !strings.ContainsAny(text, "^`") {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Mn, unicode.Sk) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
}
