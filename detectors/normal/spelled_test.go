package normal_test

import (
	"testing"
	"unicode/utf8"

	"github.com/evenhand/evenhand/detectors/normal"
)

func TestSpelled(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"as it came", "Card 4111 – “4111” wоmen h4te **bold** R&D AT&T; é", "Card 4111 – “4111” wоmen h4te **bold** R&D AT&T; é"},
		{"entities", "bob&#64;example&#x2e;org &commat; &amp;#64;", "bob@example.org @ @"},
		{"invisible", "4111\u200b1111 exam\u00adple \u202e12\u202c \ufeffx", "41111111 example 12 x"},
		{"wide", "４１１１ｂｏｂ＠ｘ．ｏｒｇ", "4111bob@x.org"},
		{"mathematical", "𝟒𝟏𝟏𝟏 𝚋𝚘𝚋", "4111 bob"},
		{"upon itself", "&#65300;&#8203;１", "41"},
		{"joiners of words", "می\u200cخواهم", "می\u200cخواهم"},
		{"no UTF-8", "a\xff&#64;\xfeb", "a\xff@\xfeb"},
	} {
		got := normal.Spelled(tc.text)
		if got.String() != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got.String(), tc.want)
		}
		if from, to := got.Original(0, len(got.String())); from != 0 && tc.name != "invisible" || to != len(tc.text) {
			t.Errorf("%s: all of it came from [%d, %d) of %d bytes", tc.name, from, to, len(tc.text))
		}
	}
}

// Every part of what is spelled comes from whole characters of the original, in their order.
func FuzzSpelled(f *testing.F) {
	for _, seed := range []string{"bob&#64;x.org", "４\u200b１", "&amp;amp;#64;", "\xff＠"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := normal.Spelled(text)
		if utf8.ValidString(text) && !utf8.ValidString(s.String()) {
			t.Fatalf("%q is no UTF-8", s.String())
		}
		last := 0
		for i, r := range s.String() {
			size := utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, size = utf8.DecodeRuneInString(s.String()[i:])
			}
			from, to := s.Original(i, i+size)
			if from < last || to <= from || to > len(text) {
				t.Fatalf("%q: [%d, %d) comes from [%d, %d) after %d", text, i, i+size, from, to, last)
			}
			last = from
		}
	})
}
