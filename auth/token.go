package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"github.com/evenhand/evenhand/audit"
)

// algorithms are those of signatures that we take. None with a shared secret: with one, whoever can verify
// can forge, and a public key could be passed off as the secret.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"}

const (
	maxCredential = 16 << 10 // bytes of a token or key
	leeway        = time.Minute
)

// verifier takes the tokens of one issuer.
type verifier struct {
	issuer   string
	audience []string
	parser   *jwt.Parser
	// key finds the key of a token; its errors are refusals.
	key                     func(context.Context, *jwt.Token) (any, error)
	tenantClaim, rolesClaim string
	roleMap                 map[string]Role
}

func newVerifier(issuer string, audience []string, now func() time.Time) *verifier {
	return &verifier{issuer: issuer, audience: audience, parser: jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithLeeway(leeway), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithIssuer(issuer), jwt.WithAudience(audience...), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now))}
}

// principal verifies a token whose issuer has been looked at.
func (v *verifier) principal(ctx context.Context, raw string) (*Principal, error) {
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(raw, claims, func(t *jwt.Token) (any, error) { return v.key(ctx, t) })
	if err != nil {
		return nil, refused(err, claims)
	}
	sub, err := claims.GetSubject()
	if err != nil || !validSubject(sub) {
		return nil, unauthorized(MissingClaim, "the token's claim sub is missing, is longer than %d bytes, or is a name that is reserved", maxSubject)
	}
	tenant, err := tenantOf(claims, v.tenantClaim)
	if err != nil {
		return nil, err
	}
	roles, err := rolesOf(claims, v.rolesClaim, v.roleMap)
	if err != nil {
		return nil, err
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return nil, unauthorized(MissingClaim, "the token has no claim exp: it would hold for ever")
	}
	return &Principal{Tenant: tenant, Subject: sub, Roles: roles, May: may(roles), Verified: true, Until: exp.Add(leeway)}, nil
}

// refused turns an error of the parser into a refusal: the first of these that holds. Its text is not
// passed on: it quotes the token.
func refused(err error, claims jwt.MapClaims) error {
	var d *Denied
	switch {
	case errors.As(err, &d):
		return err // the key's
	case errors.Is(err, jwt.ErrTokenMalformed):
		return unauthorized(Malformed, "the token cannot be read")
	case errors.Is(err, jwt.ErrTokenSignatureInvalid) || errors.Is(err, jwt.ErrTokenUnverifiable):
		return unauthorized(BadSignature, "the token's signature is not that of its issuer")
	case errors.Is(err, jwt.ErrTokenExpired):
		return unauthorized(TokenExpired, "the token has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet) || errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return unauthorized(NotYetValid, "the token is not valid yet; look at the clocks (60 s are allowed)")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return unauthorized(WrongAudience, "the token is for another audience; it wants auth.audience in its claim aud")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return unauthorized(WrongIssuer, "the token is of another issuer than auth.issuer")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing) && claims["exp"] == nil:
		return unauthorized(MissingClaim, "the token has no claim exp: it would hold for ever")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return unauthorized(WrongAudience, "the token has no claim aud, which must name auth.audience")
	}
	return unauthorized(Malformed, "a claim of the token is of the wrong type")
}

// peek reads a token's issuer before anything is verified, to choose who verifies it, and refuses what no
// verifier would take, without asking an issuer for keys.
func peek(raw string) (issuer string, err error) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return "", unauthorized(Malformed, "the token is not of the form header.claims.signature")
	}
	var header struct {
		Alg  *string         `json:"alg"`
		Kid  json.RawMessage `json:"kid"`
		Crit json.RawMessage `json:"crit"`
	}
	var claims struct {
		Issuer any `json:"iss"`
	}
	if !segment(parts[0], &header) || !segment(parts[1], &claims) || header.Alg == nil {
		return "", unauthorized(Malformed, "the token cannot be read")
	}
	var kid string
	switch {
	case !slices.Contains(algorithms, *header.Alg):
		return "", unauthorized(BadAlgorithm, "the token is signed by an algorithm that is not taken; taken are %s", strings.Join(algorithms, ", "))
	case header.Kid != nil && json.Unmarshal(header.Kid, &kid) != nil:
		return "", unauthorized(Malformed, "the token's kid is not a string")
	case header.Crit != nil: // RFC 7515, section 4.1.11: what we do not understand must not be passed over
		return "", unauthorized(Malformed, "the token has critical headers, which are not taken")
	}
	issuer, _ = claims.Issuer.(string)
	return issuer, nil
}

