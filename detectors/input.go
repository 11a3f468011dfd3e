package detectors

import (
	"sync"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/refute"
)

// Hit is one match of one pattern of a rule, in bytes of the original text.
type Hit struct {
	Rule       int // index in the detector's Rules
	Start, End int
}

// Input is what detectors read: computed once per interaction, shared, read-only.
type Input struct {
	Interaction *audit.Interaction
	Profile     audit.Profile // of the interaction's domain

	sides     [2]textIndex
	normal    [2]normal.Text
	plain     [2]bool // it is plainly English
	sentences [2]sentences
	hits      []sideHits // only detectors with hits are in it
}

// Sentence is a sentence of a side's normal text, in bytes of it, [Start, End), white space around it left out.
type Sentence struct{ Start, End int }

func newInput(in *audit.Interaction, p audit.Profile) *Input {
	x := &Input{Interaction: in, Profile: p}
	for _, side := range [...]audit.Side{audit.Output, audit.Input} {
		i, text := sideIndex(side), in.Text(side)
		x.sides[i].text = text
		x.normal[i] = normal.Of(text)
	}
	return x
}

// Normal gives a side's text as rules and models read it.
func (in *Input) Normal(side audit.Side) *normal.Text { return &in.normal[sideIndex(side)] }

// Sentences gives the sentences of a side's normal text, computed when first asked for.
func (in *Input) Sentences(side audit.Side) []Sentence {
	i := sideIndex(side)
	s := &in.sentences[i]
	s.once.Do(func() { s.list = sentencesOf(in.normal[i].String()) })
	return s.list
}

// refuted tells whether the text around the finding at [start, end) of a side's original refutes it, see [refute.Stated].
func (in *Input) refuted(side audit.Side, start, end int) bool {
	return refute.Stated(in.Interaction.Text(side), start, end)
}

// Refuted tells of [start, end) of a side's normal text whether the text around it says that it is wrong, or an example of what is not
// allowed. Learned detectors ask it of what they would say is biased or toxic; of hits of rules it was asked before.
func (in *Input) Refuted(side audit.Side, start, end int) bool {
	start, end = in.Normal(side).Original(start, end)
	return in.refuted(side, start, end)
}

// NormalSpan turns byte offsets of a side's normal text into a span of code points of the original.
func (in *Input) NormalSpan(side audit.Side, start, end int) audit.Span {
	start, end = in.Normal(side).Original(start, end)
	return in.Span(side, start, end)
}

type sentences struct {
	once sync.Once
	list []Sentence
}

type sideHits struct {
	detector string
	side     audit.Side
	hits     []Hit
}

// Hits gives the hits of a rule-based detector on one side, ordered by rule, start, end: what [rules.Accept] leaves
// of the matches.
func (in *Input) Hits(detectorID string, side audit.Side) []Hit {
	for i := range in.hits {
		if in.hits[i].side == side && in.hits[i].detector == detectorID {
			return in.hits[i].hits
		}
	}
	return nil
}

func (in *Input) add(detectorID string, side audit.Side, h Hit) {
	for i := range in.hits {
		if in.hits[i].side == side && in.hits[i].detector == detectorID {
			in.hits[i].hits = append(in.hits[i].hits, h)
			return
		}
	}
	in.hits = append(in.hits, sideHits{detectorID, side, []Hit{h}})
}

// Span turns byte offsets on one side into a span of code points; repeated use stays cheap.
func (in *Input) Span(side audit.Side, start, end int) audit.Span {
	return in.sides[sideIndex(side)].span(start, end)
}

func sideIndex(s audit.Side) int {
	if s == audit.Input {
		return 1
	}
	return 0
}

// stride is the distance in bytes between two marks of a textIndex.
const stride = 512

// textIndex counts code points up to any byte offset in O(stride).
type textIndex struct {
	text  string
	once  sync.Once
	ascii bool
	marks []uint32 // code points before the first boundary at or after byte i*stride
}

func (x *textIndex) span(start, end int) audit.Span {
	x.once.Do(x.build)
	return audit.Span{Start: x.count(start), End: x.count(end)}
}

func (x *textIndex) build() {
	x.ascii = isASCII(x.text)
	if x.ascii {
		return
	}
	n, at := uint32(0), 0
	for at < len(x.text) {
		if at >= len(x.marks)*stride {
			x.marks = append(x.marks, n)
		}
		_, size := utf8.DecodeRuneInString(x.text[at:])
		at += size
		n++
	}
}

// count gives the number of code points that start before byte offset b.
func (x *textIndex) count(b int) uint32 {
	if x.ascii {
		return uint32(b)
	}
	m := b / stride
	if m >= len(x.marks) {
		m = len(x.marks) - 1
	}
	if m < 0 {
		return 0
	}
	at, n := x.boundary(m*stride), x.marks[m]
	for at < b {
		_, size := utf8.DecodeRuneInString(x.text[at:])
		at += size
		n++
	}
	return n
}

// boundary gives the first code point boundary at or after at, as decoding from the front meets it.
// A continuation byte belongs to the code point before it only if that one is valid and reaches here.
func (x *textIndex) boundary(at int) int {
	for back := 1; back < utf8.UTFMax && at-back >= 0; back++ {
		if r, size := utf8.DecodeRuneInString(x.text[at-back:]); utf8.RuneStart(x.text[at-back]) {
			if (r != utf8.RuneError || size > 1) && size > back {
				return at - back + size
			}
			return at
		}
	}
	return at
}

func isASCII(s string) bool {
	for len(s) >= 8 {
		if (s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7])&0x80 != 0 {
			return false
		}
		s = s[8:]
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
