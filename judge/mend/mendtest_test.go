package mend

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/sources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faults are what the scripted judge finds, word for word.
var faults = []string{"too old", "too emotional", "born lazy"}

// verdict is the judge's answer about a text that it was shown.
func verdict(shown string) string {
	type object = map[string]any
	findings := []object{}
	for _, f := range faults {
		if strings.Contains(shown, f) {
			findings = append(findings, object{"type": "stereotype", "target": "group", "protected_class": "age", "excerpt": f, "span": []int{0, 1}, "rationale": "a stereotype"})
		}
	}
	assessment, risk := "compliant", "none"
	if len(findings) > 0 {
		assessment, risk = "non_compliant", "high"
	}
	b, _ := json.Marshal(object{
		"overall":                     object{"assessment": assessment, "confidence": 0.9, "summary": "As it is."},
		"bias":                        object{"score": 30 * len(findings), "risk": risk, "findings": findings},
		"dei":                         object{"score": 100, "risk": "none", "violations": []object{}},
		"offensive_language":          object{"score": 0, "severity": "none", "categories": []string{}, "instances": []object{}},
		"protected_classes_mentioned": []object{}, "red_flags": []string{}, "suggested_remediations": []object{},
		"meta": object{"version": "1.0", "evaluated_at": "2026-11-22T18:00:00Z", "input_length": 1},
	})
	return string(b)
}

func judges(_ int, a llmtest.Asked) llmtest.Reply { return llmtest.Say(verdict(a.Last())) }

// client speaks to a scripted server.
func client(t *testing.T, s *llmtest.Server, change func(*llm.Config)) *llm.Client {
	t.Helper()
	c := llm.DefaultConfig()
	c.BaseURL, c.Retries, c.Timeout = s.Listen(), 0, 2*time.Second
	if change != nil {
		change(&c)
	}
	m, err := llm.New(c, llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// topic is the log.
type topic struct {
	mu  sync.Mutex
	ms  []ingest.Message
	err error
}

func (l *topic) Produce(_ context.Context, ms []ingest.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.ms = append(l.ms, ms...)
	}
	return l.err
}

// interactions decodes what the log took as the pipeline does.
func (l *topic) interactions(t *testing.T) (ins []*audit.Interaction) {
	t.Helper()
	for _, m := range l.ms {
		in, rejected := ingest.NewDecoder(ingest.Options{}).Decode(sources.Record{Key: m.Key, Value: m.Value, Headers: m.Headers, Time: time.Now()}, audit.Origin{BrokerTime: time.Now().UTC().Truncate(time.Millisecond)})
		if rejected != nil {
			t.Fatalf("%s: %s", rejected.Reason, rejected.Detail)
		}
		ins = append(ins, in)
	}
	return ins
}

// world is a mender with both servers scripted.
type world struct {
	*Mender
	judge, origin *llmtest.Server
	log           *topic
}

func newWorld(t *testing.T, cfg Config, judge func(int, llmtest.Asked) llmtest.Reply, says ...llmtest.Reply) *world {
	t.Helper()
	w := &world{judge: llmtest.NewFunc(t, llmtest.Config{}, judge), origin: llmtest.New(t, llmtest.Config{}, says...), log: &topic{}}
	e, err := compliance.New(client(t, w.judge, nil), compliance.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	m := client(t, w.origin, nil)
	w.Mender, err = New(cfg, Parts{
		Validator: &Validator{Evaluator: e}, Decoder: ingest.NewDecoder(ingest.Options{}), Producer: w.log,
		Origin: func(in *audit.Interaction, model string) (llm.Model, string, error) {
			if model == "" {
				model = in.Model
			}
			return m, model, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

const first = "She is too old, and too emotional."

func stored() *audit.Interaction {
	return &audit.Interaction{
		ID: audit.NewID(time.Now()), Tenant: "acme", Time: time.Now(), TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Application: "desk", Domain: audit.HR, Model: "gpt-x", Provider: "openai",
		UserID: "u-7", DecisionID: "d-1", Messages: `[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Who should lead?"}]}]`, Prompt: "Be brief.\n\nWho should lead?", Response: first,
	}
}
