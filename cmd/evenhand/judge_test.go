package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/store"
)

// judgeSays answers as a model would: a text with "emotional" is a stereotype.
func judgeSays(_ int, a llmtest.Asked) llmtest.Reply {
	v := compliance.Verdict{
		Overall: compliance.Overall{Assessment: compliance.Compliant, Confidence: 0.9, Summary: "No issues."},
		Bias:    compliance.Bias{Risk: compliance.None, Findings: []compliance.BiasFinding{}},
		DEI:     compliance.DEI{Score: 100, Risk: compliance.None, Violations: []compliance.Violation{}}, Offensive: compliance.Offensive{Severity: compliance.None, Categories: []string{}, Instances: []compliance.Instance{}},
		Mentioned: []compliance.Mention{}, RedFlags: []string{}, Remediations: []compliance.Remediation{}, Meta: compliance.Meta{Version: "1.0", EvaluatedAt: "2026-11-22T12:00:00Z"},
	}
	if strings.Contains(a.Last(), "emotional") {
		class := "gender"
		v.Overall = compliance.Overall{Assessment: compliance.NonCompliant, Confidence: 0.9, Summary: "A stereotype."}
		v.Bias = compliance.Bias{Score: 80, Risk: "high", Findings: []compliance.BiasFinding{{Type: "stereotype", Target: "group", ProtectedClass: &class, Excerpt: "too emotional", Rationale: "It speaks of all women."}}}
		v.Remediations = []compliance.Remediation{{Issue: "stereotype", OriginalExcerpt: "too emotional", SuggestedRewrite: "under pressure at times"}}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return llmtest.Fail(500)
	}
	return llmtest.Say(string(b))
}

