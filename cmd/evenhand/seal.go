package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/seal"
)

type sealSettings struct {
	// KeyFile is the private Ed25519 key (PEM, PKCS #8) that signs the commit markers with their seals and the seals of later facts. "" signs with
	// the key that 'up' makes in its data folder, and elsewhere not at all.
	KeyFile string `koanf:"key_file"`
	// PublicKeys are files (PEM, PKIX) of the keys that 'check' knows beside these.
	PublicKeys []string `koanf:"public_keys"`
}

// validateFiles holds that the files are keys.
func (s sealSettings) validateFiles() error {
	_, err := s.key()
	_, unknown := seal.Load("", s.PublicKeys)
	return errors.Join(err, unknown)
}

// key is that of the settings, nil for none.
func (s sealSettings) key() (*seal.Key, error) {
	if s.KeyFile == "" {
		return nil, nil
	}
	key, err := seal.LoadKey(s.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is not there: openssl genpkey -algorithm ed25519 -out %[1]s && chmod 600 %[1]s makes one", s.KeyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("seal.key_file: %w", err)
	}
	return key, nil
}

// sealKey is the key that signs, nil for none.
func (s settings) sealKey(up bool) (*seal.Key, error) {
	key, err := s.Seal.key()
	if key == nil && err == nil && up {
		if key, err = seal.MakeKey(s.DataDir); err != nil {
			err = fmt.Errorf("seal.key_file: %w", err)
		}
	}
	if err != nil {
		return nil, &settingsError{err}
	}
	return key, nil
}

// sealKeyHere is the key that signs for a command: that of the settings, or of the 'up' whose engine runs on the data folder.
func (s settings) sealKeyHere() (*seal.Key, error) {
	_, err := engine.Running(engineDir(s), engine.Writer)
	return s.sealKey(err == nil)
}

// sealKeys are the keys that a check knows.
func (s settings) sealKeys() (seal.Public, error) {
	p, err := seal.Load(s.DataDir, s.Seal.PublicKeys)
	if err != nil {
		return nil, &settingsError{err}
	}
	key, err := s.sealKey(false)
	if err != nil {
		return nil, err
	}
	if key != nil {
		p.Add(key.Public())
	}
	return p, nil
}
