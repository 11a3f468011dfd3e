package linear

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Errors are classed by the body, then by the status.
func TestClass(t *testing.T) {
	now := time.UnixMilli(1_795_000_000_000)
	for _, tc := range []struct {
		status int
		typ    string
		code   string
		text   string
		want   audit.Kind
	}{
		{400, "ratelimited", "RATELIMITED", "Rate limit exceeded", audit.KindOverloaded},
		{200, "ratelimited", "", "", audit.KindOverloaded},
		{429, "", "", "", audit.KindOverloaded},
		{200, "lock timeout", "", "", audit.KindUnavailable},
		{200, "internal error", "INTERNAL_SERVER_ERROR", "", audit.KindUnavailable},
		{500, "", "", "", audit.KindUnavailable},
		{401, "authentication error", "AUTHENTICATION_ERROR", "", audit.KindUnavailable},
		{400, "authentication error", "AUTHENTICATION_ERROR", "", audit.KindUnavailable},
		{403, "forbidden", "FORBIDDEN", "", audit.KindUnavailable},
		{200, "usage limit exceeded", "", "", audit.KindUnavailable},
		{200, "invalid input", "INPUT_ERROR", "conflict on insert of Issue", audit.KindInvalid},
		{200, "invalid input", "INPUT_ERROR", "Entity not found: Team", audit.KindInvalid},
		{400, "graphql error", "GRAPHQL_VALIDATION_FAILED", "", audit.KindInvalid},
		{200, "user error", "", "", audit.KindInvalid},
		{200, "", "", "", audit.KindInvalid},
	} {
		body := fmt.Sprintf(`{"errors":[{"message":%q,"extensions":{"type":%q,"code":%q}}],"data":null}`, tc.text, tc.typ, tc.code)
		if got := audit.KindOf(decode(tc.status, http.Header{}, []byte(body), now, &struct{}{})); got != tc.want {
			t.Errorf("%d %s: %s, not %s", tc.status, tc.typ, got, tc.want)
		}
	}
	for _, tc := range []struct {
		status int
		body   string
		want   audit.Kind
	}{{502, "<html>", audit.KindUnavailable}, {200, "<html>", audit.KindUnavailable}, {302, "", audit.KindUnavailable}, {404, "", audit.KindUnavailable},
		{400, "", audit.KindInvalid}, {413, "", audit.KindInvalid}, {200, `{"data":null}`, audit.KindUnavailable}, {200, `{"data":[]}`, audit.KindUnavailable}} {
		if got := audit.KindOf(decode(tc.status, http.Header{}, []byte(tc.body), now, &struct{}{})); got != tc.want {
			t.Errorf("%d %q: %s, not %s", tc.status, tc.body, got, tc.want)
		}
	}
}

func budgets(requests, complexity string, reset time.Time) http.Header {
	h := http.Header{}
	for name, left := range map[string]string{"Requests": requests, "Complexity": complexity} {
		h.Set("X-RateLimit-"+name+"-Limit", "1000")
		h.Set("X-RateLimit-"+name+"-Remaining", left)
		h.Set("X-RateLimit-"+name+"-Reset", fmt.Sprint(reset.UnixMilli()))
	}
	return h
}

func TestWhenToComeBack(t *testing.T) {
	now := time.UnixMilli(1_795_000_000_000)
	body := []byte(`{"errors":[{"message":"x","extensions":{"type":"ratelimited"}}]}`)
	h := budgets("0", "500", now.Add(90*time.Second))
	if got := sinks.RetryAfter(decode(400, h, body, now, &struct{}{})); got != 90*time.Second {
		t.Errorf("by the reset: %v", got)
	}
	h.Set("Retry-After", "7")
	if got := sinks.RetryAfter(decode(400, h, body, now, &struct{}{})); got != 7*time.Second {
		t.Errorf("by the header: %v", got)
	}
	for _, after := range []string{"1e300", "NaN", "-1", "99999999999", "x"} {
		if got := sinks.RetryAfter(decode(400, http.Header{"Retry-After": {after}}, body, now, &struct{}{})); got < 0 || got > longestWait {
			t.Errorf("%s: %v", after, got)
		}
	}
}

// Below a tenth of a budget requests are spread; with nothing left none goes out.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		for range 100 {
			if err := p.turn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		p.told(budgets("900", "50", began.Add(50*time.Second))) // 50 left for 50 s
		for range 3 {
			if err := p.turn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 2*time.Second || took > 4*time.Second {
			t.Errorf("three turns took %v", took)
		}
		p.told(budgets("0", "900", began.Add(time.Minute)))
		err := p.turn(t.Context())
		if after := sinks.RetryAfter(err); audit.KindOf(err) != audit.KindOverloaded || after < 50*time.Second || after > time.Minute {
			t.Errorf("%v after %v", err, after)
		}
		time.Sleep(time.Minute)
		if err := p.turn(t.Context()); err != nil {
			t.Errorf("full again: %v", err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"data":{"issueCreate":{"success":true,"issue":{"id":"x","identifier":"BIAS-1","url":"u"}}}}`), "")
	f.Add(400, []byte(`{"errors":[{"message":"Rate limit exceeded","extensions":{"type":"ratelimited"}}]}`), "12")
	f.Add(502, []byte(`<html>`), "NaN")
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		var out struct{ IssueCreate payload }
		err := decode(status, http.Header{"Retry-After": {after}}, body, time.Now(), &out)
		if err == nil {
			if !json.Valid(body) {
				t.Error("taken though it is no JSON")
			}
			_, _ = out.IssueCreate.receipt()
			return
		}
		if k := audit.KindOf(err); k != audit.KindInvalid && k != audit.KindUnavailable && k != audit.KindOverloaded {
			t.Errorf("%s: %v", k, err)
		}
		if w := sinks.RetryAfter(err); w < 0 || w > longestWait || len(err.Error()) > 1000 {
			t.Errorf("%v: %v", w, err)
		}
	})
}
