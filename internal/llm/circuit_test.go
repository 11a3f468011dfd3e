package llm_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
)

// pinged tells whether a question is the client's own.
func pinged(a llmtest.Asked) bool { return a.Last() == "The meeting starts at nine." }

// before runs f with a client before a server that answers pings and callers apart.
func before(t *testing.T, c llm.Config, ping, answer func(a llmtest.Asked) llmtest.Reply, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{seen: &counts{}, start: time.Now(), server: llmtest.NewFunc(t, llmtest.Config{Key: key}, func(_ int, a llmtest.Asked) llmtest.Reply {
			if pinged(a) {
				return ping(a)
			}
			return answer(a)
		})}
		transport, stop := w.server.Transport()
		defer stop()
		var err error
		if w.client, err = llm.New(c, llm.Options{Transport: transport, Observer: w.seen}); err != nil {
			t.Fatal(err)
		}
		defer w.client.Close()
		f(t, w)
	})
}

func always(r llmtest.Reply) func(llmtest.Asked) llmtest.Reply {
	return func(llmtest.Asked) llmtest.Reply { return r }
}

// pings counts the client's own questions.
func (w *world) pings() (n int) {
	for _, a := range w.server.Asked() {
		if pinged(a) {
			n++
		}
	}
	return n
}

func TestCircuit(t *testing.T) {
	c := config()
	c.Retries, c.BreakerFailures, c.BreakerWait = 0, 3, 10*time.Second
	bad, good := llmtest.Fail(500), llmtest.Say("fine")
	script, turn := []llmtest.Reply{llmtest.Fail(400), bad, bad, llmtest.Fail(404), bad, bad, bad, good, good}, 0
	alive := bad
	before(t, c, func(llmtest.Asked) llmtest.Reply { return alive }, func(llmtest.Asked) llmtest.Reply { turn++; return script[turn-1] }, func(t *testing.T, w *world) {
		next := func(n int) {
			for range n {
				_, err := w.ask(t.Context())
				safe(t, err)
			}
		}
		next(7) // refusals of a request say that the server lives
		_, err := w.ask(t.Context())
		if got, want := told(nil, err), "unavailable, later 10s: llm: the circuit is open: the server failed too often in a row, at last with: HTTP 500"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := len(w.server.Asked()) - w.pings(); n != 7 || w.pings() != 1 {
			t.Errorf("asked %d times, and %d times for us", n, w.pings())
		}
		time.Sleep(11 * time.Second)
		next(1) // one ping, which fails
		next(1) // open again
		if turn != 7 || w.pings() != 2 {
			t.Errorf("asked %d times, and %d times for us", turn, w.pings())
		}
		time.Sleep(11 * time.Second)
		alive = good
		next(2)
		want := "circuit closed, m invalid, m server, m server, m invalid, m server, m server, circuit open, m server, m open, circuit half-open, circuit open, m open, m open, " +
			"circuit half-open, circuit closed, m answered, m answered"
		if got := w.seen.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if s := w.client.Spent("a"); s.Calls != 2 {
			t.Errorf("spent %+v", s)
		}
	})
}

// Who finds a circuit open is told how the server failed when we asked it ourselves, whichever way that was.
func TestAnOpenCircuitTellsWhy(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		reply      llmtest.Reply
	}{
		{"an empty account", "HTTP 429 (insufficient_quota)", llmtest.FailCode(429, "insufficient_quota")},
		{"a proxy's page", "an answer of an unexpected form; is judge.base_url an OpenAI-compatible server?", llmtest.Body("text/html", "<html>"+canary+"</html>")},
		{"silence", "no answer within the timeout", llmtest.Hang()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := config()
			c.Retries, c.BreakerFailures = 0, 1
			before(t, c, always(tc.reply), always(llmtest.Fail(500)), func(t *testing.T, w *world) {
				_, _ = w.ask(t.Context())
				_, err := w.ask(t.Context())
				safe(t, err)
				if want := "llm: the circuit is open: the server failed too often in a row, at last with: " + tc.want; err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			})
		})
	}
}

