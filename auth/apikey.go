package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/secret"
)

// An API key is evh_ID_SECRET: 16 characters of id, 52 of secret (32 random bytes) and 7 of a checksum over
// all before them, so that a typo is told from a wrong key without a look at the store.
const (
	keyPrefix   = "evh_"
	keyIDLen    = 16
	keySecret   = 52
	keySum      = 7
	keyBodyLen  = len(keyPrefix) + keyIDLen + 1 + keySecret
	maxKeyName  = 100 // bytes
	maxLiveKeys = 100_000
)

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// APIKey is a machine's key as it is stored: without its secret.
type APIKey struct {
	ID      string       `json:"id"`
	Tenant  string       `json:"tenant"`
	Name    string       `json:"name"`
	Scopes  []Permission `json:"scopes"`
	Created time.Time    `json:"created_at"`
	By      string       `json:"created_by"`
	Expires time.Time    `json:"expires_at,omitzero"` // zero: never
	Revoked time.Time    `json:"revoked_at,omitzero"` // zero: not
	RevBy   string       `json:"revoked_by,omitempty"`

	// hash is SHA-256 of the whole key. The secret has 256 random bits: nobody can try them all, so a slow
	// hash, which passwords need, would cost each request and gain nothing.
	hash [sha256.Size]byte
}

// NewAPIKey makes a key; secret is shown to its owner once and kept nowhere.
func NewAPIKey(tenant, name string, scopes []Permission, by string, now, expires time.Time) (k APIKey, key secret.Text, err error) {
	var errs []error
	if !ValidTenant(tenant) {
		errs = append(errs, errors.New("tenant: wants 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"))
	}
	if name == "" || len(name) > maxKeyName || strings.ContainsFunc(name, unicode.IsControl) {
		errs = append(errs, fmt.Errorf("name: wants 1 to %d bytes that say whose key it is", maxKeyName))
	}
	if len(scopes) == 0 {
		errs = append(errs, fmt.Errorf("scope: is missing; there are %s", audit.List(Permissions)))
	}
	for _, s := range scopes {
		if !slices.Contains(Permissions, s) {
			errs = append(errs, fmt.Errorf("scope: %q is not one of %s", s, audit.List(Permissions)))
		}
	}
	if !expires.IsZero() && !expires.After(now) {
		errs = append(errs, errors.New("expires: is not in the future"))
	}
	if err := errors.Join(errs...); err != nil {
		return k, "", audit.E("auth: key", audit.KindInvalid, err)
	}
	var random [10 + 32]byte
	_, _ = rand.Read(random[:]) // never fails
	id := base32Lower.EncodeToString(random[:10])
	body := keyPrefix + id + "_" + base32Lower.EncodeToString(random[10:])
	raw := body + checksum(body)
	scopes = slices.Compact(slices.Sorted(slices.Values(scopes)))
	return APIKey{ID: id, Tenant: tenant, Name: name, Scopes: scopes, Created: now.UTC(), By: by, Expires: expires, hash: sha256.Sum256([]byte(raw))}, secret.Text(raw), nil
}

func checksum(body string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return base32Lower.EncodeToString(sum[:])
}

// parseKey reads the id of a key; its errors are refusals.
func parseKey(raw string) (id string, err error) {
	body, id := "", ""
	if len(raw) == keyBodyLen+keySum {
		body, id = raw[:keyBodyLen], raw[len(keyPrefix):len(keyPrefix)+keyIDLen]
	}
	if body == "" || !strings.HasPrefix(raw, keyPrefix) || body[len(keyPrefix)+keyIDLen] != '_' || raw[keyBodyLen:] != checksum(body) || !ValidKeyID(id) {
		return "", unauthorized(Malformed, "the API key has a typo or is cut: it is evh_, 16 characters, _, and 59 characters")
	}
	return id, nil
}

// ValidKeyID tells whether s can be the id of an API key.
func ValidKeyID(s string) bool {
	return len(s) == keyIDLen && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// KeyStore reads all API keys, revoked and expired ones too.
type KeyStore interface {
	Keys(ctx context.Context) ([]APIKey, error)
}

// apiKeys are the cached keys. All of them are read at once: an id that nobody was given costs no query.
type apiKeys struct {
	held *held[map[string]APIKey]
	now  func() time.Time
}

// Revocations are seen within freshKeys + what one query takes, at most staleKeys and patience later.
const (
	freshKeys = 3 * time.Second
	staleKeys = 6 * time.Second
)

func newAPIKeys(store KeyStore, hold time.Duration, now func() time.Time, changed func(error)) *apiKeys {
	fetch := func(ctx context.Context) (map[string]APIKey, error) {
		list, err := store.Keys(ctx)
		if err != nil {
			return nil, err
		}
		out := make(map[string]APIKey, len(list))
		for _, k := range list {
			out[k.ID] = k
		}
		return out, nil
	}
	return &apiKeys{&held[map[string]APIKey]{fetch: fetch, fresh: freshKeys, stale: staleKeys, hold: max(hold, staleKeys),
		gap: time.Second, limit: fetchLimit, patience: 2 * time.Second, now: now, changed: changed}, now}
}

// principal verifies an API key.
func (a *apiKeys) principal(ctx context.Context, raw string) (*Principal, error) {
	id, err := parseKey(raw)
	if err != nil {
		return nil, err
	}
	keys, n, err := a.held.get(ctx)
	if err != nil {
		return nil, unavailable("the API keys")
	}
	k, ok := keys[id]
	if !ok { // perhaps made a moment ago
		var anew bool
		if keys, anew, err = a.held.newer(ctx, n); anew {
			k, ok = keys[id]
		} else if err != nil {
			return nil, unavailable("the API keys")
		}
	}
	hash := sha256.Sum256([]byte(raw))
	// Compared in constant time, and compared too where there is no such key.
	same := subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1
	switch now := a.now(); {
	case !ok || !same:
		return nil, unauthorized(UnknownKeyID, "there is no such API key")
	case !k.Revoked.IsZero():
		return nil, unauthorized(KeyRevoked, "the API key %s was revoked", k.ID)
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return nil, unauthorized(KeyExpired, "the API key %s has expired", k.ID)
	}
	return &Principal{Tenant: k.Tenant, Subject: subjectKey + k.ID, May: slices.Clone(k.Scopes), Verified: true, Until: k.Expires}, nil
}

// noStore refuses API keys where there is no store to look them up in.
func noStore() error {
	return deny(http.StatusUnauthorized, NoKeyStore, "this process has no store and takes no API keys; send a token or the static key")
}
