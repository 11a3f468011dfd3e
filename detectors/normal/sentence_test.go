package normal

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzSentenceEnd: a sentence ends where it does by the plain rules, at every byte.
func FuzzSentenceEnd(f *testing.F) {
	f.Add("See e.g. the U.S. Senate, Dr. No and Mr. J. Smith vs. Fig. 3. Then go. MIN. 5 and min. five")
	f.Add("1. One\n 2. Two\n\t3. Mai, am 3. Mai 2020. 12. ist gut. x 4. y")
	f.Add("Well... perhaps?! (\"So.\") ... Ünd. Etc. bzw. ing. İnc. min. mİn. \u212aorp. Exÿl. _co. 他们。 آ؟ \xe3\x80")
	for a := range abbreviations {
		f.Add("The " + a + ". the " + strings.ToUpper(a) + ". 5 " + strings.ToUpper(a[:1]) + a[1:] + ". The")
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i := range len(text) {
			if !mayEnd[text[i]] {
				continue
			}
			end, ok := endAt(text, i)
			if wantEnd, want := plainEndAt(text, i); ok != want || ok && end != wantEnd {
				t.Fatalf("%q at %d: %d %v, want %d %v", text, i, end, ok, wantEnd, want)
			}
		}
	})
}

// A line break ends a sentence unless a mail program only wrapped the line there.
func TestWrapped(t *testing.T) {
	const line = "The panel found that the references were strong"
	for text, sentences := range map[string]int{
		line + "\nand the answers clear.":                   1,
		line + ",\nand the answers clear.":                  1,
		line + "\nünd the answers clear.":                   1,
		line + "\nand the answers clear\nthroughout.":       2, // the second line is short
		line + "\n" + strings.ToLower(line) + "\nand so on": 1,
		line + ".\nand the answers clear.":                  2,
		line + "\n\nand the answers clear.":                 2,
		line + "\nThe answers were clear.":                  2,
		line + "\n- and the answers clear.":                 2,
		line + "\n  and the answers clear.":                 2,
		line + "\nreason: the answers":                      2,
		line + "\nreason = the answers":                     2,
		line + "\nb) the answers":                           2,
		line + "\nfirst | second":                           2,
		line + "\nanswers\nreferences":                      3,
		line + " |\nand the answers clear.":                 2,
		"apples\nbananas\ncherries from the garden":         3,
	} {
		n := 0
		for from := 0; from < len(text); {
			end := SentenceEnd(text, from)
			if strings.TrimSpace(text[from:end]) != "" {
				n++
			}
			from = end
		}
		if n != sentences {
			t.Errorf("%q: %d sentences, want %d", text, n, sentences)
		}
	}
}

// plainEndAt is endAt without tables.
func plainEndAt(text string, i int) (end int, ok bool) {
	switch c := text[i]; {
	case c == '\n':
		return i + 1, !wrapped(text, i) // see TestWrapped
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(text[i:])
		return i + size, r == '。' || r == '।' || r == '؟' || r == '۔'
	}
	end = i
	for end < len(text) && strings.IndexByte(".!?", text[end]) >= 0 {
		end++
	}
	marks := end - i
	for end < len(text) && strings.IndexByte(`"')]*`, text[end]) >= 0 {
		end++
	}
	if end < len(text) && text[end] != ' ' && text[end] != '\n' && text[end] != '\t' && text[end] != '\r' {
		return 0, false
	}
	dots := text[i] == '.' && strings.Trim(text[i:i+marks], ".") == ""
	switch {
	case dots && marks == 1 && (i == 0 || text[i-1] != '.'):
		return end, !plainAbbreviates(text, i, end)
	case dots: // "well... perhaps"
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[end:], " "))
		return end, !unicode.IsLower(next)
	}
	return end, true
}

// plainAbbreviates is abbreviates that looks up every word.
func plainAbbreviates(text string, i, end int) bool {
	from := i
	for from > 0 && isWord(text[from-1]) {
		from--
	}
	word := text[from:i]
	switch {
	case word == "":
		return false
	case kinds[word[0]]&digit != 0:
		first := strings.TrimLeft(text[strings.LastIndexByte(text[:from], '\n')+1:from], " \t") == ""
		return len(word) < 3 && (first || months[nextWord(text, end)])
	case len(word) == 1 && kinds[word[0]]&letter != 0: // "U.S.", "e.g.", "J. Smith"
		return end < len(text) && text[end] != '\n' && !starters[nextWord(text, end)]
	case len(word) > 7:
		return false
	}
	if end == len(text) || text[end] == '\n' {
		return false
	}
	switch next := nextWord(text, end); abbreviations[strings.ToLower(word)] {
	case always:
		return true
	case often:
		return !starters[next]
	case numbering:
		return next != "" && kinds[next[0]]&digit != 0
	}
	return false
}