// What one tenant asks keeps no other from being answered, as long as the server answers harmless questions.
func TestNothingThatACallerAsksOpensTheCircuit(t *testing.T) {
	good := llmtest.Say("fine")
	for _, tc := range []struct {
		name   string
		reply  llmtest.Reply // to the one
		model  string        // which it asks
		within time.Duration // its time
	}{
		{"texts on which the server fails", llmtest.Fail(500), "", time.Hour},
		{"texts on which the connection breaks", llmtest.Break(canary), "", time.Hour},
		{"texts that take longer than the caller has", llmtest.Hang(), "", 5 * time.Second},
		{"texts that take longer than an attempt may", llmtest.Hang(), "", time.Hour},
		{"a model that does not exist", llmtest.Fail(500), "nonexistent", time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			one := func(a llmtest.Asked) bool { return strings.HasPrefix(a.Last(), canary) }
			before(t, config(), func(a llmtest.Asked) llmtest.Reply {
				if a.Model == "nonexistent" {
					return llmtest.Fail(500)
				}
				return good
			}, func(a llmtest.Asked) llmtest.Reply {
				if one(a) {
					return tc.reply
				}
				return good
			}, func(t *testing.T, w *world) {
				var all sync.WaitGroup
				defer all.Wait()
				for i := range 20 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), tc.within)
						defer cancel()
						q := question()
						q.Model, q.Messages[0].Content = tc.model, fmt.Sprint(canary, i)
						_, err := w.client.Complete(ctx, q)
						safe(t, err)
					})
				}
				for range 400 {
					time.Sleep(time.Second) // of the bubble
					if got := strings.ReplaceAll(w.seen.String(), "circuit closed", ""); strings.Contains(got, "circuit") {
						t.Fatal(got)
					}
				}
				q := question()
				q.Tenant, q.Messages[0].Content = "b", "fine words"
				if got := told(w.client.Complete(t.Context(), q)); got != "fine stop" {
					t.Error(got)
				}
				if n := w.pings(); n < 1 || n > 12 {
					t.Errorf("%d pings", n)
				}
			})
		})
	}
}

// A circuit is of one model, and the metric tells that of the configured one.
func TestCircuitsAreOfModels(t *testing.T) {
	c := config()
	c.Retries, c.BreakerFailures = 0, 2
	other := func(a llmtest.Asked) llmtest.Reply {
		if a.Model == "m" {
			return llmtest.Say("fine")
		}
		return llmtest.Fail(500)
	}
	before(t, c, other, other, func(t *testing.T, w *world) {
		q := question()
		q.Model = "other"
		for _, want := range []string{"unavailable: llm: HTTP 500", "unavailable: llm: HTTP 500", "unavailable, later 30s: llm: the circuit is open: the server failed too often in a row, at last with: HTTP 500"} {
			if got := told(w.client.Complete(t.Context(), q)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		for i := range 1000 { // so many names are not kept
			q.Model = fmt.Sprint("another", i)
			_, _ = w.client.Complete(t.Context(), q)
		}
		if got := told(w.ask(t.Context())); got != "fine stop" || strings.Count(w.seen.String(), "circuit") != 1 {
			t.Error(got)
		}
	})
}

// While a ping is under way others are asked for; the end of a caller or of the client does not wait for it.
func TestADoubtHoldsUpNobody(t *testing.T) {
	c := config()
	c.Retries, c.BreakerFailures = 0, 1
	before(t, c, always(llmtest.Hang()), func(a llmtest.Asked) llmtest.Reply {
		if a.Last() == canary {
			return llmtest.Fail(500)
		}
		return llmtest.Say("fine")
	}, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.ask(ctx); err == nil || time.Since(w.start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(w.start))
		}
		q := question()
		q.Messages[0].Content = "fine words"
		if got := told(w.client.Complete(t.Context(), q)); got != "fine stop" || time.Since(w.start) != time.Second {
			t.Errorf("%s after %v", got, time.Since(w.start))
		}
		_, _ = w.ask(ctx) // another doubt, about which nobody gets an answer before the end
		go func() { _, _ = w.ask(t.Context()) }()
		synctest.Wait()
		w.client.Close()
		synctest.Wait()
		if got := time.Since(w.start); got != time.Second {
			t.Errorf("the end came after %v", got)
		}
		if got := w.seen.String(); strings.Contains(got, "open") {
			t.Error(got)
		}
	})
}
