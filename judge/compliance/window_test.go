package compliance

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
)

// Windows cover the text, overlap no more than asked, keep their size and end.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []rune(rapid.StringOfN(rapid.SampledFrom([]rune("ab .\n。é👍")), 0, 300, -1).Draw(t, "text"))
		size := rapid.IntRange(8, 60).Draw(t, "size")
		overlap := rapid.IntRange(0, size/4).Draw(t, "overlap")
		ws := windows(text, size, overlap)
		end := uint32(0)
		for i, w := range ws {
			if w.Start > end || w.End-w.Start > uint32(size) || i > 0 && (w.End <= end || end-w.Start > uint32(overlap)) {
				t.Fatalf("%v", ws)
			}
			end = w.End
		}
		if end != uint32(len(text)) {
			t.Fatalf("%v of %d", ws, len(text))
		}
	})
}

// A long text is evaluated in windows; places are those of the whole, and what stands in an overlap counts once.
func TestLongTexts(t *testing.T) {
	sentence := "Ça va, 👍 a plain sentence of no matter to anybody. "
	long := strings.Repeat(sentence, 30)
	at := len([]rune(long[:len(sentence)*11]))
	runes := []rune(long)
	long = string(runes[:at]) + "Women are too emotional. " + string(runes[at:])
	m := answers(func(r llm.Request) *llm.Answer {
		part, err := window(r)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(part, "Women are") {
			return &llm.Answer{Text: edited(found("stereotype", "gender", "Women are too emotional", 3)), Model: "m", Usage: llm.Usage{Output: 10}}
		}
		return &llm.Answer{Text: edited(func(v *Verdict) { v.DEI.Score = 70 }), Model: "m", Usage: llm.Usage{Output: 1}}
	})
	r, err := evaluator(t, m, func(c *Config) { c.MaxChars, c.Overlap = 600, 100 }).Evaluate(t.Context(), Input{Text: long})
	if err != nil {
		t.Fatal(err)
	}
	keeps(t, r.Verdict)
	if want := fmt.Sprintf("judge.stereotype.gender:sex[%d,%d)", at, at+23); describe(r.Findings) != want {
		t.Errorf("%s, want %s", describe(r.Findings), want)
	}
	if r.Calls < 3 || r.Calls != len(m.asked) || r.Verdict.Overall.Assessment != NonCompliant || r.Verdict.DEI.Score != 70 || r.Verdict.Meta.InputLength != len(runes)+25 {
		t.Errorf("%d calls, %+v", r.Calls, r.Verdict)
	}
	for i, req := range m.asked {
		for j := range i {
			if req.System == m.asked[j].System {
				t.Error("two windows have the same marks")
			}
		}
	}
}

// Of a text that is too long its beginning is evaluated, the rest is marked and a person is asked.
func TestOnlySoManyWindows(t *testing.T) {
	for _, tc := range []struct {
		most, calls   int
		want          string
		flags, reason string
	}{
		{3, 3, NeedsReview, "Only the first 3 of 4 parts of the text were evaluated.", ReasonLong},
		{4, 4, Compliant, "", ""},
	} {
		m := answers(func(llm.Request) *llm.Answer { return &llm.Answer{Text: edited(), Model: "m"} })
		r, err := evaluator(t, m, func(c *Config) { c.MaxChars, c.Overlap, c.MaxWindows = 600, 0, tc.most }).Evaluate(t.Context(), Input{Text: strings.Repeat("Plain words here. ", 120)})
		if err != nil {
			t.Fatal(err)
		}
		keeps(t, r.Verdict)
		if row := r.Row(audit.ID{1}); r.Calls != tc.calls || r.Verdict.Overall.Assessment != tc.want || strings.Join(r.Verdict.RedFlags, "") != tc.flags || row.Reason != tc.reason || row.Status != audit.Done {
			t.Errorf("%d calls, %s, %q, %s %s", r.Calls, r.Verdict.Overall.Assessment, r.Verdict.RedFlags, row.Status, row.Reason)
		}
	}
}

// One window whose answer is thrown away does not hide what the others found.
func TestOneWindowLeaks(t *testing.T) {
	long := strings.Repeat("Plain words here. ", 60) + "Women are too emotional. "
	m := answers(func(r llm.Request) *llm.Answer {
		part, _ := window(r)
		if strings.Contains(part, "Women") {
			return &llm.Answer{Text: edited(found("stereotype", "gender", "Women are too emotional", 0))}
		}
		return &llm.Answer{Text: r.System}
	})
	r, err := evaluator(t, m, func(c *Config) { c.MaxChars, c.Overlap = 600, 0 }).Evaluate(t.Context(), Input{Text: long})
	if err != nil || r.Leaked == 0 || !r.Detected || r.Verdict.Overall.Assessment != NonCompliant || !r.Injection {
		t.Errorf("%v %+v", err, r)
	}
}

func TestMergeIsTheStrictest(t *testing.T) {
	a, b := clean("fine"), clean("bad")
	a.Overall.Confidence, b.Overall.Confidence = 0.9, 0.4
	a.Bias.Score, a.Bias.Risk, b.Bias.Score, b.Bias.Risk = 10, "moderate", 20, "low"
	a.DEI.Score, b.DEI.Score = 90, 50
	b.Overall.Assessment, b.Offensive.Severity = NeedsReview, "high"
	a.RedFlags, b.RedFlags = []string{"x"}, []string{"x", "y"}
	for _, v := range []*Verdict{merge([]*Verdict{a, b}), merge([]*Verdict{b, a})} {
		if v.Overall != b.Overall || v.Bias.Score != 20 || v.Bias.Risk != "moderate" || v.DEI.Score != 50 || v.Offensive.Severity != "high" || len(v.RedFlags) != 2 {
			t.Errorf("%+v", v)
		}
	}
}
