package bias

import (
	"path/filepath"
	"testing"

	"github.com/evenhand/evenhand/detectors/detectortest"
)

// TestFurtherLanguages: what is said of a whole group in so many words is found in French, Spanish, Italian, Portuguese, Dutch and Polish, and
// nothing in sentences that are like it: of things, of matches, of facts, and of what others say.
func TestFurtherLanguages(t *testing.T) {
	d := mustShipped(t)
	for _, text := range []string{
		"Franchement, les Algériens sont des voleurs, ne leur faites pas confiance.",
		"Les chômeurs sont des profiteurs.",
		"Comme je l'ai expliqué, les mères ne devraient pas diriger de service.",
		"Les handicapés sont incapables de suivre le rythme.",
		"- Les gitans sont sales.",
		"Sinceramente, los rumanos son unos ladrones.",
		"Las mujeres son demasiado emocionales para mandar.",
		"No contrates a gitanos.",
		"Los jóvenes son vagos.",
		"Gli albanesi sono criminali.",
		"Le donne sono meno capaci degli uomini.",
		"I disabili non dovrebbero lavorare qui.",
		"Os brasileiros são preguiçosos.",
		"As mulheres são muito emotivas para chefiar.",
		"Os idosos são um fardo para o sistema.",
		"Je pense que les femmes sont trop émotives pour diriger.",
		"Les femmes ne devraient pas diriger une équipe.",
		"Creo que los gitanos son delincuentes.",
		"Secondo me gli immigrati sono parassiti.",
		"Eerlijk gezegd zijn Marokkanen crimineel.",
		"Vrouwen zijn te emotioneel om leiding te geven.",
		"Polen zijn dronkaards en dieven.",
		"Homo's zijn abnormaal.",
		"Ukraińcy to złodzieje.",
		"Kobiety są zbyt emocjonalne, żeby rządzić.",
		"Geje to zboczeńcy.",
		"Bezrobotni są leniwi.",
	} {
		if len(detectortest.Findings(t, d, text)) == 0 {
			t.Errorf("%q: nothing is found", text)
		}
	}
	for _, text := range []string{
		"Según algunos, los gitanos son ladrones; es un prejuicio.",
		"Les Italiens sont dangereux en contre-attaque.",
		"Les femmes sont trop souvent victimes de violences.",
		"Les jeunes sont sensibles à l'écologie.",
		"Les aveugles sont autorisés à voyager gratuitement.",
		"Les noirs sont profonds sur cet écran, et les blancs sont justes.",
		"Les gens croient que les Roms sont des voleurs, c'est un préjugé.",
		"Les chiens noirs sont agressifs selon une légende.",
		"Les enfants ne devraient pas travailler.",
		"Les moins jeunes ne devraient pas conduire de nuit sans lunettes.",
		"Los mayores de 65 años son más vulnerables.",
		"Los perros negros son agresivos.",
		"Los agujeros negros son peligrosos.",
		"Los mercados chinos son inferiores en volumen.",
		"Gli anziani sono più fragili d'estate.",
		"I buchi neri sono pericolosi.",
		"I giovani sono inutilmente preoccupati.",
		"Os jovens são o futuro.",
		"Ouderen zijn vaak slachtoffer van oplichters.",
		"Blinden zijn welkom met hun hond.",
		"Vrouwen zijn niet dom.",
		"Kobiety są aktywne zawodowo.",
		"Młodzi są zbyt zapracowani.",
		"Niewidomi są mile widziani.",
	} {
		if fs := detectortest.Findings(t, d, text); len(fs) > 0 {
			t.Errorf("%q: %s", text, detectortest.Describe(fs))
		}
	}
}

// TestFurtherRows holds recall and false alarms of rules in French, Spanish and Italian on statements over all grounds and harmless
// look-alikes of one writer. All were written before rules were read; those of train were in view while rules were made, those of dev not.
func TestFurtherRows(t *testing.T) {
	d := mustShipped(t)
	type count struct{ found, all int }
	counts := map[string]count{}
	for _, row := range detectortest.Rows[struct {
		Text, Lang, Split string
		Label             struct{ Bias int }
	}](t, filepath.Join("testdata", "further.jsonl")) {
		kind := row.Lang + " " + row.Split + " harmless"
		if row.Label.Bias == 1 {
			kind = row.Lang + " " + row.Split + " biased"
		}
		c := counts[kind]
		c.all++
		if fs := detectortest.Findings(t, d, row.Text); len(fs) > 0 {
			c.found++
			if row.Label.Bias == 0 {
				t.Logf("%q: %s", row.Text, detectortest.Describe(fs))
			}
		}
		counts[kind] = c
	}
	for kind, limit := range map[string][2]float64{
		"fr train biased": {0.7, 1}, "es train biased": {0.65, 1}, "it train biased": {0.65, 1},
		"fr dev biased": {0.4, 1}, "es dev biased": {0.4, 1}, "it dev biased": {0.4, 1},
		"fr train harmless": {0, 0}, "es train harmless": {0, 0}, "it train harmless": {0, 0},
		"fr dev harmless": {0, 0.03}, "es dev harmless": {0, 0.03}, "it dev harmless": {0, 0.03},
	} {
		c := counts[kind]
		share := float64(c.found) / float64(max(1, c.all))
		t.Logf("%s: %d of %d, %.3f", kind, c.found, c.all, share)
		if c.all == 0 || share < limit[0] || share > limit[1] {
			t.Errorf("%s: %.3f, want %v", kind, share, limit)
		}
	}
}

// TestPlainRows holds what rules find in Portuguese, Dutch and Polish of one writer's plain statements, and that they leave the look-alikes alone. The
// rules were made with the rows of split train in view; those of dev were read once they stood, and helped to mend them.
func TestPlainRows(t *testing.T) {
	d := mustShipped(t)
	a := detectortest.Analyzer(t, d)
	for _, lang := range []string{"pt", "nl", "pl"} {
		texts := map[string][]string{}
		for _, row := range detectortest.Rows[struct {
			Text, Split string
			Label       struct{ Bias int }
		}](t, filepath.Join("testdata", "plain."+lang+".jsonl")) {
			kind := row.Split + " harmless"
			if row.Label.Bias == 1 {
				kind = row.Split + " biased"
			}
			texts[kind] = append(texts[kind], row.Text)
		}
		for kind, floor := range map[string]float64{"train biased": 0.95, "dev biased": 0.82} {
			if share := float64(len(firingOf(t, d, a, texts[kind]))) / float64(len(texts[kind])); !(share >= floor) {
				t.Errorf("%s, %s: %.3f of %d, want %.2f", lang, kind, share, len(texts[kind]), floor)
			}
		}
		harmless := append(texts["train harmless"], texts["dev harmless"]...)
		if fired := firingOf(t, d, a, harmless); len(harmless) < 200 || len(fired) > 0 {
			t.Errorf("%s, harmless: %d of %d: %q", lang, len(fired), len(harmless), fired)
		}
	}
}
