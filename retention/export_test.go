package retention

import "time"

// BreakAt lets a run fail at a point, as if the process died there; "" mends it.
func (r *Retention) BreakAt(point string, err error) {
	r.hook = func(at string) error {
		if at == point {
			return err
		}
		return nil
	}
}

// SetClock makes the lookup's clock stand.
func (c *Classes) SetClock(at func() time.Time) { c.clock = at }
