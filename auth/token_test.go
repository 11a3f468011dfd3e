package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
)

// says checks a refusal, and that nothing of the credential is in it.
func says(t *testing.T, err error, status int, reason Reason, credential string) {
	t.Helper()
	_ = denied(t, err, status, reason, credential)
}

// denied is says, and gives it.
func denied(t *testing.T, err error, status int, reason Reason, credential string) *Denied {
	t.Helper()
	if err == nil {
		t.Fatalf("let in, want %d %s", status, reason)
	}
	d := DeniedBy(err)
	if d.Status != status || d.Reason != reason {
		t.Fatalf("%d %s (%s), want %d %s", d.Status, d.Reason, d.Say, status, reason)
	}
	for part := range strings.SplitSeq(credential, ".") {
		if len(part) > 8 && strings.Contains(err.Error(), part) {
			t.Errorf("the error quotes the credential: %s", err)
		}
	}
	want := map[int]audit.Kind{429: audit.KindOverloaded, 503: audit.KindUnavailable}[status]
	if want == "" {
		want = audit.KindInvalid
	}
	if got := audit.KindOf(err); got != want {
		t.Errorf("kind %s, want %s", got, want)
	}
	return d
}

func TestTokens(t *testing.T) {
	keys := map[string]any{"r": rsaKey.Public(), "e": ecKey.Public(), "e384": ec384.Public(), "ed": edKey.Public(), "weak": weakRSA.Public()}
	is := newIssuer(t, keys)
	a := made(t, is.config(), Options{Now: newClock().now})
	der, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	rs := func(change ...func(jwt.MapClaims)) string {
		return sign(t, jwt.SigningMethodRS256, rsaKey, "r", is.good(change...))
	}
	at := func(d time.Duration) int64 { return begin.Add(d).Unix() }
	crit := jwt.NewWithClaims(jwt.SigningMethodRS256, is.good())
	crit.Header["kid"], crit.Header["crit"] = "r", []string{"exp"}
	critical, err := crit.SignedString(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	whole := rs()
	for _, tc := range []struct {
		name, token string
		status      int
		reason      Reason
	}{
		{"RS256", whole, 0, ""},
		{"RS512", sign(t, jwt.SigningMethodRS512, rsaKey, "r", is.good()), 0, ""},
		{"PS384", sign(t, jwt.SigningMethodPS384, rsaKey, "r", is.good()), 0, ""},
		{"ES256", sign(t, jwt.SigningMethodES256, ecKey, "e", is.good()), 0, ""},
		{"ES384", sign(t, jwt.SigningMethodES384, ec384, "e384", is.good()), 0, ""},
		{"EdDSA", sign(t, jwt.SigningMethodEdDSA, edKey, "ed", is.good()), 0, ""},
		{"without a kid, one of several keys", sign(t, jwt.SigningMethodES256, ecKey, nil, is.good()), 0, ""},
		{"several audiences", rs(set("aud", []string{"account", "evenhand"})), 0, ""},
		{"expired, within the leeway", rs(set("exp", at(-59*time.Second))), 0, ""},
		{"not yet valid, within the leeway", rs(set("nbf", at(59*time.Second))), 0, ""},
		{"issued later, within the leeway", rs(set("iat", at(59*time.Second))), 0, ""},

		{"expired", rs(set("exp", at(-61*time.Second))), 401, TokenExpired},
		{"not yet valid", rs(set("nbf", at(61*time.Second))), 401, NotYetValid},
		{"issued later", rs(set("iat", at(61*time.Second))), 401, NotYetValid},
		{"no exp", rs(without("exp")), 401, MissingClaim},
		{"exp of another type", rs(set("exp", "tomorrow")), 401, Malformed},
		{"exp beyond numbers", signRaw(t, `{"alg":"RS256","kid":"r"}`, `{"iss":"`+is.URL+`","exp":1e400}`), 401, Malformed},
		{"two algs that differ in case", signRaw(t, `{"alg":"none","ALG":"RS256","kid":"r"}`, `{"iss":"`+is.URL+`"}`), 401, BadSignature},
		{"exp in the far past", rs(set("exp", -math.MaxFloat64)), 401, TokenExpired},
		{"wrong audience", rs(set("aud", "billing")), 401, WrongAudience},
		{"no audience", rs(without("aud")), 401, WrongAudience},
		{"audience of another type", rs(set("aud", 7)), 401, WrongAudience},
		{"wrong issuer", rs(set("iss", "https://elsewhere.example")), 401, WrongIssuer},
		{"no issuer", rs(without("iss")), 401, WrongIssuer},
		{"issuer with a slash", rs(set("iss", is.URL+"/")), 401, WrongIssuer},
		{"development token", rs(set("iss", DevIssuer)), 401, DevTokensOff},
		{"no subject", rs(without("sub")), 401, MissingClaim},
		{"subject of a key", rs(set("sub", "key:abc")), 401, MissingClaim},
		{"subject of the static key", rs(set("sub", "static-key")), 401, MissingClaim},
		{"subject with control characters", rs(set("sub", "a\nb")), 401, MissingClaim},

		{"alg none", sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "r", is.good()), 401, BadAlgorithm},
		{"alg none, signature kept", swapHeader(whole, `{"alg":"none","kid":"r"}`), 401, BadAlgorithm},
		{"alg None", swapHeader(whole, `{"alg":"None","kid":"r"}`), 401, BadAlgorithm},
		{"HMAC with the public key as secret", sign(t, jwt.SigningMethodHS256, public, "r", is.good()), 401, BadAlgorithm},
		{"HMAC with the key's DER", sign(t, jwt.SigningMethodHS512, der, "r", is.good()), 401, BadAlgorithm},
		{"ES512 is not on the list", swapHeader(whole, `{"alg":"ES512","kid":"e"}`), 401, BadAlgorithm},
		{"no alg", swapHeader(whole, `{"kid":"r"}`), 401, Malformed},
		{"alg of another type", swapHeader(whole, `{"alg":7,"kid":"r"}`), 401, Malformed},
		{"kid of a key of another type", sign(t, jwt.SigningMethodRS256, rsaKey, "e", is.good()), 401, BadAlgorithm},
		{"kid of another curve", sign(t, jwt.SigningMethodES256, ecKey, "e384", is.good()), 401, BadAlgorithm},
		{"kid of a weak key", sign(t, jwt.SigningMethodRS256, weakRSA, "weak", is.good()), 401, UnknownKey},
		{"kid that is a number", sign(t, jwt.SigningMethodRS256, rsaKey, 7, is.good()), 401, Malformed},
		{"unknown kid", sign(t, jwt.SigningMethodRS256, rsaKey, "x", is.good()), 401, UnknownKey},
		{"kid like a path", sign(t, jwt.SigningMethodRS256, rsaKey, "../../dev/null", is.good()), 401, UnknownKey},
		{"another's signature", sign(t, jwt.SigningMethodRS256, otherRSA, "r", is.good()), 401, BadSignature},
		{"another's signature, no kid", sign(t, jwt.SigningMethodRS256, otherRSA, nil, is.good()), 401, BadSignature},
		{"changed claims", swapClaims(whole, `{"iss":"`+is.URL+`","tenant_id":"other"}`), 401, BadSignature},
		{"no signature", whole[:strings.LastIndex(whole, ".")+1], 401, BadSignature},
		{"critical headers", critical, 401, Malformed},
		{"huge", sign(t, jwt.SigningMethodRS256, rsaKey, "r", is.good(set("x", strings.Repeat("x", 17<<10)))), 401, TooLarge},
		{"two parts", "a.b", 401, Malformed},
		{"five parts, as encrypted ones", "a.b.c.d.e", 401, Malformed},
		{"no base64", "!.!.!", 401, Malformed},
		{"no JSON", "YQ.YQ.YQ", 401, Malformed},

		{"no tenant", rs(without("tenant_id")), 403, NoTenantClaim},
		{"empty tenant", rs(set("tenant_id", "")), 403, NoTenantClaim},
		{"tenant of another type", rs(set("tenant_id", 7)), 403, NoTenantClaim},
		{"two tenants", rs(set("tenant_id", []string{"a", "b"})), 403, NoTenantClaim},
		{"no tenant's name", rs(set("tenant_id", "a' OR 1=1")), 403, NoTenantClaim},
		{"no roles", rs(without("roles")), 403, NoRole},
		{"unknown role", rs(set("roles", []any{"king", 7, nil})), 403, NoRole},
		{"roles of another type", rs(set("roles", map[string]any{"admin": true})), 403, NoRole},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := a.Authenticate(request(tc.token))
			if tc.status != 0 {
				d := denied(t, err, tc.status, tc.reason, tc.token)
				if tc.status == 403 && !strings.Contains(d.Say, "claim tenant_id") && !strings.Contains(d.Say, "claim roles") {
					t.Errorf("the claim is not named: %s", d.Say)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Tenant != "acme" || p.Subject != "ann" || !p.Verified || !slices.Equal(p.Roles, []Role{Reviewer}) || !p.Can(Review) || p.Can(Administer) || p.Can(Ingest) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// signRaw signs what a library would not write.
func signRaw(t *testing.T, header, claims string) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	sig, err := jwt.SigningMethodRS256.Sign(text, rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func swapHeader(token, header string) string {
	parts := strings.Split(token, ".")
	parts[0] = base64.RawURLEncoding.EncodeToString([]byte(header))
	return strings.Join(parts, ".")
}

func swapClaims(token, claims string) string {
	parts := strings.Split(token, ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(claims))
	return strings.Join(parts, ".")
}

func TestClaimsOfIssuers(t *testing.T) {
	is := newIssuer(t, map[string]any{"ed": edKey.Public()})
	for _, tc := range []struct {
		name, tenant, roles string
		mapped              map[string]Role
		claims              map[string]any
		want                string // tenant and roles
	}{
		{"Keycloak", "organization", "realm_access.roles", nil, map[string]any{"organization": []string{"acme"}, "realm_access": map[string]any{"roles": []string{"offline_access", "viewer", "admin"}}}, "acme [viewer admin]"},
		{"Keycloak, a client's roles", "tenant_id", "resource_access.my.client.roles", nil, map[string]any{"resource_access": map[string]any{"my.client": map[string]any{"roles": []string{"service"}}}}, "acme [service]"},
		{"Auth0", "https://evenhand.example/tenant", "https://evenhand.example/roles", nil, map[string]any{"https://evenhand.example/tenant": "b", "https://evenhand.example/roles": []string{"reviewer"}}, "b [reviewer]"},
		{"Okta groups", "tenant_id", "groups", map[string]Role{"EH Reviewers": Reviewer, "EH Readers": Viewer}, map[string]any{"groups": []string{"Everyone", "EH Reviewers", "EH Readers"}}, "acme [viewer reviewer]"},
		{"Entra", "tid", "roles", map[string]Role{"Evenhand.Review": Reviewer}, map[string]any{"tid": "72f988bf-86f1-41af-91ab-2d7cd011db47", "roles": []string{"Evenhand.Review"}}, "72f988bf-86f1-41af-91ab-2d7cd011db47 [reviewer]"},
		{"one string", "tenant_id", "scope", nil, map[string]any{"scope": "openid viewer service"}, "acme [viewer service]"},
		{"with a map only what it names counts", "tenant_id", "roles", map[string]Role{"theirs": Viewer}, map[string]any{"roles": []string{"theirs", "admin"}}, "acme [viewer]"},
		{"a path through no object", "tenant_id", "roles.0.x", nil, nil, "no_role"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := is.config()
			c.Issuer.TenantClaim, c.Issuer.RolesClaim, c.Issuer.RoleMap = tc.tenant, tc.roles, tc.mapped
			a := made(t, c, Options{Now: newClock().now})
			claims := is.good()
			maps.Copy(claims, tc.claims)
			p, err := a.Authenticate(request(sign(t, jwt.SigningMethodEdDSA, edKey, "ed", claims)))
			got := ""
			if err != nil {
				got = string(DeniedBy(err).Reason)
			} else {
				got = fmt.Sprint(p.Tenant, " ", p.Roles)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// The rule of tenants' names stands in two packages, because neither may know the other.
func TestTenantsAreThoseOfIngest(t *testing.T) {
	for _, s := range []string{"", "a", "A9", "a.b-c_d", ".a", "-a", "_a", "a b", "a\n", "é", "a/b", strings.Repeat("a", 64), strings.Repeat("a", 65), "a'b", "a\x00"} {
		if ValidTenant(s) != ingest.ValidTenant(s) {
			t.Errorf("%q: %v", s, ValidTenant(s))
		}
	}
}

func TestDevelopmentKey(t *testing.T) {
	clk := newClock()
	k, other := newDevKey(edKey), newDevKey(edKey2)
	a := made(t, Config{Required: true, Dev: k}, Options{Now: clk.now})
	token, err := k.Sign("acme", "ann", []Role{Reviewer, Service}, time.Hour, begin)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Authenticate(request(token))
	if err != nil || p.Tenant != "acme" || p.Subject != "ann" || !p.Can(Review) || !p.Can(Ingest) || p.Can(Administer) {
		t.Fatalf("%+v, %v", p, err)
	}
	foreign, err := other.Sign("acme", "ann", []Role{Admin}, time.Hour, begin)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Authenticate(request(foreign))
	says(t, err, 401, UnknownKey, foreign)
	forged := sign(t, jwt.SigningMethodEdDSA, edKey2, k.id, jwt.MapClaims{"iss": DevIssuer, "aud": "evenhand", "sub": "x", "tenant_id": "acme", "roles": []string{"admin"}, "exp": begin.Add(time.Hour).Unix()})
	_, err = a.Authenticate(request(forged))
	says(t, err, 401, BadSignature, forged)
	confused := sign(t, jwt.SigningMethodRS256, rsaKey, k.id, jwt.MapClaims{"iss": DevIssuer})
	_, err = a.Authenticate(request(confused))
	says(t, err, 401, BadAlgorithm, confused)
	clk.pass(time.Hour + leeway + time.Second)
	_, err = a.Authenticate(request(token))
	says(t, err, 401, TokenExpired, token)

	for want, sign := range map[string]func() (string, error){
		"tenant: ":         func() (string, error) { return k.Sign("a b", "s", []Role{Viewer}, time.Hour, begin) },
		"subject: ":        func() (string, error) { return k.Sign("a", "anonymous", []Role{Viewer}, time.Hour, begin) },
		"role: is missing": func() (string, error) { return k.Sign("a", "s", nil, time.Hour, begin) },
		`role: "king" is`:  func() (string, error) { return k.Sign("a", "s", []Role{"king"}, time.Hour, begin) },
		"ttl: 0s":          func() (string, error) { return k.Sign("a", "s", []Role{Viewer}, 0, begin) },
	} {
		if _, err := sign(); err == nil || !strings.Contains(err.Error(), want) || audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, ok := k.private.Public().(ed25519.PublicKey); !ok {
		t.Error("no Ed25519 key")
	}
}

func TestIssuerSettings(t *testing.T) {
	fine := Issuer{URL: "https://id.example/realms/x", Audience: []string{"a"}, TenantClaim: "t", RolesClaim: "r", Hold: time.Hour}
	if err := fine.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Issuer){
		"auth.issuer: is missing":       func(i *Issuer) { i.URL = "" },
		"auth.issuer: wants https; ":    func(i *Issuer) { i.URL = "http://id.example" },
		"auth.issuer: wants an https":   func(i *Issuer) { i.URL = "id.example" },
		"auth.issuer: evenhand-dev is":  func(i *Issuer) { i.URL, i.JWKSURL = DevIssuer, "https://x" },
		"auth.jwks_url: wants https; ":  func(i *Issuer) { i.JWKSURL = "http://id.example/keys" },
		"auth.jwks_url: wants an https": func(i *Issuer) { i.JWKSURL = "file:///etc/passwd" },
		"auth.audience: is missing":     func(i *Issuer) { i.Audience = nil },
		"auth.tenant_claim: is empty":   func(i *Issuer) { i.TenantClaim = "" },
		"auth.roles_claim: is empty":    func(i *Issuer) { i.RolesClaim = "" },
		`auth.role_map: "x"="king"`:     func(i *Issuer) { i.RoleMap = map[string]Role{"x": "king"} },
		"auth.hold: 1s is not in":       func(i *Issuer) { i.Hold = time.Second },
	} {
		i := fine
		change(&i)
		if err := i.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	named := fine
	named.URL, named.JWKSURL = "accounts.example", "https://id.example/keys"
	if err := named.Validate(); err != nil {
		t.Error(err)
	}
	local := fine
	local.URL = "http://127.0.0.1:8080/realms/x"
	if err := local.Validate(); err != nil {
		t.Error(err)
	}
	within := fine
	within.URL, within.AllowHTTP = "http://keycloak:8080/realms/x", true
	if err := within.Validate(); err != nil {
		t.Error(err)
	}
}

// A rotated key is taken without a restart, and a dropped one no longer.
func TestRotation(t *testing.T) {
	is := newIssuer(t, map[string]any{"old": edKey.Public()})
	clk := newClock()
	a := made(t, is.config(), Options{Now: clk.now})
	before, after := sign(t, jwt.SigningMethodEdDSA, edKey, "old", is.good()), sign(t, jwt.SigningMethodEdDSA, edKey2, "new", is.good())
	if _, err := a.Authenticate(request(before)); err != nil {
		t.Fatal(err)
	}
	is.rotate(map[string]any{"new": edKey2.Public()})
	_, err := a.Authenticate(request(after)) // the last attempt was a moment ago
	says(t, err, 401, UnknownKey, after)
	asked := is.asked.Load()
	for range 100 {
		_, _ = a.Authenticate(request(after))
	}
	if n := is.asked.Load() - asked; n != 0 {
		t.Errorf("tokens of strangers made us ask the issuer %d times", n)
	}
	clk.pass(6 * time.Second)
	if _, err := a.Authenticate(request(after)); err != nil {
		t.Fatal(err)
	}
	_, err = a.Authenticate(request(before))
	says(t, err, 401, UnknownKey, before)
}

// While the issuer is away the cached keys hold, then everybody is refused with 503, and once it is back
// everything is as before.
func TestIssuerAway(t *testing.T) {
	for name, behave := range map[string]http.HandlerFunc{
		"500":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[`)) },
		"an array": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`[]`)) },
		"no keys":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"junk keys": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[7,null,{"kty":"RSA","n":"AA","e":"AQAB"},{"kty":"oct","k":"AAAA","kid":"ed"},{"kty":"OKP","crv":"Ed25519","x":"AA"},{"kty":"EC","crv":"P-256","x":"","y":""}]}`))
		},
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat(" ", 64<<10))
			for range 32 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"keys":`))
		},
		"redirects":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) },
		"never answers":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"panics mid-way": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := newIssuer(t, map[string]any{"ed": edKey.Public()})
			clk := newClock()
			client := issuerHTTP()
			if name == "never answers" {
				client.Timeout = 100 * time.Millisecond
			}
			a := made(t, is.config(), Options{Now: clk.now, Client: client})
			token := sign(t, jwt.SigningMethodEdDSA, edKey, "ed", is.good(set("exp", begin.Add(10*time.Hour).Unix())))
			if _, err := a.Authenticate(request(token)); err != nil {
				t.Fatal(err)
			}
			is.behave(behave)
			for _, d := range []time.Duration{15 * time.Minute, 15 * time.Minute, 29 * time.Minute} {
				clk.pass(d)
				if _, err := a.Authenticate(request(token)); err != nil {
					t.Fatalf("cached keys do not hold: %v", err)
				}
			}
			unknown := sign(t, jwt.SigningMethodEdDSA, edKey2, "new", is.good(set("exp", begin.Add(10*time.Hour).Unix())))
			_, err := a.Authenticate(request(unknown)) // perhaps rotated: nobody can tell
			says(t, err, 503, KeysUnavailable, unknown)
			clk.pass(2 * time.Minute)
			_, err = a.Authenticate(request(token))
			if d := denied(t, err, 503, KeysUnavailable, token); d.After == 0 {
				t.Error("no time to try again")
			}
			is.behave(nil)
			clk.pass(time.Minute)
			if _, err := a.Authenticate(request(token)); err != nil {
				t.Errorf("the issuer is back: %v", err)
			}
		})
	}
}

func TestIssuerAwayFromTheStart(t *testing.T) {
	is := newIssuer(t, map[string]any{"ed": edKey.Public()})
	is.behave(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) })
	clk := newClock()
	a := made(t, is.config(), Options{Now: clk.now})
	token := sign(t, jwt.SigningMethodEdDSA, edKey, "ed", is.good())
	_, err := a.Authenticate(request(token))
	says(t, err, 503, KeysUnavailable, token)
	is.behave(nil)
	clk.pass(6 * time.Second)
	if _, err := a.Authenticate(request(token)); err != nil {
		t.Error(err)
	}
}

func TestDiscovery(t *testing.T) {
	is := newIssuer(t, map[string]any{"ed": edKey.Public()})
	i := is.config().Issuer
	if p, err := i.Probe(t.Context()); err != nil || p.Keys != 1 || p.Skew > time.Minute || p.Skew < -time.Minute {
		t.Errorf("%+v, %v", p, err)
	}
	i.URL += "/" // as a typo: the document names another
	if _, err := i.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "equal to the letter") {
		t.Error(err)
	}
	i.URL, i.JWKSURL = "urn:any", is.URL+"/keys"
	if p, err := i.Probe(t.Context()); err != nil || p.Keys != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	i.JWKSURL = is.URL + "/nothing?token=SECRET"
	if _, err := i.Probe(t.Context()); err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "answered 404") {
		t.Error(err)
	}
}

// A caller that goes away does not end the attempt that others wait for.
func TestCallerGoesAway(t *testing.T) {
	is := newIssuer(t, map[string]any{"ed": edKey.Public()})
	enter, leave := make(chan struct{}, 1), make(chan struct{})
	is.behave(func(w http.ResponseWriter, _ *http.Request) {
		enter <- struct{}{}
		<-leave
		_, _ = w.Write(jwks(t, map[string]any{"ed": edKey.Public()}))
	})
	a := made(t, is.config(), Options{Now: newClock().now})
	token := sign(t, jwt.SigningMethodEdDSA, edKey, "ed", is.good())
	ctx, cancel := context.WithCancel(t.Context())
	<-enter
	cancel()
	_, err := a.Authenticate(request(token).WithContext(ctx))
	says(t, err, 503, KeysUnavailable, token)
	done := make(chan error)
	go func() { _, err := a.Authenticate(request(token)); done <- err }()
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
