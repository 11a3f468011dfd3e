package gateway

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// words is a text that comes in pieces. Providers cut between any two escapes of JSON, also between the two that are one character
// (\ud83d and \udc4b): the first waits for the other.
type words struct {
	said strings.Builder
	half rune // the first of two; 0 for none
}

// A half of a character at an end of a piece has three bytes, as WTF-8 has it; no other text has such bytes.
const halfBytes = 3

// wordsOf gives the text of a string of JSON for words. Halves of a character at its ends are kept; elsewhere they are no text.
func wordsOf(v gjson.Result) string {
	inner := v.Raw
	if v.Type != gjson.String || len(inner) < 2 || !strings.Contains(inner, `\u`) {
		return v.String()
	}
	inner = inner[1 : len(inner)-1]
	before, after := "", ""
	if r := escaped(inner); 0xdc00 <= r && r < 0xe000 {
		before, inner = halfText(r), inner[6:]
	}
	if at := len(inner) - 6; at >= 0 && (at-len(strings.TrimRight(inner[:at], `\`)))%2 == 0 {
		if r := escaped(inner[at:]); 0xd800 <= r && r < 0xdc00 {
			inner, after = inner[:at], halfText(r)
		}
	}
	return before + gjson.Parse(`"`+inner+`"`).String() + after
}

// escaped gives the unit of UTF-16 that an escape stands for with which s begins; 0 where it begins with none.
func escaped(s string) (r rune) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0
	}
	for _, c := range []byte(s[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0
		}
	}
	return r
}

func halfText(r rune) string {
	return string([]byte{byte(r>>12) | 0xe0, byte(r>>6)&0x3f | 0x80, byte(r)&0x3f | 0x80})
}

// halfAt reads what halfText wrote at the beginning of s; 0 is none.
func halfAt(s string) rune {
	if len(s) < halfBytes || s[0] != 0xed || s[1] < 0xa0 {
		return 0
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f)
}

// add adds a piece.
func (w *words) add(s string) {
	if s == "" {
		return
	}
	if r := halfAt(s); 0xdc00 <= r {
		if s = s[halfBytes:]; w.half == 0 {
			w.said.WriteRune(utf8.RuneError)
		} else {
			w.said.WriteRune(utf16.DecodeRune(w.half, r))
		}
	} else if w.half != 0 {
		w.said.WriteRune(utf8.RuneError)
	}
	w.half = 0
	if at := len(s) - halfBytes; at >= 0 {
		if w.half = halfAt(s[at:]); w.half != 0 {
			s = s[:at]
		}
	}
	w.said.WriteString(s)
}

// String gives the text so far; a half that still waits is no text.
func (w *words) String() string {
	if w.half != 0 {
		return w.said.String() + string(utf8.RuneError)
	}
	return w.said.String()
}

// Len is the length of String in bytes.
func (w *words) Len() int {
	if w.half != 0 {
		return w.said.Len() + utf8.RuneLen(utf8.RuneError)
	}
	return w.said.Len()
}
