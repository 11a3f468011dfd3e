// Package authtest holds API keys for tests of doors behind authentication.
package authtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/evenhand/evenhand/auth"
)

// Keyring is an auth.KeyStore in memory.
type Keyring struct {
	mu   sync.Mutex
	keys []auth.APIKey
}

// Keys are all keys, revoked ones too.
func (k *Keyring) Keys(context.Context) ([]auth.APIKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.keys), nil
}

// Hold exchanges what it holds for one key.
func (k *Keyring) Hold(key auth.APIKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = []auth.APIKey{key}
}

// Revoke withdraws all its keys.
func (k *Keyring) Revoke(at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.keys {
		k.keys[i].Revoked = at
	}
}
