package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/secret"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// identity is a local OpenID Connect issuer.
type identity struct {
	*httptest.Server
	key ed25519.PrivateKey
}

func newIdentity(t *testing.T) *identity {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k, err := jwkset.NewJWKFromKey(public, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: "one", USE: jwkset.UseSig}})
	if err != nil {
		t.Fatal(err)
	}
	i := &identity{key: private}
	mux := http.NewServeMux()
	answer := func(path string, v func() any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v()) })
	}
	answer("/realms/x/.well-known/openid-configuration", func() any { return map[string]any{"issuer": i.issuer(), "jwks_uri": i.URL + "/keys"} })
	answer("/keys", func() any { return jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{k.Marshal()}} })
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *identity) issuer() string { return i.URL + "/realms/x" }

func (i *identity) token(t *testing.T, tenant string, ttl time.Duration, roles ...string) string {
	t.Helper()
	tok := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": i.issuer(), "aud": []string{"account", "evenhand"}, "sub": "ann", "tenant_id": tenant,
		"realm_access": map[string]any{"roles": roles}, "exp": time.Now().Add(ttl).Unix(), "iat": time.Now().Unix()})
	tok.Header["kid"] = "one"
	s, err := tok.SignedString(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// send posts with a credential and headers.
func (u *up) send(path, credential, body string, headers ...string) (int, string) {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), http.MethodPost, u.HTTP+path, strings.NewReader(body))
	if err != nil {
		u.t.Fatal(err)
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// Two tenants with tokens of an issuer: each sends into its own, and nothing of a refused request is stored.
// Beside them development tokens and API keys.
func TestAccessEndToEnd(t *testing.T) {
	id := newIdentity(t)
	dir := t.TempDir()
	u := startUp(t, dir, "--set", "auth.issuer="+id.issuer(), "--set", "auth.audience=evenhand", "--set", "auth.roles_claim=realm_access.roles",
		"--set", "auth.role_map=eh-sender=service,eh-reader=viewer")
	acme, borealis := id.token(t, "acme", time.Hour, "offline_access", "eh-sender"), id.token(t, "borealis", time.Hour, "eh-sender")
	dev := func(args ...string) string {
		return strings.TrimSpace(must(t, "", append([]string{"token", "--data-dir", dir}, args...)...))
	}
	created := evenhand(t, "", "keys", "create", "--data-dir", dir, "--tenant", "acme", "--name", "crawler", "--scope", "ingest", "--expires", "90d", "--json")
	var key struct{ ID, Key, Tenant string }
	if err := json.Unmarshal([]byte(created.out), &key); err != nil || created.code != 0 || key.Tenant != "acme" {
		t.Fatalf("status %d %s%s", created.code, created.out, created.err)
	}
	taken := map[string]int{}
	for _, tc := range []struct {
		name, credential, body string
		headers                []string
		status                 int
		want                   string // tenant that takes it, or reason
	}{
		{"acme", acme, `{"response":"a"}`, nil, 202, "acme"},
		{"acme, named twice", acme, `{"response":"b","tenant_id":"acme"}`, []string{auth.TenantHeader, "acme"}, 202, "acme"},
		{"borealis", borealis, `{"response":"c"}`, nil, 202, "borealis"},
		{"another tenant in the payload", acme, `{"response":"d","tenant_id":"borealis"}`, nil, 403, "tenant_mismatch"},
		{"in one of two", acme, `[{"response":"e"},{"response":"f","tenant_id":"borealis"}]`, nil, 403, "tenant_mismatch"},
		{"in the header", borealis, `{"response":"g"}`, []string{auth.TenantHeader, "acme"}, 403, "tenant_mismatch"},
		{"a reader", id.token(t, "acme", time.Hour, "eh-reader"), `{"response":"h"}`, nil, 403, "no_permission"},
		{"their admin is not ours", id.token(t, "acme", time.Hour, "admin"), `{"response":"i"}`, nil, 403, "no_role"},
		{"expired", id.token(t, "acme", -2*time.Minute, "eh-sender"), `{"response":"j"}`, nil, 401, "token_expired"},
		{"nobody", "", `{"response":"k"}`, nil, 401, "no_credential"},
		{"development token", dev("--tenant", "acme", "--role", "service"), `{"response":"l"}`, nil, 202, "acme"},
		{"development token of a reviewer", dev("--tenant", "acme", "--role", "reviewer", "--subject", "ben"), `{"response":"m"}`, nil, 403, "no_permission"},
		{"API key", key.Key, `{"response":"n"}`, nil, 202, "acme"},
		{"API key with a typo", key.Key[:30] + "!" + key.Key[31:], `{"response":"o"}`, nil, 401, "malformed"},
	} {
		status, body := u.send("/v1/interactions", tc.credential, tc.body, tc.headers...)
		if status != tc.status || status != 202 && !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %s, want %d %s", tc.name, status, body, tc.status, tc.want)
		}
		if status == 202 {
			taken[tc.want]++
		}
	}
	if status, body := u.send("/analyze-bias", key.Key, `{"llm_response":"x"}`); status != 403 {
		t.Errorf("a key beyond its scope: %d %s", status, body)
	}
	if status, body := u.send("/analyze-bias", acme, `{"llm_response":"x"}`); status != 200 {
		t.Errorf("analyze: %d %s", status, body)
	}

	// emit takes a token out of a file.
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, borealis+"\n")
	if r := evenhand(t, `{"response":"p"}`, "emit", "--to", u.HTTP, "--token-file", file, "--quiet"); r.code != 0 {
		t.Errorf("emit: %s%s", r.out, r.err)
	}
	taken["borealis"]++
	if r := evenhandEnv(t, `{"response":"q","tenant_id":"acme"}`, []string{"EVENHAND_TOKEN=" + borealis}, "emit", "--to", u.HTTP, "--quiet"); r.code != 1 || !strings.Contains(r.err, "tenant_mismatch") || strings.Contains(r.err, borealis) {
		t.Errorf("emit into another tenant: status %d %s%s", r.code, r.out, r.err)
	}

	u.arrived(taken["acme"] + taken["borealis"])
	for tenant, n := range taken {
		if got := u.count("SELECT count() AS n FROM audit_current FINAL WHERE tenant_id = '" + tenant + "'"); got != n {
			t.Errorf("%s: %d stored, %d taken", tenant, got, n)
		}
	}
	if got := u.count("SELECT count() AS n FROM audit_current FINAL"); got != taken["acme"]+taken["borealis"] {
		t.Errorf("%d stored in all, %v taken", got, taken)
	}

	must(t, "", "keys", "revoke", key.ID, "--data-dir", dir)
	eventually(t, "the revocation", func() error {
		if status, body := u.send("/v1/interactions", key.Key, `not even JSON`); status != 401 || !strings.Contains(body, "key_revoked") {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	if out := must(t, "", "keys", "list", "--data-dir", dir); !strings.Contains(out, key.ID) || !strings.Contains(out, "crawler") || strings.Contains(out, key.Key[25:]) {
		t.Error(out)
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		if status, body := get(t, u.HTTP+path); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, metrics := get(t, u.HTTP+"/metrics")
	for _, want := range []string{`evenhand_auth_total{credential="token",outcome="ok"}`, `evenhand_auth_total{credential="api_key",outcome="key_revoked"}`, `evenhand_auth_total{credential="token",outcome="tenant_mismatch"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
	doctor := evenhand(t, "", "doctor", "--data-dir", dir, "--set", "auth.issuer="+id.issuer(), "--set", "auth.audience=evenhand")
	if !strings.Contains(doctor.out, id.issuer()+", 1 key") {
		t.Errorf("doctor:\n%s", doctor.out)
	}
	if said := u.log.String(); !strings.Contains(said, "asks for a credential: a token of "+id.issuer()) {
		t.Errorf("up says\n%s", said)
	}
	spare := strings.TrimSpace(must(t, "", "keys", "create", "--data-dir", dir, "--tenant", "acme", "--name", "spare", "--scope", "ingest"))
	u.stop()
	for what, said := range map[string]string{"log": u.log.String(), "metrics": metrics} {
		for _, secret := range []string{acme[len(acme)-40:], key.Key[25:]} {
			if strings.Contains(said, secret) {
				t.Errorf("the %s shows a credential", what)
			}
		}
	}

	// Stored keys are enough where the mode says so; where there is nothing at all, nothing starts.
	locked := startUp(t, dir, "--set", "auth.mode=required", "--set", "auth.dev_tokens=false")
	for credential, want := range map[string]int{spare: 202, "": 401, key.Key: 401, dev("--tenant", "acme", "--role", "admin"): 401, acme: 401} {
		if status, body := locked.send("/v1/interactions", credential, `{}`); status != want {
			t.Errorf("%d %s, want %d", status, body, want)
		}
	}
	locked.stop()
	r := evenhand(t, "", "up", "--data-dir", t.TempDir(), "--http", "127.0.0.1:0", "--set", "auth.mode=required", "--set", "auth.dev_tokens=false")
	if r.code != 2 || !strings.Contains(r.err, "auth.mode: 127.0.0.1:0 asks for a credential, and nothing can verify one") {
		t.Errorf("status %d %s", r.code, r.err)
	}
}

// The role analyzer has no store: API keys are refused there with the reason, other credentials work.
func TestAccessWithoutAStore(t *testing.T) {
	s := defaultSettings()
	s.DataDir, s.HTTP.Addr, s.HTTP.APIKey, s.Tenant.Default = t.TempDir(), "127.0.0.1:0", "0123456789abcdef", "default"
	yes := true
	s.Auth.DevTokens = &yes
	st, err := start(t.Context(), s, []string{roleAnalyzer}, false, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer st.close(t.Context())
	dev, err := auth.LoadDevKey(s.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	token, err := dev.Sign("acme", "ann", []auth.Role{auth.Service}, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := auth.NewAPIKey("acme", "n", []auth.Permission{auth.Analyze}, "", time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, credential string
		want             int
		says             string
	}{
		{"static key", "0123456789abcdef", 200, "bias_detected"},
		{"token", token, 200, "bias_detected"},
		{"API key", key.Reveal(), 401, "no_key_store"},
		{"nothing", "", 401, "no_credential"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/analyze-bias", strings.NewReader(`{"llm_response":"x"}`))
		if tc.credential != "" {
			r.Header.Set("X-API-Key", tc.credential)
		}
		w := httptest.NewRecorder()
		if st.server.Handler.ServeHTTP(w, r); w.Code != tc.want || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
	}
}

func TestAccessSettings(t *testing.T) {
	issuer := []string{"--set", "auth.issuer=https://id.example", "--set", "auth.audience=evenhand"}
	for _, tc := range []struct {
		args []string
		err  string
	}{
		{[]string{"--set", "auth.mode=maybe"}, `auth.mode: "maybe" is not one of auto, required, off`},
		{[]string{"--set", "auth.mode=off", "--set", "http.addr=0.0.0.0:1"}, "auth.mode: off is for loopback only, and 0.0.0.0:1 is reachable"},
		{[]string{"--set", "http.addr=:1"}, "http.api_key: :1 is reachable from outside this machine; set EVENHAND_API_KEY or EVENHAND_API_KEY_FILE, or auth.issuer"},
		{[]string{"--set", "auth.issuer=https://id.example"}, "auth.audience: is missing"},
		{[]string{"--set", "auth.jwks_url=https://id.example/keys", "--set", "auth.audience=a"}, "auth.issuer: is missing"},
		{append([]string{"--set", "auth.role_map=admins"}, issuer...), `auth.role_map: "admins" wants theirs=ours`},
		{append([]string{"--set", "auth.role_map=admins=king"}, issuer...), `auth.role_map: "admins"="king" wants theirs=ours, ours one of`},
		{[]string{"--set", "auth.hold=1s"}, "auth.hold: 1s is not in 1m..24h"},
		{[]string{"--set", "limits.requests_per_second=-1"}, "limits.requests_per_second: -1 is negative"},
		{[]string{"--set", "limits.burst=0"}, "limits.burst: 0 is below 1"},
		{[]string{"--set", "auth.dev_tokens=perhaps"}, "auth.dev_tokens: wants true or false"},
	} {
		command(t, "", append(tc.args, "doctor", "--data-dir", t.TempDir())...).says(t, 3, tc.err, "")
	}
	for _, fine := range [][]string{issuer, append([]string{"--set", "http.addr=0.0.0.0:1"}, issuer...), {"--set", "http.addr=0.0.0.0:1", "--set", "auth.mode=required"}, {"--set", "auth.mode=off"}} {
		command(t, "", append(fine, "config")...).says(t, 0, "auth.mode", "")
	}
}

func TestTokenAndKeysOnTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	command(t, "", "token", "--tenant", "acme", "--role", "viewer", "--data-dir", dir).says(t, 1, "", "there is none in "+dir+": 'evenhand up' makes it on its first start")
	k, err := auth.MakeDevKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string]string{
		`role: "king" is not one of`: "token --tenant acme --role king",
		"tenant: wants":              "token --tenant a/b --role viewer",
		"ttl: 1000h0m0s is not in":   "token --tenant acme --role viewer --ttl 1000h",
		"subject: is empty":          "token --tenant acme --role viewer --subject key:x",
		`--expires: "soon" is none`:  "keys create --tenant acme --name n --scope read --expires soon",
		`scope: "fly" is not one of`: "keys create --tenant acme --name n --scope fly",
		"ID: wants the 16 character": "keys revoke evh_abc",
		"missing flags: --role=ROLE": "token --tenant acme",
		"no 'evenhand up' runs on":   "",
	} {
		code := 2
		if args == "" {
			args, code = "keys list", 1
		}
		command(t, "", append(strings.Fields(args), "--data-dir", dir)...).says(t, code, "", want)
	}
	r := command(t, "", "token", "--tenant", "acme", "--role", "viewer", "--role", "reviewer", "--data-dir", dir)
	r.says(t, 0, "eyJ", "")
	a, err := auth.New(t.Context(), auth.Config{Required: true, Dev: k}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	req := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(r.out))
	if p, err := a.Authenticate(req); err != nil || p.Tenant != "acme" || !p.Can(auth.Review) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := expiry("2027-01-31", time.Now()); err != nil {
		t.Error(err)
	}
}

// With the key that is bound to no tenant emit names each event's tenant in the header; a token needs none.
func TestEmitNamesTenants(t *testing.T) {
	var seen []string
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprintf("%s %q %d", r.Header.Get("Authorization"), r.Header.Get(auth.TenantHeader), strings.Count(string(b), "\n")))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer door.Close()
	const lines = `{"tenant_id":"a","response":"x"}` + "\n" + `{"tenant_id":"b","response":"x"}` + "\n" + `{"response":"x"}` + "\n" + `{"tenant_id":"a","response":"x"}`
	command(t, lines, "emit", "--to", door.URL, "--set", "http.api_key=0123456789abcdef").says(t, 0, "", "4 sent")
	t.Setenv("EVENHAND_TOKEN", "a.b.c")
	command(t, lines, "emit", "--to", door.URL, "--set", "http.api_key=0123456789abcdef").says(t, 0, "", "4 sent")
	want := []string{`Bearer 0123456789abcdef "a" 2`, `Bearer 0123456789abcdef "b" 1`, `Bearer 0123456789abcdef "" 1`, `Bearer a.b.c "" 4`}
	if !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
	command(t, lines, "emit", "--to", door.URL, "--token-file", filepath.Join(t.TempDir(), "none")).says(t, 1, "", "--token-file: ")
}

func TestDoctorLooksAtAccess(t *testing.T) {
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(-5*time.Minute).UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	}))
	defer late.Close()
	yes, no := true, false
	for want, change := range map[string]func(*settings){
		"ok access: nobody is asked":                        func(*settings) {},
		"ok access: a credential is asked for; callers":     func(s *settings) { s.HTTP.APIKey = "0123456789abcdef" },
		"warn access: only a stored API key lets anybody":   func(s *settings) { s.Auth.Mode, s.Auth.DevTokens = authRequired, &no },
		"warn auth.dev_tokens: whoever reads":               func(s *settings) { s.HTTP.Addr, s.HTTP.APIKey, s.Auth.DevTokens = ":1", "0123456789abcdef", &yes },
		"bad auth.issuer: auth: http://127.0.0.1:1/.well-k": func(s *settings) { s.Auth.Issuer = "http://127.0.0.1:1" },
		"warn auth.issuer: iss answers; this machine's":     func(s *settings) { s.Auth.Issuer, s.Auth.JWKSURL = "iss", late.URL },
		"warn auth.allow_http: keys may come over http":     func(s *settings) { s.Auth.Issuer, s.Auth.JWKSURL, s.Auth.AllowHTTP = "iss", late.URL, true },
		"warn auth.role_map: roles of a whole realm": func(s *settings) {
			s.Auth.Issuer, s.Auth.JWKSURL, s.Auth.RolesClaim = "iss", late.URL, "realm_access.roles"
		},
	} {
		s := defaultSettings()
		s.DataDir, s.Auth.Audience = t.TempDir(), []string{"evenhand"}
		change(&s)
		var said []string
		for _, d := range diagnoseAccess(t.Context(), s, true) {
			said = append(said, d.State+" "+d.What+": "+d.Says)
		}
		if !slices.ContainsFunc(said, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("no %q in\n%s", want, strings.Join(said, "\n"))
		}
	}
}

// Who is the mode's default on which listener.
func TestWhoIsAsked(t *testing.T) {
	yes, no := true, false
	for _, tc := range []struct {
		name      string
		change    func(*settings)
		asks, dev bool // dev: of 'up'
	}{
		{"loopback", func(*settings) {}, false, true},
		{"static key", func(s *settings) { s.HTTP.APIKey = "0123456789abcdef" }, true, true},
		{"issuer", func(s *settings) { s.Auth.Issuer = "https://id.example" }, true, true},
		{"issuer, switched off", func(s *settings) { s.Auth.Issuer, s.Auth.Mode = "https://id.example", authOff }, false, true},
		{"required", func(s *settings) { s.Auth.Mode = authRequired }, true, true},
		{"public", func(s *settings) { s.HTTP.Addr = "0.0.0.0:1" }, true, false},
		{"public by name", func(s *settings) { s.HTTP.Addr = "example.com:1" }, true, false},
		{"public, development tokens", func(s *settings) { s.HTTP.Addr, s.Auth.DevTokens = ":1", &yes }, true, true},
		{"loopback, none", func(s *settings) { s.Auth.DevTokens = &no }, false, false},
	} {
		s := defaultSettings()
		tc.change(&s)
		if s.asks() != tc.asks || s.takesDevTokens(true) != tc.dev || s.takesDevTokens(false) != (s.Auth.DevTokens == &yes) {
			t.Errorf("%s: asks %v, development tokens %v", tc.name, s.asks(), s.takesDevTokens(true))
		}
	}
}

// Where nothing but a stored key lets anybody in, the doctor says what a start would, and what makes tables that are missing.
func TestDoctorLooksForStoredKeys(t *testing.T) {
	cfg := enginetest.Start(t).Config(engine.Writer)
	conn := enginetest.Conn(t, cfg)
	s := defaultSettings()
	s.Auth.Mode, s.Kafka.Brokers = authRequired, []string{"127.0.0.1:1"}
	s.ClickHouse.Addr, s.ClickHouse.Username, s.ClickHouse.Database = cfg.Addr, cfg.Username, cfg.Database
	s.ClickHouse.Password = secret.Text(cfg.Password)
	access := func() string {
		d := diagnoseAccess(t.Context(), s, false)[0]
		return d.State + " " + d.What + ": " + d.Says
	}
	if got, want := access(), "bad access: "+s.nobodyGetsIn().Error(); got != want {
		t.Errorf("without tables: %s", got)
	}
	if all := outside(t.Context(), s); !strings.Contains(all[len(all)-1].Says, "; 'evenhand migrate' makes") {
		t.Errorf("%+v", all)
	}
	migratetest.Run(t, cfg)
	if got, want := access(), "bad access: "+s.nobodyGetsIn().Error(); got != want {
		t.Errorf("without a key: %s", got)
	}
	k, _, err := auth.NewAPIKey("acme", "n", []auth.Permission{auth.Analyze}, "", time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := auth.NewKeyTable(conn, cfg.Database).Add(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if got, want := access(), "ok access: a credential is asked for: 1 stored API key"; !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}
