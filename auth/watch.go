package auth

import (
	"context"
	"net/http"
	"time"
)

// lookEvery is how often a stream looks at its credential: what a request is told of a revocation at most
// staleKeys and patience late, a stream is told within ten seconds.
const lookEvery = 2 * time.Second

// admission is a request whose caller was let in by a credential.
type admission struct {
	a     *Authenticator
	r     *http.Request
	until time.Time // as in [Principal]
}

type admissionKey struct{}

// Watch looks at the credential of a request again while it is answered, for streams and answers that are
// waited for. Stop it. Its methods are for one goroutine.
type Watch struct {
	// C ticks when it is time to look, at a credential's own end too; nil where nothing was shown.
	C     <-chan time.Time
	timer *time.Timer
	of    *admission
}

// NewWatch watches the credential of a request that [Authenticator.Middleware] let in. Who was let in without
// one, or by something else, stays.
func NewWatch(ctx context.Context) *Watch {
	of, ok := ctx.Value(admissionKey{}).(*admission)
	if !ok {
		return &Watch{}
	}
	timer := time.NewTimer(of.next())
	return &Watch{C: timer.C, timer: timer, of: of}
}

// Look gives what a new request with the credential would be refused with, nil while it is taken. It counts
// neither as a request nor against the tenant's rate.
func (w *Watch) Look(ctx context.Context) *Denied {
	if w.of == nil {
		return nil
	}
	if _, _, err := w.of.a.identify(w.of.r.WithContext(ctx)); err != nil {
		return DeniedBy(err)
	}
	w.timer.Reset(w.of.next())
	return nil
}

// Stop ends the watch.
func (w *Watch) Stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// next is the time until the next look.
func (m *admission) next() time.Duration {
	if left := m.until.Sub(m.a.now()); !m.until.IsZero() && left > 0 {
		return min(left, m.a.lookEvery)
	}
	return m.a.lookEvery
}
