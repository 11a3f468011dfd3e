package llm

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/evenhand/evenhand/internal/secret"
)

// OpenAI is where models are asked when nothing else is set.
const OpenAI = "https://api.openai.com/v1"

// ErrOff says that no model is configured: neither a server nor a key.
var ErrOff = errors.New("no model is configured; set judge.api_key (or OPENAI_API_KEY) for OpenAI, or judge.base_url for a server of your own")

// Config is what an operator may set, under judge. Start from [DefaultConfig].
type Config struct {
	// BaseURL is the server's address as OpenAI's clients have it: https://api.openai.com/v1, http://127.0.0.1:11434/v1
	// (Ollama), http://127.0.0.1:8000/v1 (vLLM), a LiteLLM proxy; Azure's resource, https://NAME.openai.azure.com, together with
	// APIVersion. "": OpenAI, if there is a key.
	BaseURL string `koanf:"base_url"`
	// Model answers requests that name none; Azure's deployment. Default gpt-4o-mini.
	Model string `koanf:"model"`
	// APIKey goes with every request; "": OPENAI_API_KEY, which is sent to OpenAI alone.
	APIKey secret.Text `koanf:"api_key"`
	// KeyHeader carries the key: Authorization (as Bearer), or another such as api-key (as it is). "": Authorization, with
	// APIVersion api-key.
	KeyHeader string `koanf:"key_header"`
	// APIVersion is Azure's, such as 2024-10-21; "": another server, or Azure's own /openai/v1.
	APIVersion string `koanf:"api_version"`
	// AllowHTTP lets keys and texts go over http to other machines.
	AllowHTTP bool `koanf:"allow_http"`
	// Timeout bounds one attempt. Default 60s.
	Timeout time.Duration `koanf:"timeout"`
	// Retries is how often a failed attempt is made again at most. Default 2; 0..10.
	Retries int `koanf:"retries"`
	// RetryWait bounds the wait before an attempt, Retry-After's too: who is told to wait longer gets the error, a
	// [Later], at once. Default 20s.
	RetryWait time.Duration `koanf:"retry_wait"`
	// Concurrency is the number of attempts under way at once, shared between tenants as package places does. Default 8; 1..1024.
	Concurrency int `koanf:"concurrency"`
	// BreakerFailures in a row raise a doubt about a model, and a question of ours decides whether its circuit opens for BreakerWait.
	// Default 5 and 30s.
	BreakerFailures int           `koanf:"breaker_failures"`
	BreakerWait     time.Duration `koanf:"breaker_wait"`
	// BudgetCalls and BudgetTokens (of prompts and answers) are a tenant's of a UTC day, in each process; kept in memory, so
	// a restart begins anew. Default 10,000 and 20,000,000; 0: no limit.
	BudgetCalls  int64 `koanf:"budget_calls"`
	BudgetTokens int64 `koanf:"budget_tokens"`
}

// DefaultConfig asks OpenAI's gpt-4o-mini, once there is a key.
func DefaultConfig() Config {
	return Config{
		Model: "gpt-4o-mini", Timeout: time.Minute, Retries: 2, RetryWait: 20 * time.Second, Concurrency: 8,
		BreakerFailures: 5, BreakerWait: 30 * time.Second, BudgetCalls: 10_000, BudgetTokens: 20_000_000,
	}
}

// Validate reports every fault at once under the operator's keys.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("judge."+format, args...)) }
	if c.BaseURL != "" {
		at, err := url.Parse(c.BaseURL)
		switch {
		case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
			bad("base_url: wants an address such as %s", OpenAI)
		case at.User != nil || at.RawQuery != "" || at.Fragment != "":
			bad("base_url: wants neither user, query nor fragment; a key goes into judge.api_key, Azure's api-version into judge.api_version")
		case at.Scheme == "http" && !c.AllowHTTP && !loopback(at.Hostname()):
			bad("base_url: sends keys and texts over http to another machine; use https, or set judge.allow_http: true")
		}
	}
	if fault := modelFault(c.Model); fault != "" {
		bad("model: %s", fault)
	}
	if strings.TrimSpace(c.APIKey.Reveal()) != c.APIKey.Reveal() || strings.ContainsAny(c.APIKey.Reveal(), "\r\n") {
		bad("api_key: begins or ends with space, or has more than one line")
	}
	if c.APIVersion != "" && c.BaseURL == "" {
		bad("api_version: is Azure's; set judge.base_url to its resource, https://NAME.openai.azure.com")
	}
	if strings.Trim(c.KeyHeader, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		bad("key_header: %q is no header's name", c.KeyHeader)
	}
	if strings.ContainsAny(c.APIVersion, "&=?#/ ") {
		bad("api_version: %q is not a version such as 2024-10-21", c.APIVersion)
	}
	for _, n := range []struct {
		key        string
		value      int64
		least, top int64
	}{{"retries", int64(c.Retries), 0, 10}, {"concurrency", int64(c.Concurrency), 1, 1024}, {"breaker_failures", int64(c.BreakerFailures), 1, 1000},
		{"budget_calls", c.BudgetCalls, 0, 1 << 50}, {"budget_tokens", c.BudgetTokens, 0, 1 << 50}} {
		if n.value < n.least || n.value > n.top {
			bad("%s: %d is not in %d..%d", n.key, n.value, n.least, n.top)
		}
	}
	for _, d := range []struct {
		key string
		d   time.Duration
	}{{"timeout", c.Timeout}, {"retry_wait", c.RetryWait}, {"breaker_wait", c.BreakerWait}} {
		if d.d <= 0 || d.d > time.Hour {
			bad("%s: %v is not above 0 and at most 1h", d.key, d.d)
		}
	}
	return errors.Join(errs...)
}

// modelFault says what is wrong with a model's name, "" for nothing.
func modelFault(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is missing (default gpt-4o-mini)"
	case len(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }) || name == "." || name == "..":
		return "is no model's name"
	}
	return ""
}

// key gives the key to send. That of the environment was meant for OpenAI and goes nowhere else.
func (c Config) key() string {
	if c.APIKey != "" {
		return c.APIKey.Reveal()
	}
	at, err := url.Parse(c.BaseURL)
	if c.BaseURL == "" || err == nil && at.Scheme == "https" && (at.Hostname() == "openai.com" || strings.HasSuffix(at.Hostname(), ".openai.com")) {
		return strings.TrimSpace(os.Getenv("OPENAI_API_KEY"))
	}
	return ""
}

// carry gives the header that carries a key, and what it says.
func (c Config) carry(key string) (header, value string) {
	if header = c.header(); header == "Authorization" {
		key = "Bearer " + key
	}
	return header, key
}

// header names what carries the key.
func (c Config) header() string {
	switch {
	case c.KeyHeader != "":
		return http.CanonicalHeaderKey(c.KeyHeader)
	case c.APIVersion != "":
		return "Api-Key"
	}
	return "Authorization"
}

// at gives the address that chat/completions is under, with a slash behind it.
func (c Config) at(model string) string {
	if c.BaseURL == "" {
		return OpenAI + "/"
	}
	base := strings.TrimRight(c.BaseURL, "/")
	if c.APIVersion != "" {
		return strings.TrimSuffix(base, "/openai") + "/openai/deployments/" + url.PathEscape(model) + "/"
	}
	return base + "/"
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
