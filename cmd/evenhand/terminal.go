package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// Names, texts and answers come from outside, and a terminal obeys what it is shown: a control character in one
// of them could erase the line before it or write another. Nothing of that kind is printed; it is spelled (\x1b, \u202e).

// inLine spells all that is no graphic sign, line breaks and tabs too: for a value within a line.
func inLine[S ~string](s S) string { return spelled(string(s), "") }

// inLines is inLine for a text of several lines, whose line breaks and tabs stay.
func inLines(s string) string { return spelled(s, "\n\t") }

func spelled(s, kept string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !shows(r, kept) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case shows(r, kept):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// shows tells what is printed as it is: letters, marks, digits, punctuation, symbols, spaces, and the joiners, without which
// Persian, Hindi and families of emoji are misspelled. Controls of direction (U+202E) are not among them; nor is what
// stands for a byte that is no UTF-8.
func shows(r rune, kept string) bool {
	return r != utf8.RuneError && unicode.IsGraphic(r) || r == '\u200c' || r == '\u200d' || strings.ContainsRune(kept, r) && r != utf8.RuneError
}

// plainWriter passes on what inLines makes of it. Halves of a character wait for the rest.
type plainWriter struct {
	to   io.Writer
	half []byte
}

// plainly is for output to people that holds values from outside.
func plainly(out io.Writer) io.Writer { return &plainWriter{to: out} }

func (w *plainWriter) Write(p []byte) (int, error) {
	b := append(w.half, p...)
	end := len(b)
	for i := max(0, end-utf8.UTFMax); i < end; i++ {
		if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			end = i
		}
	}
	w.half = append([]byte(nil), b[end:]...)
	if _, err := io.WriteString(w.to, inLines(string(b[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// guarded gives a terminal what it may be shown, and files, pipes and machines what there is.
func guarded(out io.Writer) io.Writer {
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return plainly(out)
	}
	return out
}
