package linguistic

import (
	_ "embed" // the list
	"strings"
)

//go:embed coded.txt
var codedFile string

const (
	masculine, feminine = 0, 1

	// strongBalance is gender-decoder's bound of "strongly coded": one side has more than three words over the other.
	strongBalance = 3
	// prior is added to the number of words, so that one word alone is no balance.
	prior = 4
	// mostCoded words are shown.
	mostCoded = 12

	codedConfidence = 940_000 // see TestCodedAdverts
)

// codedWords are the stems of Gaucher, Friesen & Kay (2011) and words that they catch by accident.
type codedWords struct {
	stems [2]map[byte][]string // by first letter
	not   map[string]bool
}

func parseCoded(file string) *codedWords {
	c := &codedWords{not: map[string]bool{}}
	c.stems[masculine], c.stems[feminine] = map[byte][]string{}, map[byte][]string{}
	for line := range strings.Lines(file) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		for _, w := range fields[1:] {
			switch fields[0] {
			case "masculine":
				c.stems[masculine][w[0]] = append(c.stems[masculine][w[0]], w)
			case "feminine":
				c.stems[feminine][w[0]] = append(c.stems[feminine][w[0]], w)
			default:
				c.not[w] = true
			}
		}
	}
	return c
}

// codedBalance is the gendered_language score of a job advert: with m words that Gaucher, Friesen & Kay found in adverts of
// men's occupations and f of women's,
//
//	balance = (m − f) / (m + f + 4)            -1..1, masculine above 0
//	score   = |balance|
//
// It is strongly coded, and a finding, where |m − f| > 3, as gender-decoder has it: of the coded words of the heavier side.
type codedBalance struct{ spans [2][][2]int }

func (c *codedWords) balance(text string) (b codedBalance) {
	var lower [longestWord]byte
	for at := range wordsOf(text) {
		if at[1]-at[0] > longestWord {
			continue
		}
		key := lower[:0]
		for i := at[0]; i < at[1]; i++ {
			key = append(key, lowerASCII(text[i]))
		}
		for side := range c.stems {
			for _, stem := range c.stems[side][key[0]] {
				if strings.HasPrefix(string(key), stem) && !c.not[string(key)] {
					b.spans[side] = append(b.spans[side], at)
					break
				}
			}
		}
	}
	return b
}

func (b *codedBalance) over() int  { return len(b.spans[masculine]) - len(b.spans[feminine]) }
func (b *codedBalance) words() int { return len(b.spans[masculine]) + len(b.spans[feminine]) }

// score is |balance|, 0..1.
func (b *codedBalance) score() float64 {
	return float64(max(b.over(), -b.over())) / float64(b.words()+prior)
}

func (b *codedBalance) rule() string {
	if b.over() > 0 {
		return RuleMasculine
	}
	return RuleFeminine
}

// strong gives the words of the heavier side where the text is strongly coded.
func (b *codedBalance) strong() [][2]int {
	side := feminine
	switch over := b.over(); {
	case over > strongBalance:
		side = masculine
	case over >= -strongBalance:
		return nil
	}
	return b.spans[side][:min(len(b.spans[side]), mostCoded)]
}
