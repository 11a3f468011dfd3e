package gateway

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/internal/secret"
)

// How streams are judged.
const (
	StreamAuto   = "auto"   // hold where something may be blocked or gated, else pass
	StreamHold   = "hold"   // the whole response is judged, then passed on
	StreamWindow = "window" // sentences are judged and let out; what is out cannot be recalled
	StreamPass   = "pass"   // passed on at once and judged at its end; only where nothing can be stopped
)

// What happens when the guard cannot look.
const (
	FailClosed = "closed" // calls that might have been stopped are refused with 503
	FailOpen   = "open"   // all pass, marked unchecked
)

// How a block is told.
const (
	BlockError   = "error"   // 400 in OpenAI's shape
	BlockRefusal = "refusal" // a completion that holds Config.Refusal
)

// What happens when events cannot be written as fast as calls come.
const (
	AuditRefuse = "refuse" // calls are refused with 503 until there is room
	AuditDrop   = "drop"   // calls go on; events are dropped, counted and marked in the answer
)

// Config is what an operator may set. Start from [DefaultConfig].
type Config struct {
	Enabled bool `koanf:"enabled"`
	// BaseURL and APIKey make an upstream named "default" for all models that Upstreams do not name. Its provider is named after its host.
	BaseURL   string      `koanf:"base_url"`
	APIKey    secret.Text `koanf:"api_key"` // "": the caller's passes through
	Upstreams []Upstream  `koanf:"upstreams"`
	Default   string      `koanf:"default"` // name of the upstream for models that no prefix names

	Stream      string        `koanf:"stream"`       // auto, hold, window, pass
	WindowBytes int           `koanf:"window_bytes"` // least text of a window
	KeepAlive   time.Duration `koanf:"keep_alive"`   // between comments on a stream that is held
	GateWait    time.Duration `koanf:"gate_wait"`    // longest wait for a person's decision
	Block       string        `koanf:"block"`        // error, refusal
	Refusal     string        `koanf:"refusal"`      // the text of a refusal
	Fail        string        `koanf:"fail"`         // closed, open
	Overrides   []string      `koanf:"overrides"`    // options that callers may set: see [OverrideNames]
	Mask        string        `koanf:"mask"`         // off, request, response, both: placeholders in the place of personal data
	Unmask      bool          `koanf:"unmask"`       // answers get the values back that their request's placeholders stand for

	// A language model that is asked about responses before they go on: off, grey, all; what it may do: warn, block; within.
	Judge        string        `koanf:"judge"`
	JudgeAction  string        `koanf:"judge_action"`
	JudgeTimeout time.Duration `koanf:"judge_timeout"`

	Replay Replaying `koanf:"replay"`

	Guard         Guarding `koanf:"guard"`
	InFlight      int      `koanf:"in_flight"`      // calls at once; more are answered 429
	BodyBytes     int64    `koanf:"body_bytes"`     // of a request
	ResponseBytes int64    `koanf:"response_bytes"` // of a response that is judged
	Audit         string   `koanf:"audit"`          // refuse, drop
	AuditMB       int      `koanf:"audit_mb"`       // of events that wait for the log
}

// Guarding are the guard's options for all calls, as seeds 000 and 001 name them. See guard.Options.
type Guarding struct {
	Domain          string        `koanf:"domain"` // "": the call's, else general
	Check           string        `koanf:"check"`  // response, prompt, both
	BiasThreshold   *float64      `koanf:"bias_threshold"`
	BiasAction      string        `koanf:"bias_action"` // warn, block
	SafetyFilter    bool          `koanf:"safety_filter"`
	SafetyMode      string        `koanf:"safety_mode"` // block, warn, log
	SafetyThreshold float64       `koanf:"safety_threshold"`
	HITLGate        bool          `koanf:"hitl_gate"`
	HITLGateTimeout time.Duration `koanf:"hitl_gate_timeout"`
}

