package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"

	"github.com/evenhand/evenhand/audit"
)

// Issuer says whose tokens are taken and where their claims stand.
type Issuer struct {
	URL         string          // exactly the tokens' iss; keys by discovery from it
	JWKSURL     string          // where the keys are, instead of discovery
	Audience    []string        // one of them must be in aud
	TenantClaim string          // name, or path with dots
	RolesClaim  string          // the same
	RoleMap     map[string]Role // theirs to ours; when it has entries, only what it names counts
	Hold        time.Duration   // cached keys hold so long while the issuer does not answer
	AllowHTTP   bool            // keys over http from other machines
}

// Limits of what an issuer may answer.
const (
	maxDocument = 1 << 20 // bytes
	maxKeys     = 100
	fetchLimit  = 5 * time.Second
)

// issuerHTTP follows redirects, but never from https to http.
func issuerHTTP() *http.Client {
	return &http.Client{Timeout: fetchLimit, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 3 || via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
			return errors.New("is redirected too often or to http")
		}
		return nil
	}}
}

// keySet is what an issuer answered: the keys that can verify signatures.
type keySet struct {
	jwkset.Storage
	n    int
	date time.Time // by the issuer's clock; zero when it does not say
}

// keys fetches the issuer's keys.
func (i *Issuer) keys(ctx context.Context, client *http.Client) (*keySet, error) {
	at := i.JWKSURL
	if at == "" {
		var doc struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		if _, err := getJSON(ctx, client, strings.TrimSuffix(i.URL, "/")+"/.well-known/openid-configuration", &doc); err != nil {
			return nil, err
		}
		if doc.Issuer != i.URL { // OpenID Connect Discovery 1.0, section 4.3
			return nil, audit.E("auth: discovery", audit.KindUnavailable, fmt.Errorf("the document names the issuer %.200q, auth.issuer is %q; they must be equal to the letter", doc.Issuer, i.URL))
		}
		if err := i.reachable(doc.JWKS); err != nil {
			return nil, audit.E("auth: discovery", audit.KindUnavailable, fmt.Errorf("jwks_uri: %w", err))
		}
		at = doc.JWKS
	}
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	date, err := getJSON(ctx, client, at, &doc)
	if err != nil {
		return nil, err
	}
	set := &keySet{Storage: jwkset.NewMemoryStorage(), date: date}
	for _, raw := range doc.Keys[:min(len(doc.Keys), maxKeys)] {
		if k, ok := verifying(raw); ok {
			set.n++
			_ = set.KeyWrite(ctx, k) // memory does not fail
		}
	}
	if set.n == 0 { // an empty set would turn everybody away at once: what is cached holds
		return nil, audit.E("auth: keys", audit.KindUnavailable, fmt.Errorf("%s has no key that can verify our algorithms", shown(at)))
	}
	return set, nil
}

// verifying reads one key; a key that we cannot use does not spoil the others.
func verifying(raw json.RawMessage) (jwkset.JWK, bool) {
	k, err := jwkset.NewJWKFromRawJSON(raw, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipKeyOps: true, SkipX5UScheme: true})
	if err != nil || k.Marshal().USE != "" && k.Marshal().USE != jwkset.UseSig {
		return k, false
	}
	for _, alg := range algorithms {
		if fits(alg, k.Key()) {
			return k, true
		}
	}
	return k, false
}

// fits tells whether a key is of the type and strength that an algorithm wants.
func fits(alg string, key any) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return (strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")) && k.N.BitLen() >= 2048 && k.N.BitLen() <= 16384
	case *ecdsa.PublicKey:
		return alg == "ES256" && k.Curve == elliptic.P256() || alg == "ES384" && k.Curve == elliptic.P384()
	case ed25519.PublicKey:
		return alg == "EdDSA" && len(k) == ed25519.PublicKeySize
	}
	return false
}

// getJSON reads a small JSON document; date is the server's clock.
func getJSON(ctx context.Context, client *http.Client, at string, into any) (date time.Time, err error) {
	fail := func(err error) (time.Time, error) {
		return time.Time{}, audit.E("auth: "+shown(at), audit.KindUnavailable, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return fail(errors.New("is not a URL"))
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // it repeats the URL
			err = u.Err
		}
		return fail(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("answered %d", res.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return fail(fmt.Errorf("broke off: %w", err))
	case len(body) > maxDocument:
		return fail(fmt.Errorf("has more than %d bytes", maxDocument))
	case json.Unmarshal(body, into) != nil:
		return fail(errors.New("is not the JSON document that it should be"))
	}
	date, _ = http.ParseTime(res.Header.Get("Date"))
	return date, nil
}

// reachable tells what is wrong with the address of keys: who can change them on the way can be anybody.
func (i *Issuer) reachable(at string) error {
	u, err := url.Parse(at)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil:
		return errors.New("wants an https URL")
	case u.Scheme == "http" && !i.AllowHTTP && !Loopback(u.Hostname()):
		return errors.New("wants https; auth.allow_http: true takes http from other machines")
	}
	return nil
}

// shown is a URL without what it may hold of secrets.
func shown(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "the issuer"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Loopback tells whether a host, without port, names this machine only.
func Loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// Probe is what doctor tells about an issuer.
type Probe struct {
	Keys int           // that can verify our algorithms
	Skew time.Duration // of our clock against the issuer's, to the second; positive: ours is ahead
}

// Probe fetches the issuer's keys once.
func (i *Issuer) Probe(ctx context.Context) (Probe, error) {
	client := issuerHTTP()
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	set, err := i.keys(ctx, client)
	if err != nil {
		return Probe{}, err
	}
	p := Probe{Keys: set.n}
	if !set.date.IsZero() {
		p.Skew = time.Since(set.date).Truncate(time.Second)
	}
	return p, nil
}
