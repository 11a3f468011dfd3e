package lane

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/judge/compliance"
)

// A request that would be understood, but whose answer panics, is told from what is no request; what the panic said stays here.
func TestRejectedRequests(t *testing.T) {
	r := judge.Request{Tenant: "acme", ID: audit.DeriveID("a"), Attempt: 1}
	payload, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{string(payload): reasonError + " acme", "secret": reasonRequest + " ", "": reasonRequest + " "} {
		m := message.NewMessage("x", []byte(value))
		m.Metadata.Set(middleware.ReasonForPoisonedKey, "panic: secret")
		got := rejected(m)
		if got.Reason+" "+got.Tenant != want || got.Detail == "" || len(got.Header) != 0 || got.Key != nil || string(got.Value) != value {
			t.Errorf("%+v", got)
		}
	}
}

// A model that answers nothing readable is told of once a minute, not for each text.
func TestFailuresAreLoggedOnceAMinute(t *testing.T) {
	var said bytes.Buffer
	at := time.Now()
	l := &Lane{cfg: tuned(), Parts: Parts{Version: "gpt/1", Logger: slog.New(slog.NewTextHandler(&said, nil)), Now: func() time.Time { return at }}}
	for i, step := range []struct {
		later time.Duration
		err   error
		lines int
	}{{0, compliance.ErrAnswer, 1}, {59 * time.Second, compliance.ErrAnswer, 1}, {0, errors.New("another"), 2}, {time.Second, compliance.ErrAnswer, 3}, {-time.Hour, compliance.ErrAnswer, 4}} {
		at = at.Add(step.later)
		for range 100 {
			c := &matter{req: judge.Request{Tenant: "acme", ID: audit.DeriveID("a"), Attempt: 1}}
			if v := l.without(c, &unanswered{error: audit.E("test", audit.KindInvalid, step.err)}); v.Status != audit.Failed || v.Reason == "" {
				t.Fatalf("%d: %+v", i, v)
			}
		}
		if n := strings.Count(said.String(), "the judge gave no verdict"); n != step.lines {
			t.Errorf("%d: %d lines, want %d:\n%s", i, n, step.lines, said.String())
		}
	}
}
