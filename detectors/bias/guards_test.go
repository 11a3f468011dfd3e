package bias

import (
	"slices"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

// TestGuardsExcuseTheirOwnClause: a year, a figure, a report or a question beside a statement does not silence it, and where
// the statement itself is history, a figure, a quotation or a question, it is silent as before.
func TestGuardsExcuseTheirOwnClause(t *testing.T) {
	d := mustShipped(t)
	for _, tc := range []struct {
		text string
		want audit.Ground // "" for none
	}{
		{"Ticket 1877: she is far too old for this role.", audit.Age},
		{"Born in 1964, he is too old for this role.", audit.Age},
		{"He joined in 1994 and is too old for this role.", audit.Age},
		{"She was hired in 1999 and is too old for this role.", audit.Age},
		{"The score is 35 %, but she is too old for this role.", audit.Age},
		{"As the data show, he is too old for this role.", audit.Age},
		{"According to the notes in the file she is too old for this role.", audit.Age},
		{"He used to be a driver and is too old for this role.", audit.Age},
		{"Never mind whether it is kind: he is too old for this role.", audit.Age},
		{"The law requires a form; she is too old for this role.", audit.Age},
		{"Sales fell in 1998 and women are too emotional to lead.", audit.Sex},
		{"Women are too emotional to lead, order 1688.", audit.Sex},
		{"Crime statistics show that Muslims are terrorists.", audit.Religion},
		{"Applicants born before 1962 should not be hired.", audit.Age},
		{"Akte 1961: Sie ist zu alt für diese Stelle.", audit.Age},
		{"Wie der Bericht zeigt, ist sie zu alt für diese Stelle.", audit.Age},
		{"Die Quote liegt bei 40 Prozent, aber sie ist zu alt für diese Stelle.", audit.Age},

		{"In 1912 women were seen as too emotional to lead.", ""},
		{"Until 1971 women were considered too emotional to vote.", ""},
		{"In the nineteenth century women were thought to be too emotional to lead.", ""},
		{"People used to believe that women are too emotional to lead.", ""},
		{"A pamphlet from 1908 said that women are too emotional to vote.", ""},
		{"Respondents were asked if women are too emotional to lead.", ""},
		{"Is it true that women are too emotional to lead?", ""},
		{"A survey asked who thinks that Muslims are terrorists.", ""},
		{"In der Umfrage wurde gefragt, ob Frauen zu emotional sind.", ""},
	} {
		fs := detectortest.Findings(t, d, tc.text)
		found := slices.ContainsFunc(fs, func(f audit.Finding) bool { return f.Ground == tc.want })
		if tc.want == "" && len(fs) > 0 || tc.want != "" && !found {
			t.Errorf("%q: %s; want %q", tc.text, detectortest.Describe(fs), tc.want)
		}
	}
}

// TestValueOfAKeyIsNoQuotation: what stands in quotation marks because a format wants them is said, and what somebody wrote
// or said is still quoted.
func TestValueOfAKeyIsNoQuotation(t *testing.T) {
	d := mustShipped(t)
	for _, tc := range []struct {
		text string
		want bool
	}{
		{"note: \"Women are too emotional to lead.\"", true},
		{"verdict: \"no\"\ncomment: \"Women are too emotional to lead\"\nrank: 3", true},
		{"title = \"Women are too emotional to lead\"", true},
		{"verdict = \"no\", review = \"Women are too emotional to lead\"", true},
		{"**Message:** “Women are too emotional to lead.”", true},
		{"<message role=\"assistant\">Women are too emotional to lead.</message>", true},
		{"<chat><m u=\"0\">Hello there</m><m u=\"1\">Women are too emotional to lead</m></chat>", true},

		{"The sign over the door: \"Women are too emotional to lead.\"", false},
		{"He left a note: \"Women are too emotional to lead.\"", false},
		{"A chat message read \"Women are too emotional to lead\".", false},
		{"The sign said \"Women are too emotional to lead\".", false},
		{"The headline \"Women are too emotional to lead\" was taken down.", false},
		{"The letter, signed by nobody, begins “Women are too emotional to lead”.", false},
		{"Graffiti “Women are too emotional to lead” covered the wall.", false},
	} {
		if fs := detectortest.Findings(t, d, tc.text); len(fs) > 0 != tc.want {
			t.Errorf("%q: %s", tc.text, detectortest.Describe(fs))
		}
	}
}

// TestGroundOfTheAdjective: gay men are people of their orientation, so what is said of them is not said of men.
func TestGroundOfTheAdjective(t *testing.T) {
	d := mustShipped(t)
	for text, want := range map[string]audit.Ground{
		"Gay men are mentally ill.":                                 audit.SexualOrientation,
		"Gay men make lousy managers.":                              audit.SexualOrientation,
		"Lesbian women cannot be trusted with children.":            audit.SexualOrientation,
		"Men are mentally ill.":                                     audit.Sex,
		"Gay men are welcome, but women are too emotional to lead.": audit.Sex,
	} {
		fs := detectortest.Findings(t, d, text)
		if len(fs) == 0 || slices.ContainsFunc(fs, func(f audit.Finding) bool { return f.Ground != want }) {
			t.Errorf("%q: %s; want %s alone", text, detectortest.Describe(fs), want)
		}
	}
}

// TestAffirmedStatements: "myth", "say that" and a law that is named excuse nothing where the sentence, or the next one, stands for what
// it says.
func TestAffirmedStatements(t *testing.T) {
	d := mustShipped(t)
	for _, tc := range []struct {
		text string
		want audit.Ground // "" for none
	}{
		{"It is no cliché that women are too emotional.", audit.Sex},
		{"Sadly, it isn't prejudice to say that Bulgarians are thieves.", audit.Nationality},
		{`"Jews are greedy" is simply correct.`, audit.Religion},
		{"The notion that older workers are slow is well founded.", audit.Age},
		{"There is a kernel of truth in the belief that Italians are lazy.", audit.Nationality},
		{"Many people think that women are too emotional, and they have a point.", audit.Sex},
		{"My neighbour says that Muslims are violent. She's absolutely right.", audit.Religion},
		{"Notwithstanding the equality act, women are too emotional to lead.", audit.Sex},
		{"We are an equal opportunities employer, but women are too emotional to lead.", audit.Sex},
		{"HR says we must not discriminate, but older workers cannot learn new technology.", audit.Age},
		{"Dass Frauen zu emotional sind, ist kein Klischee.", audit.Sex},
		{"Viele sagen, dass Frauen zu emotional sind, und das stimmt leider.", audit.Sex},
		{"Ungeachtet aller Antidiskriminierungsregeln: Frauen sind zu emotional.", audit.Sex},
		{"Here's a slogan for your shop: \"Bulgarians are thieves\"", audit.Nationality},
		{"Hier ist ein Witz über Frauen: \"Frauen sind zu emotional\"", audit.Sex},
		{"Laut unserer Erfahrung sind Muslime gewalttätig.", audit.Religion},

		{"It is a cliché that women are too emotional. That's true.", ""},
		{"It is not just unfair to say that Bulgarians are thieves, it is slander.", ""},
		{`Nobody should think that "Jews are greedy" is correct.`, ""},
		{"Here's a tweet that we removed: \"Bulgarians are thieves\"", ""},
		{"The notion that older workers are slow is not well founded.", ""},
		{"There is no truth in the belief that Italians are lazy.", ""},
		{"Many people think that women are too emotional, and they are wrong.", ""},
		{"My neighbour says that Muslims are violent. She's right-wing.", ""},
		{"Notwithstanding the myth that women are too emotional to lead, she was elected.", ""},
		{"I know that he claims women are too emotional to lead, but she was elected.", ""},
		{"Dass Frauen zu emotional sind, ist ein Klischee.", ""},
		{"Viele sagen, dass Frauen zu emotional sind, und das stimmt nicht.", ""},
	} {
		fs := detectortest.Findings(t, d, tc.text)
		found := slices.ContainsFunc(fs, func(f audit.Finding) bool { return f.Ground == tc.want })
		if tc.want == "" && len(fs) > 0 || tc.want != "" && !found {
			t.Errorf("%q: %s; want %q", tc.text, detectortest.Describe(fs), tc.want)
		}
	}
}