func segment(s string, into any) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && json.Unmarshal(b, into) == nil
}

// issuerKeys are the cached keys of an issuer, as keyfunc wants them: a kid that is not there is looked
// for once more, in keys fetched anew.
type issuerKeys struct {
	jwkset.Storage // what is not about reading; never called
	held           *held[*keySet]
}

// newIssuerVerifier takes the tokens of an OpenID Connect issuer. Close the held keys after use.
func newIssuerVerifier(i Issuer, client *http.Client, now func() time.Time, changed func(error)) (*verifier, *held[*keySet], error) {
	keys := &held[*keySet]{
		fetch: func(ctx context.Context) (*keySet, error) { return i.keys(ctx, client) },
		fresh: 10 * time.Minute, stale: 20 * time.Minute, hold: i.Hold, gap: 5 * time.Second,
		limit: 2 * fetchLimit, patience: time.Second, now: now, changed: changed, // discovery and keys
	}
	keys.fresh, keys.stale = min(keys.fresh, i.Hold), min(keys.stale, i.Hold)
	find, err := keyfunc.New(keyfunc.Options{Storage: &issuerKeys{jwkset.NewMemoryStorage(), keys}})
	if err != nil {
		return nil, nil, audit.E("auth: issuer", audit.KindInternal, err)
	}
	v := newVerifier(i.URL, i.Audience, now)
	v.tenantClaim, v.rolesClaim, v.roleMap = i.TenantClaim, i.RolesClaim, i.RoleMap
	v.key = func(ctx context.Context, t *jwt.Token) (any, error) {
		key, err := find.KeyfuncCtx(ctx)(t)
		var d *Denied
		switch {
		case errors.As(err, &d):
			return nil, err
		case err != nil: // the key names another alg than the token
			return nil, unauthorized(BadAlgorithm, "the issuer's key is for another algorithm than the token's")
		}
		if set, several := key.(jwt.VerificationKeySet); several { // no kid
			set.Keys = slices.DeleteFunc(set.Keys, func(k jwt.VerificationKey) bool { return !fits(t.Method.Alg(), k) })
			if len(set.Keys) == 0 {
				return nil, unauthorized(BadAlgorithm, "the issuer has no key for the token's algorithm")
			}
			return set, nil
		}
		if !fits(t.Method.Alg(), key) {
			return nil, unauthorized(BadAlgorithm, "the issuer's key is of another type than the token's algorithm wants")
		}
		return key, nil
	}
	return v, keys, nil
}

// KeyRead implements jwkset.Storage.
func (k *issuerKeys) KeyRead(ctx context.Context, kid string) (jwkset.JWK, error) {
	set, n, err := k.held.get(ctx)
	if err != nil {
		return jwkset.JWK{}, unavailable("the issuer's keys")
	}
	key, err := set.KeyRead(ctx, kid)
	if err == nil {
		return key, nil
	}
	set, anew, err := k.held.newer(ctx, n)
	if anew {
		if key, err := set.KeyRead(ctx, kid); err == nil {
			return key, nil
		}
	} else if err != nil { // perhaps a new key: nobody can tell while the issuer is away
		return jwkset.JWK{}, unavailable("the issuer's keys")
	}
	return jwkset.JWK{}, unauthorized(UnknownKey, "the issuer has no key of the token's kid")
}

// KeyReadAll implements jwkset.Storage, for tokens without a kid.
func (k *issuerKeys) KeyReadAll(ctx context.Context) ([]jwkset.JWK, error) {
	set, _, err := k.held.get(ctx)
	if err != nil {
		return nil, unavailable("the issuer's keys")
	}
	return set.KeyReadAll(ctx)
}

func unavailable(what string) error {
	return deny(http.StatusServiceUnavailable, KeysUnavailable, "%s cannot be fetched and what was cached is too old; try again", what)
}
