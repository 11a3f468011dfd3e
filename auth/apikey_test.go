package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// memory is a KeyStore.
type memory struct {
	mu    sync.Mutex
	keys  []APIKey
	err   error
	asked int
}

func (m *memory) Keys(context.Context) ([]APIKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	return slices.Clone(m.keys), m.err
}

func (m *memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func newKey(t *testing.T, expires time.Time, scopes ...Permission) (APIKey, string) {
	t.Helper()
	k, raw, err := NewAPIKey("acme", "crawler", scopes, "ann", begin, expires)
	if err != nil {
		t.Fatal(err)
	}
	return k, raw.Reveal()
}

func TestAPIKeys(t *testing.T) {
	clk := newClock()
	k, raw := newKey(t, begin.Add(24*time.Hour), Ingest, Read, Ingest)
	revoked, rawRevoked := newKey(t, time.Time{}, Ingest)
	revoked.Revoked = begin
	_, unknown := newKey(t, time.Time{}, Permissions...)
	store := &memory{keys: []APIKey{k, revoked}}
	a := made(t, Config{Required: true, Keys: store, KeyHold: time.Hour}, Options{Now: clk.now})

	p, err := a.Admit(request(raw), Ingest)
	if err != nil || p.Tenant != "acme" || p.Subject != "key:"+k.ID || !p.Verified || len(p.Roles) != 0 || !slices.Equal(p.May, []Permission{Ingest, Read}) {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := a.Authenticate(request("", "X-API-Key", raw)); err != nil {
		t.Error(err)
	}
	_, err = a.Admit(request(raw), Review)
	says(t, err, 403, NoPermission, raw)
	_, err = a.Admit(request(raw, TenantHeader, "other"), Ingest)
	says(t, err, 403, TenantMismatch, raw)

	body := raw[:len(raw)-keySum-1] + flip(raw[len(raw)-keySum-1])
	for name, tc := range map[string]struct {
		raw    string
		reason Reason
	}{
		"typo in the secret":          {raw[:40] + flip(raw[40]) + raw[41:], Malformed},
		"typo in the id":              {raw[:6] + flip(raw[6]) + raw[7:], Malformed},
		"cut":                         {raw[:70], Malformed},
		"longer":                      {raw + "a", Malformed},
		"upper case":                  {strings.Replace(strings.ToUpper(raw), "EVH_", "evh_", 1), Malformed},
		"prefix only":                 {"evh_", Malformed},
		"another secret, its own sum": {body + checksum(body), UnknownKeyID},
		"unknown id":                  {unknown, UnknownKeyID},
		"revoked":                     {rawRevoked, KeyRevoked},
	} {
		_, err := a.Authenticate(request(tc.raw))
		if err == nil || DeniedBy(err).Reason != tc.reason || DeniedBy(err).Status != 401 || len(tc.raw) > 10 && strings.Contains(err.Error(), tc.raw) {
			t.Errorf("%s: %v", name, err)
		}
	}
	clk.pass(24 * time.Hour)
	_, err = a.Authenticate(request(raw))
	says(t, err, 401, KeyExpired, raw)
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

// A typo costs no look at the store, and neither do ids that are guessed.
func TestGuessesCostNoQueries(t *testing.T) {
	clk := newClock()
	k, raw := newKey(t, time.Time{}, Ingest)
	store := &memory{keys: []APIKey{k}}
	a := made(t, Config{Required: true, Keys: store, KeyHold: time.Hour}, Options{Now: clk.now})
	_, _ = a.Authenticate(request(raw[:30] + flip(raw[30]) + raw[31:]))
	if store.asked != 0 {
		t.Errorf("a typo asked the store %d times", store.asked)
	}
	for range 50 {
		_, guess := newKey(t, time.Time{}, Ingest)
		_, _ = a.Authenticate(request(guess))
	}
	if store.asked > 2 {
		t.Errorf("guesses asked the store %d times", store.asked)
	}
}

func TestRevocationIsSeenWithinTenSeconds(t *testing.T) {
	clk := newClock()
	k, raw := newKey(t, time.Time{}, Ingest)
	store := &memory{keys: []APIKey{k}}
	a := made(t, Config{Required: true, Keys: store, KeyHold: time.Hour}, Options{Now: clk.now})
	if _, err := a.Authenticate(request(raw)); err != nil {
		t.Fatal(err)
	}
	store.change(func() { store.keys[0].Revoked = clk.now() })
	clk.pass(10 * time.Second)
	_, err := a.Authenticate(request(raw))
	says(t, err, 401, KeyRevoked, raw)
	// And a key that was made a moment ago is found at once.
	fresh, rawFresh := newKey(t, time.Time{}, Read)
	store.change(func() { store.keys = append(store.keys, fresh) })
	clk.pass(2 * time.Second)
	if _, err := a.Authenticate(request(rawFresh)); err != nil {
		t.Error(err)
	}
}

func TestStoreAway(t *testing.T) {
	clk := newClock()
	k, raw := newKey(t, time.Time{}, Ingest)
	store := &memory{keys: []APIKey{k}}
	a := made(t, Config{Required: true, Keys: store, KeyHold: 10 * time.Minute}, Options{Now: clk.now})
	if _, err := a.Authenticate(request(raw)); err != nil {
		t.Fatal(err)
	}
	store.change(func() { store.err = audit.E("test", audit.KindUnavailable, errors.New("away")) })
	clk.pass(9 * time.Minute)
	if _, err := a.Authenticate(request(raw)); err != nil {
		t.Fatalf("the cached key does not hold: %v", err)
	}
	clk.pass(2 * time.Minute)
	_, err := a.Authenticate(request(raw))
	says(t, err, 503, KeysUnavailable, raw)
	store.change(func() { store.err = nil })
	clk.pass(time.Minute)
	if _, err := a.Authenticate(request(raw)); err != nil {
		t.Error(err)
	}
}

func TestNoStoreNoKeys(t *testing.T) {
	_, raw := newKey(t, time.Time{}, Ingest)
	a := made(t, Config{}, Options{})
	_, err := a.Authenticate(request(raw))
	if d := denied(t, err, 401, NoKeyStore, raw); !strings.Contains(d.Say, "has no store") {
		t.Error(d.Say)
	}
}

func TestNewAPIKeyFaults(t *testing.T) {
	for want, f := range map[string]func() error{
		"tenant: ":          func() error { _, _, err := NewAPIKey("", "n", []Permission{Read}, "", begin, time.Time{}); return err },
		"name: ":            func() error { _, _, err := NewAPIKey("a", "", []Permission{Read}, "", begin, time.Time{}); return err },
		"scope: is missing": func() error { _, _, err := NewAPIKey("a", "n", nil, "", begin, time.Time{}); return err },
		`scope: "fly" is not`: func() error {
			_, _, err := NewAPIKey("a", "n", []Permission{"fly"}, "", begin, time.Time{})
			return err
		},
		"expires: is not in": func() error { _, _, err := NewAPIKey("a", "n", []Permission{Read}, "", begin, begin); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) || audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
