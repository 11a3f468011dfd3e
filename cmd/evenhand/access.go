package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

// Modes of authentication.
const (
	authAuto     = "auto"     // required when something is configured that can verify, or the listener is not loopback
	authRequired = "required" // also where only stored API keys or development tokens can
	authOff      = "off"      // never asked for; loopback only
)

type authSettings struct {
	Mode     string   `koanf:"mode"`
	Issuer   string   `koanf:"issuer"`   // iss of tokens; keys by discovery from it
	JWKSURL  string   `koanf:"jwks_url"` // where its keys are, instead of discovery
	Audience []string `koanf:"audience"` // one of them must be in aud
	// Names of claims, or paths with dots.
	TenantClaim string   `koanf:"tenant_claim"`
	RolesClaim  string   `koanf:"roles_claim"`
	RoleMap     []string `koanf:"role_map"` // theirs=ours
	// Hold is how long cached keys of the issuer and API keys hold while nobody can be asked for them.
	Hold      time.Duration `koanf:"hold"`
	AllowHTTP bool          `koanf:"allow_http"` // keys over http from other machines
	// DevTokens takes tokens of 'evenhand token'. Unset: 'up' on loopback only.
	DevTokens *bool `koanf:"dev_tokens"`
}

type limitsSettings struct {
	// RequestsPerSecond of one tenant over all doors; 0 is no limit. Burst is how many may come at once.
	RequestsPerSecond float64 `koanf:"requests_per_second"`
	Burst             int     `koanf:"burst"`
}

func defaultAuth() authSettings {
	return authSettings{Mode: authAuto, TenantClaim: "tenant_id", RolesClaim: "roles", Hold: time.Hour}
}

// public tells whether the doors can be reached from outside this machine.
func (s settings) public() bool {
	host, _, err := net.SplitHostPort(s.HTTP.Addr)
	return err == nil && !loopback(host)
}

// verifies tells whether something is configured by which strangers can show who they are.
func (s settings) verifies() bool {
	return s.HTTP.APIKey != "" || s.Auth.Issuer != "" || s.Auth.JWKSURL != ""
}

// asks tells whether callers must show a credential.
func (s settings) asks() bool {
	switch s.Auth.Mode {
	case authOff:
		return false
	case authRequired:
		return true
	}
	return s.verifies() || s.public()
}

// takesDevTokens tells whether tokens of the development key are taken; up: everything on this machine.
func (s settings) takesDevTokens(up bool) bool {
	if s.Auth.DevTokens != nil {
		return *s.Auth.DevTokens
	}
	return up && !s.public()
}

// issuer is nil when none is configured.
func (s settings) issuer() (*auth.Issuer, error) {
	a := s.Auth
	if a.Issuer == "" && a.JWKSURL == "" {
		return nil, nil
	}
	i := &auth.Issuer{URL: a.Issuer, JWKSURL: a.JWKSURL, Audience: a.Audience, TenantClaim: a.TenantClaim, RolesClaim: a.RolesClaim, Hold: a.Hold, AllowHTTP: a.AllowHTTP}
	var errs []error
	for _, pair := range a.RoleMap {
		at := strings.LastIndexByte(pair, '=')
		if at < 0 {
			errs = append(errs, fmt.Errorf("auth.role_map: %q wants theirs=ours", pair))
			continue
		}
		if i.RoleMap == nil {
			i.RoleMap = map[string]auth.Role{}
		}
		i.RoleMap[pair[:at]] = auth.Role(pair[at+1:])
	}
	return i, errors.Join(append(errs, i.Validate())...)
}

