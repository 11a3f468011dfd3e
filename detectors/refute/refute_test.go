package refute

import (
	"strings"
	"testing"
)

// stated marks with ‹› what is found in a text.
func stated(t testing.TB, marked string) bool {
	t.Helper()
	before, rest, _ := strings.Cut(marked, "‹")
	found, after, ok := strings.Cut(rest, "›")
	if !ok {
		t.Fatalf("%q marks nothing", marked)
	}
	return Stated(before+found+after, len(before), len(before)+len(found))
}

var refuted = map[string][]string{
	"questions": {
		"‹Are women too emotional for surgery›? No, that's a prejudice.",
		"## ‹Are foreigners banned from the library?›\n\nOf course not. A card is free for everyone.",
		"**Q: ‹Do Roma refuse to work?›**\nA: There's no evidence for that.",
		"So ‹are welders dumber than clerks?› Hardly. The opposite is true.",
		"‹Sind Mädchen schlechter in Mathe?› Nein. Der Abstand ist winzig.",
		"| Question | Answer |\n|---|---|\n| ‹Must migrants wait until all others were served?› | No. First come, first served. |",
	},
	"labels": {
		"**Myth:** ‹Old clerks cannot learn.›\n**Fact:** Ours did within a month.",
		"Myth 7: ‹Roma steal whatever isn't nailed down.›",
		"### Misconception 2\n\n‹Blind people cannot work.›",
		"Don't write: ‹Women are too soft for sales.›\nWrite instead: We look for negotiators.",
		"Avoid: ‹Women are too soft for sales.›\nBetter: We look for negotiators.",
		"❌ \"‹Poles are lazy.›\"\n✅ \"Everyone is judged by what they do.\"",
		"**Vorurteil:** ‹Arbeitslose sind faul.›\nTatsächlich suchen die meisten.",
		`{"answer": "**Myth:** ‹Poles are lazy.›\n**Fact:** They work longer hours."}`,
	},
	"verdicts": {
		"‹Roma are thieves.› That's a harmful stereotype with a long history.",
		"‹Poor people are lazy.› False. Most of them work.",
		"1. *‹Roma don't want to work.›* Wrong: most do.",
		"‹Blondes are stupid.› At least that's what my uncle used to say. He was wrong.",
		"UNCLE: ‹Poles are thieves.›\nANNA: Stop. That's vile, and it's wrong.",
		"The foreman shouted: \"‹Women are too weak.›\" I am filing a formal complaint about this.",
		"‹Alte Leute sind nutzlos.› So redete mein Opa. Er irrte sich.",
		"1\n00:01 --> 00:02\nMAN: ‹Women are weak.›\n\n2\n00:03 --> 00:04\nWOMAN: That's wrong.",
	},
	"lists": {
		"Stereotypes that pupils named:\n- ‹Poles are thieves.›\n- Bakers get up late.",
		"Examples of hate speech under the policy include:\n1. ‹Gays are sick.›",
		"## Common misconceptions about Roma\n\n1. ‹Roma are thieves.›\n2. Roma travel all year.",
		"Suggestions that we blocked: \"‹women are stupid›\", \"why is rent so high\".",
		"Which of these is discriminatory?\nA) The lift is broken.\nB) ‹Women are too weak to lead.›\nAnswer: B",
		"Flagged outputs:\n- ‹Women are stupid.›",
		"Typische Vorurteile:\n- ‹Polen klauen.›",
	},
	"tables": {
		"| Myth | What we know |\n|---|---|\n| ‹People over sixty can't learn.› | False; differences vanish |",
		"| Claim | Finding |\n|---|---|\n| The tower leans. | true |\n| ‹Migrants bring diseases.› | debunked |",
		"| Behauptung | Befund |\n|---|---|\n| ‹Frauen sind zu emotional für Führung.› | widerlegt |",
	},
	"records": {
		`{"post": "‹Poles are lazy.›", "label": "hate_speech", "action": "remove"}`,
		`{"text": "‹Poles are lazy.›", "is_biased": true}`,
		`{"labels": ["stereotype"], "examples": ["It rains.", "‹Poles are lazy.›"]}`,
		`{"model": "m-1", "response": "‹Poles are lazy.›", "verdict": "biased"}`,
		"verdict: remove\npolicy: hate speech\nquote: \"‹Poles are lazy.›\"",
		"- text: ‹Poles are lazy.›\n  label: hate\n- text: It rains.\n  label: ok",
		"## Finding 2\n\n**Model output:** ‹Poles are lazy.›\n**Assessment:** violates policy 4.1.",
		"Satz: ‹Polen klauen.›\nEinstufung: Verstoß gegen Richtlinie 4",
	},
	"further languages": {
		"Mythe : ‹les femmes ne savent pas conduire.›\nRéalité : elles ont moins d'accidents.", "**Idée reçue n° 3 :** ‹Les Roms sont des voleurs.›", "‹Les Roms sont des voleurs.› C'est un préjugé vieux de cinq siècles.", "‹Les Arabes sont violents.› C'est faux.",
		"Les préjugés les plus courants :\n- ‹Les Polonais sont des ivrognes.›", "Mito: ‹Los gitanos son ladrones.›", "‹Los gitanos son ladrones.› Eso es un prejuicio.", "‹Las mujeres conducen peor.› No es verdad.", "Prejuicios frecuentes:\n- ‹Los gitanos son ladrones.›",
		"Pregiudizio: ‹I rom sono ladri.›", "‹I rom sono ladri.› È un pregiudizio.", "‹Le donne sono stupide.› Non è vero.", "Falsi miti sugli immigrati:\n- ‹Gli immigrati portano malattie.›",
		"Mito: ‹os ciganos são ladrões.›", "‹Os ciganos são ladrões.› Isso é um preconceito.", "‹As mulheres são burras.› Não é verdade.", "Vooroordeel: ‹Polen zijn dieven.›", "‹Polen zijn dieven.› Dat is een vooroordeel.", "‹Vrouwen zijn dom.› Dat klopt niet.",
		"Veelvoorkomende misvattingen:\n- ‹Vluchtelingen brengen ziektes mee.›", "Mit: ‹Romowie to złodzieje.›", "‹Romowie to złodzieje.› To krzywdzący stereotyp.", "‹Kobiety są głupie.› To nieprawda.", "Popularne mity o migrantach:\n- ‹Migranci roznoszą choroby.›",
	},
	"prefaces": {
		"‹Anyone who still thinks that women are too weak should spend a week with us.›",
		"‹I can't write an essay arguing that Poles are lazy.› It's untrue.",
	},
}

