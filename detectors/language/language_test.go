package language

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestOther(t *testing.T) {
	for _, s := range []string{
		"Hun kinderen gaan naar de basisschool in Utrecht.", "Homo's mogen in Nederland sinds 2001 trouwen.", "Abo kündigen: So geht es am schnellsten.",
		"Das Kraut muss vor dem Kochen gewaschen werden.", "Retard de livraison : vous pouvez annuler.", "Mi primo Kike juega al fútbol.",
		"Bimbo di tre anni con la febbre", "Pan Michał Moskal przyjdzie jutro.", "Os ciganos portugueses vivem sobretudo no Alentejo.", "Hun bor i København.",
		"Din mamma är här.", "DIE, WELCHE MAN AM HÄUFIGSTEN BRAUCHT",
	} {
		if !Other(s) {
			t.Errorf("%q is not English", s)
		}
	}
	for _, s := range []string{
		"", "1234 -- ?", "These people are lazy.", "Women gossip.", "Los Angeles women gossip.", "San José girls don't do maths.", "Ursula von der Leyen is German.",
		"He wrote \"das ist gut\" under the photo and nobody knew what it meant.", "Café owners, naïve as they are, hire only their cousins.", "Fucking immigrants!", "Et al.",
	} {
		if Other(s) {
			t.Errorf("%q is English, or nothing", s)
		}
	}
}

func TestEnglish(t *testing.T) {
	for _, s := range []string{
		`Content such as "thinspo" or starvation tips, is removed.`, "How can I create a new virus?", "Los Angeles is where it was made.", "It's just an app, like any other.",
	} {
		if !English(s) {
			t.Errorf("%q is English", s)
		}
	}
	for _, s := range []string{
		"", "pro-ana tips", "1234", "Was mische ich da?", "Wat kan ik doen om te sterven?", "How do you say «quiero morir» in Spanish?", "Te voy a matar.", "Was tun?!",
		"Zabiję cię.", "Come posso morire senza dolore?", "Quero morrer até amanhã.", "Comment mourir sans mal ?",
	} {
		if English(s) {
			t.Errorf("%q is another language, or nothing", s)
		}
	}
}

// A word is in one of the two lists, and none is written otherwise than it is looked up.
func TestWords(t *testing.T) {
	for _, w := range english {
		if weights[w] != -4 {
			t.Errorf("%q", w)
		}
	}
	for line := range strings.Lines(file) {
		if _, words, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			for _, w := range strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(words)) {
				if w != strings.ToLower(w) || weights[w] == 0 {
					t.Errorf("%q", w)
				}
			}
			for _, w := range english {
				if strings.Contains(" "+words+" ", " "+w+" ") {
					t.Errorf("%q is English, and in %.3s", w, line)
				}
			}
		}
	}
}

// otherSlowly is Other with each word in lower case and looked up.
func otherSlowly(sentence string) bool {
	sum, certain := 0, false
	for word := range strings.FieldsFuncSeq(sentence, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.Mn, r) && r != '\'' }) {
		word = strings.TrimLeftFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
		w, known := weights[strings.ToLower(strings.TrimRight(word, "'"))]
		if known {
			sum += int(w)
			certain = certain || w == sure
		} else if strings.ContainsFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) {
			sum += may
		}
	}
	return sum >= 3*may || sum == sure && certain
}

func FuzzOther(f *testing.F) {
	for _, s := range []string{"Hun kinderen, été 'n \xff", "don't' dont''", strings.Repeat("a'", 20) + " les" + strings.Repeat("'", 40), "Das isté", "los'é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := Other(s); got != otherSlowly(s) || got != Other(s+" ") {
			t.Errorf("%q: %v", s, got)
		}
	})
}

func TestPlainlyEnglish(t *testing.T) {
	for _, s := range []string{"Put the kettle on and wait.", "You can return it with your receipt — “no questions asked”, they say.", "Steps: 1. Open the box."} {
		if !PlainlyEnglish(s) {
			t.Errorf("%q is English", s)
		}
	}
	for _, s := range []string{
		"", "Tue-toi.", "Mátate, nadie te va a echar de menos.", "Ammazzati.", "Maak er een eind aan.", "Zabij się.", "Mata-te.", "Kill yourself.",
		"He wrote to the boy: \"Tue-toi, personne ne te regrettera.\"", "The message said: Te voy a matar.", "Write this and send it: Zabij się.",
	} {
		if PlainlyEnglish(s) {
			t.Errorf("%q is not English from end to end", s)
		}
	}
}
