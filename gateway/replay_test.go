package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge/replay"
)

// marksOut is a validator: the fewer bad words, the better; none passes.
func marksOut(_ context.Context, in *audit.Interaction) (*replay.Check, error) {
	n := strings.Count(in.Response, "bad")
	c := &replay.Check{Outcome: replay.Failed, Score: audit.ScoreOf(1 - float64(n)/10)}
	if n == 0 {
		c.Outcome = replay.Passed
	}
	for range n {
		c.Notes = append(c.Notes, replay.Note{Issue: "a word", Excerpt: "bad"})
	}
	return c, nil
}

// script answers the calls in order; "" breaks off with 500, "hang" waits until the caller goes.
func script(texts ...string) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		switch {
		case i >= len(texts) || texts[i] == "":
			w.WriteHeader(http.StatusInternalServerError)
		case texts[i] == "hang":
			<-r.Context().Done()
		default:
			says(texts[i])(w, r)
		}
	}
}

func TestReplay(t *testing.T) {
	for _, tc := range []struct {
		name     string
		texts    []string
		validate func(context.Context, *audit.Interaction) (*replay.Check, error)
		want     string // answer, header without its id, statuses of the events
	}{
		{"passes", []string{"fine"}, marksOut, "fine|rounds=0, kept=0, stop=passed|success"},
		{"improves on round two", []string{"bad bad", "bad", "fine"}, marksOut, "fine|rounds=2, kept=2, stop=passed|blocked blocked success"},
		{"never improves", []string{"bad", "too bad"}, marksOut, "bad|rounds=1, kept=0, stop=no_improvement|success blocked"},
		{"gets worse", []string{"bad", "bad bad"}, marksOut, "bad|rounds=1, kept=0, stop=no_improvement|success blocked"},
		{"better, not good", []string{"bad bad bad", "bad bad", "bad"}, marksOut, "bad|rounds=2, kept=2, stop=rounds|blocked blocked success"},
		{"the provider fails", []string{"bad", ""}, marksOut, "bad|rounds=1, kept=0, stop=call_failed|success error"},
		{"the provider hangs", []string{"bad", "hang"}, marksOut, "bad|rounds=1, kept=0, stop=cancelled|success error"},
		{"the judge is away", []string{"bad"}, func(context.Context, *audit.Interaction) (*replay.Check, error) {
			return nil, audit.E("test", audit.KindUnavailable, errors.New("away"))
		}, "bad|rounds=0, kept=0, stop=check_failed|success"},
		{"the judge hangs", []string{"bad"}, func(ctx context.Context, _ *audit.Interaction) (*replay.Check, error) {
			<-ctx.Done()
			return nil, audit.E("test", audit.KindUnavailable, ctx.Err())
		}, "bad|rounds=0, kept=0, stop=cancelled|success"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, script(tc.texts...))
			s := start(t, p.URL, func(c *Config, d *Deps) {
				c.Replay, d.Validate = Replaying{2, time.Second}, tc.validate
			})
			got := s.do(PathChat, prompt("Say something.", `,"temperature":0.5`), "Idempotency-Key", "once")
			said := gjson.Get(got.body, "choices.0.message.content").String()
			header, id, _ := strings.Cut(got.header.Get("X-Evenhand-Replay"), ", id=")
			var statuses []string
			kept := ""
			es := s.events()
			for i, e := range es {
				statuses = append(statuses, fmt.Sprint(e["status"]))
				if given := fmt.Sprint(e["id"]); (i > 0) != strings.HasPrefix(given, "replay/"+got.header.Get("X-Evenhand-Id")+"/") {
					t.Errorf("event %d: id %s", i, given)
				}
				if e["response"] == said {
					kept = fmt.Sprint(gjson.Get(string(encode(e)), "metadata.gateway.replay.id"))
				}
			}
			if all := said + "|" + header + "|" + strings.Join(statuses, " "); got.status != 200 || all != tc.want {
				t.Errorf("%d: got %s, want %s", got.status, all, tc.want)
			}
			if id == "" || kept != id {
				t.Errorf("the caller is told %q, the record %q", id, kept)
			}
			if r, sent := p.last(); p.calls() > 1 {
				if v := gjson.Get(sent, "messages"); len(v.Array()) != 2 || v.Get("1.role").String() != "user" || !strings.Contains(v.Get("1.content").String(), `"excerpt":"bad"`) || gjson.Get(sent, "temperature").Num != 0.5 {
					t.Errorf("asked again with %s", sent)
				}
				if r.Header.Get("Idempotency-Key") != "" || r.Header.Get("Authorization") != "Bearer sk-theirs" {
					t.Errorf("asked again with %v", r.Header)
				}
			}
		})
	}
}

// Callers may ask for it where they may; what is not held is never replayed, and the guard decides about what is kept.
func TestReplayOptions(t *testing.T) {
	p := newProvider(t, script("bad", biased))
	s := start(t, p.URL, func(c *Config, d *Deps) { blocks(c, d); d.Validate = marksOut })
	if got := s.do(PathChat, prompt("x", ""), "X-Evenhand-Replay", "eleven"); got.status != 400 || p.calls() != 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
	got := s.do(PathChat, prompt("x", ""), "X-Evenhand-Replay", "1")
	if got.status != 400 || !strings.Contains(got.body, "BiasDetectedError") || gjson.Get(got.body, "error.evenhand.replay.kept").Int() != 1 {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, e := range s.events() {
		if e["status"] != "blocked" {
			t.Errorf("%v", e)
		}
	}
	for _, mode := range []string{StreamWindow, StreamPass} {
		s = start(t, newProvider(t, streams("\n", pieces("bad")...)).URL, func(c *Config, d *Deps) { c.Replay.Rounds, d.Validate, c.Stream = 2, marksOut, mode })
		if got := s.do(PathChat, prompt("x", `,"stream":true`)); got.header.Get("X-Evenhand-Replay") != "" || s.event()["status"] != "success" {
			t.Errorf("%s: %v", mode, got.header)
		}
	}
}

// A prompt that is a plain text becomes two messages.
func TestReplayOfResponses(t *testing.T) {
	var n atomic.Int64
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text := "fine"
		if n.Add(1) == 1 {
			text = "bad"
		}
		_, _ = fmt.Fprintf(w, `{"id":"r","model":"m","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}]}`, text)
	})
	s := start(t, p.URL, func(c *Config, d *Deps) { c.Replay.Rounds, d.Validate = 1, marksOut })
	got := s.do(PathResponses, `{"model":"m","input":"Say it."}`)
	_, sent := p.last()
	if gjson.Get(got.body, "output.0.content.0.text").String() != "fine" || gjson.Get(sent, "input.0.content").String() != "Say it." || !strings.Contains(gjson.Get(sent, "input.1.content").String(), "bad") {
		t.Errorf("%s after %s", got.body, sent)
	}
	if len(s.events()) != 2 {
		t.Errorf("%d events", len(s.events()))
	}
}
