package llm

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func FuzzRefusal(f *testing.F) {
	for _, s := range []string{
		`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`,
		`{"object":"error","message":"guided_json is not supported","type":"BadRequestError","param":null,"code":400}`,
		`{"error":"model 'x' not found, try pulling it first"}`, `{"detail":[{"loc":["body","response_format"],"msg":"extra fields not permitted"}]}`,
		`<html>`, ``, `null`, `[]`, `{"error":null}`, `{"error":{"code":{}}}`,
	} {
		f.Add(400, s, "1.5", "Sat, 01 Jan 2000 00:00:12 GMT")
	}
	f.Add(429, "", "-1", "NaN")
	f.Add(429, "", "Inf", "1e999")
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, status int, body, ms, after string) {
		h := http.Header{}
		h.Set("Retry-After-Ms", ms)
		h.Set("Retry-After", after)
		r := readRefused(status, h, []byte(body), now)
		if r.after < -1 || r.after > longestAfter {
			t.Errorf("waits %v", r.after)
		}
		if r.code != "" && !slices.Contains(codes, r.code) {
			t.Errorf("tells a code that is not known")
		}
		if strings.ContainsAny(r.Error(), "<>{}\n") {
			t.Errorf("%q", r.Error())
		}
		q := Request{Schema: &Schema{}, Seed: new(int64), MaxTokens: 1}
		d, n := dialect{}, 0
		for next, ok := d.after(r, q); ok; next, ok = d.after(r, q) {
			d = next
			if n++; n > 5 {
				t.Fatal("never ends")
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		ms, after string
		want      time.Duration
	}{
		{"", "", -1}, {"", "0", 0}, {"", "2.5", 2500 * time.Millisecond}, {"20", "1", 20 * time.Millisecond}, {"x", "1", time.Second},
		{"", "-5", -1}, {"", "NaN", -1}, {"", "soon", -1}, {"", "Inf", longestAfter}, {"", "1e400", longestAfter},
		{"", "Sat, 01 Jan 2000 00:01:00 GMT", time.Minute}, {"", "Sat Jan  1 00:01:00 2000", time.Minute}, {"", "Fri, 31 Dec 1999 00:00:00 GMT", 0},
	} {
		h := http.Header{}
		h.Set("Retry-After-Ms", tc.ms)
		h.Set("Retry-After", tc.after)
		if got := retryAfter(h, now); got != tc.want {
			t.Errorf("%q %q: %v, want %v", tc.ms, tc.after, got, tc.want)
		}
	}
}
