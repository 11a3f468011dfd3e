package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key    = "sk-canary-key"
	canary = "canary text of a person"
)

// counts is an observer that writes down what it is told.
type counts struct {
	mu    sync.Mutex
	lines []string
	usd   float64
}

func (c *counts) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func (c *counts) ModelAsked(model, outcome string, _ time.Duration, _, _ int, usd float64) {
	c.add("%s %s", model, outcome)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usd += usd
}
func (c *counts) ModelRetried(_, reason string) { c.add("again %s", reason) }
func (c *counts) ModelCircuit(state string)     { c.add("circuit %s", state) }

func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, ", ")
}

// world is a client before a scripted server, with the clock of a bubble.
type world struct {
	server *llmtest.Server
	client *llm.Client
	seen   *counts
	start  time.Time
}

func config() llm.Config {
	c := llm.DefaultConfig()
	c.BaseURL, c.APIKey, c.Model = llmtest.URL, key, "m"
	return c
}

// in runs f in a bubble: time stands still but while everybody waits.
func in(t *testing.T, c llm.Config, s llmtest.Config, o llm.Options, script []llmtest.Reply, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if s.Key == "" {
			s.Key = c.APIKey.Reveal()
		}
		w := &world{server: llmtest.New(t, s, script...), seen: &counts{}, start: time.Now()}
		transport, stop := w.server.Transport()
		defer stop()
		o.Transport, o.Observer = transport, w.seen
		var err error
		if w.client, err = llm.New(c, o); err != nil {
			t.Fatal(err)
		}
		defer w.client.Close()
		f(t, w)
	})
}

func (w *world) ask(ctx context.Context) (*llm.Answer, error) {
	return w.client.Complete(ctx, question())
}

func question() llm.Request {
	return llm.Request{Tenant: "a", System: "Judge.", Messages: []llm.Message{{Role: "user", Content: canary}}, MaxTokens: 100}
}

func schema() *llm.Schema {
	return &llm.Schema{Name: "verdict", JSON: json.RawMessage(`{"type":"object","properties":{"bias":{"type":"integer"}},"required":["bias"],"additionalProperties":false}`)}
}

// safe fails when an error repeats the text or the key.
func safe(t *testing.T, err error) {
	t.Helper()
	if s := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(s, "canary") {
		t.Errorf("the error tells what it must not: %s", s)
	}
}
