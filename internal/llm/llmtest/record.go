package llmtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

// exchange is one line of a recording. Of the headers only those of the answer that are acted on are kept; no host, no key.
type exchange struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with the query
	Request json.RawMessage   `json:"request"`
	Status  int               `json:"status"`
	Header  map[string]string `json:"header"`
	Answer  string            `json:"answer"`
}

var keptHeaders = []string{"Content-Type", "Retry-After", "Retry-After-Ms"}

// withoutKeys hides keys that an answer repeats.
func withoutKeys(answer string, h http.Header) string {
	for _, name := range []string{"Authorization", "Api-Key", "X-Api-Key"} {
		if key := strings.TrimPrefix(h.Get(name), "Bearer "); key != "" {
			answer = strings.ReplaceAll(answer, key, "***")
		}
	}
	return answer
}

// Record passes requests on to next and appends what was said to a file of JSON lines. Texts are kept as they are.
func Record(path string, next http.RoundTripper) http.RoundTripper {
	var mu sync.Mutex
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		e, err := exchangeOf(r)
		if err != nil {
			return nil, err
		}
		res, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(answer))
		e.Status, e.Answer, e.Header = res.StatusCode, withoutKeys(string(answer), r.Header), map[string]string{}
		for _, k := range keptHeaders {
			if v := res.Header.Get(k); v != "" {
				e.Header[k] = v
			}
		}
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		to := json.NewEncoder(f)
		to.SetEscapeHTML(false) // a request stays as it was sent, byte for byte
		if err := errors.Join(to.Encode(e), f.Close()); err != nil {
			return nil, err
		}
		return res, nil
	})
}

// Replay answers from a recording: the same request gets what it got, in order, the last answer again and again. One that
// is not there is an error.
func Replay(t testing.TB, path string) http.RoundTripper {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	known := map[string][]exchange{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e exchange
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		known[e.key()] = append(known[e.key()], e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		asked, err := exchangeOf(r)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		mu.Lock()
		defer mu.Unlock()
		list := known[asked.key()]
		if len(list) == 0 {
			return nil, fmt.Errorf("llmtest: no such request in %s; record it anew", path)
		}
		e := list[0]
		if len(list) > 1 {
			known[asked.key()] = list[1:]
		}
		res := &http.Response{StatusCode: e.Status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r,
			Body: io.NopCloser(strings.NewReader(e.Answer)), ContentLength: int64(len(e.Answer))}
		for k, v := range e.Header {
			res.Header.Set(k, v)
		}
		return res, nil
	})
}

// exchangeOf reads a request and leaves it whole.
func exchangeOf(r *http.Request) (exchange, error) {
	if r.Body == nil {
		return exchange{}, errors.New("llmtest: a request without a body")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return exchange{}, err
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return exchange{}, fmt.Errorf("llmtest: a request that is no JSON: %w", err)
	}
	return exchange{Method: r.Method, Path: r.URL.RequestURI(), Request: compact.Bytes()}, nil
}

func (e exchange) key() string { return e.Method + " " + e.Path + " " + string(e.Request) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
