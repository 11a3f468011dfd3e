package classifier

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// lexicons are the terms, a file a language.
//
//go:embed lexicon/*.txt
var lexicons embed.FS

// class is the shape of an identity term. Models see the class in the term's place, the same for all grounds,
// so that what they learn of one group holds for every other.
type class uint8

const (
	persons   class = iota + 1 // women, Muslims
	person                     // woman, Muslim
	adjective                  // female, Islamic
	belief                     // Islam, homosexuality
	slur
	numClasses = iota + 1
)

var classNames = map[string]class{"persons": persons, "person": person, "adjective": adjective, "belief": belief, "slur": slur}

// classHash stands for the terms of a class.
var classHash = func() (out [numClasses]uint32) {
	for c := range out {
		out[c] = mix(0x47525000 + uint32(c))
	}
	return out
}()

// Term is an identity term.
type Term struct {
	Text   string
	Ground audit.Ground
	class  class
	hashes []uint32 // of its words
}

// lexicon finds identity terms in tokens.
type lexicon struct {
	terms []Term
	roles [1 << 16]role   // by the upper half of a word's hash: most words are in no term
	table map[uint32]int  // hash of a term's words -> index in terms
	known [1 << 13]uint64 // by the upper bits of such a hash, a bit: nearly all others need no look into the table
}

// role is the places that a word can have in terms.
type role uint8

const (
	whole role = 1 << iota // a term of one word
	first                  // of several
	later
)

func (l *lexicon) mayKnow(h uint32) bool { return l.known[h>>19]>>(h>>13&63)&1 != 0 }

func (l *lexicon) role(t *token) role { return l.roles[t.raw>>16] }

const maxTermWords = 5

// identity is the lexicon that models are trained with: changing it changes what they read, so a model
// holds its digest. A fault in it is Decode's error.
var identity, lexiconSum, lexiconFault = readLexicons()

func readLexicons() (l *lexicon, digest [sha256.Size]byte, err error) {
	l = &lexicon{table: map[uint32]int{}}
	files, err := lexicons.ReadDir("lexicon")
	sum := sha256.New()
	for i := 0; err == nil && i < len(files); i++ {
		var source []byte
		if source, err = lexicons.ReadFile("lexicon/" + files[i].Name()); err == nil {
			_, _ = sum.Write(source)
			err = l.read(files[i].Name(), string(source))
		}
	}
	return l, [sha256.Size]byte(sum.Sum(nil)), err
}

// read adds the terms of lines "ground class: term, term, …". A term "woman/women" of class person stands for
// both forms, and one with a plus, "muslim+", for itself and its plural in s. With an error comes what was read.
func (l *lexicon) read(name, source string) error {
	for n, line := range strings.Split(source, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		head, list, ok := strings.Cut(line, ":")
		ground, kind, ok2 := strings.Cut(head, " ")
		c := classNames[kind]
		if !ok || !ok2 || c == 0 || !slices.Contains(audit.Grounds, audit.Ground(ground)) {
			return fmt.Errorf("lexicon %s, line %d: want \"ground class: term, …\"", name, n+1)
		}
		for term := range strings.SplitSeq(list, ",") {
			term = strings.TrimSpace(term)
			one, many, both := strings.Cut(term, "/")
			if stem, plus := strings.CutSuffix(term, "+"); plus {
				one, many, both = stem, stem+"s", true
			}
			if err := l.add(one, audit.Ground(ground), c); err != nil {
				return fmt.Errorf("lexicon %s, line %d: %w", name, n+1, err)
			}
			if !both {
				continue
			}
			if c == person {
				c = persons
			}
			if err := l.add(many, audit.Ground(ground), c); err != nil {
				return fmt.Errorf("lexicon %s, line %d: %w", name, n+1, err)
			}
			c = classNames[kind]
		}
	}
	return nil
}

func (l *lexicon) add(text string, g audit.Ground, c class) error {
	ts := words(nil, text, 0, len(text))
	if len(ts) == 0 || len(ts) > maxTermWords {
		return fmt.Errorf("term %q has %d words", text, len(ts))
	}
	t := Term{Text: text, Ground: g, class: c}
	h := uint32(0)
	place := first
	if len(ts) == 1 {
		place = whole
	}
	for _, w := range ts {
		t.hashes = append(t.hashes, w.raw)
		h = pair(h, w.raw)
		l.roles[w.raw>>16] |= place
		place = later
	}
	if i, ok := l.table[h]; ok {
		return fmt.Errorf("term %q stands twice, or looks like %q", text, l.terms[i].Text)
	}
	l.table[h] = len(l.terms)
	l.known[h>>19] |= 1 << (h >> 13 & 63)
	l.terms = append(l.terms, t)
	return nil
}

// at gives the longest term that begins at token i, and its number of tokens; 0 when there is none.
func (l *lexicon) at(ts []token, i int) (t *Term, n int) {
	h := uint32(0)
	for k := 0; k < maxTermWords && i+k < len(ts) && ts[i+k].mark == 0; k++ {
		if k > 0 && l.role(&ts[i+k])&later == 0 {
			break
		}
		if h = pair(h, ts[i+k].raw); !l.mayKnow(h) {
			continue
		}
		if at, ok := l.table[h]; ok {
			t, n = &l.terms[at], k+1
		}
	}
	return t, n
}

// next gives the first token from i on at which a term may begin; len(ts) when there is none.
func (l *lexicon) next(ts []token, i int) int {
	here := role(0)
	for ; i < len(ts); i++ {
		before := here
		here = l.role(&ts[i])
		if before&first != 0 && here&later != 0 {
			return i - 1
		}
		if here&whole != 0 {
			return i
		}
	}
	return i
}

// fold puts class tokens in the place of identity terms, in place. keep, when not nil, says which terms stay
// words: training hides some, so that the model also learns from what stands around unknown ones.
func (l *lexicon) fold(ts []token, keep func(*Term) bool) []token {
	i := l.next(ts, 0)
	out := ts[:i]
	for i < len(ts) {
		t, n := l.at(ts, i)
		if n == 0 || keep != nil && keep(t) {
			out = append(out, ts[i])
			i++
		} else {
			out = append(out, classToken(t, ts[i:i+n]))
			i += n
		}
		next := l.next(ts, i)
		out = append(out, ts[i:next]...)
		i = next
	}
	return out
}

// classToken stands for the words of a term.
func classToken(t *Term, ts []token) token {
	h := classHash[t.class]
	out := token{word: h, prefix: h, suffix: h, start: ts[0].start, end: ts[len(ts)-1].end, ground: uint8(slices.Index(audit.Grounds, t.Ground) + 1)}
	for _, w := range ts {
		out.raw = pair(out.raw, w.raw)
	}
	return out
}
