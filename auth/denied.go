package auth

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Reason says for machines why a request was not let in; metrics count by it.
type Reason string

// Reasons with status 401: the credential.
const (
	NoCredential  Reason = "no_credential"
	Malformed     Reason = "malformed"
	TooLarge      Reason = "too_large"
	BadAlgorithm  Reason = "bad_algorithm" // not on the list, or the key is of another type
	UnknownKey    Reason = "unknown_key"   // the issuer has no such signing key
	BadSignature  Reason = "bad_signature"
	TokenExpired  Reason = "token_expired"
	NotYetValid   Reason = "token_not_yet_valid"
	WrongIssuer   Reason = "wrong_issuer"
	WrongAudience Reason = "wrong_audience"
	MissingClaim  Reason = "missing_claim" // exp or sub
	DevTokensOff  Reason = "dev_tokens_off"
	UnknownKeyID  Reason = "unknown_key_id" // no API key of this id, or another secret
	KeyRevoked    Reason = "key_revoked"
	KeyExpired    Reason = "key_expired"
	NoKeyStore    Reason = "no_key_store" // this process has no store to find API keys in
	WrongKey      Reason = "wrong_key"    // neither the static key nor an API key nor a token
)

// Reasons with status 403: the credential is good, and does not reach so far.
const (
	NoTenantClaim  Reason = "no_tenant"
	NoRole         Reason = "no_role"
	NoPermission   Reason = "no_permission"
	TenantMismatch Reason = "tenant_mismatch"
	ForeignHost    Reason = "foreign_host" // while authentication is off
	CrossSite      Reason = "cross_site"   // the same
)

// Others: 400, 429 and 503.
const (
	BadTenant       Reason = "bad_tenant"
	RateLimited     Reason = "rate_limited"
	KeysUnavailable Reason = "keys_unavailable" // the issuer or the store does not answer and what was cached is too old
)

// Denied is why a request was not let in. It never holds any part of a credential. It travels inside an
// [audit.Error]: unavailable for 503, overloaded for 429, else invalid; errors.As finds it.
type Denied struct {
	Status int // 400, 401, 403, 429, 503
	Reason Reason
	Say    string        // for the caller: what is wrong and the mend
	After  time.Duration // with 429 and 503: when to try again
}

func (d *Denied) Error() string { return d.Say }

// deny makes the error of a refusal.
func deny(status int, reason Reason, format string, args ...any) error {
	d := &Denied{Status: status, Reason: reason, Say: fmt.Sprintf(format, args...)}
	kind := audit.KindInvalid
	switch status {
	case http.StatusTooManyRequests:
		kind = audit.KindOverloaded
	case http.StatusServiceUnavailable:
		kind, d.After = audit.KindUnavailable, 5*time.Second
	}
	return audit.E("auth", kind, d)
}

func unauthorized(reason Reason, format string, args ...any) error {
	return deny(http.StatusUnauthorized, reason, format, args...)
}

func forbidden(reason Reason, format string, args ...any) error {
	return deny(http.StatusForbidden, reason, format, args...)
}

// DeniedBy gives the refusal in an error of this package. An error of any other kind becomes a 503
// without a word of its own.
func DeniedBy(err error) *Denied {
	var d *Denied
	if errors.As(err, &d) {
		return d
	}
	return &Denied{http.StatusServiceUnavailable, KeysUnavailable, "who you are cannot be looked up at the moment; try again", 5 * time.Second}
}

// Challenge sets the headers that belong to a refusal: WWW-Authenticate (RFC 6750) and Retry-After.
func (d *Denied) Challenge(h http.Header) {
	switch d.Status {
	case http.StatusUnauthorized:
		value := `Bearer realm="evenhand"`
		if d.Reason != NoCredential { // without a credential no error is named
			value += fmt.Sprintf(`, error="invalid_token", error_description="%s"`, d.Reason)
		}
		h.Set("WWW-Authenticate", value)
	case http.StatusForbidden:
		if d.Reason == NoPermission {
			h.Set("WWW-Authenticate", `Bearer realm="evenhand", error="insufficient_scope"`)
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", fmt.Sprint(max(1, int((d.After+time.Second-1)/time.Second))))
	}
}
