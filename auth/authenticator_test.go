package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/evenhand/evenhand/audit"
)

const static = "0123456789abcdef"

// counts is a Metrics.
type counts struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counts) Authenticated(credential, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[credential+" "+outcome]++
}

func TestCredentialsAndTenants(t *testing.T) {
	clk := newClock()
	dev := newDevKey(edKey)
	token, err := dev.Sign("acme", "ann", []Role{Viewer}, time.Hour, begin)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := Config{DefaultTenant: "default", StaticKey: static, Dev: dev}
	required := anonymous
	required.Required = true
	nothing := Config{}
	for _, tc := range []struct {
		name string
		cfg  Config
		r    *http.Request
		want string // "tenant subject verified assumed", or status and reason
	}{
		{"anonymous", anonymous, request(""), "default anonymous false true"},
		{"anonymous names a tenant", anonymous, request("", TenantHeader, " b "), "b anonymous false false"},
		{"anonymous without a default", nothing, request(""), " anonymous false true"},
		{"anonymous is not asked", required, request(""), "401 no_credential"},
		{"a token binds although none is asked", anonymous, request(token), "acme ann true false"},
		{"a bad token is refused although none is asked", anonymous, request(token + "x"), "401 malformed"},
		{"nothing is configured and something shown", nothing, request("hunter2"), "401 wrong_key"},
		{"nothing is configured and a token shown", nothing, request(token), "401 dev_tokens_off"},
		{"static key", required, request(static), "default static-key true true"},
		{"static key and a tenant", required, request(static, TenantHeader, "b"), "b static-key true false"},
		{"static key as X-API-Key", required, request("", "X-API-Key", static), "default static-key true true"},
		{"bearer in lower case", required, request("", "Authorization", "bearer "+static), "default static-key true true"},
		{"wrong key", required, request(static + "0"), "401 wrong_key"},
		{"basic", required, request("", "Authorization", "Basic "+static), "401 malformed"},
		{"basic although none is asked", anonymous, request("", "Authorization", "Basic "+static), "401 malformed"},
		{"empty and none is asked", anonymous, request("", "Authorization", "Bearer "), "default anonymous false true"},
		{"empty, as sent", anonymous, request("", "Authorization", "Bearer"), "default anonymous false true"},
		{"empty key and none is asked", anonymous, request("", "X-API-Key", ""), "default anonymous false true"},
		{"empty of another scheme", anonymous, request("", "Authorization", "Basic "), "401 malformed"},
		{"empty beside a key", anonymous, request("", "Authorization", "Bearer ", "X-API-Key", static), "401 malformed"},
		{"empty", required, request("", "Authorization", "Bearer "), "401 malformed"},
		{"empty key", required, request("", "X-API-Key", ""), "401 malformed"},
		{"two", required, request(token, "X-API-Key", static), "401 malformed"},
		{"twice", required, request(token, "Authorization", "Bearer "+token), "401 malformed"},
		{"huge", required, request(strings.Repeat("x", 17<<10)), "401 too_large"},
		{"own tenant in the header", required, request(token, TenantHeader, "acme"), "acme ann true false"},
		{"another tenant in the header", required, request(token, TenantHeader, "b"), "403 tenant_mismatch"},
		{"no tenant's name in the header", required, request(static, TenantHeader, "a b"), "400 bad_tenant"},
		{"two tenants", required, request(static, TenantHeader, "a", TenantHeader, "b"), "400 bad_tenant"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &counts{}
			p, err := made(t, tc.cfg, Options{Now: clk.now, Metrics: c}).Authenticate(tc.r)
			var got string
			if err != nil {
				d := DeniedBy(err)
				got = fmt.Sprint(d.Status, " ", d.Reason)
			} else {
				got = fmt.Sprint(p.Tenant, " ", p.Subject, " ", p.Verified, " ", p.Assumed)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			n := 0
			for k, v := range c.seen {
				n += v
				if _, reason, ok := strings.Cut(tc.want, " "); err != nil && (!ok || !strings.HasSuffix(k, " "+reason)) || err == nil && !strings.HasSuffix(k, " ok") {
					t.Errorf("counted %s", k)
				}
			}
			if n != 1 {
				t.Errorf("counted %v", c.seen)
			}
		})
	}
}

