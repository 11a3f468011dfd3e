package auth

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// claim finds a claim: by its name as a whole, for names that are URLs, else by a path with dots through
// objects ("realm_access.roles"). Names of objects may hold dots themselves.
func claim(claims map[string]any, path string) (any, bool) {
	if v, ok := claims[path]; ok {
		return v, true
	}
	for i, r := range path {
		if r != '.' {
			continue
		}
		if inner, ok := claims[path[:i]].(map[string]any); ok {
			if v, found := claim(inner, path[i+1:]); found {
				return v, true
			}
		}
	}
	return nil, false
}

// texts gives a claim as a list: an array of strings, or one string with spaces between, as in scope.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return strings.Fields(v)
	case []any:
		for _, each := range v {
			if s, ok := each.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// tenantOf reads the tenant of a token: a string, or an array of one.
func tenantOf(claims map[string]any, path string) (string, error) {
	v, ok := claim(claims, path)
	if list, isList := v.([]any); isList && len(list) == 1 {
		v = list[0]
	}
	s, isText := v.(string)
	switch {
	case !ok || v == nil || isText && s == "":
		return "", forbidden(NoTenantClaim, "the token has no claim %s, which names the tenant; let the issuer add it, or name another with auth.tenant_claim", path)
	case !isText || !ValidTenant(s):
		return "", forbidden(NoTenantClaim, "the token's claim %s is no tenant: it wants one string of 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit", path)
	}
	return s, nil
}

// rolesOf reads the roles of a token that we know, each once, in the order of [Roles].
func rolesOf(claims map[string]any, path string, mapped map[string]Role) ([]Role, error) {
	v, ok := claim(claims, path)
	if !ok {
		return nil, forbidden(NoRole, "the token has no claim %s, which lists roles; let the issuer add it, or name another with auth.roles_claim", path)
	}
	var out []Role
	for _, theirs := range texts(v) {
		ours := Role(theirs)
		if len(mapped) > 0 {
			ours = mapped[theirs]
		}
		if _, known := grants[ours]; known && !slices.Contains(out, ours) {
			out = append(out, ours)
		}
	}
	if len(out) == 0 {
		return nil, forbidden(NoRole, "the token's claim %s names none of the roles viewer, reviewer, admin, service, approver; give one, or translate theirs with auth.role_map", path)
	}
	slices.SortFunc(out, func(a, b Role) int { return slices.Index(Roles, a) - slices.Index(Roles, b) })
	return out, nil
}

// may unites what roles may do, sorted.
func may(roles []Role) (out []Permission) {
	for _, r := range roles {
		out = append(out, grants[r]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Subjects of callers that no issuer vouches for. A token may not bear one: what it leaves behind must be its own.
const (
	subjectStatic    = "static-key"
	subjectAnonymous = "anonymous"
	subjectKey       = "key:" // before an API key's id
)

const maxSubject = 256 // bytes

// validSubject tells whether a token's subject may name its bearer in what it leaves behind.
func validSubject(s string) bool {
	return s != "" && len(s) <= maxSubject && s != subjectStatic && s != subjectAnonymous && !strings.HasPrefix(s, subjectKey) &&
		utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// ValidTenant tells whether s is a tenant's name, by the rule of package ingest.
func ValidTenant(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !word && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return true
}