func (s Guarding) options() guard.Options {
	o := guard.Options{
		Domain: audit.Domain(s.Domain), Check: guard.Check(s.Check), BiasAction: audit.Action(s.BiasAction),
		SafetyFilter: s.SafetyFilter, SafetyMode: audit.Action(s.SafetyMode), SafetyThreshold: audit.ScoreOf(s.SafetyThreshold),
		HITLGate: s.HITLGate, HITLGateTimeout: s.HITLGateTimeout,
	}
	if s.BiasThreshold != nil {
		t := audit.ScoreOf(*s.BiasThreshold)
		o.BiasThreshold = &t
	}
	return o
}

// Judging gives the judge's settings to the guard that the gateway asks.
func (c Config) Judging(j guard.Judge) guard.Judging {
	return guard.Judging{Judge: j, Ask: c.Judge, Action: audit.Action(c.JudgeAction), Timeout: c.JudgeTimeout, FailOpen: c.Fail == FailOpen}
}

// Masks tells whether some call's texts may be masked.
func (c Config) Masks() bool { return c.Mask != MaskOff || c.allows("mask") }

// guarding is the other way round.
func guarding(o guard.Options) Guarding {
	return Guarding{
		Domain: string(o.Domain), Check: string(o.Check), BiasAction: string(o.BiasAction), SafetyFilter: o.SafetyFilter,
		SafetyMode: string(o.SafetyMode), SafetyThreshold: o.SafetyThreshold.Float(), HITLGate: o.HITLGate, HITLGateTimeout: o.HITLGateTimeout,
	}
}

// Upstream is a provider. Zero values mean the default.
type Upstream struct {
	Name    string   `koanf:"name"`     // lower-case letters, digits, _ and -: in metrics and events
	BaseURL string   `koanf:"base_url"` // as clients have it, with /v1 where the provider has that
	Models  []string `koanf:"models"`   // prefixes of names of models; the longest that fits wins
	// StripPrefix takes the prefix off before the provider sees the name: "local/llama3" is its "llama3".
	StripPrefix bool   `koanf:"strip_prefix"`
	Provider    string `koanf:"provider"` // in events; default: Name
	// The key, by value, by a variable of the environment, or by a file. None: the caller's passes through.
	APIKey     secret.Text `koanf:"api_key"`
	APIKeyEnv  string      `koanf:"api_key_env"`
	APIKeyFile string      `koanf:"api_key_file"`
	// KeyHeader carries the key: Authorization (as Bearer), or another such as api-key (as it is).
	KeyHeader string   `koanf:"key_header"`
	Headers   []string `koanf:"headers"` // of the request that pass beside the usual ones
	// ConnectTimeout until a connection stands (10 s), FirstByte until the provider begins a stream (2 m), Timeout for
	// the whole call (10 m).
	ConnectTimeout time.Duration `koanf:"connect_timeout"`
	FirstByte      time.Duration `koanf:"first_byte"`
	Timeout        time.Duration `koanf:"timeout"`
	AllowHTTP      bool          `koanf:"allow_http"` // keys and texts over http to other machines
}

// DefaultConfig is switched off.
func DefaultConfig() Config {
	return Config{
		Stream: StreamAuto, WindowBytes: 200, KeepAlive: 10 * time.Second, GateWait: 5 * time.Minute,
		Block: BlockError, Refusal: "I cannot answer that.", Fail: FailClosed, Overrides: []string{"domain"}, Mask: MaskOff, Judge: guard.AskNever, JudgeAction: string(audit.Warn), JudgeTimeout: 5 * time.Second, Replay: Replaying{Timeout: time.Minute}, Guard: guarding(guard.DefaultOptions()),
		InFlight: 1024, BodyBytes: 32 << 20, ResponseBytes: 32 << 20, Audit: AuditRefuse, AuditMB: 64,
	}
}

const defaultName = "default"

