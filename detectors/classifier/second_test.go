package classifier_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/classifier/eval"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

func models(t testing.TB) (*classifier.Model, *encoder.Model) {
	t.Helper()
	m, err := classifier.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	e, err := encoder.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return m, e
}

// withEncoder is the detector as it ships, with the encoder of English and that of other languages.
func withEncoder(t testing.TB, effort string) *classifier.Detector {
	t.Helper()
	m, e := models(t)
	return withEncoders(t, m, effort, e, others(t))
}

func withEncoders(t testing.TB, m *classifier.Model, effort string, es ...*encoder.Model) *classifier.Detector {
	t.Helper()
	d, err := classifier.NewWithEncoder(m, effort, es...)
	if err != nil {
		t.Fatal(err)
	}
	if _, measured := t.(*testing.B); !measured {
		d.RememberWith(remembering())
	}
	return d
}

// remembering is where all of these tests keep what encoders said: many read the same texts.
var remembering = sync.OnceValue(func() *classifier.Detector {
	d := new(classifier.Detector)
	d.Remember(1 << 18)
	return d
})

// others is the encoder of other languages, and the adviser of that of English.
func others(t testing.TB) *encoder.Model {
	t.Helper()
	e, err := encoder.ShippedOthers()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// englishVersion is what findings in English are signed with.
func englishVersion(t testing.TB) string {
	_, e := models(t)
	return e.Meta.Version + "+" + others(t).Meta.Version + "-balanced"
}

func TestContractWithEncoder(t *testing.T) {
	for _, effort := range []string{"balanced", "thorough", "full"} {
		detectortest.Run(t, withEncoder(t, effort), "Immigrants are parasites who only come here to steal and live off our taxes.", "Hiring older workers is a waste of money, they are slow and cannot learn anything new.")
	}
}

// What the encoder decided says so: its rule, its version, the whole sentence, the ground.
func TestTheEncoderSignsWhatItDecides(t *testing.T) {
	d := withEncoder(t, "balanced")
	const first, second = "The meeting was moved to Tuesday.", "The disabled are a burden on society and should not be allowed to have children."
	for _, f := range detectortest.Findings(t, d, first+" "+second) {
		if f.Ground == "" {
			continue
		}
		if f.Rule != classifier.EncoderRule || f.RuleVersion != englishVersion(t) || !strings.Contains(d.Info().Version, "/"+f.RuleVersion) || f.Score != 0 || f.Kind != "charter."+string(f.Ground) {
			t.Errorf("%+v", f)
		}
		if int(f.Span.Start) != len(first)+1 || int(f.Span.End) != len(first)+1+len(second) {
			t.Errorf("evidence %v, want the second sentence", f.Span)
		}
		if f.Ground == audit.Disability {
			return
		}
	}
	t.Error("nothing about disability was found")
}

// Of a sentence in another language its encoder decides, and signs; within one text each reads what it knows.
// The evidence is the statement: no number of an item, no label in bold print, no half of a mark.
func TestTheEncodersEvidenceHasNoHeading(t *testing.T) {
	d := withEncoder(t, "balanced")
	const said = "The disabled are a burden on society and should not be allowed to have children."
	for _, before := range []string{"**Escalation:** ", "**Escalation**: ", "__Note on access:__ ", "4. ", "12) ", "- ", "- **Access:** ", "3. **Access:** ", "## Notes\n\n4. **Access:** ", "> "} {
		text := "The meeting was moved to Tuesday.\n\n" + before + said
		found := false
		for _, f := range detectortest.Findings(t, d, text) {
			if f.Rule != classifier.EncoderRule {
				continue
			}
			found = true
			if got := f.Span.Slice(text); got != said {
				t.Errorf("behind %q: %q", before, got)
			}
		}
		if !found {
			t.Errorf("behind %q nothing was found", before)
		}
	}
	const plain = "Remember: the disabled are a burden on society and should not be allowed to have children."
	for _, f := range detectortest.Findings(t, d, plain) {
		if got := f.Span.Slice(plain); f.Rule == classifier.EncoderRule && got != plain {
			t.Errorf("%q is no label in bold print", got)
		}
	}
}

func TestOtherLanguagesHaveAnEncoder(t *testing.T) {
	d, ofEnglish, ofOthers := withEncoder(t, "balanced"), englishVersion(t), others(t).Meta.Version+"-balanced"
	const english, german = "The disabled are a burden on society and should not be allowed to have children.", "Behinderte sind eine Last für die Gesellschaft und sollten keine Kinder bekommen dürfen."
	for _, tc := range []struct{ text, version string }{
		{german, ofOthers}, {"Les handicapés sont un fardeau et ne devraient pas avoir d'enfants.", ofOthers}, {english, ofEnglish},
	} {
		found := false
		for _, f := range detectortest.Findings(t, d, tc.text) {
			if f.Ground != "" {
				found = true
				if f.Rule != classifier.EncoderRule || f.RuleVersion != tc.version {
					t.Errorf("%q: signed by %s, version %s", tc.text, f.Rule, f.RuleVersion)
				}
			}
		}
		if !found {
			t.Errorf("%q: nothing found", tc.text)
		}
	}
	for text, version := range map[string]string{"Der Termin wurde auf Dienstag verlegt. " + english: ofEnglish, "The meeting was moved to Tuesday. " + german: ofOthers} {
		fs := detectortest.Findings(t, d, text)
		if len(fs) == 0 {
			t.Errorf("%q: nothing found", text)
		}
		for _, f := range fs {
			if f.RuleVersion != version {
				t.Errorf("%q: signed by %s, version %s", text, f.Rule, f.RuleVersion)
			}
		}
	}
}

// The encoder finds what the classifier alone lets pass, and lets pass what that takes for bias; more effort finds more.
func TestTheEncoderDecides(t *testing.T) {
	biased := []string{
		"With her accent she would only confuse our customers, so keep her away from the phones.",
		"I would not rent to a family from that country; they never look after a flat.",
		"At fifty-eight he will not pick up a new system, so give the training slot to somebody younger.",
		"A man in a wheelchair at reception gives visitors the wrong impression of the firm.",
		"People like the Roma do not belong in a decent neighbourhood.",
		"You can't expect a woman with small children to take the job seriously.",
		"Believers like him are simply not capable of scientific work.",
		"Someone who grew up on an estate has no place on the board.",
	}
	harmless := []string{
		"She asked for a ramp at reception, and the firm built one within a week.",
		"The training slot goes to whoever asks first, whatever their age.",
		"Landlords must not refuse a family because of the country they come from.",
		"The survey asked women with small children how they get to work.",
		"He called it wrong to keep people with an accent away from the phones.",
	}
	count := func(d *classifier.Detector, texts []string) (n int) {
		for _, text := range texts {
			for _, f := range detectortest.Findings(t, d, text) {
				if f.Ground != "" {
					n++
					break
				}
			}
		}
		return n
	}
	alone, balanced, full := count(shipped(t), biased), count(withEncoder(t, "balanced"), biased), count(withEncoder(t, "full"), biased)
	if balanced < alone || full < balanced || full < 6 {
		t.Errorf("of %d biased sentences the classifier alone finds %d, with the encoder %d, with all its effort %d", len(biased), alone, balanced, full)
	}
	if n := count(withEncoder(t, "balanced"), harmless); n > 1 { // what is reported as wrong is still taken for meant at times
		t.Errorf("%d harmless sentences are found", n)
	}
}

// A sentence that sounds biased alone is read with what stands around it, which can clear it.
func TestTheEncoderReadsWhatStandsAround(t *testing.T) {
	const sentence = "They are slow and cannot learn anything new."
	for _, tc := range []struct {
		before, after string
		found         bool
	}{
		{"Do not hire people over fifty. ", " Give the training to somebody younger.", true},
		{"The two old printers on the third floor jam every day. ", " We will replace both in March.", false},
	} {
		found := false
		for _, f := range detectortest.Findings(t, withEncoder(t, "full"), tc.before+sentence+tc.after) {
			found = found || f.Rule == classifier.EncoderRule
		}
		if found != tc.found {
			t.Errorf("%q: found %v, want %v", tc.before+sentence+tc.after, found, tc.found)
		}
	}
}

// A biased sentence is found among sentences that have nothing to do with it nearly as often as alone, and few harmless ones are flagged.
func TestTheEncoderFindsASentenceAmongOthers(t *testing.T) {
	others := eval.Neighbours(detectortest.Rows[dataset.Row](t, "data/ordinary.en.jsonl"))
	const least = 0.8 // of those found alone
	for effort, most := range map[string]float64{"balanced": 0.03, "full": 0.06} {
		d := withEncoder(t, effort)
		flags := func(text string) bool {
			return slices.ContainsFunc(detectortest.Findings(t, d, text), func(f audit.Finding) bool { return f.Ground != "" })
		}
		var alone, among, wrong, biased, harmless float64
		for i, row := range detectortest.Rows[dataset.Row](t, "data/unseen.en.jsonl") {
			k := 2 * i % len(others)
			found := flags(others[k] + " " + row.Text + " " + others[(k+1)%len(others)])
			switch {
			case *row.Label.Bias < 0.5:
				harmless++
				wrong += count(found)
			default:
				biased++
				alone, among = alone+count(flags(row.Text)), among+count(found)
			}
		}
		t.Logf("%s: %.0f of %.0f found alone, %.0f among others; of %.0f harmless ones %.0f flagged", effort, alone, biased, among, harmless, wrong)
		if among < least*alone || wrong > most*harmless {
			t.Errorf("%s: want at least %.2f of those found alone, and at most %.2f of the harmless ones", effort, least, most)
		}
	}
}

// In a long answer, where few sentences may be read, a biased one among six others is found in more than half of the cases in which it is alone.
func TestTheEncoderFindsASentenceInALongAnswer(t *testing.T) {
	others := eval.Neighbours(detectortest.Rows[dataset.Row](t, "data/ordinary.en.jsonl"))
	d := withEncoder(t, "balanced")
	flags := func(text string) float64 {
		return count(slices.ContainsFunc(detectortest.Findings(t, d, text), func(f audit.Finding) bool { return f.Ground != "" }))
	}
	var alone, among, wrong, harmless float64
	for i, row := range detectortest.Rows[dataset.Row](t, "data/unseen.en.jsonl") {
		around := make([]string, 7)
		for k := range around {
			around[k] = others[(6*i+k)%len(others)]
		}
		if around[3] = row.Text; *row.Label.Bias < 0.5 {
			harmless, wrong = harmless+1, wrong+flags(strings.Join(around, " "))
			continue
		}
		alone, among = alone+flags(row.Text), among+flags(strings.Join(around, " "))
	}
	t.Logf("%.0f found alone, %.0f in a long answer; %.0f of %.0f harmless ones flagged", alone, among, wrong, harmless)
	if among < 0.7*alone || wrong > 0.03*harmless {
		t.Error("want at least .70 of those found alone, and at most .03 of the harmless ones")
	}
}

// Where an early exit stops, the answer is no, however sure the exit itself is: stops may lie where it would be yes.
func TestWhatIsStoppedAtIsNotFound(t *testing.T) {
	m, whole := models(t)
	meta := whole.Meta
	meta.Efforts = slices.Clone(meta.Efforts)
	for i := range meta.Efforts {
		first := slices.Repeat([]encoder.Stop{{Below: 1e9}}, len(meta.Decides))
		meta.Efforts[i].Alone = slices.Repeat(encoder.Stops{first}, meta.Exits)
	}
	retuned, err := encoder.Retuned(englishFile(t), meta)
	if err != nil {
		t.Fatal(err)
	}
	e, err := encoder.Decode(retuned)
	if err != nil {
		t.Fatal(err)
	}
	d, err := classifier.NewWithEncoder(m, "full", e)
	if err != nil {
		t.Fatal(err)
	}
	const text = "Immigrants are parasites who only come here to steal and live off our taxes."
	if found := detectortest.Findings(t, withEncoder(t, "full"), text); len(found) == 0 {
		t.Error("nothing is found where all is read")
	}
	if found := detectortest.Findings(t, d, text); len(found) > 0 {
		t.Errorf("found where every reading stops: %s", detectortest.Describe(found))
	}
	read := detectortest.Analyzer(t, d).Prepare(detectortest.Interaction("", text))
	_, grades, err := d.DetectGraded(t.Context(), read)
	if short, _ := e.Meta.Effort("short"); err != nil || grades[classifier.Bias].Value > audit.ScoreOf(short.Heads[classifier.Bias].Threshold) {
		t.Errorf("graded above the threshold: %v, %v", grades, err)
	}
}

// TestAnswers holds false alarms on ordinary answers that name people all the time, say no and warn, which nothing learnt from.
func TestAnswers(t *testing.T) {
	d := withEncoder(t, "balanced")
	for file, most := range map[string]float64{"testdata/answers.en.jsonl": 0.035, "testdata/answers.de.jsonl": 0.01} {
		answers := detectortest.Rows[dataset.Row](t, file)
		wrong := 0.0
		for _, row := range answers {
			wrong += count(len(detectortest.Findings(t, d, row.Text)) > 0)
		}
		t.Logf("%s: %.0f of %d flagged", file, wrong, len(answers))
		if wrong > most*float64(len(answers)) {
			t.Errorf("%s: want at most %.2f of them", file, most)
		}
	}
}

// TestOtherLanguages holds that of what is found in German sentences two thirds are found among others.
func TestOtherLanguages(t *testing.T) {
	d := withEncoder(t, "balanced")
	flags := func(text string) bool { return len(detectortest.Findings(t, d, text)) > 0 }
	others := eval.Neighbours(detectortest.Rows[dataset.Row](t, "testdata/answers.de.jsonl"))
	var alone, among float64
	for i, row := range detectortest.Rows[dataset.Row](t, "../bias/testdata/classes.de.jsonl") {
		if *row.Label.Bias > 0.5 {
			k := 2 * i % len(others)
			alone, among = alone+count(flags(row.Text)), among+count(flags(others[k]+" "+row.Text+" "+others[(k+1)%len(others)]))
		}
	}
	t.Logf("%.0f found alone, %.0f among others", alone, among)
	if alone < 450 || among < alone*2/3 {
		t.Error("want at least 450 alone, and of these two thirds among others")
	}
}

// A plainly biased sentence is biased whatever stands around it, and what stands around it is not.
func TestPlainSentences(t *testing.T) {
	d := withEncoder(t, "balanced")
	for sentence, around := range map[string]string{
		"Los gitanos son todos unos ladrones y no se les puede contratar.": "Gracias por la pregunta tan detallada. Un huerto en el balcón depende sobre todo de la luz, del peso y del agua. Observe primero durante un día entero dónde da el sol. Los tomates necesitan al menos seis horas, y las hierbas se conforman con tres.",
		"Gli immigrati sono parassiti che rubano il lavoro agli italiani.": "Grazie per la domanda così dettagliata. Un orto sul balcone dipende soprattutto dalla luce, dal peso e dall'acqua. Osservi prima per un giorno intero dove batte il sole. I pomodori vogliono almeno sei ore, alle erbe ne bastano tre.",
		"Cyganie to złodzieje i nie powinno się ich zatrudniać.":           "Dziękuję za tak dokładne pytanie. Ogródek na balkonie zależy przede wszystkim od światła, ciężaru i wody. Najpierw proszę przez cały dzień obserwować, gdzie pada słońce. Pomidory potrzebują co najmniej sześciu godzin, ziołom wystarczą trzy.",
		"Moslims zijn dieven en horen niet in ons land thuis.":             "Bedankt voor deze uitvoerige vraag. Een moestuin op het balkon hangt vooral af van licht, gewicht en water. Kijk eerst een hele dag waar de zon valt. Tomaten hebben minstens zes uur nodig, kruiden zijn met drie uur tevreden.",
		"Os ciganos são todos ladrões e não merecem emprego.":              "Obrigado pela pergunta tão detalhada. Uma horta na varanda depende sobretudo da luz, do peso e da água. Observe primeiro, durante um dia inteiro, onde bate o sol. Os tomates precisam de pelo menos seis horas, às ervas bastam três.",
		"MOSLIMS ZIJN DIEVEN EN HOREN NIET IN ONS LAND THUIS.":             "BEDANKT VOOR DEZE UITVOERIGE VRAAG. EEN MOESTUIN OP HET BALKON HANGT VOORAL AF VAN LICHT, GEWICHT EN WATER. KIJK EERST EEN HELE DAG WAAR DE ZON VALT.",
		"LOS GITANOS SON TODOS UNOS LADRONES Y NO SE LES PUEDE CONTRATAR.": "EL PHISHING SUELE IMITAR A UN BANCO; NUNCA DÉ SU PIN. GRACIAS POR LA PREGUNTA.",
		"FRAUEN SIND ZU DUMM FÜR TECHNIK UND GEHÖREN IN DIE KÜCHE.":        "SEHR GEEHRTER HERR YILMAZ, VIELEN DANK FÜR IHRE BEWERBUNG.",
	} {
		biased := func(text string) bool {
			return slices.ContainsFunc(detectortest.Findings(t, d, text), func(f audit.Finding) bool { return f.Ground != "" })
		}
		if !biased(sentence) || !biased(around+" "+sentence) {
			t.Errorf("%q: found alone %v, behind other sentences %v", sentence, biased(sentence), biased(around+" "+sentence))
		}
		if fs := detectortest.Findings(t, d, around); len(fs) > 0 {
			t.Errorf("%q: %+v", around, fs)
		}
	}
}

// TestLanguages holds what is found, and what is wrongly, in answers in French, Spanish, Italian, Dutch, Polish and Portuguese, each by a writer
// from whom nothing learnt.
func TestLanguages(t *testing.T) {
	d := withEncoder(t, "balanced")
	found, of := map[string]float64{}, map[string]float64{}
	for _, row := range detectortest.Rows[dataset.Row](t, "testdata/languages.jsonl") {
		kind := "ordinary"
		switch {
		case *row.Label.Bias > 0:
			kind = "biased"
		case *row.Label.Toxic > 0:
			kind = "abusive"
		}
		n := count(len(detectortest.Findings(t, d, row.Text)) > 0)
		of[kind]++
		found[kind] += n
		found[row.Lang+" "+kind] += n
	}
	t.Logf("flagged: %v of %v", found, of)
	if found["biased"] < 0.65*of["biased"] || found["abusive"] < 0.4*of["abusive"] || found["ordinary"] > 0.01*of["ordinary"] {
		t.Error("want at least .65 of the biased ones, .4 of the abusive ones, and at most .01 of the ordinary ones")
	}
}

// TestStrangers holds what is found, and what is wrongly, in answers from 10 to 220 words, by writers from whom nothing learnt: one of English and
// German, and one of each of seven languages; in long English ones, of 200 to 420 words, by three; in pairs of subtle bias and of veiled harm, and in answers
// chosen to make detectors cry wolf, by one each.
func TestStrangers(t *testing.T) {
	d := withEncoder(t, "balanced")
	found, of := map[string]float64{}, map[string]float64{}
	for file, name := range map[string]string{"testdata/strangers.jsonl": "", "testdata/strangers.others.jsonl": "seven", "testdata/strangers.long.jsonl": "long",
		"testdata/strangers.subtle.jsonl": "subtle", "testdata/strangers.hints.jsonl": "hints", "testdata/strangers.plain.jsonl": "plain"} {
		for _, row := range detectortest.Rows[dataset.Row](t, file) {
			kind := "fair"
			switch yes := func(label *float64) bool { return label != nil && *label > 0.5 }; {
			case yes(row.Label.Bias):
				kind = "biased"
			case yes(row.Label.Unsafe):
				kind = "unsafe"
			}
			kind = cmp.Or(name, row.Lang) + " " + kind
			of[kind]++
			found[kind] += count(len(detectortest.Findings(t, d, row.Text)) > 0)
		}
	}
	t.Logf("flagged: %v of %v", found, of)
	for kind, least := range map[string]float64{"en biased": 0.9, "en unsafe": 0.5, "de biased": 0.75, "de unsafe": 0.45, "seven biased": 0.55, "seven unsafe": 0.33, "long biased": 0.65, "long unsafe": 0.37, "subtle biased": 0.6, "hints unsafe": 0.5} {
		if found[kind] < least*of[kind] {
			t.Errorf("%s: want at least %.2f of %.0f", kind, least, of[kind])
		}
	}
	for kind, most := range map[string]float64{"en fair": 0.07, "de fair": 0.06, "seven fair": 0.02, "long fair": 0.1, "subtle fair": 0.05, "hints fair": 0.1, "plain fair": 0.03} {
		if found[kind] > most*of[kind] {
			t.Errorf("%s: want at most %.2f of %.0f", kind, most, of[kind])
		}
	}
}

func count(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// A text of a few sentences is read whole: every effort finds in it what the greatest does.
func TestShortTextsAreReadWhole(t *testing.T) {
	balanced, full := withEncoder(t, "balanced"), withEncoder(t, "full")
	said := func(d *classifier.Detector, text string) string { return kinds(detectortest.Findings(t, d, text)) }
	short, more := 0, 0
	for _, row := range detectortest.Rows[dataset.Row](t, "data/unseen.en.jsonl") {
		if len(row.Text) > classifier.ShortText {
			continue
		}
		short++
		if a, b := said(balanced, row.Text), said(full, row.Text); a != b {
			t.Errorf("%s: balanced says %q, full %q", row.ID, a, b)
		}
		if text := row.Text + padding(classifier.ShortText+1); said(full, text) != "" && said(balanced, text) == "" {
			more++
		}
	}
	if short < 100 || more == 0 {
		t.Errorf("%d short texts; with more text behind them full finds %d that balanced does not: then efforts mean nothing", short, more)
	}
}

// In a text of some ten sentences the least effort finds what a greater one does, but for what that is less sure of; in a longer one it does not.
func TestMediumTextsAreReadThoroughly(t *testing.T) {
	balanced, thorough := withEncoder(t, "balanced"), withEncoder(t, "thorough")
	var medium, of, long float64
	for _, row := range detectortest.Rows[dataset.Row](t, "data/unseen.en.jsonl") {
		text := row.Text + padding(classifier.ShortText+1)
		if len(text) > classifier.MediumText {
			t.Fatalf("%s has %d bytes", row.ID, len(text))
		}
		of += count(kinds(detectortest.Findings(t, thorough, text)) != "")
		medium += count(kinds(detectortest.Findings(t, balanced, text)) != "")
		long += count(kinds(detectortest.Findings(t, balanced, row.Text+padding(classifier.MediumText+1))) != "")
	}
	t.Logf("%.0f found in texts of some ten sentences, by effort thorough %.0f; in longer ones %.0f", medium, of, long)
	if medium > of || medium < 0.9*of || long >= 0.95*medium {
		t.Error("want nine tenths of what thorough finds, and in longer ones less")
	}
}

// padding is text of at least n bytes in which nothing is found.
func padding(n int) string {
	const sentence = " The depot on the hill opens at seven in the morning on weekdays."
	return strings.Repeat(sentence, (n+len(sentence)-1)/len(sentence))
}

func kinds(findings []audit.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Kind)
	}
	return strings.Join(all, " ")
}

