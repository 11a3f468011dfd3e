package language

import (
	"unicode"
	"unicode/utf8"
)

// PlainlyEnglish tells whether a text is English from end to end: it has English words, and neither frequent small words of other languages, which
// English texts hold but in names and quotations, nor letters that English has not. It errs on the other side.
func PlainlyEnglish(text string) bool {
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
		switch text[from:at] {
		case "":
			at++
		case "the", "and", "you", "your", "with", "this", "that", "are":
			english = true
		case "de", "la", "le", "les", "des", "du", "en", "et", "un", "une", "el", "los", "que", "una", "il", "di", "che", "non", "het", "een", "je", "ik", "niet",
			"zijn", "na", "nie", "jest", "um", "uma", "te", "se", "si", "tu":
			return false
		}
	}
	return english
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