func (s settings) validateAuth() error {
	var errs []error
	_, port, _ := net.SplitHostPort(s.HTTP.Addr)
	switch a := s.Auth; {
	case a.Mode != authAuto && a.Mode != authRequired && a.Mode != authOff:
		errs = append(errs, fmt.Errorf("auth.mode: %q is not one of auto, required, off", a.Mode))
	case s.public() && a.Mode == authOff:
		errs = append(errs, fmt.Errorf("auth.mode: off is for loopback only, and %s is reachable from outside this machine; listen on 127.0.0.1:%s or leave auth.mode out", s.HTTP.Addr, port))
	case s.public() && !s.verifies() && a.Mode == authAuto:
		errs = append(errs, fmt.Errorf("http.api_key: %s is reachable from outside this machine; set EVENHAND_API_KEY or EVENHAND_API_KEY_FILE, or auth.issuer and auth.audience, or auth.mode=required where API keys are stored ('evenhand keys create'), or listen on 127.0.0.1:%s", s.HTTP.Addr, port))
	}
	if _, err := s.issuer(); err != nil {
		errs = append(errs, err)
	} else if s.Auth.Hold < time.Minute || s.Auth.Hold > 24*time.Hour {
		errs = append(errs, fmt.Errorf("auth.hold: %v is not in 1m..24h", s.Auth.Hold))
	}
	if s.Limits.RequestsPerSecond < 0 {
		errs = append(errs, fmt.Errorf("limits.requests_per_second: %v is negative; 0 is no limit", s.Limits.RequestsPerSecond))
	}
	if s.Limits.Burst < 1 {
		errs = append(errs, fmt.Errorf("limits.burst: %d is below 1", s.Limits.Burst))
	}
	return errors.Join(errs...)
}

// startAuth makes what tells who calls. up: everything on this machine.
func (st *stack) startAuth(ctx context.Context, up bool) error {
	s := st.settings
	c := auth.Config{Required: s.asks(), DefaultTenant: s.Tenant.Default, StaticKey: s.HTTP.APIKey, KeyHold: s.Auth.Hold,
		Rate: s.Limits.RequestsPerSecond, Burst: s.Limits.Burst}
	var err error
	if c.Issuer, err = s.issuer(); err != nil {
		return &settingsError{err}
	}
	if s.takesDevTokens(up) {
		if c.Dev, err = auth.MakeDevKey(s.DataDir); err != nil {
			return &settingsError{err}
		}
	}
	if st.conn != nil {
		c.Keys = auth.NewKeyTable(st.conn, st.chconfig.Database)
	}
	st.auth, err = auth.New(ctx, c, auth.Options{Metrics: st.metrics, Logger: st.log})
	return err
}

// wantsStoredKey tells whether nothing but stored API keys can let anybody in.
func (s settings) wantsStoredKey(up bool) bool {
	return s.asks() && !s.verifies() && (s.public() || !s.takesDevTokens(up))
}

// nobodyGetsIn is the fault of doors that ask for a credential which nobody can have.
func (s settings) nobodyGetsIn() error {
	return fmt.Errorf("auth.mode: %s asks for a credential, and nothing can verify one: set EVENHAND_API_KEY or EVENHAND_API_KEY_FILE, or auth.issuer and auth.audience, or make an API key ('evenhand keys create', with an 'up' on 127.0.0.1 for the embedded store) before this start", s.HTTP.Addr)
}

// letsSomebodyIn refuses to start where nothing but stored API keys could let anybody in and there are none.
func (st *stack) letsSomebodyIn(ctx context.Context, up bool) error {
	if !st.settings.wantsStoredKey(up) {
		return nil
	}
	n, err := uint64(0), error(nil)
	if st.conn != nil {
		if n, err = auth.NewKeyTable(st.conn, st.chconfig.Database).Usable(ctx); err != nil {
			st.log.Warn("API keys cannot be counted: nobody is let in until the store answers", "error", err)
			return nil
		}
	}
	if n > 0 {
		return nil
	}
	return &settingsError{st.settings.nobodyGetsIn()}
}