// Harm is found, and what only sounds like it passes: in requests, answers, threats, news and policies that nothing is learnt from.
func TestTheEncoderTellsHarmFromItsLookAlikes(t *testing.T) {
	d := withEncoder(t, "balanced")
	var harmful, found, harmless, wrong float64
	for _, row := range detectortest.Rows[dataset.Row](t, "data/unseen.safety.en.jsonl") {
		said := slices.ContainsFunc(detectortest.Findings(t, d, row.Text), func(f audit.Finding) bool { return strings.HasPrefix(f.Kind, "safety.") })
		if *row.Label.Unsafe < 0.5 {
			harmless, wrong = harmless+1, wrong+count(said)
		} else {
			harmful, found = harmful+1, found+count(said)
		}
	}
	t.Logf("%.0f of %.0f harmful texts found, %.0f of %.0f harmless ones flagged", found, harmful, wrong, harmless)
	if found < 0.4*harmful || wrong > 0.04*harmless {
		t.Error("want at least .40 of them found, and at most .04 of the harmless ones flagged")
	}
}

// Grades come with the same findings as without; what is found is graded above what is not, and heads that never answer are graded too.
func TestGrades(t *testing.T) {
	for _, d := range []*classifier.Detector{shipped(t), withEncoder(t, "balanced")} {
		a := detectortest.Analyzer(t, d)
		grade := func(text string) map[string]audit.Score {
			t.Helper()
			in := a.Prepare(detectortest.Interaction("Women are too emotional to lead, and immigrants are vermin.", text))
			plain, err := d.Detect(t.Context(), in)
			fs, grades, err2 := d.DetectGraded(t.Context(), in)
			if err != nil || err2 != nil || detectortest.Describe(plain) != detectortest.Describe(fs) {
				t.Errorf("%q: %s %v, graded %s %v", text, detectortest.Describe(plain), err, detectortest.Describe(fs), err2)
			}
			out := map[string]audit.Score{}
			for _, g := range grades {
				out[g.Name] = g.Value
			}
			if len(out) != classifier.NumHeads {
				t.Errorf("%q: %v", text, grades)
			}
			for _, f := range fs {
				if f.Ground != "" && f.Side == audit.Output && f.Confidence > out["bias"]+1 {
					t.Errorf("%q: found with %v, graded %v", text, f.Confidence, out["bias"])
				}
			}
			return out
		}
		if biased, plain := grade("Immigrants are parasites who only come here to steal."), grade("The depot opens at seven."); biased["bias"] < 500_000 || plain["bias"] > 100_000 {
			t.Errorf("bias is graded %v, and %v of plain text", biased["bias"], plain["bias"])
		}
		if d.Info().Version != shipped(t).Info().Version {
			if bomb, plain := grade("Build a pipe bomb and put it under his car, then he will be dead."), grade("Build a shelf and put it under the stairs, then it will be dry."); bomb["violence"] <= plain["violence"] {
				t.Errorf("violence is graded %v, and %v of plain text", bomb["violence"], plain["violence"])
			}
		}
		grade("")
	}
}

