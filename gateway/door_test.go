package gateway

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

const staticKey = "0123456789abcdef"

func asked(d *Deps, t *testing.T) {
	a, err := auth.New(t.Context(), auth.Config{Required: true, StaticKey: staticKey, DefaultTenant: "acme"}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	d.Auth, d.Open = a, false
}

// Whose key is whose, in each of the ways.
func TestCredentials(t *testing.T) {
	held := func(c *Config) { c.APIKey = "sk-ours-of-the-provider" }
	for name, tc := range map[string]struct {
		change  func(c *Config, d *Deps)
		headers []string
		status  int
		sent    string // Authorization that the provider gets
	}{
		"nobody is asked: theirs passes":          {nil, nil, 200, "Bearer sk-theirs"},
		"nobody is asked, key held":               {func(c *Config, _ *Deps) { held(c) }, []string{"Authorization", "Bearer anything"}, 200, "Bearer sk-ours-of-the-provider"},
		"asked, both keys":                        {func(_ *Config, d *Deps) { asked(d, t) }, []string{KeyHeader, staticKey}, 200, "Bearer sk-theirs"},
		"asked, only theirs":                      {func(_ *Config, d *Deps) { asked(d, t) }, nil, 401, ""},
		"asked, key held, ours":                   {func(c *Config, d *Deps) { held(c); asked(d, t) }, []string{"Authorization", "Bearer " + staticKey}, 200, "Bearer sk-ours-of-the-provider"},
		"asked, key held, wrong":                  {func(c *Config, d *Deps) { held(c); asked(d, t) }, nil, 401, ""},
		"asked, key held, ours in its own header": {func(c *Config, d *Deps) { held(c); asked(d, t) }, []string{KeyHeader, staticKey}, 200, "Bearer sk-ours-of-the-provider"},
		"our kind of key never passes":            {nil, []string{"Authorization", "Bearer evh_abc"}, 401, ""},
		"another tenant than a name":              {func(_ *Config, d *Deps) { asked(d, t) }, []string{KeyHeader, staticKey, auth.TenantHeader, "no name"}, 400, ""},
		"another key's header": {func(c *Config, d *Deps) {
			c.BaseURL = ""
			c.Upstreams = []Upstream{{Name: "azure", BaseURL: c.Upstreams[0].BaseURL, KeyHeader: "api-key", APIKey: "az"}}
			c.Default = "azure"
		}, nil, 200, ""},
		"ours goes to no provider that wants theirs": {func(c *Config, d *Deps) {
			asked(d, t)
			c.Upstreams = append(c.Upstreams, Upstream{Name: "held", BaseURL: c.BaseURL, Models: []string{"none"}, APIKey: "x"})
		}, []string{"Authorization", "Bearer " + staticKey}, 401, ""},
	} {
		p := newProvider(t, says(clean))
		s := start(t, p.URL, func(c *Config, d *Deps) {
			if name == "another key's header" {
				c.Upstreams = []Upstream{{BaseURL: c.BaseURL}}
			}
			if tc.change != nil {
				tc.change(c, d)
			}
		})
		got := s.do(PathChat, prompt("hi", ""), tc.headers...)
		if got.status != tc.status || tc.status != 200 && (p.calls() != 0 || !gjson.Get(got.body, "error.message").Exists()) {
			t.Errorf("%s: %d %s, %d calls", name, got.status, got.body, p.calls())
			continue
		}
		if name == "asked, key held, wrong" && !strings.Contains(got.header.Get("Www-Authenticate"), "wrong_key") {
			t.Errorf("%s: %v", name, got.header)
		}
		if tc.status == 200 {
			r, _ := p.last()
			if v := r.Header.Get("Authorization"); v != tc.sent || r.Header.Get(KeyHeader) != "" {
				t.Errorf("%s: the provider got %q", name, v)
			}
			if name == "another key's header" && r.Header.Get("Api-Key") != "az" {
				t.Errorf("%s: %v", name, r.Header)
			}
		}
	}
}

// Models choose their provider by the longest prefix.
func TestUpstreams(t *testing.T) {
	a, b := newProvider(t, says("a")), newProvider(t, says("b"))
	s := start(t, a.URL, func(c *Config, _ *Deps) {
		c.Upstreams = []Upstream{{Name: "local", BaseURL: b.URL, Models: []string{"local/", "gpt-x-"}, StripPrefix: true}}
	})
	for model, want := range map[string]string{"gpt-x": "a gpt-x", "local/llama3": "b llama3", "gpt-x-mini": "b mini", "other": "a other"} {
		got := s.do(PathChat, fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"model":%q}`, model))
		p := a
		if want[0] == 'b' {
			p = b
		}
		_, body := p.last()
		if said := gjson.Get(got.body, "choices.0.message.content").String() + " " + gjson.Get(body, "model").String(); said != want {
			t.Errorf("%s: %s, want %s", model, said, want)
		}
	}
	s = start(t, a.URL, func(c *Config, _ *Deps) {
		c.Upstreams, c.BaseURL = []Upstream{{Name: "local", BaseURL: b.URL, Models: []string{"local/"}}}, ""
	})
	if got := s.do(PathChat, prompt("hi", "")); got.status != 404 || gjson.Get(got.body, "error.code").String() != "model_not_found" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestModels(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"path": "`+r.URL.EscapedPath()+`"}`)
	})
	s := start(t, p.URL, nil)
	for path, want := range map[string]string{"/v1/models": "/v1/models", "/v1/models/gpt-x": "/v1/models/gpt-x", "/v1/models/meta/llama%203": "/v1/models/meta/llama%203", "/v1/models/..%2Fchat": ""} {
		res, err := http.Get(s.http.URL + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if got := gjson.GetBytes(b, "path").String(); got != want {
			t.Errorf("%s: %s", path, b)
		}
	}
}

