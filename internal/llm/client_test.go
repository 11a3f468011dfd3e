package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
	"github.com/evenhand/evenhand/internal/secret"
)

func TestTheFormOfAnAnswerIsAskedForAsStrictlyAsTheServerTakesIt(t *testing.T) {
	seed := int64(7)
	for _, tc := range []struct {
		name    string
		refuses []string
		terse   bool
		want    string // what the questions that were taken asked for
		again   string
	}{
		{"a schema", nil, false, "json_schema temperature seed max_tokens", "circuit closed, m answered, m answered"},
		{"JSON", []string{"json_schema"}, false, "json_object temperature seed max_tokens", "circuit closed, again adapted, m answered, m answered"},
		{"words", []string{"json_schema", "json_object"}, false, "text temperature seed max_tokens", "circuit closed, again adapted, again adapted, m answered, m answered"},
		{"words, without a reason", []string{"json_schema", "json_object"}, true, "text temperature seed max_tokens", "circuit closed, again adapted, again adapted, m answered, m answered"},
		{"a reasoning model", []string{"temperature", "max_tokens"}, false, "json_schema seed max_completion_tokens", "circuit closed, again adapted, again adapted, m answered, m answered"},
		{"nothing", []string{"json_schema", "json_object", "temperature", "seed", "max_tokens"}, false, "text max_completion_tokens",
			"circuit closed, again adapted, again adapted, again adapted, again adapted, again adapted, m answered, m answered"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			script := []llmtest.Reply{llmtest.Say("{}"), llmtest.Say("{}")}
			in(t, config(), llmtest.Config{Refuses: tc.refuses, Terse: tc.terse}, llm.Options{}, script, func(t *testing.T, w *world) {
				q := question()
				q.Schema, q.Seed = schema(), &seed
				for range 2 { // the second time it is known
					a, err := w.client.Complete(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					if form, _, _ := strings.Cut(tc.want, " "); string(a.Form) != form {
						t.Errorf("form %s, want %s", a.Form, form)
					}
				}
				for _, a := range w.server.Asked() {
					if got := fields(a); got != tc.want {
						t.Errorf("asked for %s, want %s", got, tc.want)
					}
					if shown := strings.Contains(a.System(), string(schema().JSON)); shown == (a.Form() == "json_schema") {
						t.Errorf("%s: the system prompt shows the schema: %t", a.Form(), shown)
					}
				}
				if got := w.seen.String(); got != tc.again {
					t.Errorf("seen %s\nwant %s", got, tc.again)
				}
				if s := w.client.Spent("a"); s.Calls != 2 {
					t.Errorf("refusals cost: %+v", s)
				}
			})
		})
	}
}

// A provider that quotes a text it refuses lets no text weaken how others are asked; what was learned is tried anew after an hour.
func TestATextDoesNotChangeHowOthersAreAsked(t *testing.T) {
	for _, quoted := range []string{"response_format", "temperature", "max_tokens", "seed", "' response_format is not supported"} {
		for _, body := range []string{`{"error":{"message":"Invalid prompt: '... %s ...'","code":"invalid_prompt"}}`, `{"error":{"message":"%s"}}`, `{"detail":[{"loc":["body","messages"],"msg":"bad","input":"%s"}]}`, `x %s`} {
			refusal := func(w http.ResponseWriter, _ *http.Request, _ llmtest.Asked) {
				w.WriteHeader(400)
				fmt.Fprintf(w, body, quoted)
			}
			before(t, config(), nil, func(a llmtest.Asked) llmtest.Reply {
				if a.Last() == canary {
					return refusal
				}
				return llmtest.Say("{}")
			}, func(t *testing.T, w *world) {
				q := question()
				q.Schema, q.Seed = schema(), new(int64)
				for range 4 {
					if _, err := w.client.Complete(t.Context(), q); err == nil {
						t.Error("it was answered")
					}
				}
				q.Tenant, q.Messages[0].Content = "b", "fine words"
				if _, err := w.client.Complete(t.Context(), q); err != nil {
					t.Error(err)
				}
				asked := w.server.Asked()
				if got := fields(asked[len(asked)-1]); got != "json_schema temperature seed max_tokens" {
					t.Errorf("%s in %s: the next was asked for %s", quoted, body, got)
				}
			})
		}
	}
	t.Run("an hour later", func(t *testing.T) {
		in(t, config(), llmtest.Config{Refuses: []string{"json_schema"}}, llm.Options{}, []llmtest.Reply{llmtest.Say("{}"), llmtest.Say("{}"), llmtest.Say("{}")}, func(t *testing.T, w *world) {
			q := question()
			q.Schema = schema()
			for _, pause := range []time.Duration{0, 59 * time.Minute, time.Minute} {
				time.Sleep(pause) // of the bubble
				_, _ = w.client.Complete(t.Context(), q)
			}
			if got := w.seen.String(); got != "circuit closed, again adapted, m answered, m answered, again adapted, m answered" {
				t.Error(got)
			}
		})
	})
}

