package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, func() error { return goleak.Find() })
}

// begin is when test clocks start.
var begin = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// clock is a clock that stands until it is moved.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: begin} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// Keys of tests: making them takes long.
var (
	rsaKey, _    = rsa.GenerateKey(rand.Reader, 2048)
	otherRSA, _  = rsa.GenerateKey(rand.Reader, 2048)
	weakRSA, _   = rsa.GenerateKey(rand.Reader, 1024)
	ecKey, _     = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ec384, _     = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, edKey, _  = ed25519.GenerateKey(rand.Reader)
	_, edKey2, _ = ed25519.GenerateKey(rand.Reader)
)

// issuer is an OpenID Connect issuer whose keys and behaviour can be changed.
type issuer struct {
	*httptest.Server
	mu    sync.Mutex
	keys  map[string]any // kid to public key
	raw   http.HandlerFunc
	asked atomic.Int32 // for keys
}

func newIssuer(t *testing.T, keys map[string]any) *issuer {
	t.Helper()
	i := &issuer{keys: keys}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		i.mu.Lock()
		raw, keys := i.raw, i.keys
		i.mu.Unlock()
		if raw != nil {
			raw(w, r)
			return
		}
		_, _ = w.Write(jwks(t, keys))
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// behave changes what the issuer answers; nil answers with its keys.
func (i *issuer) behave(h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.raw = h
}

func (i *issuer) rotate(keys map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

func jwks(t *testing.T, keys map[string]any) []byte {
	t.Helper()
	var set jwkset.JWKSMarshal
	for kid, key := range keys {
		k, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}, Marshal: jwkset.JWKMarshalOptions{Private: true}})
		if err != nil {
			t.Error(err)
			return nil
		}
		set.Keys = append(set.Keys, k.Marshal())
	}
	b, err := json.Marshal(set)
	if err != nil {
		t.Error(err)
	}
	return b
}

// config takes tokens of the issuer.
func (i *issuer) config() Config {
	return Config{Required: true, Issuer: &Issuer{URL: i.URL, Audience: []string{"evenhand"}, TenantClaim: "tenant_id", RolesClaim: "roles", Hold: time.Hour}}
}

// made gives an authenticator that the test's end closes.
func made(t *testing.T, c Config, o Options) *Authenticator {
	t.Helper()
	if o.Client == nil {
		o.Client = issuerHTTP()
	}
	a, err := New(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); o.Client.CloseIdleConnections() })
	return a
}

// good are claims that are taken.
func (i *issuer) good(change ...func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{"iss": i.URL, "aud": "evenhand", "sub": "ann", "tenant_id": "acme", "roles": []string{"reviewer"},
		"iat": begin.Unix(), "exp": begin.Add(time.Hour).Unix()}
	for _, f := range change {
		f(c)
	}
	return c
}

func set(name string, v any) func(jwt.MapClaims) { return func(c jwt.MapClaims) { c[name] = v } }
func without(name string) func(jwt.MapClaims)    { return func(c jwt.MapClaims) { delete(c, name) } }

// sign makes a token; kid nil leaves it out.
func sign(t testing.TB, method jwt.SigningMethod, key any, kid any, claims jwt.Claims) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, claims)
	if kid != nil {
		tok.Header["kid"] = kid
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// request asks with a bearer; "" with none.
func request(bearer string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/graphql", nil)
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}
