package auth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// watched serves a request whose answer goes on until its credential is refused, and gives when that was;
// nil when it was not within a day.
func watched(t *testing.T, a *Authenticator, r *http.Request) (d *Denied, at time.Time) {
	t.Helper()
	w := httptest.NewRecorder()
	a.Middleware(Read, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		day := time.After(24 * time.Hour)
		credential := NewWatch(r.Context())
		defer credential.Stop()
		for d == nil {
			select {
			case <-credential.C:
				d, at = credential.Look(r.Context()), time.Now()
			case <-day:
				return
			}
		}
	})).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("not let in: %d %s", w.Code, w.Body)
	}
	return d, at
}

func TestWatchOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := &counts{}
		revoked, rawRevoked := newKey(t, time.Time{}, Read)
		expires, rawExpires := newKey(t, begin.Add(time.Hour), Read)
		expires.Expires = time.Now().Add(time.Hour + time.Millisecond) // by the bubble's clock
		other, rawOther := newKey(t, time.Time{}, Read)
		store := &memory{keys: []APIKey{revoked, expires, other}}
		a, err := New(t.Context(), Config{Required: true, Keys: store, KeyHold: 10 * time.Minute, Rate: 1, Burst: 2}, Options{Metrics: count, Client: &http.Client{}})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		var when time.Time
		time.AfterFunc(time.Minute+time.Second, func() {
			store.change(func() { when = time.Now(); store.keys[0].Revoked = when })
		})
		if d, at := watched(t, a, request(rawRevoked)); d == nil || d.Reason != KeyRevoked || d.Status != http.StatusUnauthorized || at.Sub(when) > 10*time.Second {
			t.Errorf("revoked: %+v after %v", d, at.Sub(when))
		}
		if d, at := watched(t, a, request(rawExpires)); d == nil || d.Reason != KeyExpired || !at.Equal(expires.Expires) {
			t.Errorf("expired: %+v at %v", d, at)
		}
		if len(count.seen) != 1 || count.seen["api_key ok"] != 2 {
			t.Errorf("looks count as requests: %v", count.seen)
		}
		// As for requests, the key holds for a time while the store is away.
		time.AfterFunc(time.Minute, func() {
			store.change(func() {
				when, store.err = time.Now(), audit.E("test", audit.KindUnavailable, errors.New("away"))
			})
		})
		if d, at := watched(t, a, request(rawOther)); d == nil || d.Reason != KeysUnavailable || at.Sub(when) < 9*time.Minute || at.Sub(when) > 11*time.Minute {
			t.Errorf("the store is away: %+v after %v", d, at.Sub(when))
		}
	})
}

func TestWatchOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newDevKey(edKey)
		a, err := New(t.Context(), Config{Dev: dev, StaticKey: static, DefaultTenant: "acme"}, Options{Client: &http.Client{}})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		token, err := dev.Sign("acme", "ann", []Role{Viewer}, time.Hour, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Truncate(time.Second).Add(time.Hour + leeway)
		if d, at := watched(t, a, request(token)); d == nil || d.Reason != TokenExpired || !at.Equal(end) {
			t.Errorf("%+v at %v, not %v", d, at, end)
		}
		for name, raw := range map[string]string{"nobody": "", "the static key": static} {
			if d, _ := watched(t, a, request(raw)); d != nil {
				t.Errorf("%s: %+v", name, d)
			}
		}
	})
}