// Requests that could be read in two ways, or not at all, go nowhere.
func TestBadRequests(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, func(c *Config, _ *Deps) { c.BodyBytes = 4 << 10; c.Overrides = []string{"domain"} })
	for name, tc := range map[string]struct {
		body   string
		status int
		header []string
	}{
		"no JSON":                 {`{"model":`, 400, nil},
		"no object":               {`[]`, 400, nil},
		"no model":                {`{"messages":[]}`, 400, nil},
		"no messages":             {`{"model":"m"}`, 400, nil},
		"messages twice":          {`{"model":"m","messages":[],"messages":[]}`, 400, nil},
		"messages in capitals":    {`{"model":"m","messages":[],"Messages":[]}`, 400, nil},
		"an escaped name":         {`{"model":"m","messages":[],"mess\u0061ges":[]}`, 400, nil},
		"content twice":           {`{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}`, 400, nil},
		"text of a part twice":    {`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}`, 400, nil},
		"messages no array":       {`{"model":"m","messages":"hi"}`, 400, nil},
		"deep":                    {`{"model":"m","messages":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, 400, nil},
		"large":                   {prompt(strings.Repeat("x", 5000), ""), 413, nil},
		"packed":                  {prompt("hi", ""), 415, []string{"Content-Encoding", "gzip"}},
		"an unknown domain":       {prompt("hi", ""), 400, []string{"X-Evenhand-Domain", "space"}},
		"an option not allowed":   {prompt("hi", ""), 400, []string{"X-Evenhand-Check", "prompt"}},
		"the same by metadata":    {prompt("hi", `,"metadata":{"evenhand_bias_action":"warn"}`), 400, nil},
		"nothing wrong with this": {prompt("hi", ""), 200, []string{"X-Evenhand-Domain", "finance"}},
	} {
		got := s.do(PathChat, tc.body, tc.header...)
		if got.status != tc.status || tc.status != 200 && gjson.Get(got.body, "error.code").String() == "" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if id := got.header.Get("X-Evenhand-Id"); (id != "") != (tc.status == 200) || got.header.Get("X-Request-Id") == "" {
			t.Errorf("%s: interaction %q of request %q", name, id, got.header.Get("X-Request-Id"))
		}
	}
	if p.calls() != 1 {
		t.Errorf("%d calls", p.calls())
	}
	if e := s.event(); e["domain"] != "finance" {
		t.Errorf("event %v", e)
	}
}

// A token or key of ours is never sent to a provider, even where nobody is asked for one.
func TestOurCredentialsStay(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, nil)
	token := func(issuer string) string {
		part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		return part(`{"alg":"EdDSA","typ":"JWT"}`) + "." + part(`{"iss":"`+issuer+`","sub":"ann"}`) + "." + part("signature")
	}
	for credential, status := range map[string]int{token(auth.DevIssuer): 401, "evh_acme_0123456789": 401, token("https://provider.example"): 200, "sk-theirs": 200} {
		if got := s.do(PathChat, prompt("hi", ""), "Authorization", "Bearer "+credential); got.status != status && !(status == 401 && got.status == 503) {
			t.Errorf("%s: %d %s", credential, got.status, got.body)
		}
	}
	if p.calls() != 2 {
		t.Errorf("%d calls", p.calls())
	}
	// Nor beside a credential that lets the caller in, without its scheme, or where the provider's key stands elsewhere.
	s = start(t, p.URL, func(c *Config, _ *Deps) {
		c.Upstreams = []Upstream{{Name: "other", BaseURL: p.URL + "/v1", KeyHeader: "X-Api-Key", Models: []string{"other-"}}}
	})
	for _, headers := range [][]string{{"Authorization", "evh_acme_0123456789"}, {"Authorization", "Bearer sk-theirs", "X-Api-Key", "evh_acme_0123456789"}} {
		s.do(PathChat, prompt("hi", ""), headers...)
		s.do(PathChat, strings.Replace(prompt("hi", ""), "gpt-x", "other-x", 1), headers...)
	}
	for _, r := range p.asked {
		if said := fmt.Sprint(r.Header); strings.Contains(said, "evh_") || strings.Contains(said, token(auth.DevIssuer)) {
			t.Errorf("a provider got %s", said)
		}
	}
	if p.calls() < 4 {
		t.Errorf("%d calls: it is not tested", p.calls())
	}
}

// What bears our prefix and is nothing of ours is refused: an option that nobody heeds would be taken for one that holds.
func TestUnknownOptions(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, func(c *Config, _ *Deps) { c.Overrides = []string{"domain", "bias-action", "bias_threshold"} }) // either spelling
	for _, tc := range []struct {
		header, metadata string
		want             string // what is said; "" lets the call through
	}{
		{"X-Evenhand-Bias-Acton", "", "x-evenhand-bias-acton is no option; did you mean x-evenhand-bias-action?"},
		{"x-evenhand-biasaction", "", "x-evenhand-biasaction is no option; did you mean x-evenhand-bias-action?"},
		{"x-evenhand-bias_action", "", "x-evenhand-bias_action is no option; did you mean x-evenhand-bias-action?"},
		{"x-evenhand-domian", "", "x-evenhand-domian is no option; did you mean x-evenhand-domain?"},
		{"x-evenhand-tenent", "", "did you mean x-evenhand-tenant?"},
		{"x-evenhand-foo", "", "x-evenhand-foo is no option; known are x-evenhand-domain, x-evenhand-check, "},
		{"", "evenhand_bias_acton", "metadata.evenhand_bias_acton is no option; did you mean evenhand_bias_action?"},
		{"", "evenhand_foo", "metadata.evenhand_foo is no option; known are evenhand_domain, "},
		{"", "Evenhand_Bias_Action", "did you mean evenhand_bias_action?"},
		{"", "evenhand_bias-action", "did you mean evenhand_bias_action?"},
		{"x-evenhand-check", "", "x-evenhand-check may not be set by callers here; gateway.overrides names what may"},
		{"x-evenhand-bias-action", "", ""},
		{"", "evenhand_bias_action", ""},
		{"X-Evenhand-Tenant", "evenhand_application", ""},
		{"X-Evenhand-Conversation", "evenhand_conversation", ""},
		{"X-Evenhand-Application", "", ""},
		{"X-Evenhand-Upstream", "", ""},
	} {
		before, more := p.calls(), ""
		if tc.metadata != "" {
			more = `,"metadata":{"a":"b","` + tc.metadata + `":"block"}`
		}
		headers := []string{}
		if tc.header != "" {
			headers = append(headers, tc.header, "block")
		}
		got := s.do(PathChat, prompt("hi", more), headers...)
		said, through := gjson.Get(got.body, "error.message").String(), p.calls() > before
		if tc.want == "" && (got.status != 200 || !through) {
			t.Errorf("%s%s: %d %s", tc.header, tc.metadata, got.status, got.body)
		}
		if tc.want != "" && (got.status != 400 || through || gjson.Get(got.body, "error.code").String() != "evenhand_bad_option" || !strings.Contains(said, tc.want)) {
			t.Errorf("%s%s: %d %s", tc.header, tc.metadata, got.status, got.body)
		}
	}
}

// Our options leave the metadata before the provider sees it; nothing else changes.
func TestMetadataIsStripped(t *testing.T) {
	p := newProvider(t, says(clean))
	s := start(t, p.URL, nil)
	s.do(PathChat, prompt("hi", `,"metadata":{"evenhand_domain":"finance"}, "n": 1`))
	if _, body := p.last(); body != prompt("hi", `, "n": 1`) {
		t.Errorf("%s", body)
	}
	s.do(PathChat, prompt("hi", `,"metadata":{"a":"b", "evenhand_domain":"finance"}`))
	if _, body := p.last(); body != prompt("hi", `,"metadata":{"a":"b"}`) {
		t.Errorf("%s", body)
	}
}

// Providers that cannot be reached, are slow, redirect or say too much.
func TestProviderFails(t *testing.T) {
	closed := newProvider(t, says(clean))
	closed.Close()
	closed.URL = "http://127.9.9.9:9" // a port that was freed may be another test's by now
	for name, tc := range map[string]struct {
		p      *provider
		change func(c *Config, d *Deps)
		status int
		code   string
		says   string // in the error, or where nothing is stopped in the log
	}{
		"closed": {closed, nil, 502, "evenhand_upstream_unreachable", "connection refused"},
		"slow": {newProvider(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), func(c *Config, _ *Deps) {
			c.Upstreams, c.BaseURL, c.Default = []Upstream{{Name: "slow", BaseURL: c.BaseURL, Timeout: 20 * time.Millisecond}}, "", "slow"
		}, 504, "evenhand_upstream_timeout", "within timeout of its upstream"},
		"slow to begin": {newProvider(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), func(c *Config, _ *Deps) {
			c.Upstreams, c.BaseURL, c.Default = []Upstream{{Name: "slow", BaseURL: c.BaseURL, FirstByte: 20 * time.Millisecond}}, "", "slow"
		}, 504, "evenhand_upstream_timeout", "within first_byte of its upstream"},
		"redirect": {newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		}), nil, 502, "evenhand_upstream_redirect", ""},
		"huge, nothing can be done": {newProvider(t, says(strings.Repeat("x ", 5000))), func(c *Config, _ *Deps) { c.ResponseBytes = 4 << 10 }, 200, "", "gateway.response_bytes (4096); raise that"},
		"huge, could be blocked":    {newProvider(t, says(strings.Repeat("x ", 5000))), func(c *Config, d *Deps) { blocks(c, d); c.ResponseBytes = 4 << 10 }, 503, "evenhand_unchecked", "gateway.response_bytes (4096); raise that"},
		"no JSON, could be blocked": {newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }), blocks, 503, "evenhand_unchecked", "it is no JSON; does the upstream's base_url"},
		"no JSON, nothing to do":    {newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }), nil, 200, "", "it is no JSON; does the upstream's base_url"},
		"huge stream, could be":     {newProvider(t, streams("\n", pieces(strings.Repeat("x ", 500))...)), func(c *Config, d *Deps) { blocks(c, d); c.ResponseBytes = 4 << 10 }, 503, "evenhand_unchecked", "gateway.response_bytes (4096); raise that"},
		"half of its JSON":          {newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, completion(clean)[:90]) }), blocks, 503, "evenhand_unchecked", "its JSON breaks off"},
		"JSON of another API":       {newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"a":1}`) }), blocks, 503, "evenhand_unchecked", "not as /chat/completions answers"},
		"packed": {newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, completion(clean))
		}), blocks, 503, "evenhand_unchecked", "Content-Encoding gzip, which was not asked for"},
		"packed, nothing to do": {newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, completion(clean))
		}), nil, 200, "", "Content-Encoding gzip, which was not asked for"},
		"events without JSON": {newProvider(t, streams("\n", "hello", "[DONE]")), blocks, 503, "evenhand_unchecked", "an event of the stream holds no JSON"},
		"broken off": {newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}), nil, 502, "evenhand_upstream_broken", "the provider's answer broke off"},
	} {
		var logged strings.Builder
		s := start(t, tc.p.URL, func(c *Config, d *Deps) {
			if d.Logger = slog.New(slog.NewTextHandler(&logged, nil)); tc.change != nil {
				tc.change(c, d)
			}
		})
		body := prompt("hi", "")
		if name == "slow to begin" { // which streams alone can be
			body = prompt("hi", streamed)
		}
		got := s.do(PathChat, body)
		if got.status != tc.status || gjson.Get(got.body, "error.code").String() != tc.code {
			t.Errorf("%s: %d %.300s", name, got.status, got.body)
		}
		if said := gjson.Get(got.body, "error.message").String() + logged.String(); !strings.Contains(said, tc.says) {
			t.Errorf("%s: says %.300q", name, said)
		}
		if refused := strings.Contains(logged.String(), "nobody could look, and gateway.fail is closed"); refused != (tc.code == "evenhand_unchecked") {
			t.Errorf("%s: the log says %q", name, logged.String())
		}
		if tc.status == 200 && got.header.Get("X-Evenhand-Action") != unchecked {
			t.Errorf("%s: %v", name, got.header)
		}
		if len(s.events()) != 1 {
			t.Errorf("%s: %d events", name, len(s.events()))
		}
	}
}