// While authentication is off, being on this machine is the credential: pages of others must not use it.
func TestOffIsForThisMachineOnly(t *testing.T) {
	a := made(t, Config{DefaultTenant: "default", StaticKey: static}, Options{})
	for _, tc := range []struct {
		name, host string
		headers    []string
		want       Reason
	}{
		{"localhost", "localhost:8787", nil, ""},
		{"with a dot", "LocalHost.:8787", nil, ""},
		{"127.0.0.1", "127.0.0.1:8787", nil, ""},
		{"127.1.2.3", "127.1.2.3", nil, ""},
		{"IPv6", "[::1]:8787", nil, ""},
		{"IPv6 without port", "[::1]", nil, ""},
		{"own page", "localhost:8787", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:8787"}, ""},
		{"typed", "localhost:8787", []string{"Sec-Fetch-Site", "none"}, ""},
		{"rebinding", "evil.example:8787", nil, ForeignHost},
		{"looks like it", "localhost.evil.example", nil, ForeignHost},
		{"an address", "10.0.0.1:8787", nil, ForeignHost},
		{"none", "", nil, ForeignHost},
		{"another site", "localhost:8787", []string{"Sec-Fetch-Site", "cross-site"}, CrossSite},
		{"another port", "localhost:8787", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000"}, CrossSite},
		{"old browser", "localhost:8787", []string{"Origin", "https://evil.example"}, CrossSite},
		{"sandboxed frame", "localhost:8787", []string{"Origin", "null"}, CrossSite},
	} {
		r := request("", tc.headers...)
		r.Host = tc.host
		_, err := a.Authenticate(r)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || DeniedBy(err).Reason != tc.want || DeniedBy(err).Status != 403) {
			t.Errorf("%s: %v", tc.name, err)
		}
		r = request(static, tc.headers...) // a credential is not sent by a browser on its own
		r.Host = tc.host
		if _, err := a.Authenticate(r); err != nil {
			t.Errorf("%s with a key: %v", tc.name, err)
		}
	}
}

func TestMiddleware(t *testing.T) {
	clk := newClock()
	dev := newDevKey(edKey)
	a := made(t, Config{Required: true, StaticKey: static, Dev: dev, Rate: 1, Burst: 2}, Options{Now: clk.now})
	sign := func(tenant string, roles ...Role) string {
		s, err := dev.Sign(tenant, "ann", roles, time.Hour, begin)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h := a.Middleware(Review, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, From(r.Context()).Tenant)
	}))
	for _, tc := range []struct {
		name      string
		r         *http.Request
		code      int
		body      string
		challenge string
	}{
		{"let in", request(sign("acme", Reviewer)), 200, "acme", ""},
		{"none", request(""), 401, `"reason":"no_credential"`, `Bearer realm="evenhand"`},
		{"bad", request("a.b.c"), 401, `"code":"UNAUTHORIZED"`, `Bearer realm="evenhand", error="invalid_token", error_description="malformed"`},
		{"no permission", request(sign("acme", Viewer)), 403, `"reason":"no_permission"`, `Bearer realm="evenhand", error="insufficient_scope"`},
		{"no tenant", request(static), 400, `"code":"BAD_REQUEST"`, ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, tc.r)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) || w.Header().Get("WWW-Authenticate") != tc.challenge {
			t.Errorf("%s: %d %s %v", tc.name, w.Code, w.Body, w.Header())
		}
	}
	g := a.Middleware(Any, GraphQL, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, From(r.Context()).Subject) }))
	for _, tc := range []struct {
		name string
		r    *http.Request
		code int
		want string
	}{
		{"any permission", request(sign("ql", Service)), 200, "ann"},
		{"none", request(""), 401, `"code":"UNAUTHENTICATED","reason":"no_credential"`},
		{"another tenant", request(sign("ql", Service), TenantHeader, "b"), 403, `"code":"FORBIDDEN","reason":"tenant_mismatch"`},
		{"no tenant", request(static), 400, `"code":"BAD_USER_INPUT"`},
	} {
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, tc.r); w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) || tc.code != 200 && !strings.HasPrefix(w.Body.String(), `{"errors":[{`) {
			t.Errorf("GraphQL, %s: %d %s", tc.name, w.Code, w.Body)
		}
	}
	// The rate is the tenant's, whoever asks for it.
	token, other := sign("busy", Reviewer), sign("quiet", Reviewer)
	var codes []int
	var last *httptest.ResponseRecorder
	for range 3 {
		last = httptest.NewRecorder()
		h.ServeHTTP(last, request(token))
		codes = append(codes, last.Code)
	}
	if !slices.Equal(codes, []int{200, 200, 429}) || last.Header().Get("Retry-After") != "1" || !json.Valid(last.Body.Bytes()) {
		t.Errorf("%v %v %s", codes, last.Header(), last.Body)
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, request(other)); w.Code != 200 {
		t.Errorf("another tenant: %d", w.Code)
	}
	clk.pass(time.Second)
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, request(token)); w.Code != 200 {
		t.Errorf("after the time: %d", w.Code)
	}
}

