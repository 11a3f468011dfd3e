package compliance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/llm"
)

// scripted answers in turn; the last answer is given again and again.
type scripted struct {
	mu      sync.Mutex
	answers []func(llm.Request) (*llm.Answer, error)
	asked   []llm.Request
}

func (s *scripted) Complete(_ context.Context, r llm.Request) (*llm.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, r)
	return answer(r)
}

// says makes a model of answers.
func says(texts ...string) *scripted {
	s := &scripted{}
	for _, text := range texts {
		s.answers = append(s.answers, func(llm.Request) (*llm.Answer, error) {
			return &llm.Answer{Text: text, Model: "scripted-1", Finish: "stop", Usage: llm.Usage{Input: 1000, Output: 100}, CostUSD: 0.001, Priced: true}, nil
		})
	}
	return s
}

func answers(f func(llm.Request) *llm.Answer) *scripted {
	return &scripted{answers: []func(llm.Request) (*llm.Answer, error){func(r llm.Request) (*llm.Answer, error) { return f(r), nil }}}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// evaluator has fixed time and marks.
func evaluator(t testing.TB, m llm.Model, change ...func(*Config)) *Evaluator {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Now = func() time.Time { return noon }
	for _, c := range change {
		c(&cfg)
	}
	e, err := New(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// edited is a verdict without issues after changes, as a model would write it.
func edited(changes ...func(*Verdict)) string {
	v := clean("No issues.")
	v.Overall.Confidence, v.DEI.Score = 0.9, 100
	v.Meta = Meta{verdictVersion, "2020-01-01T00:00:00Z", 7} // the model's guess
	for _, c := range changes {
		c(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}

// found is a finding of bias with a quote and the model's idea of where it stands.
func found(kind, class, excerpt string, start uint32) func(*Verdict) {
	return func(v *Verdict) {
		var c *string
		if class != "" {
			c = &class
		}
		v.Overall.Assessment, v.Bias.Score, v.Bias.Risk = NonCompliant, 80, "high"
		v.Bias.Findings = append(v.Bias.Findings, BiasFinding{kind, "group", c, excerpt, Span{start, start + uint32(len(excerpt))}, "because"})
	}
}

// window gives what a request holds between its marks, decoded, and says whether it is well formed: two mark lines with
// the nonce of the system prompt and one line of JSON between them.
func window(r llm.Request) (string, error) {
	lines := strings.Split(strings.TrimSuffix(r.Messages[0].Content, "\n"), "\n")
	if lines[0] != "USER CONTENT TO EVALUATE" {
		return "", errors.New("the head is missing")
	}
	n := len(lines)
	if n < 4 {
		return "", errors.New("lines are missing")
	}
	nonce, ok := strings.CutPrefix(lines[n-3], "BEGIN_TEXT ")
	if n != 4 && (n != 5 || !strings.HasPrefix(lines[1], "Context: ")) || !ok || len(nonce) != 32 || lines[n-1] != "END_TEXT "+nonce || !strings.Contains(r.System, nonce) {
		return "", fmt.Errorf("the marks are wrong in %d lines", n)
	}
	var text string
	return text, json.Unmarshal([]byte(lines[n-2]), &text)
}