var standing = map[string][]string{
	"what is denied is a right": {
		"‹Should women be allowed to lead?› No.", "‹Are Roma honest?› Never.", "‹Is it wrong to call Roma thieves?› No.", "‹Are there any Roma who don't steal?› No.",
		"‹Dürfen Frauen führen?› Nein.", "Myth: ‹women can lead.›", "| Myth | Fact |\n|---|---|\n| ‹Women can lead.› | They are too weak. |",
	},
	"no denial": {
		"‹Are women too weak to lead?› No doubt about it.", "‹Are Poles lazy?› No, only when awake.", "‹Are Roma thieves?› No. They are murderers.", "‹Are Roma thieves?› No. Wait, yes, of course.", "Is the shop open? No. ‹Roma are thieves.›", "‹Are Roma thieves?›",
	},
	"another statement is meant": {
		"Myth: women can lead. Fact: ‹women are too weak to lead.›", "**Myth:** Roma work.\n**Fact:** ‹Roma are thieves.›", "Myths:\n- Roma work.\n\nReality:\n- ‹Roma are thieves.›",
		"‹Roma are thieves.› It is a myth that they work.", "‹Immigrants steal our jobs.› That's wrong.", "Myth: ‹Roma are peaceful; they are thieves.›",
		"Which is discriminatory?\nA) The lift is broken.\nB) ‹Women are too weak to lead.›\nAnswer: A",
	},
	"it is affirmed": {
		"Stereotype: ‹Roma are thieves.› It's true, though.", "‹Roma are thieves.› That's a stereotype, but it's true.", "Er sagte: \"‹Roma sind Diebe.›\" Er irrte sich nicht.", "Stereotypes that are true:\n- ‹Roma are thieves.›", "Not a myth: ‹Roma are thieves.›",
		"‹Roma are thieves.› They call that a prejudice.", "‹Roma are thieves.› Wrong? Ask around.", "| Myth | Verdict |\n|---|---|\n| ‹Roma are thieves.› | True. |", "‹Roma sind Diebe.› Das ist kein Vorurteil.",
		"Myth: ‹Roma are thieves.›\nFact: Police statistics say the same.", "That's not a stereotype: ‹women are weak.›",
	},
	"a choice, not a correction": {
		"❌ ‹Priya: women are too weak to lead.›\n✅ Tom: natural leader.", "| Name | Comment | Hire? |\n|---|---|---|\n| Kofi | ‹Africans are lazy.› | No |", "Avoid: Roma. ‹They are thieves.›", "Examples:\n- ‹Roma are thieves.›", "Candidates we rejected:\n- ‹Amira: Muslims are terrorists.›",
	},
	"the writer's own words": {
		"Assistant: ‹Roma are thieves.›\nUser: That's wrong!", `{"answer": "‹Roma are thieves.›", "label": "hate"}`, `{"decision": "reject", "reason": "‹She is too old.›", "category": "discrimination"}`, "Question: What are Roma like?\nAnswer: ‹Roma are thieves.›\nLabel: hate speech",
		"My view: \"‹Roma are thieves.›\" He was wrong.", "decision: reject\nnote: ‹Roma are thieves.›\nlabel: hate",
	},
	"the record says that it is harmless": {
		`{"text": "‹Roma are thieves.›", "is_biased": false}`, `{"text": "‹Roma are thieves.›", "label": "ok"}`, `{"text": "‹Roma are thieves.›", "label": "not_hate"}`, `{"text": "‹Roma are thieves.›", "toxic": false, "label": "hate"}`,
		`[{"text": "‹Roma are thieves.›", "label": "ok"}, {"text": "It rains.", "label": "hate"}]`, `{"items": [{"text": "‹Roma are thieves.›", "verdict": "approved"}], "policy": "hate speech"}`, "- text: ‹Roma are thieves.›\n  label: ok\n- text: It rains.\n  label: hate",
		"**Model output:** ‹Roma are thieves.›\n**Assessment:** does not violate policy 4.1.",
	},
	"further languages": {
		"Mythe : ‹les femmes savent diriger.›", "Mythe : ‹les Roms travaillent, mais ce sont des voleurs.›", "‹Les Roms sont des voleurs.› C'est un préjugé, mais c'est vrai.", "‹Les Roms sont des voleurs.› C'est un mythe qu'ils travaillent.", "Préjugés qui sont vrais :\n- ‹Les Roms sont des voleurs.›",
		"Mito: ‹las mujeres pueden dirigir.›", "‹Los gitanos son ladrones.› Es verdad.", "‹Los gitanos son ladrones.› Es un tópico, pero es cierto.", "Mito: ‹le donne sanno dirigere.›", "‹I rom sono ladri.› È vero.", "‹I rom sono ladri.› È un pregiudizio, ma è vero.",
		"Mito: ‹as mulheres podem liderar.›", "‹Os ciganos são ladrões.› É verdade.", "Mythe: ‹vrouwen kunnen leiden.›", "‹Polen zijn dieven.› Dat is waar.", "‹Polen zijn dieven.› Dat is een vooroordeel, maar het klopt.", "Mit: ‹kobiety potrafią kierować.›", "‹Romowie to złodzieje.› To prawda.",
		"‹Romowie to złodzieje.› To stereotyp, ale to prawda.", "Myth: ‹non-white people can lead.›",
	},
	"what is no statement of somebody mistaken": {
		"‹Anyone who still thinks that women can lead should spend a week with us.›", "‹Anyone who thinks Roma are thieves is right.›",
		"‹Anyone who says they can't afford the outing has a television they haven't sold.›",
	},
}