func fields(a llmtest.Asked) string {
	s := []string{a.Form()}
	for _, f := range []struct {
		name  string
		given bool
	}{{"temperature", a.Temperature != nil}, {"seed", a.Seed != nil}, {"max_tokens", a.MaxTokens != nil}, {"max_completion_tokens", a.MaxCompletionTokens != nil}} {
		if f.given {
			s = append(s, f.name)
		}
	}
	return strings.Join(s, " ")
}

func TestAnotherSchemaIsTriedAnew(t *testing.T) {
	in(t, config(), llmtest.Config{}, llm.Options{}, []llmtest.Reply{
		llmtest.Body("application/json", "x"), llmtest.Say("{}"), llmtest.Say("{}")}, func(t *testing.T, w *world) {
		for _, name := range []string{"one", "two"} {
			q := question()
			q.Schema = schema()
			q.Schema.Name = name
			if _, err := w.client.Complete(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range w.server.Asked() {
			if a.Form() != "json_schema" {
				t.Errorf("an answer of a bad form weakened the question: %s", a.Form())
			}
		}
	})
}

func TestServers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config func(*llm.Config)
		server llmtest.Config
		path   string
	}{
		{"OpenAI and its like", func(*llm.Config) {}, llmtest.Config{Key: key}, "/v1/chat/completions"},
		{"one without a key", func(c *llm.Config) { c.APIKey = "" }, llmtest.Config{}, "/v1/chat/completions"},
		{"a slash behind", func(c *llm.Config) { c.BaseURL += "/" }, llmtest.Config{Key: key}, "/v1/chat/completions"},
		{"Azure", func(c *llm.Config) { c.BaseURL, c.APIVersion = "http://localhost", "2024-10-21" }, llmtest.Config{Key: key, KeyHeader: "Api-Key", APIVersion: "2024-10-21"}, "/openai/deployments/m/chat/completions"},
		{"Azure, as its page shows it", func(c *llm.Config) { c.BaseURL, c.APIVersion = "http://localhost/openai/", "2024-10-21" }, llmtest.Config{Key: key, KeyHeader: "Api-Key", APIVersion: "2024-10-21"}, "/openai/deployments/m/chat/completions"},
		{"a proxy's own header", func(c *llm.Config) { c.KeyHeader = "x-litellm-key" }, llmtest.Config{Key: key, KeyHeader: "X-Litellm-Key"}, "/v1/chat/completions"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("OPENAI_API_KEY", "of the environment, for OpenAI alone")
			c := config()
			tc.config(&c)
			server := llmtest.New(t, tc.server, llmtest.Say("fine"))
			transport, stop := server.Transport()
			defer stop()
			m, err := llm.New(c, llm.Options{Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			if got := told(m.Complete(t.Context(), question())); got != "fine stop" {
				t.Error(got)
			}
			for _, a := range server.Asked() {
				if a.Path != tc.path {
					t.Errorf("path %s", a.Path)
				}
			}
		})
	}
}

func TestTheKeyOfTheEnvironmentGoesToOpenAIOnly(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-env")
	t.Setenv("OPENAI_ORG_ID", "org")
	for at, want := range map[string]string{"": "Bearer sk-env", "https://api.openai.com/v1": "Bearer sk-env", "https://eu.api.openai.com/v1": "Bearer sk-env",
		"https://evilopenai.com/v1": "", "https://proxy.example/v1": "", "http://127.0.0.1/v1": ""} {
		c := llm.DefaultConfig()
		c.BaseURL, c.Retries = at, 0
		tr := &spy{}
		m, err := llm.New(c, llm.Options{Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.Complete(t.Context(), question())
		if got := tr.header.Get("Authorization"); got != want {
			t.Errorf("%s gets %q, want %q", at, got, want)
		}
		if tr.header.Get("Openai-Organization") != "" || tr.header.Get("User-Agent") != "evenhand" {
			t.Errorf("headers of the environment: %v", tr.header)
		}
	}
}

func TestOff(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	if _, err := llm.New(llm.DefaultConfig(), llm.Options{}); !errors.Is(err, llm.ErrOff) || audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("got %v", err)
	}
}

func TestACallersOwnKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	off := llm.DefaultConfig()
	for _, tc := range []struct {
		name string
		c    llm.Config
		key  secret.Text
		want string
	}{{"instead of ours", config(), "sk-theirs", "Bearer sk-theirs"}, {"none", config(), "", "Bearer " + key}, {"where we have none", off, "sk-theirs", "Bearer sk-theirs"}} {
		tr := &spy{}
		tc.c.Retries = 0
		m, err := llm.New(tc.c, llm.Options{Transport: tr, CallersKeys: true})
		if err != nil {
			t.Fatal(err)
		}
		q := question()
		q.Key = tc.key
		_, err = m.Complete(t.Context(), q)
		if got := tr.header.Get("Authorization"); got != tc.want || strings.Contains(fmt.Sprintf("%v %+v %#v", err, q, q), "sk-theirs") {
			t.Errorf("%s: sent %q, told %v", tc.name, got, err)
		}
	}
	m, err := llm.New(off, llm.Options{CallersKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Complete(t.Context(), question()); !errors.Is(err, llm.ErrOff) || audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("without any key: %v", err)
	}
	t.Run("an empty account does not open the circuit", func(t *testing.T) {
		c := config()
		c.BreakerFailures = 1
		in(t, c, llmtest.Config{Key: "sk-theirs"}, llm.Options{}, []llmtest.Reply{llmtest.FailCode(429, "insufficient_quota"), llmtest.FailCode(429, "insufficient_quota")}, func(t *testing.T, w *world) {
			q := question()
			q.Key = "sk-theirs"
			for range 2 {
				_, _ = w.client.Complete(t.Context(), q)
			}
			if got := w.seen.String(); got != "circuit closed, m limited, m limited" {
				t.Error(got)
			}
		})
	})
}

func TestBudget(t *testing.T) {
	c := config()
	c.BudgetCalls, c.BudgetTokens, c.Retries = 3, 1000, 0
	short := llmtest.Complete(llmtest.Completion{Text: "x", Input: 10, Output: 5})
	dear := llmtest.Complete(llmtest.Completion{Text: "x", Input: 700, Output: 200})
	mute := llmtest.Complete(llmtest.Completion{Text: "x", NoUsage: true})
	ask := func(t *testing.T, w *world, tenant string) error {
		q := question()
		q.Tenant = tenant
		_, err := w.client.Complete(t.Context(), q)
		return err
	}
	t.Run("calls", func(t *testing.T) {
		in(t, c, llmtest.Config{}, llm.Options{}, []llmtest.Reply{short, llmtest.Fail(500), short, short, short, short}, func(t *testing.T, w *world) {
			for i, want := range []error{nil, errors.New("500"), nil, nil, llm.ErrBudget} { // what the server refused costs nothing
				err := ask(t, w, "a")
				if (err == nil) != (want == nil) || errors.Is(want, llm.ErrBudget) != errors.Is(err, llm.ErrBudget) {
					t.Errorf("%d: got %v, want %v", i, err, want)
				}
				if errors.Is(err, llm.ErrBudget) && audit.KindOf(err) != audit.KindOverloaded {
					t.Errorf("kind %s", audit.KindOf(err))
				}
			}
			if err := ask(t, w, "b"); err != nil {
				t.Errorf("another tenant: %v", err)
			}
			if s := w.client.Spent("a"); s != (llm.Spent{Calls: 3, Tokens: 45}) {
				t.Errorf("spent %+v", s)
			}
			time.Sleep(24 * time.Hour) // of the bubble
			if s := w.client.Spent("a"); s != (llm.Spent{}) {
				t.Errorf("the next day has %+v", s)
			}
			if err := ask(t, w, "a"); err != nil {
				t.Errorf("the next day: %v", err)
			}
		})
	})
	t.Run("tokens", func(t *testing.T) {
		in(t, c, llmtest.Config{}, llm.Options{}, []llmtest.Reply{dear}, func(t *testing.T, w *world) {
			if err := ask(t, w, "a"); err != nil {
				t.Fatal(err)
			}
			if err := ask(t, w, "a"); !errors.Is(err, llm.ErrBudget) {
				t.Errorf("900 of 1000 are gone and 100 may come: %v", err)
			}
			if got := w.seen.String(); got != "circuit closed, m answered, m budget" {
				t.Error(got)
			}
		})
	})
	t.Run("a server that does not count is counted for", func(t *testing.T) {
		in(t, c, llmtest.Config{}, llm.Options{}, []llmtest.Reply{mute}, func(t *testing.T, w *world) {
			if err := ask(t, w, "a"); err != nil {
				t.Fatal(err)
			}
			if s := w.client.Spent("a"); s.Calls != 1 || s.Tokens < 5 || s.Tokens > 50 {
				t.Errorf("spent %+v", s)
			}
		})
	})
	t.Run("a false figure does not spend the day", func(t *testing.T) {
		false1, false2 := llmtest.Complete(llmtest.Completion{Text: "x", Input: 1 << 40, Output: 1 << 40}), llmtest.Body("application/json",
			`{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e999,"completion_tokens":9223372036854775807}}`)
		c := c
		c.BudgetTokens = 1_000_000
		in(t, c, llmtest.Config{}, llm.Options{}, []llmtest.Reply{false1, false2, short}, func(t *testing.T, w *world) {
			for range 3 {
				if err := ask(t, w, "a"); errors.Is(err, llm.ErrBudget) {
					t.Error(err)
				}
			}
			if s := w.client.Spent("a"); s.Calls != 3 || s.Tokens > 5000 {
				t.Errorf("spent %+v", s)
			}
		})
	})
	t.Run("an answer that was lost may have cost", func(t *testing.T) {
		in(t, c, llmtest.Config{}, llm.Options{}, []llmtest.Reply{llmtest.Hang()}, func(t *testing.T, w *world) {
			_ = ask(t, w, "a")
			if s := w.client.Spent("a"); s.Calls != 1 || s.Tokens < 100 {
				t.Errorf("spent %+v", s)
			}
		})
	})
	t.Run("at once", func(t *testing.T) {
		c := c
		c.BudgetCalls, c.BudgetTokens = 10, 0
		synctest.Test(t, func(t *testing.T) {
			server := llmtest.NewFunc(t, llmtest.Config{Key: key}, func(int, llmtest.Asked) llmtest.Reply { return short })
			transport, stop := server.Transport()
			defer stop()
			m, err := llm.New(c, llm.Options{Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() { _, _ = m.Complete(t.Context(), question()) })
			}
			wg.Wait()
			if n := len(server.Asked()); n != 10 {
				t.Errorf("%d calls of 10", n)
			}
		})
	})
}

func TestACallerWhoGoesSaysNothingAboutTheServer(t *testing.T) {
	c := config()
	c.Retries, c.BreakerFailures = 0, 1
	in(t, c, llmtest.Config{}, llm.Options{}, []llmtest.Reply{llmtest.Hang(), llmtest.Hang(), llmtest.Say("fine")}, func(t *testing.T, w *world) {
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, _ = w.ask(ctx)
		}
		if got := told(w.ask(t.Context())); got != "fine stop" {
			t.Error(got)
		}
	})
}

func TestConcurrency(t *testing.T) {
	c := config()
	c.Concurrency = 3
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		slow := func(d int) {
			mu.Lock()
			defer mu.Unlock()
			now += d
			most = max(most, now)
		}
		server := llmtest.NewFunc(t, llmtest.Config{Key: key}, func(int, llmtest.Asked) llmtest.Reply {
			slow(1)
			time.Sleep(time.Second) // of the bubble
			slow(-1)
			return llmtest.Say("fine")
		})
		transport, stop := server.Transport()
		defer stop()
		m, err := llm.New(c, llm.Options{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() { _, _ = m.Complete(t.Context(), question()) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		time.Sleep(time.Millisecond)
		if _, err := m.Complete(ctx, question()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits for a slot waits no longer than its deadline: %v", err)
		}
		wg.Wait()
		if most != 3 || time.Since(start) != 3*time.Second {
			t.Errorf("%d at once, %v for 9 of a second", most, time.Since(start))
		}
	})
}

// Slow questions of one tenant leave a slot to the next, and who waits is asked for by turns.
func TestSlotsAreSharedBetweenTenants(t *testing.T) {
	for _, tc := range []struct {
		slots int
		want  time.Duration // until the other tenant has its answer
	}{{8, time.Second}, {1, 39 * time.Second}} {
		c := config()
		c.Concurrency = tc.slots
		before(t, c, nil, func(a llmtest.Asked) llmtest.Reply {
			time.Sleep(time.Second) // of the bubble
			if a.Last() == canary {
				time.Sleep(18 * time.Second)
			}
			return llmtest.Say("fine")
		}, func(t *testing.T, w *world) {
			var all sync.WaitGroup
			defer all.Wait()
			for range 30 {
				all.Go(func() { _, _ = w.ask(t.Context()) })
			}
			synctest.Wait()
			q := question()
			q.Tenant, q.Messages[0].Content = "b", "quick"
			if _, err := w.client.Complete(t.Context(), q); err != nil {
				t.Error(err)
			}
			if took := time.Since(w.start); took != tc.want {
				t.Errorf("%d slots: b waited %v", tc.slots, took)
			}
		})
	}
}

func TestPricesAndMetrics(t *testing.T) {
	price := func(model string, u llm.Usage) (float64, bool) {
		if model != "m" {
			return 0, false // a table without dated names
		}
		return (float64(u.Input) + 4*float64(u.Output)) / 4e6, true
	}
	script := []llmtest.Reply{
		llmtest.Complete(llmtest.Completion{Text: "x", Model: "m-2026-01-01", Input: 1_000_000, Output: 500_000}),
		llmtest.Complete(llmtest.Completion{Text: "x", NoUsage: true}), llmtest.Refuse("no"), llmtest.Cut("x"),
	}
	in(t, config(), llmtest.Config{}, llm.Options{Price: price}, script, func(t *testing.T, w *world) {
		a, err := w.ask(t.Context())
		if err != nil || a.CostUSD != 0.75 || !a.Priced || a.Model != "m-2026-01-01" || a.Form != "" || a.Usage != (llm.Usage{Input: 1_000_000, Output: 500_000}) {
			t.Errorf("%+v %v", a, err)
		}
		if a, err = w.ask(t.Context()); err != nil || a.Priced || a.Usage != (llm.Usage{}) {
			t.Errorf("%+v %v", a, err)
		}
		_, _ = w.ask(t.Context())
		_, _ = w.ask(t.Context())
		if got := w.seen.String(); got != "circuit closed, m answered, m answered, m refused, m cut" {
			t.Error(got)
		}
	})
}

func TestAServersNameOfTheModelIsAName(t *testing.T) {
	names := map[string]string{
		"m-2026-01-01": "m-2026-01-01", "meta-llama/Llama-3.1:free": "meta-llama/Llama-3.1:free", "": "m", "a b": "m", strings.Repeat("x", 201): "m", "..": "m",
		"m\x1b[2J": "m", "m\u009b2J": "m", "m\u202e": "m", "m\n": "m",
	}
	for said, want := range names {
		in(t, config(), llmtest.Config{}, llm.Options{}, []llmtest.Reply{llmtest.Complete(llmtest.Completion{Text: "x", Model: said})}, func(t *testing.T, w *world) {
			if a, err := w.ask(t.Context()); err != nil || a.Model != want {
				t.Errorf("%q: %+v (%v)", said, a, err)
			}
		})
	}
}

func TestMetricsNameSoManyModels(t *testing.T) {
	script := make([]llmtest.Reply, 20)
	for i := range script {
		script[i] = llmtest.Say("x")
	}
	in(t, config(), llmtest.Config{}, llm.Options{}, script, func(t *testing.T, w *world) {
		for i := range script {
			q := question()
			q.Model = fmt.Sprint("m", i)
			_, _ = w.client.Complete(t.Context(), q)
		}
		if got := w.seen.String(); strings.Count(got, "other answered") != 4 || !strings.Contains(got, "m15 answered") {
			t.Error(got)
		}
	})
}

func TestBadRequests(t *testing.T) {
	in(t, config(), llmtest.Config{}, llm.Options{}, nil, func(t *testing.T, w *world) {
		for want, spoil := range map[string]func(*llm.Request){
			"messages: there are none":                            func(q *llm.Request) { q.Messages = nil },
			"messages[0].role: is neither user nor assistant":     func(q *llm.Request) { q.Messages[0].Role = "system" },
			"temperature: NaN is not in 0..2":                     func(q *llm.Request) { q.Temperature = nan() },
			"temperature: 3 is not in 0..2":                       func(q *llm.Request) { q.Temperature = 3 },
			"max_tokens: -1 is negative":                          func(q *llm.Request) { q.MaxTokens = -1 },
			"schema.name: wants 1 to 64 letters, digits, _ or -":  func(q *llm.Request) { q.Schema = schema(); q.Schema.Name = "a b" },
			"schema: is not a JSON object":                        func(q *llm.Request) { q.Schema = schema(); q.Schema.JSON = []byte("[") },
			"api_key: holds what no key does":                     func(q *llm.Request) { q.Key = "canary\r\nX-Evil: 1" },
			"model: is no model's name":                           func(q *llm.Request) { q.Model = "a b" },
			"model: is no model's name\nmessages: there are none": func(q *llm.Request) { q.Model, q.Messages = "..", nil },
		} {
			q := question()
			spoil(&q)
			_, err := w.client.Complete(t.Context(), q)
			if got := told(nil, err); got != "invalid: llm: "+want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}
