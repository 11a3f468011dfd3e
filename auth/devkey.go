package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/keyfile"
)

// Issuer, audience and claims of tokens that the development key signs. Settings do not change them.
const (
	DevIssuer   = "evenhand-dev"
	devAudience = "evenhand"
	devTenant   = "tenant_id"
	devRoles    = "roles"
	// MaxDevToken is how long a development token may live.
	MaxDevToken = 30 * 24 * time.Hour
)

// ErrNoDevKey is in the error of a data folder without a development key.
var ErrNoDevKey = errors.New("there is none")

// DevKey signs and verifies tokens of one installation, for trying things out: whoever can read the data
// folder can be anybody.
type DevKey struct {
	private ed25519.PrivateKey
	id      string
}

func devKeyFile(dataDir string) string { return filepath.Join(dataDir, "auth", "dev.key") }

// MakeDevKey reads the key of a data folder and makes it where there is none.
func MakeDevKey(dataDir string) (*DevKey, error) {
	if err := keyfile.Make(devKeyFile(dataDir)); err != nil {
		return nil, audit.E("auth: development key", audit.KindInternal, err)
	}
	return LoadDevKey(dataDir)
}

// LoadDevKey reads the key of a data folder. A file that others may read is refused.
func LoadDevKey(dataDir string) (*DevKey, error) {
	private, err := keyfile.Load(devKeyFile(dataDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w in %s: 'evenhand up' makes it on its first start", ErrNoDevKey, dataDir)
	case err != nil:
		err = fmt.Errorf("%w, or delete it and start 'evenhand up' again for a new one", err)
	default:
		return newDevKey(private), nil
	}
	return nil, audit.E("auth: development key", audit.KindInvalid, err)
}

func newDevKey(private ed25519.PrivateKey) *DevKey {
	sum := sha256.Sum256(private.Public().(ed25519.PublicKey))
	return &DevKey{private, base64.RawURLEncoding.EncodeToString(sum[:12])}
}

// Sign makes a token. It fails on what a verifier would refuse.
func (k *DevKey) Sign(tenant, subject string, roles []Role, ttl time.Duration, now time.Time) (string, error) {
	var errs []error
	if !ValidTenant(tenant) {
		errs = append(errs, errors.New("tenant: wants 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"))
	}
	if !validSubject(subject) {
		errs = append(errs, fmt.Errorf("subject: is empty, longer than %d bytes, or a name that is reserved", maxSubject))
	}
	if len(roles) == 0 {
		errs = append(errs, fmt.Errorf("role: is missing; there are %s", audit.List(Roles)))
	}
	for _, r := range roles {
		if _, ok := grants[r]; !ok {
			errs = append(errs, fmt.Errorf("role: %q is not one of %s", r, audit.List(Roles)))
		}
	}
	if ttl < time.Second || ttl > MaxDevToken {
		errs = append(errs, fmt.Errorf("ttl: %v is not in 1s..%v", ttl, MaxDevToken))
	}
	if err := errors.Join(errs...); err != nil {
		return "", audit.E("auth: token", audit.KindInvalid, err)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": DevIssuer, "aud": devAudience, "sub": subject, devTenant: tenant, devRoles: roles,
		"iat": now.Unix(), "exp": now.Add(ttl).Unix(), "jti": rand.Text(),
	})
	t.Header["kid"] = k.id
	signed, err := t.SignedString(k.private)
	return signed, audit.E("auth: token", audit.KindInternal, err)
}

func newDevVerifier(k *DevKey, now func() time.Time) *verifier {
	v := newVerifier(DevIssuer, []string{devAudience}, now)
	v.tenantClaim, v.rolesClaim = devTenant, devRoles
	v.key = func(_ context.Context, t *jwt.Token) (any, error) {
		if t.Method.Alg() != jwt.SigningMethodEdDSA.Alg() {
			return nil, unauthorized(BadAlgorithm, "development tokens are signed with EdDSA")
		}
		if t.Header["kid"] != k.id {
			return nil, unauthorized(UnknownKey, "the token was signed by the development key of another data folder")
		}
		return k.private.Public(), nil
	}
	return v
}