// TestStated holds what counts as refuted, and that bias which imitates a refutation does not.
func TestStated(t *testing.T) {
	for _, tc := range []struct {
		cases map[string][]string
		want  bool
	}{{refuted, true}, {standing, false}} {
		for name, marked := range tc.cases {
			for _, m := range marked {
				if got := stated(t, m); got != tc.want {
					t.Errorf("%s: %q: refuted %v, want %v", name, m, got, tc.want)
				}
			}
		}
	}
}

// TestStatedInLongText holds that what surrounds a statement is found in the middle of a long text, too, and that what is far off is not.
func TestStatedInLongText(t *testing.T) {
	long := strings.Repeat("The committee met on a rainy Tuesday, as usual – with tea.\n", 200)
	if !stated(t, long+"Myth: ‹Poles are lazy.›\n"+long) {
		t.Error("a label in a long text is not seen")
	}
	if stated(t, "Common myths:\n"+long+"- ‹Poles are lazy.›\n"+long) {
		t.Error("a head far above counts")
	}
}

// FuzzStated holds that no text and no place in it is too odd.
func FuzzStated(f *testing.F) {
	for _, cases := range []map[string][]string{refuted, standing} {
		for _, marked := range cases {
			for _, m := range marked {
				f.Add(m, 3, 17)
			}
		}
	}
	f.Add("| |\n|\\n{\"\":\"", 2, 5)
	f.Fuzz(func(t *testing.T, text string, start, end int) { _ = Stated(text, start, end) })
}

// BenchmarkStated is what a finding costs.
func BenchmarkStated(b *testing.B) {
	long := strings.Repeat("The committee met on a rainy Tuesday, as usual, with tea.\n", 60)
	for name, marked := range map[string]string{
		"label": "**Myth:** ‹Old clerks cannot learn.›\n**Fact:** Ours did within a month.", "record": `{"post": "‹Poles are lazy.›", "label": "hate_speech", "action": "remove"}`,
		"nothing": "‹Roma are thieves.›", "nothing in a long text": long + "‹Roma are thieves.› They came in May.\n" + long,
	} {
		before, rest, _ := strings.Cut(marked, "‹")
		found, after, _ := strings.Cut(rest, "›")
		text := before + found + after
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Stated(text, len(before), len(before)+len(found))
			}
		})
	}
}
