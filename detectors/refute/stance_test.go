package refute

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// stance marks with ‹› the statement of a sentence; what stands behind " // " is the text that comes next.
func stance(t *testing.T, marked string) (part string, ok bool) {
	t.Helper()
	before, rest, _ := strings.Cut(marked, "‹")
	found, after, ok := strings.Cut(rest, "›")
	if !ok {
		t.Fatalf("%q marks nothing", marked)
	}
	after, next, _ := strings.Cut(after, " // ")
	sentence := before + found + after
	from, to, ok := Stance(sentence, next, len(before), len(before)+len(found))
	if ok && (from > len(before) || to < len(before)+len(found) || to > len(sentence)) {
		t.Errorf("%q: the part [%d, %d) does not hold the statement", marked, from, to)
	}
	return sentence[from:to], ok
}

func TestStance(t *testing.T) {
	for marked, want := range map[string]string{
		"It's no myth that ‹clerks are lazy›.":                                         "clerks are lazy.",
		"Sorry, but it is not a prejudice that most ‹clerks are lazy›.":                "most clerks are lazy.",
		"That isn't hateful: ‹clerks are lazy›.":                                       "clerks are lazy.",
		"There's more than a grain of truth in the old cliché that ‹clerks are lazy›.": "clerks are lazy.",
		"It is fair to say that ‹clerks are lazy›.":                                    "clerks are lazy.",
		"No one can deny that ‹clerks are lazy›.":                                      "clerks are lazy.",
		"This stereotype is sadly true: ‹clerks are lazy›.":                            "clerks are lazy.",
		`"‹Clerks are lazy›" is simply a fact.`:                                        "Clerks are lazy",
		"The widespread belief that ‹clerks are lazy› is well founded.":                "clerks are lazy",
		"That ‹clerks are lazy› is no exaggeration.":                                   "clerks are lazy",
		"The saying that ‹clerks are lazy› exists for a reason.":                       "clerks are lazy",
		"Many say that ‹clerks are lazy›, and they are right.":                         "clerks are lazy",
		"My boss claims ‹clerks are lazy› and he has a point.":                         "clerks are lazy",
		"My boss says that ‹clerks are lazy›. // He is right.":                         "clerks are lazy.",
		"People say ‹clerks are lazy›. // I couldn't agree more.\nNext.":               "clerks are lazy.",
		"Despite every policy, ‹clerks are lazy›.":                                     "clerks are lazy.",
		"No matter what the handbook says, ‹clerks are lazy›.":                         "clerks are lazy.",
		"Call me a bigot, but ‹clerks are lazy›.":                                      "clerks are lazy.",
		"I know it's unlawful, but ‹don't hire clerks›.":                               "don't hire clerks.",
		"That may sound harsh, but ‹clerks are lazy›.":                                 "clerks are lazy.",
		"Es ist kein Märchen, dass ‹Beamte faul› sind.":                                "Beamte faul sind.",
		"Das Klischee stimmt leider: ‹Beamte sind faul›.":                              "Beamte sind faul.",
		"An dem Vorurteil, dass ‹Beamte faul sind›, ist was Wahres dran.":              "Beamte faul sind",
		"Manche meinen, dass ‹Beamte faul sind›, und sie haben recht.":                 "Beamte faul sind",
		"Mein Chef sagt, dass ‹Beamte faul sind›. // Das stimmt.":                      "Beamte faul sind.",
		"Ohne jemanden kränken zu wollen, ‹Beamte sind faul›.":                         "Beamte sind faul.",
		"Trotz aller Regeln: ‹Beamte sind faul›.":                                      "Beamte sind faul.",
		"Ich will niemanden kränken, aber ‹Beamte sind faul›.":                         "Beamte sind faul.",
	} {
		if got, ok := stance(t, marked); !ok || got != want {
			t.Errorf("%q: %q, %t; want %q", marked, got, ok, want)
		}
	}
	for _, marked := range []string{
		"It's a myth that ‹clerks are lazy›.",
		"It is a myth that ‹clerks are lazy›. // That is true.",
		"It's not just wrong to say that ‹clerks are lazy›, it is harmful.",
		"It is not only a stereotype that ‹clerks are lazy›; it is hateful.",
		"Myth: it's not racist to say that ‹clerks are lazy›.",
		"There is no truth in the claim that ‹clerks are lazy›.",
		"It's a fact that many people say that ‹clerks are lazy›.",
		"Is it fair to say that ‹clerks are lazy›?",
		"The claim that ‹clerks are lazy› is not true.",
		"The claim that ‹clerks are lazy› is not only wrong, it is dangerous.",
		"Is the claim that ‹clerks are lazy› true?",
		`Nobody thinks that "‹clerks are lazy›" is true.`,
		`If "‹clerks are lazy›" is true, pigs fly.`,
		`"‹Clerks are lazy›" is true only in old novels.`,
		"The idea that ‹clerks are lazy› is right out of the last century.",
		"He insists the claim that ‹clerks are lazy› is true.",
		"Some say that ‹clerks are lazy›, and they are wrong.",
		"Some say that ‹clerks are lazy›. // They are right to be ashamed of it.",
		"It's wrong to say that ‹clerks are lazy›, and that is true.",
		"He said that nobody claims ‹clerks are lazy›, and he is right.",
		"My boss says that ‹clerks are lazy›.\n // He is wrong.",
		"I would never say that ‹clerks are lazy›.",
		"I heard that a man said he has nothing against them, but ‹clerks are lazy›.",
		"I see that you ask for respect, but did you not call ‹clerks lazy›?",
		"It's a stereotype that nurses are kind, but ‹clerks are lazy›.",
		"Despite claims that ‹clerks are lazy›, she was hired.",
		"Dass ‹Beamte faul sind›, stimmt nicht.",
		"Es ist nicht nur falsch, dass ‹Beamte faul sind›, es schadet auch.",
	} {
		if got, ok := stance(t, marked); ok {
			t.Errorf("%q: %q, want no stance", marked, got)
		}
	}
}

// FuzzStance: whatever the sentence, the part that is left holds the statement.
func FuzzStance(f *testing.F) {
	f.Add("It's no myth that women are lazy.", "", 17, 31)
	f.Add(`Some say that "Jews are greedy", and they are right.`, "He is right.", 15, 30)
	f.Add("Despite all rules, old people cannot learn.", "Quite right.", 19, 42)
	f.Add("Ohne diskriminieren zu wollen: Frauen sind zu emotional, stimmt.", "Das stimmt.", 31, 55)
	f.Fuzz(func(t *testing.T, sentence, next string, start, end int) {
		if start < 0 || end < start || end > len(sentence) || !utf8.ValidString(sentence+next) || len(sentence) > 700 || len(next) > 700 {
			t.Skip() // no place in a sentence
		}
		if from, to, ok := Stance(sentence, next, start, end); ok && (from < 0 || from > start || to < end || to > len(sentence)) {
			t.Errorf("%q [%d:%d]: %d:%d", sentence, start, end, from, to)
		}
	})
}