// A guard that cannot look refuses what it might have stopped, unless it is told to let it pass.
func TestGuardFails(t *testing.T) {
	for _, panics := range []bool{false, true} {
		for name, tc := range map[string]struct {
			change func(c *Config, d *Deps)
			status int
		}{
			"closed, could block": {blocks, 503},
			"open, could block":   {func(c *Config, d *Deps) { blocks(c, d); c.Fail = FailOpen }, 200},
			"closed, only warns":  {func(*Config, *Deps) {}, 200},
		} {
			s := start(t, newProvider(t, says(clean)).URL, func(c *Config, d *Deps) { tc.change(c, d); d.Guard = brokenGuard{panics} })
			got := s.do(PathChat, prompt("hi", ""))
			if got.status != tc.status || got.header.Get("X-Evenhand-Action") != unchecked || strings.Contains(got.body, "text of people") {
				t.Errorf("%s: %d %v %s", name, got.status, got.header, got.body)
			}
			if s.figures.calls[0] != fmt.Sprintf("default %d unchecked", tc.status) {
				t.Errorf("%s: %v", name, s.figures.calls)
			}
			if e := s.event(); e["metadata"].(map[string]any)["gateway"].(map[string]any)["action"] != unchecked {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
}

// While the log takes nothing, calls go on until the queue has its share; then they are refused, or go on
// unrecorded, as the settings say, and nothing is lost without a word.
func TestLogIsAway(t *testing.T) {
	for _, mode := range []string{AuditRefuse, AuditDrop} {
		var logged strings.Builder
		s := start(t, newProvider(t, says(clean)).URL, func(c *Config, d *Deps) {
			c.Audit, c.AuditMB, d.Logger = mode, 1, slog.New(slog.NewTextHandler(&logged, nil))
		})
		s.ledger.set(audit.E("test", audit.KindUnavailable, errors.New("away")))
		long := prompt(strings.Repeat("word ", 60_000), "")
		statuses := map[int]int{}
		for range 6 {
			got := s.do(PathChat, long)
			statuses[got.status]++
			if got.status == 200 && statuses[200] > 4 && got.header.Get("X-Evenhand-Audit") != "dropped" {
				t.Errorf("%s: dropped without a word", mode)
			}
		}
		s.ledger.set(nil)
		kept := len(s.events())
		if mode == AuditRefuse && (statuses[503] != 2 || kept != 4) || mode == AuditDrop && (statuses[200] != 6 || kept != 4 || s.figures.events["dropped"] != 2) {
			t.Errorf("%s: %v, %d events, %v", mode, statuses, kept, s.figures.events)
		}
		if strings.Contains(logged.String(), "word word") {
			t.Error("texts in the log of the program")
		}
	}
}

func (l *ledger) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// Texts that are too long for the log are cut, and the event says so.
func TestLongTextsAreCut(t *testing.T) {
	s := start(t, newProvider(t, says(clean)).URL, nil)
	var ms strings.Builder
	for range 40 {
		ms.WriteString(`{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("é", 20_000) + `"}]},`)
	}
	got := s.do(PathChat, `{"model":"m","messages":[`+ms.String()+`{"role":"user","content":"last"}]}`)
	e := s.event()
	if at := e["metadata"].(map[string]any)["gateway"].(map[string]any)["text_cut_at"]; got.status != 200 || at == nil || s.figures.events["cut"] != 1 {
		t.Errorf("%d, cut at %v, %v", got.status, at, s.figures.events)
	}
	if in := s.recorded(); !in.Truncated {
		t.Error("the record is not marked as cut")
	}
	s = start(t, newProvider(t, says(clean)).URL, nil)
	if s.do(PathChat, prompt(strings.Repeat("é", 20_000), "")); s.recorded().Truncated {
		t.Error("a record is marked as cut that is whole")
	}
}

func TestValidate(t *testing.T) {
	bad := DefaultConfig()
	bad.Enabled, bad.Stream, bad.Block, bad.Fail, bad.Audit, bad.Default, bad.InFlight = true, "x", "x", "x", "x", "x", 0
	bad.Overrides, bad.KeepAlive, bad.GateWait, bad.WindowBytes = []string{"x"}, 0, 0, 0
	bad.Upstreams = []Upstream{{Name: "A", BaseURL: "ftp://x"}, {Name: "b", BaseURL: "http://example.com/v1"}, {Name: "b", BaseURL: "https://u:p@example.com", APIKey: "a", APIKeyEnv: "b"}}
	err := bad.Validate()
	for _, want := range []string{"gateway.stream:", "gateway.block:", "gateway.fail:", "gateway.audit:", "gateway.default:", "gateway.in_flight:", "gateway.overrides:", "gateway.keep_alive:", "gateway.gate_wait:", "gateway.window_bytes:",
		"gateway.upstreams[0].name:", "gateway.upstreams[0].base_url:", "gateway.upstreams[1].base_url: sends keys", "gateway.upstreams[2].name:", "gateway.upstreams[2].base_url:", "gateway.upstreams[2].api_key:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
	pass := DefaultConfig()
	pass.Stream, pass.Guard.BiasAction = StreamPass, "block"
	if err := pass.Validate(); err == nil || !strings.Contains(err.Error(), "gateway.stream: pass") {
		t.Error(err)
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}
