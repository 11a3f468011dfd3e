package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/audit"
	inline "github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
)

// opinion is a judge that finds texts with the word "old" not compliant; it may be away, or hang.
type opinion struct {
	away, hangs bool
	asked       []string
}

func (o *opinion) Grey(in *audit.Interaction, _ *audit.Verdict) bool {
	return strings.Contains(in.Response, "maybe")
}

func (o *opinion) Judge(ctx context.Context, in *audit.Interaction) (*inline.Opinion, error) {
	o.asked = append(o.asked, in.Response)
	switch {
	case o.hangs:
		<-ctx.Done()
		return nil, audit.E("test", audit.KindUnavailable, ctx.Err())
	case o.away:
		return nil, audit.E("test", audit.KindUnavailable, errors.New("away"))
	case strings.Contains(in.Response, "old"):
		return &inline.Opinion{Assessment: inline.NonCompliant, Findings: []audit.Finding{{Kind: "judge.stereotype", Rule: "judge.stereotype.age", Side: audit.Output, Span: audit.Span{End: 3}}}}, nil
	}
	return &inline.Opinion{Assessment: inline.Compliant}, nil
}

// says is what LiteLLM tells of an answer.
func says(id, params string, texts ...string) string {
	b, _ := json.Marshal(texts)
	return fmt.Sprintf(`{"input_type":"response","litellm_call_id":%q,"texts":%s,"additional_provider_specific_params":{%s}}`, id, b, params)
}

func TestLiteLLMAsksTheJudge(t *testing.T) {
	guardtest.Current(t)
	const old = "She is too old to learn."
	for _, tc := range []struct {
		name   string
		judge  opinion
		change func(*inline.Judging)
		body   string
		status int
		answer string // contained in it
		note   string // contained in the part's note
		asked  int
	}{
		{"may block", opinion{}, nil, says("c", "", old), 200, `{"action":"BLOCKED","blocked_reason":"Stopped by policy: not compliant by the judge (judge.stereotype). Reference: `, `"assessment":"non_compliant"`, 1},
		{"may warn", opinion{}, func(j *inline.Judging) { j.Action = audit.Warn }, says("c", "", old), 200, `{"action":"NONE"}`, `{"action":"warn","reasons":["judge"]`, 1},
		{"finds nothing", opinion{}, nil, says("c", "", "Hello there."), 200, `{"action":"NONE"}`, `"assessment":"compliant"`, 1},
		{"off", opinion{}, func(j *inline.Judging) { j.Ask = inline.AskNever }, says("c", "", old), 200, `{"action":"NONE"}`, ``, 0},
		{"in no doubt", opinion{}, func(j *inline.Judging) { j.Ask = inline.AskGrey }, says("c", "", old), 200, `{"action":"NONE"}`, ``, 0},
		{"in doubt", opinion{}, func(j *inline.Judging) { j.Ask = inline.AskGrey }, says("c", "", "maybe old"), 200, `"BLOCKED"`, `non_compliant`, 1},
		{"blocked already", opinion{}, nil, says("c", `"domain":"hr","biasAction":"block"`, emotional), 200, `"BLOCKED"`, `"reasons":["bias"]`, 0},
		{"prompts are not its affair", opinion{}, nil, `{"input_type":"request","litellm_call_id":"c","texts":["` + old + `"],"additional_provider_specific_params":{"check":"both"}}`, 200, `{"action":"NONE"}`, ``, 0},
		{"away", opinion{away: true}, nil, says("c", "", old), 503, `UNAVAILABLE`, ``, 1},
		{"away, open", opinion{away: true}, func(j *inline.Judging) { j.FailOpen = true }, says("c", "", old), 200, `{"action":"NONE"}`, `"reasons":["not_judged"]`, 1},
		{"away, only warns", opinion{away: true}, func(j *inline.Judging) { j.Action = audit.Warn }, says("c", "", old), 200, `{"action":"NONE"}`, `"reason":"unavailable"`, 1},
		{"too slow", opinion{hangs: true}, nil, says("c", "", old), 503, `UNAVAILABLE`, ``, 1},
		{"too slow, open", opinion{hangs: true}, func(j *inline.Judging) { j.FailOpen = true }, says("c", "", old), 200, `{"action":"NONE"}`, `"reason":"timeout"`, 1},
		{"no call is named", opinion{}, nil, says("", "", old), 200, `"BLOCKED"`, `non_compliant`, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := deps(&log{})
				j := inline.Judging{Judge: &tc.judge, Ask: inline.AskAll, Action: audit.Block, Timeout: 5 * time.Second}
				if tc.change != nil {
					tc.change(&j)
				}
				k := inlined(t, &d)
				d.Inline.Guard = inline.New(guardtest.Current(t), inline.Config{Judging: j})
				w := send(Handler(d), "POST", liteLLMDoor, tc.body)
				k.flush(t)
				note := ""
				if len(k.parts) == 1 && k.parts[0].Metadata["guard"] != nil {
					b, _ := json.Marshal(k.parts[0].Metadata["guard"])
					note = string(b)
				}
				if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.answer) || strings.Contains(w.Body.String(), "learn") {
					t.Errorf("%d %s, want %d %s", w.Code, w.Body, tc.status, tc.answer)
				}
				if len(tc.judge.asked) != tc.asked || !strings.Contains(note, tc.note) || tc.note == "" && note != "" || strings.Contains(note, "learn") {
					t.Errorf("asked %d times; note %q, want %q", len(tc.judge.asked), note, tc.note)
				}
			})
		})
	}
}

