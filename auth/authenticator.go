package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/internal/secret"
)

// TenantHeader names the tenant of a request whose credential is bound to none; beside one that is, it
// must agree.
const TenantHeader = "X-Evenhand-Tenant"

// Config says which credentials are taken. What is not set is refused.
type Config struct {
	// Required refuses callers that show no credential. Otherwise they are anonymous and may do everything,
	// which is for listeners on loopback only. A credential that is shown is verified either way.
	Required      bool
	DefaultTenant string      // of callers whose credential is bound to none and who name none
	StaticKey     secret.Text // all permissions
	Issuer        *Issuer
	Dev           *DevKey
	Keys          KeyStore      // API keys; nil: this process has no store
	KeyHold       time.Duration // cached API keys hold so long while the store is away
	// Rate and Burst are requests a second and at once of one tenant; a rate of 0 is no limit.
	Rate  float64
	Burst int
}

// Metrics counts who was let in and why not.
type Metrics interface {
	// Authenticated counts one request: the kind of credential (token, dev_token, api_key, static_key, none)
	// and ok or a [Reason].
	Authenticated(credential, outcome string)
}

// Options are what the program sets. The zero value works.
type Options struct {
	Metrics Metrics      // nil counts nothing
	Logger  *slog.Logger // nil logs nothing
	Client  *http.Client // to the issuer; nil: a careful one
	Now     func() time.Time
	// LookEvery is how often streams look at their credential; 0 every two seconds.
	LookEvery time.Duration
}

// Validate reports every fault of an issuer at once, with the operator's keys.
func (i *Issuer) Validate() error {
	var errs []error
	if i.URL == "" {
		errs = append(errs, errors.New("auth.issuer: is missing; it is the iss of the tokens, and what auth.jwks_url signs must name it"))
	} else if err := i.reachable(i.URL); err != nil && i.JWKSURL == "" { // else it is a name and nothing more
		errs = append(errs, fmt.Errorf("auth.issuer: %w", err))
	}
	if i.URL == DevIssuer {
		errs = append(errs, fmt.Errorf("auth.issuer: %s is the development key's", DevIssuer))
	}
	if i.JWKSURL != "" {
		if err := i.reachable(i.JWKSURL); err != nil {
			errs = append(errs, fmt.Errorf("auth.jwks_url: %w", err))
		}
	}
	if len(i.Audience) == 0 || slices.Contains(i.Audience, "") {
		errs = append(errs, errors.New("auth.audience: is missing; it is what the issuer writes into aud for us, so that tokens for other services are refused"))
	}
	if i.TenantClaim == "" {
		errs = append(errs, errors.New("auth.tenant_claim: is empty"))
	}
	if i.RolesClaim == "" {
		errs = append(errs, errors.New("auth.roles_claim: is empty"))
	}
	for theirs, ours := range i.RoleMap {
		if _, ok := grants[ours]; !ok || theirs == "" {
			errs = append(errs, fmt.Errorf("auth.role_map: %q=%q wants theirs=ours, ours one of %s", theirs, ours, audit.List(Roles)))
		}
	}
	if i.Hold < time.Minute || i.Hold > 24*time.Hour {
		errs = append(errs, fmt.Errorf("auth.hold: %v is not in 1m..24h", i.Hold))
	}
	return errors.Join(errs...)
}

// Authenticator tells who a request comes from. Safe for concurrent use.
type Authenticator struct {
	cfg     Config
	static  [sha256.Size]byte
	issuer  *verifier
	keyset  *held[*keySet] // the issuer's
	dev     *verifier
	keys    *apiKeys
	limits  *limiter
	metrics Metrics
	log     *slog.Logger
	now     func() time.Time
	// lookEvery is how often streams look at their credential.
	lookEvery time.Duration
}

// New makes an authenticator and begins to fetch the issuer's keys; an issuer that does not answer yet is
// no fault. Close it.
func New(ctx context.Context, c Config, o Options) (*Authenticator, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = issuerHTTP()
	}
	if o.LookEvery <= 0 {
		o.LookEvery = lookEvery
	}
	a := &Authenticator{cfg: c, static: sha256.Sum256([]byte(c.StaticKey.Reveal())), metrics: o.Metrics, log: o.Logger, limits: newLimiter(c.Rate, c.Burst, o.Now),
		now: o.Now, lookEvery: o.LookEvery}
	if c.DefaultTenant != "" && !ValidTenant(c.DefaultTenant) {
		return nil, audit.E("auth", audit.KindInvalid, errors.New("tenant.default: wants 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"))
	}
	if c.Issuer != nil {
		if err := c.Issuer.Validate(); err != nil {
			return nil, audit.E("auth", audit.KindInvalid, err)
		}
		var err error
		if a.issuer, a.keyset, err = newIssuerVerifier(*c.Issuer, o.Client, o.Now, a.changed("issuer's keys")); err != nil {
			return nil, err
		}
		a.keyset.start(ctx)
	}
	if c.Dev != nil {
		a.dev = newDevVerifier(c.Dev, o.Now)
	}
	if c.Keys != nil {
		a.keys = newAPIKeys(c.Keys, c.KeyHold, o.Now, a.changed("API keys"))
	}
	return a, nil
}