func TestBucketsAreBounded(t *testing.T) {
	clk := newClock()
	l := newLimiter(1, 1, clk.now)
	for i := range 3 * maxBuckets {
		l.take(fmt.Sprint(i))
	}
	if len(l.buckets) > maxBuckets {
		t.Errorf("%d buckets", len(l.buckets))
	}
	clk.pass(time.Minute) // all are full again: room for new ones
	if _, ok := l.take("new"); !ok || len(l.buckets) > 1 {
		t.Errorf("%v, %d buckets", ok, len(l.buckets))
	}
	if _, ok := newLimiter(0, 0, clk.now).take("a"); !ok {
		t.Error("no limit limits")
	}
}

// What is for us is told from what is for others, whether it holds or not.
func TestOurs(t *testing.T) {
	is := newIssuer(t, map[string]any{"ed": edKey.Public()})
	cfg := is.config()
	cfg.StaticKey = static
	a := made(t, cfg, Options{})
	defer a.Close()
	token := func(members map[string]any) string {
		claims := is.good()
		maps.Copy(claims, members)
		return sign(t, jwt.SigningMethodEdDSA, edKey, "ed", claims)
	}
	for what, tc := range map[string]struct {
		credential string
		want       bool
	}{
		"a token for us": {token(nil), true}, "one that has ended": {token(map[string]any{"exp": 1}), true}, "one for others": {token(map[string]any{"aud": "https://models.example"}), false},
		"of others": {token(map[string]any{"iss": "https://other.example"}), false}, "for trying out": {token(map[string]any{"iss": DevIssuer, "aud": devAudience}), true},
		"the static key": {static, true}, "an API key": {"evh_acme_1", true}, "a provider's key": {"sk-theirs", false}, "nothing": {"", false},
	} {
		if got := a.Ours(tc.credential); got != tc.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// Nothing that a caller shows reaches logs, errors or answers.
func TestCredentialsAreNeverShown(t *testing.T) {
	is := newIssuer(t, map[string]any{"ed": edKey.Public()})
	var logged bytes.Buffer
	var mu sync.Mutex
	cfg := is.config()
	cfg.StaticKey = static
	k, raw := newKey(t, time.Time{}, Ingest)
	store := &memory{keys: []APIKey{k}}
	cfg.Keys, cfg.KeyHold = store, time.Hour
	clk := newClock()
	a := made(t, cfg, Options{Now: clk.now, Logger: slog.New(slog.NewJSONHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logged.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	h := a.Middleware(Ingest, nil, http.NotFoundHandler())
	good := sign(t, jwt.SigningMethodEdDSA, edKey, "ed", is.good())
	ask := func() string {
		var out strings.Builder
		for _, c := range []string{good, good + "AA", raw, raw[:len(raw)-1] + "a", static + "x", "Basic-ish " + static} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(c))
			fmt.Fprint(&out, w.Body, w.Header())
		}
		return out.String()
	}
	shown := ask()
	is.behave(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	store.change(func() { store.err = audit.E("test", audit.KindUnavailable, fmt.Errorf("away")) })
	clk.pass(2 * time.Hour)
	shown += ask()
	a.Close()
	mu.Lock()
	defer mu.Unlock()
	shown += logged.String() + fmt.Sprintf("%v %+v", cfg, k)
	if !strings.Contains(logged.String(), "cannot be fetched") {
		t.Errorf("logged: %s", &logged)
	}
	for _, secret := range append(strings.Split(good, "."), raw[25:], static) {
		if strings.Contains(shown, secret) {
			t.Errorf("shown: %s", secret)
		}
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// FuzzAuthorization: whatever comes in the headers, nobody is let in who does not hold a key, and every
// refusal has a status and a reason.
func FuzzAuthorization(f *testing.F) {
	dev := newDevKey(edKey)
	token, err := dev.Sign("acme", "ann", []Role{Reviewer}, time.Hour, begin)
	if err != nil {
		f.Fatal(err)
	}
	k, secret, err := NewAPIKey("acme", "n", []Permission{Ingest}, "", begin, time.Time{})
	if err != nil {
		f.Fatal(err)
	}
	raw := secret.Reveal()
	a, err := New(f.Context(), Config{Required: true, StaticKey: static, Dev: dev, Keys: &memory{keys: []APIKey{k}}, KeyHold: time.Hour}, Options{Now: newClock().now})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(a.Close)
	for _, s := range []string{"Bearer " + token, "Bearer " + raw, "bearer  " + static, "Bearer", "Basic x", "Bearer a.b.c", "Bearer evh_", "Bearer " + swapHeader(token, `{"alg":"none"}`),
		"Bearer " + swapHeader(token, `{"alg":"EdDSA","kid":null,"crit":[]}`), "Bearer " + swapClaims(token, `{"iss":"evenhand-dev","exp":1e999,"aud":[null]}`), "Bearer " + raw[:40]} {
		f.Add(s, "", "")
		f.Add("", s, "acme")
	}
	f.Fuzz(func(t *testing.T, authorization, key, tenant string) {
		r := request("")
		for name, v := range map[string]string{"Authorization": authorization, "X-API-Key": key, TenantHeader: tenant} {
			if v != "" {
				r.Header[http.CanonicalHeaderKey(name)] = []string{v}
			}
		}
		p, err := a.Authenticate(r)
		if err != nil {
			if d := DeniedBy(err); d.Reason == "" || d.Say == "" || !slices.Contains([]int{400, 401, 403}, d.Status) {
				t.Fatalf("%+v", d)
			}
			return
		}
		_, shown, _ := strings.Cut(authorization, " ")
		shown = strings.TrimSpace(shown + key)
		if shown != token && shown != raw && shown != static || p.Tenant != "" && !ValidTenant(p.Tenant) || !p.Verified {
			t.Fatalf("let in: %q %q %q as %+v", authorization, key, tenant, p)
		}
	})
}

// FuzzKeySet: whatever an issuer answers, it is a set of keys or an error.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","x5c":["AA"]}]}`))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","use":"sig"}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		client := &http.Client{Transport: transport(func(*http.Request) *http.Response {
			w := httptest.NewRecorder()
			_, _ = w.Write(body)
			return w.Result()
		})}
		i := Issuer{URL: "https://id.example", JWKSURL: "https://id.example/keys"}
		set, err := i.keys(t.Context(), client)
		if (err == nil) != (set != nil && set.n > 0) {
			t.Fatalf("%v, %v", set, err)
		}
		if err != nil {
			return
		}
		keys, err := set.KeyReadAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys { // a key that is taken can be used without a crash
			for _, alg := range algorithms {
				if fits(alg, k.Key()) {
					_ = jwt.GetSigningMethod(alg).Verify("a.b", make([]byte, 64), k.Key())
				}
			}
		}
	})
}

type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