// access says for people at a terminal what callers must show.
func (s settings) access() string {
	token := "evenhand token --tenant " + cmp.Or(s.Tenant.Default, "NAME") + " --role reviewer"
	if !s.asks() {
		return "this machine needs no credential; a token to try roles and tenants: " + token
	}
	var ways []string
	if s.HTTP.APIKey != "" {
		ways = append(ways, "http.api_key")
	}
	if s.Auth.Issuer != "" {
		ways = append(ways, "a token of "+s.Auth.Issuer)
	}
	if s.takesDevTokens(true) {
		ways = append(ways, token)
	}
	return "asks for a credential: " + strings.Join(append(ways, "evenhand keys create"), " · ")
}

// diagnoseAccess looks at what callers must show and who verifies it.
func diagnoseAccess(ctx context.Context, s settings, up bool) (out []diagnosis) {
	add := func(state, what, format string, args ...any) {
		out = append(out, diagnosis{state, what, fmt.Sprintf(format, args...)})
	}
	switch {
	case s.wantsStoredKey(up):
		out = append(out, diagnoseKeys(ctx, s, up))
	case !s.asks():
		add("ok", "access", "nobody is asked: http.addr is on loopback and neither http.api_key nor auth.issuer is set; what is shown is verified")
	case s.HTTP.APIKey != "" && s.Tenant.Default == "":
		add("ok", "access", "a credential is asked for; callers with http.api_key name their tenant in %s, for tenant.default is not set", auth.TenantHeader)
	default:
		add("ok", "access", "a credential is asked for")
	}
	if s.takesDevTokens(up) {
		if s.public() {
			add("warn", "auth.dev_tokens", "whoever reads %s can be anybody, and %s is reachable from outside this machine; set auth.dev_tokens: false", s.DataDir, s.HTTP.Addr)
		}
		if _, err := auth.LoadDevKey(s.DataDir); err != nil && !errors.Is(err, auth.ErrNoDevKey) {
			add("bad", "auth.dev_tokens", "%v", err)
		}
	}
	i, err := s.issuer()
	if err != nil || i == nil {
		return out // said under settings
	}
	if s.Auth.AllowHTTP {
		add("warn", "auth.allow_http", "keys may come over http: whoever can change them on the way can be anybody; mend it with https")
	}
	if len(i.RoleMap) == 0 && strings.HasPrefix(i.RolesClaim, "realm_access") {
		add("warn", "auth.role_map", "roles of a whole realm are taken by our names: its own 'admin' is ours; translate with auth.role_map")
	}
	p, err := i.Probe(ctx)
	switch {
	case err != nil:
		add("bad", "auth.issuer", "%v", err)
	case p.Skew.Abs() > 30*time.Second:
		add("warn", "auth.issuer", "%s answers; this machine's clock is %v off its clock, and beyond 60s good tokens are refused: set the clock by NTP", i.URL, p.Skew)
	default:
		add("ok", "auth.issuer", "%s, %s", i.URL, count(p.Keys, "key"))
	}
	return out
}

// diagnoseKeys looks whether there is a stored API key, where nothing else lets anybody in.
func diagnoseKeys(ctx context.Context, s settings, up bool) diagnosis {
	cfg, n, err := s.clickhouse(), uint64(0), error(nil)
	if up {
		var p engine.Endpoint
		if p, err = engine.Running(engineDir(s), engine.Writer); err == nil {
			cfg = p.Config()
		}
	}
	if err == nil {
		n, err = countKeys(ctx, cfg)
	}
	switch {
	case err != nil:
		return diagnosis{"warn", "access", fmt.Sprintf("only a stored API key lets anybody in, and whether there is one cannot be seen: %v", err)}
	case n == 0:
		return diagnosis{"bad", "access", s.nobodyGetsIn().Error()}
	}
	return diagnosis{"ok", "access", fmt.Sprintf("a credential is asked for: %s let callers in", count(int(n), "stored API key"))}
}

// countKeys counts the API keys that can be used; a store without tables has none.
func countKeys(ctx context.Context, cfg chconn.Config) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := chconn.Open(cfg)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	n, err := auth.NewKeyTable(conn, cfg.Database).Usable(ctx)
	if notMigrated(err) {
		return 0, nil
	}
	return n, err
}