// Find gives the upstream that a model is asked at, with its defaults and its key, and the provider's name of the model.
// name is that of the upstream that a call went to, "" when it is not known. ok is false where nobody serves the model. Its APIKey is
// the key that is held here, "" where callers bring theirs.
func (c Config) Find(name, model string) (u Upstream, as string, ok bool, err error) {
	best, as := -1, model
	for _, up := range c.all() {
		fits := -1
		if up.Name == c.fallback() {
			fits = 0
		}
		prefix := ""
		for _, p := range up.Models {
			if strings.HasPrefix(model, p) && len(p) >= fits {
				fits, prefix = len(p), p
			}
		}
		if up.Name == name {
			fits = math.MaxInt
		}
		if fits > best {
			best, u, as = fits, up, model
			if up.StripPrefix {
				as = strings.TrimPrefix(model, prefix)
			}
		}
	}
	if best < 0 {
		return u, model, false, nil
	}
	key, err := u.heldKey()
	u.APIKey = secret.Text(key)
	return u, as, true, err
}

// all are the upstreams with their defaults put in.
func (c Config) all() []Upstream {
	us := slices.Clone(c.Upstreams)
	if c.BaseURL != "" {
		u := Upstream{Name: defaultName, BaseURL: c.BaseURL, APIKey: c.APIKey}
		if at, err := url.Parse(c.BaseURL); err == nil {
			u.Provider = audit.ProviderOf(at.Hostname())
		}
		us = append(us, u)
	}
	for i := range us {
		u := &us[i]
		if u.Provider == "" {
			u.Provider = u.Name
		}
		if u.KeyHeader == "" {
			u.KeyHeader = "Authorization"
		}
		u.KeyHeader = http.CanonicalHeaderKey(u.KeyHeader)
		for _, d := range []struct {
			to  *time.Duration
			def time.Duration
		}{{&u.ConnectTimeout, 10 * time.Second}, {&u.FirstByte, 2 * time.Minute}, {&u.Timeout, 10 * time.Minute}} {
			if *d.to == 0 {
				*d.to = d.def
			}
		}
	}
	return us
}

// Names are those of the upstreams.
func (c Config) Names() (out []string) {
	for _, u := range c.all() {
		out = append(out, u.Name)
	}
	return out
}

// fallback names the upstream for all other models.
func (c Config) fallback() string {
	if c.Default == "" && c.BaseURL != "" {
		return defaultName
	}
	return c.Default
}

