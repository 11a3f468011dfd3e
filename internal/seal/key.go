package seal

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evenhand/evenhand/internal/keyfile"
)

// Key signs markers (Ed25519, RFC 8032).
type Key struct {
	private ed25519.PrivateKey
	id      string
}

// Public are the keys that signatures are checked with, by their ids.
type Public map[string]ed25519.PublicKey

// Files of the key that is made in a data folder; earlierFile is the public half of one that was there before it.
func keyFile(dataDir string) string         { return filepath.Join(dataDir, "seal", "seal.key") }
func publicFile(dataDir string) string      { return filepath.Join(dataDir, "seal", "seal.pub") }
func earlierFile(dataDir, id string) string { return filepath.Join(dataDir, "seal", "seal."+id+".pub") }

// MakeKey reads the key of a data folder, and makes it with its public half where there is none. The public half of a key
// that is gone stays, as a file of its own: nothing else proves what that one signed.
func MakeKey(dataDir string) (*Key, error) {
	if err := keyfile.Make(keyFile(dataDir)); err != nil {
		return nil, err
	}
	k, err := LoadKey(keyFile(dataDir))
	if err != nil {
		return nil, fmt.Errorf("%w, or delete it and start 'evenhand up' again for a new one: what it signed is proved by seal.pub, which is kept", err)
	}
	if old, err := keyfile.LoadPublic(publicFile(dataDir)); err == nil && !old.Equal(k.Public()) {
		if err := os.Rename(publicFile(dataDir), earlierFile(dataDir, idOf(old))); err != nil {
			return nil, err
		}
	}
	return k, keyfile.WritePublic(publicFile(dataDir), k.Public())
}

// LoadKey reads a private key.
func LoadKey(file string) (*Key, error) {
	private, err := keyfile.Load(file)
	if err != nil {
		return nil, err
	}
	return &Key{private, idOf(private.Public().(ed25519.PublicKey))}, nil
}

// ID is the key's: the first half of the SHA-256 of its public half, in hexadecimal digits.
func (k *Key) ID() string { return k.id }

// Public is the public half.
func (k *Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Sign signs the SHA-256 of a marker's form.
func (k *Key) Sign(digest [sha256.Size]byte) []byte { return ed25519.Sign(k.private, digest[:]) }

// Load reads public keys from files and adds those of a data folder, if one is given and has them.
func Load(dataDir string, files []string) (Public, error) {
	p := Public{}
	if dataDir != "" {
		dir := filepath.Dir(publicFile(dataDir))
		own, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, f := range own {
			if !strings.HasPrefix(f.Name(), "seal.") || !strings.HasSuffix(f.Name(), ".pub") {
				continue
			}
			public, err := keyfile.LoadPublic(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			p.Add(public)
		}
	}
	for _, f := range files {
		public, err := keyfile.LoadPublic(f)
		if err != nil {
			return nil, fmt.Errorf("seal.public_keys: %w", err)
		}
		p.Add(public)
	}
	return p, nil
}

// Add adds a key.
func (p Public) Add(public ed25519.PublicKey) { p[idOf(public)] = public }

// Verify tells whether the key of an id, which must be one of p, signed a digest.
func (p Public) Verify(id string, digest, signature []byte) bool {
	public, ok := p[id]
	return ok && ed25519.Verify(public, digest, signature)
}

func idOf(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}