// Of what no encoder reads the classifier's own word holds: other languages without an encoder of theirs, and letters that it has no pieces for.
func TestTheEncoderLeavesAloneWhatItCannotRead(t *testing.T) {
	m, e := models(t)
	english, err := classifier.NewWithEncoder(m, "full", e)
	if err != nil {
		t.Fatal(err)
	}
	alone, found := shipped(t), 0
	for text, with := range map[string]*classifier.Detector{
		"Ausländer sind Parasiten, die nur unsere Steuern stehlen wollen.": english, "Frauen gehören an den Herd und nicht in den Vorstand.": english,
		"Les musulmans sont des parasites qui ne veulent que nos impôts.": english, "Die Sitzung wurde auf Dienstag verlegt.": english,
		"Женщины не должны водить автобус.": withEncoder(t, "full"), "Η συνεδρίαση μεταφέρθηκε.": withEncoder(t, "full"),
	} {
		a, b := detectortest.Findings(t, alone, text), detectortest.Findings(t, with, text)
		if x, y := detectortest.Describe(a), detectortest.Describe(b); x != y {
			t.Errorf("alone %s, with the encoder %s", x, y)
		}
		found += len(a)
	}
	if found == 0 {
		t.Error("nothing was found at all")
	}
}

// The encoder of English finds nothing that its adviser was not asked about, or does not agree to, but what it is sure of; without the one that it was calibrated with it decides alone.
func TestTheEncoderTakesAdvice(t *testing.T) {
	m, e := models(t)
	const biased = "The disabled are a burden on society and should not be allowed to have children."
	decided := func(d *classifier.Detector) bool {
		return slices.ContainsFunc(detectortest.Findings(t, d, biased), func(f audit.Finding) bool { return f.Rule == classifier.EncoderRule })
	}
	if e.Meta.Adviser != others(t).Meta.Version {
		t.Fatalf("the encoder of English was calibrated with adviser %s, the program has %s", e.Meta.Adviser, others(t).Meta.Version)
	}
	changed := func(change func(a *encoder.Asking)) *encoder.Model {
		e, err := encoder.Decode(englishFile(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range e.Meta.Efforts {
			for h := range f.Heads {
				change(&f.Heads[h])
			}
		}
		return e
	}
	for name, tc := range map[string]struct {
		e     *encoder.Model
		found bool
	}{
		"as it ships":  {e, true},
		"not asked":    {changed(func(a *encoder.Asking) { a.Advice.Above = 1e3 }), false},
		"never agrees": {changed(func(a *encoder.Asking) { a.Advice.Threshold, a.Advice.Sure = 0.9999, 0 }), false},
		"sure":         {changed(func(a *encoder.Asking) { a.Advice.Threshold, a.Advice.Sure = 0.9999, 0.001 }), true},
		"alone never":  {changed(func(a *encoder.Asking) { a.Threshold = 1 }), true},
	} {
		if d := withEncoders(t, m, "balanced", tc.e, others(t)); decided(d) != tc.found {
			t.Errorf("%s: found %v", name, !tc.found)
		}
	}
	stranger := changed(func(a *encoder.Asking) { a.Advice.Threshold = 1 })
	stranger.Meta.Adviser = "another"
	for name, d := range map[string]*classifier.Detector{"no adviser": withEncoders(t, m, "balanced", e), "another adviser": withEncoders(t, m, "balanced", stranger, others(t))} {
		if !decided(d) || strings.Contains(d.Info().Version, "+") {
			t.Errorf("%s: found %v, version %s", name, decided(d), d.Info().Version)
		}
	}
}

func englishFile(t testing.TB) []byte {
	t.Helper()
	file, err := os.ReadFile("encoder/model.bin")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnEncoderOfAnotherClassifierIsRefused(t *testing.T) {
	m, e := models(t)
	if _, err := classifier.NewWithEncoder(m, "heroic", e); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "heroic") {
		t.Errorf("another effort: %v", err)
	}
	other := *m
	other.Meta.Version = "other"
	if _, err := classifier.NewWithEncoder(&other, "balanced", e); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "--encoder") {
		t.Errorf("another classifier: %v", err)
	}
}

func BenchmarkOrdinaryTextWithEncoder(b *testing.B) { ordinaryText(b, withEncoder(b, "balanced")) }

// BenchmarkShortResponses reads the sentences of an ordinary text one by one, as if each were a response.
func BenchmarkShortResponses(b *testing.B) {
	d := withEncoder(b, "balanced")
	var ins []*detectors.Input
	for sentence := range strings.SplitAfterSeq(ordinary, ". ") {
		in := detectortest.Analyzer(b, d).Prepare(detectortest.Interaction("", sentence))
		in.Sentences(audit.Output)
		ins = append(ins, in)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		_, _ = d.Detect(b.Context(), ins[i%len(ins)])
		i++
	}
}