// Validate reports every fault at once under the operator's keys.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("gateway."+format, args...)) }
	oneOf := func(key, value string, of ...string) {
		if !slices.Contains(of, value) {
			bad("%s: %q is not one of %s", key, value, strings.Join(of, ", "))
		}
	}
	oneOf("stream", c.Stream, StreamAuto, StreamHold, StreamWindow, StreamPass)
	oneOf("block", c.Block, BlockError, BlockRefusal)
	oneOf("fail", c.Fail, FailClosed, FailOpen)
	oneOf("audit", c.Audit, AuditRefuse, AuditDrop)
	oneOf("mask", c.Mask, MaskOff, MaskRequest, MaskResponse, MaskBoth)
	if c.Unmask && !masksOf(c.Mask)[0] && !c.allows("mask") {
		bad("unmask: puts back what is masked in requests, and gateway.mask masks none: set that to request or both, or leave unmask out")
	}
	for _, o := range c.Overrides {
		if !slices.Contains(OverrideNames(), underscored(o)) {
			oneOf("overrides", o, OverrideNames()...)
		}
	}
	for _, n := range []struct {
		key        string
		value      int64
		least, top int64
	}{{"window_bytes", int64(c.WindowBytes), 1, 1 << 20}, {"in_flight", int64(c.InFlight), 1, 1 << 16}, {"audit_mb", int64(c.AuditMB), 1, 1 << 14},
		{"body_bytes", c.BodyBytes, 1 << 10, 1 << 30}, {"response_bytes", c.ResponseBytes, 1 << 10, 1 << 30}} {
		if n.value < n.least || n.value > n.top {
			bad("%s: %d is not in %d..%d", n.key, n.value, n.least, n.top)
		}
	}
	if c.KeepAlive <= 0 {
		bad("keep_alive: %v is not a positive duration", c.KeepAlive)
	}
	if c.GateWait <= 0 {
		bad("gate_wait: %v is not a positive duration", c.GateWait)
	}
	if c.Block == BlockRefusal && c.Refusal == "" {
		bad("refusal: is empty; it is what is answered instead of a blocked text")
	}
	g := c.Guard.options()
	for _, f := range g.Faults() {
		bad("guard.%s", f)
	}
	if c.Replay.Rounds < 0 || c.Replay.Rounds > maxRounds {
		bad("replay.rounds: %d is not in 0..%d", c.Replay.Rounds, maxRounds)
	}
	if c.Replay.Timeout < time.Second || c.Replay.Timeout > 10*time.Minute {
		bad("replay.timeout: %v is not in 1s..10m", c.Replay.Timeout)
	}
	errs = append(errs, c.Judging(nil).Validate("gateway"))
	if c.Stream == StreamPass && (&options{Options: g, judged: c.Judging(nil).Blocks()}).stops() {
		bad("stream: pass lets streams through unjudged, and gateway.guard blocks or gates: choose hold or window")
	}
	us := c.all()
	if c.Enabled && len(us) == 0 {
		bad("base_url: is missing; set it, or list gateway.upstreams")
	}
	seen := map[string]bool{}
	for i, u := range us {
		key := fmt.Sprintf("gateway.upstreams[%d]", i)
		if i >= len(c.Upstreams) {
			key = "gateway"
		}
		errs = append(errs, u.validate(key, seen[u.Name]))
		seen[u.Name] = true
	}
	if c.Default != "" && !seen[c.Default] {
		bad("default: %q is no upstream's name", c.Default)
	}
	return errors.Join(errs...)
}

func (u Upstream) validate(key string, twice bool) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(key+"."+format, args...)) }
	switch {
	case u.Name == "" || len(u.Name) > 40 || strings.Trim(u.Name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		bad("name: %q wants 1 to 40 lower-case letters, digits, _ or -", u.Name)
	case twice:
		bad("name: %q is used twice", u.Name)
	}
	at, err := url.Parse(u.BaseURL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		bad("base_url: wants an address such as https://api.openai.com/v1")
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		bad("base_url: wants neither user, query nor fragment; a key goes into api_key")
	case at.Scheme == "http" && !u.AllowHTTP && !loopback(at.Hostname()):
		bad("base_url: sends keys and texts over http to another machine; use https, or list it in gateway.upstreams with allow_http: true")
	}
	ways := 0
	for _, given := range []bool{u.APIKey != "", u.APIKeyEnv != "", u.APIKeyFile != ""} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		bad("api_key: set one of api_key, api_key_env and api_key_file")
	}
	for _, d := range []struct {
		key string
		d   time.Duration
	}{{"connect_timeout", u.ConnectTimeout}, {"first_byte", u.FirstByte}, {"timeout", u.Timeout}} {
		if d.d < 0 {
			bad("%s: %v is negative", d.key, d.d)
		}
	}
	return errors.Join(errs...)
}

// heldKey gives the key that is held here, "" for the caller's.
func (u Upstream) heldKey() (string, error) {
	key := u.APIKey.Reveal()
	switch {
	case u.APIKeyEnv != "":
		key = os.Getenv(u.APIKeyEnv)
	case u.APIKeyFile != "":
		b, err := os.ReadFile(u.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("gateway.upstreams: %s: api_key_file: %w", u.Name, err)
		}
		key = string(b)
	}
	if key = strings.TrimSpace(key); key == "" && u.APIKeyEnv+u.APIKeyFile != "" {
		return "", fmt.Errorf("gateway.upstreams: %s: the key is empty; put it into the variable or file, or leave api_key_env and api_key_file out", u.Name)
	}
	return key, nil
}
