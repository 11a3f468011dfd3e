package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type answers func(r *http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// An answer in one piece may take as long as the call; a stream must begin soon, and then may go on.
func TestPatience(t *testing.T) {
	for name, tc := range map[string]struct {
		streams bool
		begins  time.Duration
		lives   bool // it is answered, and its context is not ended afterwards
	}{
		"one piece, after minutes": {false, 9 * time.Minute, true},
		"a stream that begins":     {true, time.Minute, true},
		"a stream that does not":   {true, 9 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, late := context.WithCancelCause(t.Context())
				defer late(nil)
				u := &upstream{Upstream: Config{BaseURL: "http://127.0.0.1"}.all()[0], client: &http.Client{Transport: answers(func(r *http.Request) (*http.Response, error) {
					select {
					case <-time.After(tc.begins):
						return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				})}}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.BaseURL, nil)
				if err != nil {
					t.Fatal(err)
				}
				res, err := u.ask(r, tc.streams, late)
				if err == nil {
					_ = res.Body.Close()
				}
				<-time.After(time.Hour) // of the bubble's clock
				if (err == nil) != tc.lives || (ctx.Err() == nil) != tc.lives {
					t.Errorf("%v, then %v", err, context.Cause(ctx))
				}
				if err != nil {
					if f := unreached(ctx, err); f.status != http.StatusGatewayTimeout || !strings.Contains(f.say, "first_byte") {
						t.Errorf("%d %s", f.status, f.say)
					}
				}
			})
		})
	}
}

// Whatever first_byte is: it does not hold for answers in one piece.
func TestFirstByteIsOfStreams(t *testing.T) {
	s := start(t, newProvider(t, says(clean)).URL, func(c *Config, _ *Deps) {
		c.Upstreams, c.BaseURL, c.Default = []Upstream{{Name: "slow", BaseURL: c.BaseURL, FirstByte: 1}}, "", "slow"
	})
	if got := s.do(PathChat, prompt("hi", "")); got.status != http.StatusOK || s.event()["status"] != "success" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
