package scan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
)

// Letters whose folds lie in other blocks, have other lengths, or no second case; and what they are mistaken for.
const foldLetters = "kKsSåÅßẞüÜéÉçıiİIжЖяЯσςΣµμθϑǆǅωΩДдңҢァ日"

// ofFolds makes a word of letters, and other spellings of it under simple folding.
func ofFolds(r *rand.Rand, n int) []rune {
	letters := []rune(foldLetters)
	word := make([]rune, n)
	for i := range word {
		word[i] = letters[r.IntN(len(letters))]
	}
	return word
}

func respelt(r *rand.Rand, word []rune) string {
	var b strings.Builder
	for _, c := range word {
		for range r.IntN(4) {
			c = unicode.SimpleFold(c)
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Rules with umlauts, accents, ß, Cyrillic and Greek find every spelling that package regexp finds, U+212A
// and U+017F for k and s among them, and nothing else.
func TestFoldsOfRules(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	hits := 0
	for round := range 60 {
		var rules []string
		var words [][]rune
		word := func() string {
			w := ofFolds(r, 1+r.IntN(4))
			words = append(words, w)
			return string(w)
		}
		for i := range 12 {
			switch i % 6 {
			case 0:
				rules = append(rules, word())
			case 1:
				rules = append(rules, fmt.Sprintf(`\b%s\s+%s\b`, word(), word()))
			case 2:
				rules = append(rules, fmt.Sprintf(`(?:%s|%s|%s)\s+(?:%s|%s)`, word(), word(), word(), word(), word()))
			case 3:
				rules = append(rules, fmt.Sprintf(`%s[^.!?\n]{0,12}%s`, word(), word()))
			case 4:
				rules = append(rules, fmt.Sprintf(`(?:^|[^\pL])%s(?:$|[^\pL])`, word()))
			default:
				rules = append(rules, fmt.Sprintf(`%s(?-i:%s)[%s]?%s`, word(), word(), word(), word()))
			}
		}
		s, o := mustCompile(t, rules, Options{}), newOracle(rules)
		for range 6 {
			var b strings.Builder
			for range 60 {
				b.WriteString(respelt(r, words[r.IntN(len(words))]))
				b.WriteString([]string{" ", " ", "\n", ". ", "", "x", "\xe2\x84"}[r.IntN(7)])
			}
			if d := different(s, o, rules, b.String()); d != "" {
				t.Fatalf("round %d: %s", round, d)
			}
			hits += len(s.Scan(b.String(), nil))
		}
	}
	if hits < 2000 {
		t.Errorf("%d hits only", hits)
	}
}

func TestKelvinAndLongS(t *testing.T) {
	s := mustCompile(t, []string{`\bkiosk\b`, `straße`, `Müller`, `ёлка`}, Options{})
	for text, want := range map[string]string{
		"\u212aio\u017f\u212a": "", // \b is ASCII's, as in package regexp: no word begins at U+212A
		"a \u212aIOSk":         "",
		"kio\u017f\u212a-":     "",
		"KIO\u017fK":           "[{0 0 6}]",
		"STRAẞE":               "[{1 0 8}]",
		"\u017ftraße":          "[{1 0 8}]",
		"strasse":              "",
		"MÜLLER":               "[{2 0 7}]",
		"Mu\u0308ller":         "",
		"ЁЛКА ёлка":            "[{3 0 8} {3 9 17}]",
	} {
		got := ""
		if found := s.Scan(text, nil); len(found) > 0 {
			got = fmt.Sprint(found)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
