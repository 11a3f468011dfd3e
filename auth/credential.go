package auth

import (
	"net"
	"net/http"
	"strings"
)

// credential gives what a caller shows: Authorization: Bearer … or X-API-Key, any kind in either. "" is none; an empty
// one, of a client whose variable is not set, is none where nobody is asked.
func credential(h http.Header, asked bool) (string, error) {
	given, keys := h.Values("Authorization"), h.Values("X-API-Key")
	switch {
	case len(given)+len(keys) == 0:
		return "", nil
	case len(given)+len(keys) > 1:
		return "", unauthorized(Malformed, "send one credential, in Authorization or in X-API-Key")
	}
	var raw string
	if len(keys) == 1 {
		raw = strings.TrimSpace(keys[0])
	} else {
		scheme, token, _ := strings.Cut(given[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", unauthorized(Malformed, "Authorization wants the scheme Bearer")
		}
		raw = strings.TrimSpace(token)
	}
	switch {
	case raw == "" && asked:
		return "", unauthorized(Malformed, "the credential is empty")
	case len(raw) > maxCredential:
		return "", unauthorized(TooLarge, "the credential has more than %d bytes", maxCredential)
	}
	return raw, nil
}

// crossOrigin refuses requests that another site's page makes, by Sec-Fetch-Site or Origin.
var crossOrigin http.CrossOriginProtection

// fromHere refuses what a page in this machine's browser could send for somebody else: while authentication
// is off, being on this machine is the only credential.
func fromHere(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if !Loopback(host) { // a name of a stranger's that resolves to 127.0.0.1: DNS rebinding
		return forbidden(ForeignHost, "authentication is off, so only requests to localhost or 127.0.0.1 are taken; behind a proxy configure auth.issuer or http.api_key")
	}
	if crossOrigin.Check(r) != nil {
		return forbidden(CrossSite, "authentication is off, so requests from pages of other origins are refused; configure auth.issuer or http.api_key")
	}
	return nil
}
