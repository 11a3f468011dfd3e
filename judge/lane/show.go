package lane

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/store"
)

const (
	// linger is how long a verdict waits for company before it is shown: a row of the read model costs many times what a
	// verdict does, and thousands cost little more.
	linger = 100 * time.Millisecond
	// mostUnshown is how many may wait; then answers wait.
	mostUnshown = 500
	// showAttempts and showWithin bound the steps after verdicts are stored.
	showAttempts = 4
	showWithin   = time.Minute
)

// unshown are verdicts that are stored and not yet shown and published.
type unshown struct {
	mu      sync.Mutex // guards list
	list    []shown
	wake    chan struct{} // holds one when list does
	flusher sync.Mutex
}

type shown struct {
	key    store.Key
	result audit.ID
}

// show has a stored verdict shown and published soon.
func (l *Lane) show(ctx context.Context, c *matter, v *audit.Verdict) {
	l.unshown.mu.Lock()
	l.unshown.list = append(l.unshown.list, shown{c.it.Key(), v.ResultID})
	full := len(l.unshown.list) >= mostUnshown
	l.unshown.mu.Unlock()
	select {
	case l.unshown.wake <- struct{}{}:
	default:
	}
	if full {
		l.flush(ctx)
	}
}

// follow shows and publishes until ctx ends, and then what is left.
func (l *Lane) follow(ctx context.Context) {
	for {
		select {
		case <-l.unshown.wake:
			wait.For(ctx, linger)
			l.flush(ctx)
		case <-ctx.Done():
			l.flush(ctx)
			return
		}
	}
}

// flush has the read model follow and tells the stream of all that wait. What fails is left to others, who do the
// same: the repair, and the job that publishes later facts again.
func (l *Lane) flush(ctx context.Context) {
	l.unshown.flusher.Lock()
	defer l.unshown.flusher.Unlock()
	l.unshown.mu.Lock()
	list := l.unshown.list
	l.unshown.list = nil
	l.unshown.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), showWithin)
	defer cancel()
	slices.SortStableFunc(list, func(a, b shown) int { return strings.Compare(a.key.Tenant, b.key.Tenant) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].key.Tenant == list[0].key.Tenant {
			n++
		}
		some := list[:n]
		list = list[n:]
		var err error
		for attempt := range showAttempts {
			if attempt > 0 && !wait.For(ctx, wait.Backoff(l.quick, attempt)) {
				break
			}
			if err = l.showAll(ctx, some); err == nil {
				break
			}
		}
		if err != nil {
			l.Observer.JudgeOdd("unshown", len(some))
			l.Logger.Warn("verdicts of the judge are stored, a later step failed and will be made up for", "verdicts", len(some), "error", err.Error())
		}
	}
}

// showAll shows and publishes verdicts on interactions of one tenant.
func (l *Lane) showAll(ctx context.Context, list []shown) error {
	keys, results := make([]store.Key, len(list)), make([]audit.ID, len(list))
	for i, s := range list {
		keys[i], results[i] = s.key, s.result
	}
	if err := l.Current.Rewrite(ctx, keys, false); err != nil {
		return err
	}
	events, err := l.Store.StreamOf(ctx, keys, results)
	if err != nil {
		return err
	}
	return l.Stream.Publish(ctx, events)
}