// changed logs when keys can no longer be fetched, and when they can again.
func (a *Authenticator) changed(what string) func(error) {
	return func(err error) {
		if err != nil {
			a.log.Warn("keys cannot be fetched: cached ones hold for auth.hold, then everybody who needs them is refused", "keys", what, "error", err)
		} else {
			a.log.Info("keys are fetched again", "keys", what)
		}
	}
}

// Close ends what is under way towards issuer and store.
func (a *Authenticator) Close() {
	if a.keyset != nil {
		a.keyset.close()
	}
	if a.keys != nil {
		a.keys.held.close()
	}
}

// Authenticate tells who a request comes from; its errors are a [Denied] (see [DeniedBy]). The principal's
// tenant is the credential's; where that is bound to none, the header's, else tenant.default, else "".
func (a *Authenticator) Authenticate(r *http.Request) (*Principal, error) {
	return a.decide(r, func(*Principal) error { return nil })
}

// Any is no permission in particular: what an operation wants is asked for further in.
const Any Permission = ""

// Admit authenticates a request, asks for a permission and counts it against its tenant's rate.
func (a *Authenticator) Admit(r *http.Request, what Permission) (*Principal, error) {
	return a.decide(r, func(p *Principal) error {
		if what != Any && !p.Can(what) {
			return forbidden(NoPermission, "this wants the permission %s, which your roles or your key do not have", what)
		}
		after, ok := a.limits.take(p.Tenant)
		if ok {
			return nil
		}
		err := deny(http.StatusTooManyRequests, RateLimited, "more than limits.requests_per_second of one tenant; try again after the time in Retry-After")
		DeniedBy(err).After = after
		return err
	})
}