// TestJudgeFromDoorToStream: what is emitted and chosen is judged by the model behind the settings; commands ask it too.
func TestJudgeFromDoorToStream(t *testing.T) {
	server := llmtest.NewFunc(t, llmtest.Config{}, judgeSays)
	s := defaultSettings()
	s.DataDir, s.Tenant.Default, s.HTTP.Addr = t.TempDir(), "acme", "127.0.0.1:0"
	s.Judge.BaseURL, s.Judge.PriceInput, s.Judge.PriceOutput = server.Listen(), 0.15, 0.6
	env := []string{"EVENHAND_JUDGE_BASE_URL=" + s.Judge.BaseURL}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, err := start(ctx, s, allRoles, true, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer st.close(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- st.serve(ctx) }()
	runs(t, s.DataDir, running{PID: os.Getpid(), HTTP: "http://" + st.listener.Addr().String(), Kafka: st.broker.Addr(), Started: time.Now()})
	file := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, file, `{"id":"chosen","domain":"hr","response":"She may be too emotional for this."}`+"\n"+`{"id":"fine","domain":"hr","response":"The weather is fine."}`+"\n"+`{"id":"other","domain":"finance","response":"The film is too emotional."}`+"\n")
	must(t, "", "emit", file, "--data-dir", s.DataDir, "--quiet")
	tenant := store.New(st.conn, st.chconfig.Database).WithTenant("acme")
	id := func(given string) audit.ID { return audit.DeriveID("acme", given) }
	judged := func(given string) (v *audit.Verdict, r *store.Record) {
		r, err := tenant.Get(t.Context(), id(given))
		if err != nil {
			return nil, nil
		}
		for i := range r.Verdicts {
			if r.Verdicts[i].Analyzer == audit.JudgeAnalyzer {
				v = &r.Verdicts[i]
			}
		}
		return v, r
	}
	eventually(t, "the judge's verdicts", func() error {
		a, r := judged("chosen")
		b, _ := judged("fine")
		if a == nil || b == nil || !r.BiasDetected {
			return errors.New("not yet")
		}
		if !a.Detected || a.Status != audit.Done || b.Detected {
			t.Fatalf("%+v %+v", a, b)
		}
		return nil
	})
	if v, _ := judged("other"); v != nil {
		t.Error("what was not chosen was judged")
	}
	eventually(t, "the stream", func() error {
		for _, m := range readTopic(t, st.broker.Addr(), kafkaconn.AuditStream) {
			if string(m.Key) == id("chosen").String() && strings.Contains(string(m.Value), "judge.stereotype") {
				return nil
			}
		}
		return errors.New("not yet")
	})
	for _, m := range readTopic(t, st.broker.Addr(), kafkaconn.Judge) {
		if strings.Contains(string(m.Value), "emotional") {
			t.Error("a request holds text")
		}
	}

	// On request, with the words.
	r := evenhandEnv(t, "", env, "judge", "--id", id("other").String(), "--tenant", "acme", "--explain", "--data-dir", s.DataDir)
	if r.code != 3 || !strings.Contains(r.out, "non_compliant") || !strings.Contains(r.out, `"too emotional"`) || !strings.Contains(r.out, "under pressure") || !strings.Contains(r.out, "all women") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	if v, rec := judged("other"); v == nil || !rec.BiasDetected {
		t.Error("what a person asked for is not in the record")
	}
	r = evenhandEnv(t, "", env, "judge", "The weather is fine.", "--json")
	var v compliance.Verdict
	if err := json.Unmarshal([]byte(r.out), &v); r.code != 0 || err != nil || v.Overall.Assessment != compliance.Compliant {
		t.Errorf("status %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if r := evenhandEnv(t, "", []string{"OPENAI_API_KEY="}, "judge", "x"); r.code != 2 || !strings.Contains(r.err, "judge.api_key") {
		t.Errorf("without a model: status %d %s", r.code, r.err)
	}
	if out := must(t, "", "check", "--data-dir", s.DataDir, "--json"); !strings.Contains(out, `"faults":[]`) {
		t.Errorf("check %s", out)
	}
	labels := filepath.Join(t.TempDir(), "labels.jsonl")
	write(t, labels, `{"id":"a","text":"Women are too emotional.","label":{"bias":1},"characteristic":["sex"],"split":"dev"}`+"\n"+`{"id":"b","text":"It rains.","label":{"bias":0},"characteristic":["sex"],"split":"dev"}`+"\n")
	r = evenhandEnv(t, "", env, "eval", labels, "--judge", "--repeats", "2", "--json")
	var c calibration
	if err := json.Unmarshal([]byte(r.out), &c); err != nil || c.All.Kappa != 1 || c.All.N != 2 || c.Self.Unanimous != 1 || c.Calls != 4 || c.Class["sex"].N != 2 {
		t.Errorf("status %d %v\n%s%s", r.code, err, r.out, r.err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// moody answers in turns.
type moody struct{ turn int }

func (m *moody) Evaluate(_ context.Context, in compliance.Input) (*compliance.Result, error) {
	m.turn++
	if strings.Contains(in.Text, "hard") {
		return &compliance.Result{Calls: 1}, errors.New("no")
	}
	return &compliance.Result{Verdict: &compliance.Verdict{}, Detected: strings.Contains(in.Text, "bad") || strings.Contains(in.Text, "doubt") && m.turn%2 == 0, Calls: 1, Usage: llm.Usage{Input: 10, Output: 5}}, nil
}

func TestCalibrate(t *testing.T) {
	var rows []dataset.Row
	one, zero := 1.0, 0.0
	for i, text := range []string{"bad", "fine", "bad but not said so", "hard"} {
		r := dataset.Row{ID: fmt.Sprint(i), Text: text, Characteristic: []string{"age"}}
		if r.Label.Bias = &zero; i == 0 {
			r.Label.Bias = &one
		}
		rows = append(rows, r)
	}
	c, err := calibrate(t.Context(), &moody{}, rows, "bias", 3, 1)
	if err != nil || c.All.N != 3 || c.All.Both != 1 || c.All.Second != 1 || c.All.Neither != 1 || c.Failed != 3 || c.Calls != 12 || c.Self.N != 3 || c.Self.Unanimous != 1 {
		t.Errorf("%+v %v", c, err)
	}
	var told strings.Builder
	if c.write(&told); c.Last != "no" || !strings.Contains(told.String(), "No answer 3 times;") || !strings.Contains(told.String(), "in no figure above; the last: no\n") {
		t.Errorf("%q\n%s", c.Last, told.String())
	}
	if c.Self.Orders != 2 || c.Self.SameOrder.N != 3 || c.Self.Turned.N != 3 {
		t.Errorf("%+v", c.Self)
	}
	if _, err := calibrate(t.Context(), &moody{}, rows[3:], "bias", 9, 1); err == nil || !strings.Contains(err.Error(), "none of the first 5") {
		t.Error(err)
	}
}

// first finds bias where that stands first.
type first struct{}

func (first) Evaluate(_ context.Context, in compliance.Input) (*compliance.Result, error) {
	return &compliance.Result{Verdict: &compliance.Verdict{}, Detected: in.Turn == 0}, nil
}

// A model that goes by the place of the criteria agrees with itself in each order and not across them.
func TestCalibrateTellsPositionBias(t *testing.T) {
	one := 1.0
	r := dataset.Row{ID: "1", Text: "x"}
	r.Label.Bias = &one
	c, err := calibrate(t.Context(), first{}, []dataset.Row{r}, "bias", 4, 1)
	if err != nil || c.Self.Orders != 3 || c.Self.SameOrder.Pairs != 1 || c.Self.SameOrder.N != 1 || c.Self.Turned.Pairs != 0.2 || c.Self.Turned.N != 1 {
		t.Fatalf("%+v %v", c, err)
	}
	var b strings.Builder
	c.write(&b)
	if !strings.Contains(b.String(), "100 % of those with the criteria in the same order, 20 % of those in different ones (3 orders).") {
		t.Error(b.String())
	}
	j, err := json.Marshal(c.Self)
	if err != nil || !strings.HasPrefix(string(j), `{"n":1,"unanimous":0,`) || !strings.Contains(string(j), `"orders":3,"same_order":{"n":1,"unanimous":1,"pairs":1},"turned":{"n":1,"unanimous":0,"pairs":0.2}`) {
		t.Errorf("%s %v", j, err)
	}
}

// An error of the model says what to look at, or when to ask again, however deep it lies.
func TestAdvised(t *testing.T) {
	for _, tc := range []struct {
		reply llmtest.Reply
		want  string
	}{
		{llmtest.FailCode(401, "invalid_api_key"), "outer: llm: HTTP 401 (invalid_api_key); the server calls it invalid_request_error; is the key good for this server and model: judge.api_key, judge.key_header?"},
		{llmtest.Fail(429, "Retry-After", "90"), "outer: llm: HTTP 429; ask again in 1m30s"},
		{llmtest.Fail(429, "Retry-After", "0"), "outer: llm: HTTP 429"},
		{llmtest.Fail(500), "outer: llm: HTTP 500"},
	} {
		s := defaultSettings().Judge
		s.BaseURL, s.Retries = llmtest.NewFunc(t, llmtest.Config{}, func(int, llmtest.Asked) llmtest.Reply { return tc.reply }).Listen(), 0
		m, err := s.newModel(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Complete(t.Context(), llm.Request{Messages: []llm.Message{{Role: "user", Content: "x"}}})
		m.Close()
		if got := advised(fmt.Errorf("outer: %w", err)).Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestJudgeIsOffWithoutAModelOfItsOwn(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-somebody")
	s := defaultSettings()
	if s.Judge.on() || !strings.Contains(s.Judge.diagnose(s.PII.Mask).Says, "OPENAI_API_KEY serves") {
		t.Error(s.Judge.diagnose(s.PII.Mask))
	}
	s.Judge.BaseURL = "http://127.0.0.1:1/v1"
	if !s.Judge.on() || s.Judge.diagnose(s.PII.Mask).State != "ok" {
		t.Error(s.Judge.diagnose(s.PII.Mask))
	}
	s.PII.Mask = maskOff
	if s.Judge.diagnose(s.PII.Mask).State != "warn" {
		t.Error(s.Judge.diagnose(s.PII.Mask))
	}
	s.Judge.Enabled = false
	if s.Judge.on() {
		t.Error("it is switched off")
	}
}
