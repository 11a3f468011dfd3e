package auth

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds how many tenants are limited each for itself at one time. While authentication is off,
// callers choose names.
const maxBuckets = 4096

// limiter is a token bucket a tenant.
type limiter struct {
	rate  rate.Limit // requests a second
	burst int
	now   func() time.Time

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	others  *rate.Limiter // of tenants beyond maxBuckets
	swept   time.Time     // when full buckets were last taken out
}

// newLimiter gives nil, which limits nothing, for a rate of 0.
func newLimiter(perSecond float64, burst int, now func() time.Time) *limiter {
	if perSecond <= 0 {
		return nil
	}
	l := &limiter{rate: rate.Limit(perSecond), burst: max(burst, 1), now: now, buckets: map[string]*rate.Limiter{}}
	l.others = rate.NewLimiter(l.rate, l.burst)
	return l
}

// take takes one request of a tenant, or says after what time there is room for it.
func (l *limiter) take(tenant string) (after time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	now := l.now()
	b := l.bucket(tenant, now)
	if b.AllowN(now, 1) {
		return 0, true
	}
	missing := 1 - b.TokensAt(now)
	return max(time.Millisecond, time.Duration(missing/float64(l.rate)*float64(time.Second))), false
}

func (l *limiter) bucket(tenant string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[tenant]; ok {
		return b
	}
	if len(l.buckets) >= maxBuckets && now.Sub(l.swept) >= time.Second { // names that callers make up must not cost a sweep each
		l.swept = now
		for name, b := range l.buckets { // a full bucket is as good as a new one
			if b.TokensAt(now) >= float64(l.burst) {
				delete(l.buckets, name)
			}
		}
	}
	if len(l.buckets) >= maxBuckets {
		return l.others
	}
	b := rate.NewLimiter(l.rate, l.burst)
	l.buckets[tenant] = b
	return b
}
