package language

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// plainly is PlainlyEnglish word for word.
func plainly(text string) bool {
	english := false
	for at := 0; at < len(text); {
		if text[at] >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[at:])
			if unicode.IsLetter(r) {
				return false
			}
			at += size
			continue
		}
		from := at
		for at < len(text) && isLetter(text[at]) {
			at++
		}
		word := " " + text[from:at] + " "
		switch {
		case from == at:
			at++
		case strings.Contains(" "+smallWords[itIs]+" ", word):
			english = true
		case strings.Contains(" "+smallWords[isNot]+" ", word):
			return false
		}
	}
	return english
}

func FuzzPlainlyEnglish(f *testing.F) {
	for _, s := range []string{
		"", "the", "the de", strings.Repeat("with your own eyes, and that is all; ", 9), strings.Repeat("a", 200) + " the", strings.Repeat("the — “quoted” \xff\xc3 ", 20),
		strings.Repeat("the cat and ", 6) + "él", strings.Repeat("the cat and ", 7) + "que", "The the@`[{z", strings.Repeat("you ", 15) + "yo\x00de",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, s := range []string{s, strings.Repeat("with that ", 7) + s, s + strings.Repeat(" are this", 13)} {
			if got, want := PlainlyEnglish(s), plainly(s); got != want {
				t.Errorf("%q: %v, want %v", s, got, want)
			}
		}
	})
}

func BenchmarkPlainlyEnglish(b *testing.B) {
	var texts []string
	for i := range 64 { // different ones, or the processor learns where words end
		var t strings.Builder
		for n := uint32(i + 1); t.Len() < 2048; n = n*1664525 + 1013904223 {
			t.WriteString(strings.Repeat("e", int(n>>28)/2+1) + " "[:n>>24&1] + ", "[:2*(n>>20&1)] + " the ")
		}
		texts = append(texts, t.String())
	}
	b.SetBytes(2048)
	for i := 0; b.Loop(); i++ {
		if !PlainlyEnglish(texts[i%len(texts)]) {
			b.Fatal("not English")
		}
	}
}
