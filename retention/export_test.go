package retention

import (
	"sync"
	"time"
)

// BreakAt lets a run fail at a point, as if the process died there; "" mends it.
func (r *Retention) BreakAt(point string, err error) {
	r.hook = func(at string) error {
		if at == point {
			return err
		}
		return nil
	}
}

// Meanwhile lets something else happen at a point, once.
func (r *Retention) Meanwhile(point string, do func()) {
	once, before := sync.OnceFunc(do), r.hook
	r.hook = func(at string) error {
		if at == point {
			once()
		}
		return before(at)
	}
}

// SetClock makes the lookup's clock stand.
func (c *Classes) SetClock(at func() time.Time) { c.clock = at }
