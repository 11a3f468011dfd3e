package llm

import (
	"sync"
	"time"
)

// budget counts what tenants spend in a UTC day. It lives in memory.
type budget struct {
	calls, tokens int64 // the limits; 0 for none

	mu    sync.Mutex
	day   int64 // days since 1970
	spent map[string]*Spent
}

// Spent is what a tenant has spent today, what is under way included.
type Spent struct{ Calls, Tokens int64 }

// hold is a reservation. Settle it once.
type hold struct {
	b      *budget
	spent  *Spent // of the day on which it was made
	tokens int64
}

// reserve takes one call and so many tokens out of a tenant's budget, or fails with ErrBudget.
func (b *budget) reserve(tenant string, tokens int64) (hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of(tenant)
	if b.calls > 0 && s.Calls+1 > b.calls || b.tokens > 0 && s.Tokens+tokens > b.tokens {
		return hold{}, ErrBudget
	}
	s.Calls, s.Tokens = s.Calls+1, s.Tokens+tokens
	return hold{b, s, tokens}, nil
}

// settle says what was really spent; 0 and 0 gives everything back.
func (h hold) settle(calls, tokens int64) {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.spent.Calls += calls - 1
	h.spent.Tokens += tokens - h.tokens
}

// of gives a tenant's account of today; b.mu is held.
func (b *budget) of(tenant string) *Spent {
	if day := time.Now().Unix() / 86400; day != b.day || b.spent == nil {
		b.day, b.spent = day, map[string]*Spent{}
	}
	s := b.spent[tenant]
	if s == nil {
		s = &Spent{}
		b.spent[tenant] = s
	}
	return s
}

// today tells what a tenant has spent.
func (b *budget) today(tenant string) Spent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.of(tenant)
}
