package llm_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/llm"
)

func nan() float64 { return math.NaN() }

// spy keeps the headers of a request and breaks the connection.
type spy struct{ header http.Header }

func (s *spy) RoundTrip(r *http.Request) (*http.Response, error) {
	s.header = r.Header
	_, _ = io.Copy(&bytes.Buffer{}, r.Body)
	return nil, errors.New("broken")
}

func TestConfigNamesEveryFault(t *testing.T) {
	for _, tc := range []struct {
		change func(*llm.Config)
		want   string
	}{
		{func(*llm.Config) {}, ""},
		{func(c *llm.Config) { c.BaseURL = "http://127.0.0.1:11434/v1" }, ""},
		{func(c *llm.Config) { c.BaseURL, c.AllowHTTP = "http://vllm:8000/v1", true }, ""},
		{func(c *llm.Config) { c.BaseURL = "api.openai.com" }, "judge.base_url: wants an address such as https://api.openai.com/v1"},
		{func(c *llm.Config) { c.BaseURL = "http://vllm:8000/v1" }, "judge.base_url: sends keys and texts over http to another machine; use https, or set judge.allow_http: true"},
		{func(c *llm.Config) { c.BaseURL = "https://a:b@c/v1" }, "judge.base_url: wants neither user, query nor fragment; a key goes into judge.api_key, Azure's api-version into judge.api_version"},
		{func(c *llm.Config) { c.APIVersion = "2024-10-21" }, "judge.api_version: is Azure's; set judge.base_url to its resource, https://NAME.openai.azure.com"},
		{func(c *llm.Config) { c.BaseURL, c.APIVersion = "https://a", "a&b" }, "judge.api_version: \"a&b\" is not a version such as 2024-10-21"},
		{func(c *llm.Config) { c.APIKey = "a\nb" }, "judge.api_key: begins or ends with space, or has more than one line"},
		{func(c *llm.Config) { c.KeyHeader = "a:b" }, "judge.key_header: \"a:b\" is no header's name"},
		{func(c *llm.Config) { c.Model, c.Timeout, c.Retries, c.Concurrency, c.BudgetCalls = "", 0, 11, 0, -1 },
			"judge.model: is missing (default gpt-4o-mini)\njudge.retries: 11 is not in 0..10\njudge.concurrency: 0 is not in 1..1024\n" +
				"judge.budget_calls: -1 is not in 0..1125899906842624\njudge.timeout: 0s is not above 0 and at most 1h"},
		{func(c *llm.Config) { c.RetryWait, c.BreakerWait, c.BreakerFailures = 2*time.Hour, -1, 0 },
			"judge.breaker_failures: 0 is not in 1..1000\njudge.retry_wait: 2h0m0s is not above 0 and at most 1h\njudge.breaker_wait: -1ns is not above 0 and at most 1h"},
	} {
		c := llm.DefaultConfig()
		tc.change(&c)
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("got\n%s\nwant\n%s", got, tc.want)
		}
	}
}