// decide identifies, places and asks more; every request is counted once.
func (a *Authenticator) decide(r *http.Request, more func(*Principal) error) (*Principal, error) {
	p, kind, err := a.identify(r)
	if err == nil {
		err = a.place(p, r)
	}
	if err == nil {
		err = more(p)
	}
	a.count(kind, err)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Middleware serves next to callers with a permission and a tenant, who then stand in the request's context
// (see [From]). refuse answers all others; nil answers like the doors do.
//
// This is how the endpoint /graphql is mounted, where each operation wants a permission of its own:
//
//	mux.Handle("/graphql", authenticator.Middleware(auth.Any, auth.GraphQL, endpoint))
//
// Its resolvers ask auth.From(ctx).Can. Behind it From is never nil, and its Tenant is never empty. A
// stream is admitted once, when it is opened, and looks at its credential again by [NewWatch].
func (a *Authenticator) Middleware(what Permission, refuse func(http.ResponseWriter, *http.Request, *Denied), next http.Handler) http.Handler {
	if refuse == nil {
		refuse = answer
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := a.Admit(r, what)
		if err == nil && p.Tenant == "" {
			err = NoTenant()
		}
		if err != nil {
			d := DeniedBy(err)
			d.Challenge(w.Header())
			refuse(w, r, d)
			return
		}
		ctx := With(r.Context(), p)
		if p.Subject != subjectAnonymous {
			ctx = context.WithValue(ctx, admissionKey{}, &admission{a, r, p.Until})
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// GraphQL is a refuse of [Authenticator.Middleware] that answers in GraphQL's form, with the status of the
// refusal: extensions hold a code (UNAUTHENTICATED, FORBIDDEN, BAD_USER_INPUT, OVERLOADED, UNAVAILABLE) and the reason.
func GraphQL(w http.ResponseWriter, _ *http.Request, d *Denied) {
	code := d.Code()
	switch d.Status {
	case http.StatusUnauthorized:
		code = "UNAUTHENTICATED"
	case http.StatusBadRequest:
		code = "BAD_USER_INPUT"
	}
	reply.JSON(w, d.Status, map[string]any{"errors": []any{map[string]any{"message": d.Say, "extensions": map[string]any{"code": code, "reason": d.Reason}}}})
}

// NoTenant refuses a caller who may name a tenant and named none.
func NoTenant() error {
	return deny(http.StatusBadRequest, BadTenant, "no tenant: name one in the header %s, or configure tenant.default", TenantHeader)
}

// Code is the answer's code for the doors.
func (d *Denied) Code() string {
	switch d.Status {
	case http.StatusUnauthorized:
		return reply.Unauthorized
	case http.StatusForbidden:
		return reply.Forbidden
	case http.StatusTooManyRequests:
		return reply.Overloaded
	case http.StatusServiceUnavailable:
		return reply.Unavailable
	}
	return reply.BadRequest
}

func answer(w http.ResponseWriter, _ *http.Request, d *Denied) {
	reply.Fail(w, reply.NewFault(d.Status, d.Code(), d.Say, map[string]any{"reason": d.Reason}))
}

// identify verifies the credential; kind is what metrics call it.
func (a *Authenticator) identify(r *http.Request) (p *Principal, kind string, err error) {
	raw, err := credential(r.Header, a.cfg.Required)
	switch {
	case err != nil:
		return nil, "none", err
	case raw == "" && a.cfg.Required:
		return nil, "none", unauthorized(NoCredential, "send a token or an API key as Authorization: Bearer … (an API key also as X-API-Key)")
	case raw == "":
		if err := fromHere(r); err != nil {
			return nil, "none", err
		}
		return &Principal{Subject: subjectAnonymous, May: all()}, "none", nil
	}
	// Hashes are compared in constant time: neither the key's length nor its start can be timed.
	if given := sha256.Sum256([]byte(raw)); a.cfg.StaticKey != "" && subtle.ConstantTimeCompare(given[:], a.static[:]) == 1 {
		return &Principal{Subject: subjectStatic, May: all(), Verified: true}, "static_key", nil
	}
	switch {
	case strings.HasPrefix(raw, keyPrefix):
		if a.keys == nil {
			return nil, "api_key", noStore()
		}
		p, err = a.keys.principal(r.Context(), raw)
		return p, "api_key", err
	case strings.Contains(raw, "."):
		return a.token(r.Context(), raw)
	}
	return nil, "static_key", unauthorized(WrongKey, "the key is not known: it is neither http.api_key, nor an API key (evh_…), nor a token")
}

// Ours tells whether a credential is for us: an API key, the static key, or a token for us of an issuer whose tokens are taken; that issuer's
// tokens for others are not. It does not say that the credential holds. Where others' credentials come the same way, ours must not be taken for theirs and sent on.
func (a *Authenticator) Ours(credential string) bool {
	if given := sha256.Sum256([]byte(credential)); a.cfg.StaticKey != "" && subtle.ConstantTimeCompare(given[:], a.static[:]) == 1 {
		return true
	}
	if strings.HasPrefix(credential, keyPrefix) {
		return true
	}
	issuer, err := peek(credential)
	if err != nil || a.issuer == nil || issuer != a.issuer.issuer {
		return err == nil && issuer == DevIssuer
	}
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(credential, claims); err != nil {
		return true
	}
	meant, err := claims.GetAudience()
	return err != nil || slices.ContainsFunc(meant, func(who string) bool { return slices.Contains(a.issuer.audience, who) })
}

// token lets the verifier of the token's issuer decide.
func (a *Authenticator) token(ctx context.Context, raw string) (p *Principal, kind string, err error) {
	issuer, err := peek(raw)
	if err != nil {
		return nil, "token", err
	}
	switch {
	case issuer == DevIssuer && a.dev == nil:
		return nil, "dev_token", unauthorized(DevTokensOff, "development tokens are not taken here; auth.dev_tokens takes them")
	case issuer == DevIssuer:
		p, err = a.dev.principal(ctx, raw)
		return p, "dev_token", err
	case a.issuer == nil:
		return nil, "token", unauthorized(WrongIssuer, "no issuer of tokens is configured (auth.issuer)")
	case issuer != a.issuer.issuer: // before keys are asked for: strangers' tokens cost the issuer nothing
		return nil, "token", unauthorized(WrongIssuer, "the token is of another issuer than auth.issuer")
	}
	p, err = a.issuer.principal(ctx, raw)
	return p, "token", err
}

// place gives the principal its tenant, by the rule: credential, then header, then tenant.default.
func (a *Authenticator) place(p *Principal, r *http.Request) error {
	var given []string
	for _, s := range r.Header.Values(TenantHeader) {
		if s = strings.TrimSpace(s); s != "" {
			given = append(given, s)
		}
	}
	switch {
	case len(given) > 1 || len(given) == 1 && !ValidTenant(given[0]):
		return deny(http.StatusBadRequest, BadTenant, "header %s wants one name of 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit", TenantHeader)
	case p.Tenant != "" && len(given) == 1 && given[0] != p.Tenant:
		return forbidden(TenantMismatch, "the header %s names another tenant than your credential", TenantHeader)
	case p.Tenant == "" && len(given) == 1:
		p.Tenant = given[0]
	case p.Tenant == "":
		p.Tenant = a.cfg.DefaultTenant
		p.Assumed = true
	}
	return nil
}

func (a *Authenticator) count(kind string, err error) {
	if a.metrics == nil {
		return
	}
	outcome := "ok"
	if err != nil {
		outcome = string(DeniedBy(err).Reason)
	}
	a.metrics.Authenticated(kind, outcome)
}

// all are the permissions of who may do everything.
func all() []Permission { return slices.Clone(everything) }

var everything = slices.Sorted(slices.Values(Permissions))