// LiteLLM does not say that a text is a stream's: what goes on with a text of the same call is, and the judge is not asked.
func TestLiteLLMStreamsAreNotJudged(t *testing.T) {
	judge := &opinion{}
	d := deps(&log{})
	inlined(t, &d)
	d.Inline.Guard = inline.New(guardtest.Current(t), inline.Config{Judging: inline.Judging{Judge: judge, Ask: inline.AskAll, Action: audit.Warn, Timeout: time.Second}})
	h := Handler(d)
	for _, tc := range []struct {
		name  string
		texts []string
		asked int
	}{
		{"a stream", []string{"She is", "She is too", "She is too", "She is too old to learn."}, 1},
		{"two choices", []string{"She|He", "She is|He", "She is|He is"}, 1},
		{"a choice more", []string{"She", "She|He"}, 1},
		{"the same again", []string{"She is.", "She is.", "She is."}, 3},
		{"another answer", []string{"She is.", "He is.", "He"}, 3},
		{"a stream after an answer", []string{"She is.", "He", "He is"}, 2},
	} {
		judge.asked = nil
		for _, texts := range tc.texts {
			if w := send(h, "POST", liteLLMDoor, says(tc.name, "", strings.Split(texts, "|")...)); w.Code != 200 {
				t.Fatalf("%s: %d %s", tc.name, w.Code, w.Body)
			}
		}
		if len(judge.asked) != tc.asked {
			t.Errorf("%s: asked about %q", tc.name, judge.asked)
		}
	}
	// Another tenant's call of the same name is another call, and what was forgotten is a whole again.
	hd := newHeard()
	if hd.goesOn("a c", []string{"x"}) || hd.goesOn("b c", []string{"xy"}) || !hd.goesOn("a c", []string{"xy"}) {
		t.Error("calls are mixed up")
	}
	for i := range heardCalls {
		hd.goesOn(fmt.Sprint(i), nil)
	}
	if !hd.goesOn("a c", []string{"xyz"}) {
		t.Error("forgotten too early")
	}
	for i := range 2 * heardCalls {
		hd.goesOn(fmt.Sprint(i, "-"), nil)
	}
	if hd.goesOn("a c", []string{"xyzz"}) || len(hd.now)+len(hd.before) > 2*heardCalls {
		t.Error("never forgotten")
	}
}
