package gateway

import (
	"net/http"
	"strings"

	"github.com/evenhand/evenhand/auth"
)

// KeyHeader carries the caller's credential for us where Authorization is the provider's.
const KeyHeader = "X-Evenhand-Key"

// caller is who calls and whether what else the request shows is for the provider.
type caller struct {
	tenant  string
	subject string                  // as package auth names callers
	theirs  bool                    // Authorization (or the upstream's key header) is the provider's
	ours    func(value string) bool // tells a credential of ours, which no provider gets
}

// bare is a credential without its scheme.
func bare(value string) string {
	if _, token, ok := strings.Cut(strings.TrimSpace(value), " "); ok {
		return strings.TrimSpace(token)
	}
	return strings.TrimSpace(value)
}

// admit tells our credential from the provider's and lets the caller in.
//
//   - X-Evenhand-Key is ours; Authorization is then the provider's.
//   - Without it, Authorization is ours where keys of providers are held here, and goes no further.
//   - Where nobody is asked for a credential (on loopback), Authorization is the provider's, unless it is a key or token
//     of ours, which never leave.
func (g *Gateway) admit(r *http.Request) (caller, *fault) {
	asked := r.Clone(r.Context())
	ours, given := r.Header.Get(KeyHeader), r.Header.Get("Authorization")
	token := bare(given)
	c := caller{theirs: true, ours: func(value string) bool { return g.Auth != nil && g.Auth.Ours(bare(value)) }}
	switch {
	case ours != "":
		asked.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ours))
		asked.Header.Del("X-Api-Key")
	case token != "" && c.ours(token):
		c.theirs = false
		asked.Header.Del("X-Api-Key")
	case g.Open:
		asked.Header.Del("Authorization")
		asked.Header.Del("X-Api-Key")
	case g.held:
		c.theirs = false
	default:
		return c, &fault{status: http.StatusUnauthorized, kind: kindAuth, code: "evenhand_no_credential",
			say: "send our key or token as " + KeyHeader + " beside the provider's key in Authorization"}
	}
	if g.Auth == nil {
		return c, &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: "evenhand_unavailable", say: "nobody is let in: authentication is not set up"}
	}
	p, err := g.Auth.Admit(asked, auth.Guard)
	if err == nil && p.Tenant == "" {
		err = auth.NoTenant()
	}
	if err != nil {
		return c, denied(err)
	}
	c.tenant, c.subject = p.Tenant, p.Subject
	return c, nil
}
