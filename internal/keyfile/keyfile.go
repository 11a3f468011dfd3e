// Package keyfile keeps Ed25519 keys in PEM files: the private one (PKCS #8) readable by its user alone, the
// public one (PKIX) by all.
package keyfile

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Make writes a new private key where there is no file. Of two that do so at once one wins.
func Make(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	err = errors.Join(pem.Encode(tmp, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), tmp.Sync(), tmp.Close())
	if err == nil { // a link is made whole or not at all, and only by the first of two starts
		if err = os.Link(tmp.Name(), file); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return err
}

// Load reads a private key. A file that others may read is refused; the error is [fs.ErrNotExist] where there is none.
func Load(file string) (ed25519.PrivateKey, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others; chmod 600 %s", file, file)
	}
	block, err := read(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s is no private Ed25519 key", file)
	}
	return private, nil
}

// WritePublic writes the public half of a key where it does not stand yet.
func WritePublic(file string, public ed25519.PublicKey) error {
	if known, err := LoadPublic(file); err == nil && known.Equal(public) {
		return nil
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// LoadPublic reads a public key.
func LoadPublic(file string) (ed25519.PublicKey, error) {
	block, err := read(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	public, ok := key.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s is no public Ed25519 key", file)
	}
	return public, nil
}

func read(file string) (*pem.Block, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s is no key in PEM", file)
	}
	return block, nil
}
