package encoder

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Ids of BERT's uncased vocabulary that stand for no piece of a text.
const (
	unknownID = 100
	firstID   = 101
	lastID    = 102
)

// pieces cuts words into the pieces of a vocabulary (WordPiece, Wu et al. 2016), as BERT's uncased models do: without case and
// accents, marks and CJK characters by themselves.
type pieces struct {
	whole, rest map[string]int32 // beginnings of words; what stands as ##rest in the vocabulary
}

// newPieces reads a vocabulary, a piece a line, its id the line's number.
func newPieces(vocabulary string) *pieces {
	p := &pieces{make(map[string]int32, 1<<15), make(map[string]int32, 1<<13)}
	id := int32(0)
	for piece := range strings.SplitSeq(vocabulary, "\n") {
		if rest, ok := strings.CutPrefix(piece, "##"); ok && rest != "" {
			p.rest[rest] = id
		} else {
			p.whole[piece] = id
		}
		id++
	}
	return p
}

func (p *pieces) marks() (first, last int32) { return firstID, lastID }

// append adds a text's ids; no more words once there are limit of them.
func (p *pieces) append(ids []int32, text string, limit int) []int32 {
	from := len(ids)
	text = plain(text)
	for at := 0; at < len(text) && len(ids)-from < limit; {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case unicode.IsSpace(r):
			at += size
		case isMark(r):
			ids = p.word(ids, text[at:at+size])
			at += size
		default:
			end := at + size
			for end < len(text) {
				r, size := utf8.DecodeRuneInString(text[end:])
				if unicode.IsSpace(r) || isMark(r) {
					break
				}
				end += size
			}
			ids = p.word(ids, text[at:end])
			at = end
		}
	}
	return ids
}

// reads tells whether a text is in the language of the vocabulary: more than three of four words are pieces of their own.
// (Of other languages' sentences one in a hundred passes, of English ones of six words or more nineteen in twenty.)
func (p *pieces) reads(text string) bool {
	words, known := 0, 0
	var room [64]byte
	for at := 0; at < len(text); at++ { // as below, where all are ASCII
		word := room[:0]
		for ; at < len(text) && inWord[text[at]] != 0; at++ {
			if c := inWord[text[at]]; c != unseen && len(word) < len(room) {
				word = append(word, c)
			}
		}
		if len(word) > 0 {
			words++
			if _, ok := p.whole[string(word)]; ok {
				known++
			}
		}
		if at < len(text) && text[at] >= utf8.RuneSelf || len(word) == len(room) {
			return p.readsAny(text)
		}
	}
	return 4*known > 3*words
}

// unseen are characters that count for nothing.
const unseen = 1

// inWord is of each byte what stands for it in a word, 0 where a word ends.
var inWord = func() (table [256]byte) {
	for c := range utf8.RuneSelf {
		switch r := rune(c); {
		case unicode.IsSpace(r) && plain(string(r)) != "" || isMark(r) || '0' <= r && r <= '9':
		case plain(string(r)) == "":
			table[c] = unseen
		default:
			table[c] = plain(string(r))[0]
		}
	}
	return table
}()

func (p *pieces) readsAny(text string) bool {
	words, known := 0, 0
	for word := range strings.FieldsFuncSeq(plain(text), func(r rune) bool { return unicode.IsSpace(r) || isMark(r) || '0' <= r && r <= '9' }) {
		words++
		if _, ok := p.whole[word]; ok {
			known++
		}
	}
	return 4*known > 3*words
}

// word takes the longest piece again and again. A word that cannot be made of pieces, or has more than a hundred characters, is unknown.
func (p *pieces) word(ids []int32, word string) []int32 {
	const longest = 100
	from := len(ids)
	if utf8.RuneCountInString(word) > longest {
		return append(ids, unknownID)
	}
	for known := p.whole; word != ""; known = p.rest {
		end := len(word)
		id, ok := known[word]
		for !ok && end > 0 {
			_, size := utf8.DecodeLastRuneInString(word[:end])
			end -= size
			id, ok = known[word[:end]]
		}
		if end == 0 {
			return append(ids[:from], unknownID)
		}
		ids, word = append(ids, id), word[end:]
	}
	return ids
}

// plain is a text without case, accents and what cannot be seen, with spaces around CJK characters.
func plain(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 8)
	if isASCII(text) {
		for i := range len(text) {
			switch c := text[i]; {
			case c == '\t' || c == '\n' || c == '\r':
				b.WriteByte(' ')
			case c < ' ' || c == 0x7f:
			case 'A' <= c && c <= 'Z':
				b.WriteByte(c + 'a' - 'A')
			default:
				b.WriteByte(c)
			}
		}
		return b.String()
	}
	for _, r := range text {
		switch {
		case r == 0 || r == utf8.RuneError || isControl(r):
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case isCJK(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	apart := norm.NFD.String(b.String())
	b.Reset()
	for _, r := range apart {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isMark(r rune) bool {
	return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~' || r >= utf8.RuneSelf && unicode.IsPunct(r)
}

func isControl(r rune) bool {
	return r != '\t' && r != '\n' && r != '\r' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

func isCJK(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B73F ||
		0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF || 0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}
