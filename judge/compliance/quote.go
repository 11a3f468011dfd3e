package compliance

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/evenhand/evenhand/audit"
)

// source is a text in which quotes are looked up.
type source struct {
	text   string // valid UTF-8
	starts []int  // byte of each code point, and the length
	folded *folded
}

func newSource(text string) *source {
	s := &source{text: text, starts: make([]int, 0, len(text)+1)}
	for i := range text {
		s.starts = append(s.starts, i)
	}
	s.starts = append(s.starts, len(text))
	return s
}

// find gives the place of a quote in code points, of several the one that begins nearest to hint, and of two equally
// near the first. The quote must stand in the text verbatim; else in a form that is provably the same text: another
// Unicode composition (NFC or NFD), another run of white space, other typographic quotation marks, no variation
// selectors, or still with the escapes of the JSON string that the model was given. A place never cuts a character from
// its combining marks, and a quote of nothing but punctuation and space is none.
func (s *source) find(quote string, hint uint32) (audit.Span, bool) {
	if !telling(quote) {
		return audit.Span{}, false
	}
	if at, ok := s.exact(quote, hint); ok {
		return at, true
	}
	if s.folded == nil {
		s.folded = fold(s.text)
	}
	if at, ok := s.tolerant(quote, hint); ok {
		return at, true
	}
	var unescaped string
	if strings.Contains(quote, `\`) && json.Unmarshal([]byte(`"`+quote+`"`), &unescaped) == nil && telling(unescaped) {
		if at, ok := s.exact(unescaped, hint); ok {
			return at, true
		}
		return s.tolerant(unescaped, hint)
	}
	return audit.Span{}, false
}

// telling says that there is more than punctuation and space.
func telling(quote string) bool {
	return strings.ContainsFunc(quote, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsPunct(r) && !unicode.IsControl(r) })
}

func (s *source) exact(quote string, hint uint32) (audit.Span, bool) {
	return nearest(s.text, quote, hint, func(from, to int) (audit.Span, bool) {
		start, _ := slices.BinarySearch(s.starts, from)
		end, _ := slices.BinarySearch(s.starts, to)
		return audit.Span{Start: uint32(start), End: uint32(end)}, !s.cuts(start) && !s.cuts(end)
	})
}

func (s *source) tolerant(quote string, hint uint32) (audit.Span, bool) {
	f := s.folded
	quote = strings.TrimSpace(fold(quote).text)
	if quote == "" {
		return audit.Span{}, false
	}
	return nearest(f.text, quote, hint, func(from, to int) (audit.Span, bool) {
		i, _ := slices.BinarySearch(f.starts, from)
		j, _ := slices.BinarySearch(f.starts, to)
		start, end := f.from[i], f.to[j-1]
		whole := (i == 0 || f.to[i-1] <= start) && (j == len(f.from) || f.from[j] >= end)
		return audit.Span{Start: uint32(start), End: uint32(end)}, whole && !s.cuts(start) && !s.cuts(end)
	})
}

// nearest looks at every place of quote, as bytes of text, that at takes.
func nearest(text, quote string, hint uint32, at func(from, to int) (audit.Span, bool)) (best audit.Span, found bool) {
	far := func(a audit.Span) uint32 { return max(a.Start, hint) - min(a.Start, hint) }
	for from := 0; from < len(text); from++ {
		i := strings.Index(text[from:], quote)
		if i < 0 {
			break
		}
		from += i
		here, ok := at(from, from+len(quote))
		if !ok {
			continue
		}
		if found && far(here) >= far(best) {
			if here.Start >= hint {
				break // they only get farther
			}
			continue
		}
		best, found = here, true
	}
	return best, found
}

const (
	joiner    = '\u200d'
	skinLight = '\U0001f3fb'
	skinDark  = '\U0001f3ff'
)

// cuts says that a boundary before the code point i would part what reads as one character.
func (s *source) cuts(i int) bool {
	if i == 0 || i >= len(s.starts)-1 {
		return false
	}
	next := s.text[s.starts[i]:]
	r := []rune(next[:s.starts[i+1]-s.starts[i]])[0]
	if unicode.IsMark(r) || r == joiner || r >= skinLight && r <= skinDark || !norm.NFC.PropertiesString(next).BoundaryBefore() {
		return true
	}
	return strings.HasSuffix(s.text[:s.starts[i]], string(joiner))
}

// folded is a text in the form in which texts that read the same are the same.
type folded struct {
	text     string
	starts   []int // byte of each code point of it, and the length
	from, to []int // of each, the code points of the original that it was made of
}

func fold(text string) *folded {
	f := &folded{}
	var out strings.Builder
	put := func(r rune, from, to int) {
		last := len(f.from) - 1
		switch {
		case r == '\ufe0e' || r == '\ufe0f': // variation selectors
			if last >= 0 {
				f.to[last] = to
			}
			return
		case unicode.IsSpace(r):
			r = ' '
			if last >= 0 && strings.HasSuffix(out.String(), " ") {
				f.to[last] = to
				return
			}
		}
		f.starts, f.from, f.to = append(f.starts, out.Len()), append(f.from, from), append(f.to, to)
		out.WriteRune(plainQuote(r))
	}
	at := 0 // code points passed
	var it norm.Iter
	for it.InitString(norm.NFC, text); !it.Done(); {
		begin := it.Pos()
		composed := string(it.Next())
		original := text[begin:it.Pos()]
		n := len([]rune(original))
		if composed == original {
			for _, r := range original {
				put(r, at, at+1)
				at++
			}
			continue
		}
		for _, r := range composed {
			put(r, at, at+n)
		}
		at += n
	}
	f.text = out.String()
	f.starts = append(f.starts, len(f.text))
	return f
}

func plainQuote(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '‹', '›':
		return '\''
	case '“', '”', '„', '‟', '«', '»':
		return '"'
	}
	return r
}
