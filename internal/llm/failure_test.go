package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
)

// Every way in which a server fails: what the caller gets, how often it was asked, and how long that took.
func TestFailures(t *testing.T) {
	r := func(rs ...llmtest.Reply) []llmtest.Reply { return rs }
	say, fail := llmtest.Say("fine"), llmtest.Fail
	const filter = "content_filter"
	for _, tc := range []struct {
		name      string
		script    []llmtest.Reply
		want      string // the answer, or the error's class and words
		asked     int
		from, til time.Duration
	}{
		{"a good answer", r(say), "fine stop", 1, 0, 0},
		{"a fence is the caller's affair", r(llmtest.Fenced("{}")), "Here it is:\n```json\n{}\n```\nAnything else? stop", 1, 0, 0},
		{"broken JSON inside the answer too", r(llmtest.Say(`{"a":`)), `{"a": stop`, 1, 0, 0},
		{"cut at the limit", r(llmtest.Cut("fi")), "fi length", 1, 0, 0},
		{"a refusal", r(llmtest.Refuse("no")), "refused: no stop", 1, 0, 0},
		{"the provider's filter", r(llmtest.FailCode(400, filter)), "refused: the provider's filter did not let the text through content_filter", 1, 0, 0},
		{"429 with seconds", r(fail(429, "Retry-After", "7"), say), "fine stop", 2, 7 * time.Second, 7 * time.Second},
		{"429 with milliseconds", r(fail(429, "Retry-After-Ms", "1500", "Retry-After", "9"), say), "fine stop", 2, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"429 with a date", r(fail(429, "Retry-After", "Sat, 01 Jan 2000 00:00:12 GMT"), say), "fine stop", 2, 12 * time.Second, 12 * time.Second},
		{"429 with a date gone by", r(fail(429, "Retry-After", "Sat, 01 Jan 1999 00:00:12 GMT"), say), "fine stop", 2, 0, 0},
		{"429 with nonsense backs off", r(fail(429, "Retry-After", "soon"), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"429 too long to wait", r(fail(429, "Retry-After", "3600")), "unavailable, later 1h0m0s: llm: HTTP 429", 1, 0, 0},
		{"429 longer than anybody", r(fail(429, "Retry-After", "1e300")), "unavailable, later 24h0m0s: llm: HTTP 429", 1, 0, 0},
		{"no credit", r(llmtest.FailCode(429, "insufficient_quota", "Retry-After", "1")), "unavailable, later 1s: llm: HTTP 429 (insufficient_quota)", 1, 0, 0},
		{"500 thrice", r(fail(500), fail(502), fail(503)), "unavailable: llm: HTTP 503", 3, 1500 * time.Millisecond, 3 * time.Second},
		{"500 twice", r(fail(500), fail(500), say), "fine stop", 3, 1500 * time.Millisecond, 3 * time.Second},
		{"500 and the server wants no other", r(fail(500, "X-Should-Retry", "false")), "unavailable: llm: HTTP 500", 1, 0, 0},
		{"a proxy's page", r(llmtest.Page(502), llmtest.Page(502), llmtest.Page(502)), "unavailable: llm: HTTP 502", 3, 1500 * time.Millisecond, 3 * time.Second},
		{"a page that says 200", r(llmtest.Page(200), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"another type", r(llmtest.Body("text/plain", "{}"), llmtest.Body("text/event-stream", "data: {}"), llmtest.Body("", "{}")), "unavailable: llm: an answer of an unexpected form; is judge.base_url an OpenAI-compatible server?", 3, 1500 * time.Millisecond, 3 * time.Second},
		{"no JSON", r(llmtest.Body("application/json", "{"+canary), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"JSON of another form", r(llmtest.Body("application/json", `{"choices":"`+canary+`"}`), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"no choice", r(llmtest.Body("application/json", `{"choices":[]}`), llmtest.Body("application/json", `null`), say), "fine stop", 3, 1500 * time.Millisecond, 3 * time.Second},
		{"a router's failure under 200", r(llmtest.Body("application/json", `{"error":{"message":"`+canary+`","code":429}}`), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"a router's failure in the place of an answer", r(llmtest.Body("application/json", `{"choices":[{"finish_reason":"error","message":{"content":"`+canary+`"},"error":{"code":502,"message":"`+canary+`"}}]}`), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"a router's refusal under 200", r(llmtest.Body("application/json", `{"error":{"message":"`+canary+`","code":402}}`)), "invalid: llm: HTTP 402", 1, 0, 0},
		{"an error under 200 without a status", r(llmtest.Body("application/json", `{"error":"Unexpected endpoint or method"}`), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"an answer beside an error that is none", r(llmtest.Body("application/json", `{"error":null,"choices":[{"message":{"content":"\"error\""},"error":null,"finish_reason":"stop"}]}`)), `"error" stop`, 1, 0, 0},
		{"a refusal in an array", r(llmtest.Fail(500), func(w http.ResponseWriter, _ *http.Request, _ llmtest.Asked) {
			w.WriteHeader(404)
			_, _ = w.Write([]byte(`[{"error":{"code":"model_not_found","message":"` + canary + `"}}]`))
		}), "invalid: llm: HTTP 404 (model_not_found)", 2, 500 * time.Millisecond, time.Second},
		{"a cut connection", r(llmtest.Break(canary), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"always cut", r(llmtest.Break(canary), llmtest.Break(canary), llmtest.Break(canary)), "unavailable: llm: the connection broke before the answer was whole", 3, 1500 * time.Millisecond, 3 * time.Second},
		{"10 MB", r(llmtest.Huge(10 << 20)), "unavailable: llm: an answer above 4194304 bytes", 1, 0, 0},
		{"deep", r(llmtest.Body("application/json", `{"choices":`+nest(1<<20)), say), "fine stop", 2, 500 * time.Millisecond, time.Second},
		{"hang", r(llmtest.Hang(), say), "fine stop", 2, 60500 * time.Millisecond, 61 * time.Second},
		{"a redirect", r(llmtest.Redirect("http://evil.test/")), "invalid: llm: the address redirects elsewhere; set judge.base_url to where it leads", 1, 0, 0},
		{"a wrong key", r(llmtest.FailCode(401, "invalid_api_key")), "invalid: llm: HTTP 401 (invalid_api_key)", 1, 0, 0},
		{"a code we do not know is not told", r(llmtest.FailCode(401, key)), "invalid: llm: HTTP 401", 1, 0, 0},
		{"no such model", r(llmtest.FailCode(404, "model_not_found")), "invalid: llm: HTTP 404 (model_not_found)", 1, 0, 0},
		{"too long", r(llmtest.FailCode(400, "context_length_exceeded")), "invalid: llm: the text is too long for the model: HTTP 400 (context_length_exceeded)", 1, 0, 0},
		{"a bad request", r(fail(400)), "invalid: llm: HTTP 400", 1, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in(t, config(), llmtest.Config{}, llm.Options{}, tc.script, func(t *testing.T, w *world) {
				a, err := w.ask(t.Context())
				got := told(a, err)
				if got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
				safe(t, err)
				if n := len(w.server.Asked()); n != tc.asked {
					t.Errorf("asked %d times, want %d", n, tc.asked)
				}
				if took := time.Since(w.start); took < tc.from || took > tc.til {
					t.Errorf("took %v, want %v to %v", took, tc.from, tc.til)
				}
			})
		})
	}
}

// nest is n arrays in each other.
func nest(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '['
	}
	return string(b)
}

// told is an answer or an error in a line.
func told(a *llm.Answer, err error) string {
	var later *llm.Later
	switch {
	case errors.As(err, &later):
		return fmt.Sprintf("%s, later %v: %v", audit.KindOf(err), later.After, err)
	case err != nil:
		return fmt.Sprintf("%s: %v", audit.KindOf(err), err)
	case a.Refusal != "":
		return fmt.Sprintf("refused: %s %s", a.Refusal, a.Finish)
	}
	return a.Text + " " + a.Finish
}

func TestNoServer(t *testing.T) {
	c := config()
	c.BaseURL, c.Retries = "http://127.0.0.1:1/v1", 0
	m, err := llm.New(c, llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = m.Complete(t.Context(), question())
	if got, want := told(nil, err), "unavailable: llm: the server at 127.0.0.1:1 cannot be reached: connect: connection refused"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s := m.Spent("a"); s != (llm.Spent{}) {
		t.Errorf("it cost %+v", s)
	}
}

func TestTheCallerEndsIt(t *testing.T) {
	t.Run("while the server works", func(t *testing.T) {
		in(t, config(), llmtest.Config{}, llm.Options{}, []llmtest.Reply{llmtest.Hang()}, func(t *testing.T, w *world) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := w.ask(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || audit.KindOf(err) != audit.KindUnavailable || time.Since(w.start) != 3*time.Second {
				t.Errorf("got %v after %v", err, time.Since(w.start))
			}
		})
	})
	t.Run("no wait beyond its deadline", func(t *testing.T) {
		in(t, config(), llmtest.Config{}, llm.Options{}, []llmtest.Reply{llmtest.Fail(http.StatusTooManyRequests, "Retry-After", "5")}, func(t *testing.T, w *world) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := w.ask(ctx)
			if got, want := told(nil, err), "unavailable, later 5s: llm: HTTP 429"; got != want || time.Since(w.start) != 0 {
				t.Errorf("got %s after %v, want %s at once", got, time.Since(w.start), want)
			}
		})
	})
	t.Run("while it waits", func(t *testing.T) {
		in(t, config(), llmtest.Config{}, llm.Options{}, []llmtest.Reply{llmtest.Fail(500)}, func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			_, err := w.ask(ctx)
			if !errors.Is(err, context.Canceled) || time.Since(w.start) != 100*time.Millisecond {
				t.Errorf("got %v after %v", err, time.Since(w.start))
			}
		})
	})
}
