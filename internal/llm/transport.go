package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer  = 4 << 20  // bytes of an answer; ours have some thousand
	maxRefusal = 64 << 10 // bytes that are read of a refusal
)

// transport lets whole JSON answers through and makes errors of all else, so that nobody behind it reads a proxy's page.
type transport struct{ next http.RoundTripper }

func newTransport(connect time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    connect,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // no small body becomes a large one
	}
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := res.Body
	defer func() { _ = body.Close() }()
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return nil, errRedirect
	case res.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(body, maxRefusal)) // half of it is as good as none
		return nil, readRefused(res.StatusCode, res.Header, text, time.Now())
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media != "application/json" {
		return nil, errForm
	}
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxAnswer:
		return nil, errTooLarge
	}
	if r := failedWithin(res.Header, text, time.Now()); r != nil {
		return nil, r
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return res, nil
}

// failedWithin gives the failure that a router tells under the status 200 (OpenRouter's, once a provider has begun): an error with a
// status of its own, beside no answer or in the place of one; nil where there is none.
func failedWithin(h http.Header, text []byte, now time.Time) *refused {
	type failure struct {
		Code int `json:"code"`
	}
	var a struct {
		Choices []struct {
			Error *failure `json:"error"`
		} `json:"choices"`
		Error *failure `json:"error"`
	}
	if !bytes.Contains(text, []byte(`"error"`)) || json.Unmarshal(text, &a) != nil {
		return nil
	}
	f := a.Error
	if len(a.Choices) > 0 {
		f = a.Choices[0].Error
	}
	if f == nil || f.Code < 400 || f.Code > 599 {
		return nil
	}
	return readRefused(f.Code, h, text, now)
}

// readRefused reads a refusal in the forms that servers have for it: OpenAI's {error: {…}}, vLLM's fields at the top,
// {detail: …}, {error: "…"}, and Google's, which is one of these in an array.
func readRefused(status int, h http.Header, text []byte, now time.Time) *refused {
	r := &refused{status: status, after: retryAfter(h, now)}
	if v, err := strconv.ParseBool(h.Get("X-Should-Retry")); err == nil {
		r.again = &v
	}
	type words struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Param   string          `json:"param"`
		Code    json.RawMessage `json:"code"` // a word or a number
		Detail  json.RawMessage `json:"detail"`
	}
	var a struct {
		words
		Error json.RawMessage `json:"error"`
	}
	var within []json.RawMessage
	if json.Unmarshal(text, &within) == nil && len(within) > 0 {
		text = within[0]
	}
	if json.Unmarshal(text, &a) != nil {
		r.plain = true
		return r
	}
	w, message := a.words, ""
	if json.Unmarshal(a.Error, &w) != nil {
		_ = json.Unmarshal(a.Error, &message)
	}
	for _, said := range []string{strings.Trim(string(w.Code), `"`), w.Type} {
		if r.code == "" && slices.Contains(codes, said) {
			r.code = said
		}
	}
	if slices.Contains(types, w.Type) {
		r.class = w.Type
	}
	if message = message + w.Message; message == "" && w.Param == "" && len(w.Detail) == 0 {
		r.plain = true
	}
	places, sentence := detailed(w.Detail)
	r.about = aboutOf(cmp.Or(w.Param, places), message+sentence)
	return r
}

// detailed gives what FastAPI's detail is about: a sentence, or the places of what it complains of, without the values that stand there.
func detailed(detail json.RawMessage) (places, sentence string) {
	var faults []struct {
		Loc []any `json:"loc"`
	}
	if json.Unmarshal(detail, &sentence) == nil {
		return "", sentence
	}
	_ = json.Unmarshal(detail, &faults)
	var all []string
	for _, f := range faults {
		if len(f.Loc) > 1 && f.Loc[0] == "body" {
			all = append(all, fmt.Sprint(f.Loc[1]))
		}
	}
	return strings.Join(all, " "), ""
}

// longestAfter bounds what a server may ask us to wait.
const longestAfter = 24 * time.Hour

// retryAfter reads retry-after-ms (milliseconds) or Retry-After (seconds or a date); -1 when neither says anything.
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, u := range []struct {
		header string
		unit   time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		said := strings.TrimSpace(h.Get(u.header))
		if n, err := strconv.ParseFloat(said, 64); (err == nil || math.IsInf(n, 1)) && n >= 0 {
			return time.Duration(min(n*float64(u.unit), float64(longestAfter)))
		}
		if at, err := http.ParseTime(said); err == nil {
			return min(max(at.Sub(now), 0), longestAfter)
		}
	}
	return -1
}
