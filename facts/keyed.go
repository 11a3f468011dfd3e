package facts

import "sync"

// keyed has work on one key, which gives a V, done one after the other. The zero value is ready.
type keyed[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]*turn[V]
}

// turn is what those who wait for a key share.
type turn[V any] struct {
	sync.Mutex        // guards done and last
	users      int    // that hold it, under keyed.mu; the map forgets it after the last
	asked      uint64 // how many came, under keyed.mu
	done       uint64 // asked when the last run of together began
	last       V      // what it gave
	err        error
}

func (k *keyed[K, V]) get(key K) (t *turn[V], ticket uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[K]*turn[V]{}
	}
	if t = k.m[key]; t == nil {
		t = &turn[V]{}
		k.m[key] = t
	}
	t.users++
	t.asked++
	return t, t.asked
}

func (k *keyed[K, V]) put(key K, t *turn[V]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(k.m, key)
	}
}

// alone runs f while nobody else does for the key.
func (k *keyed[K, V]) alone(key K, f func() (V, error)) (V, error) {
	t, _ := k.get(key)
	defer k.put(key, t)
	t.Lock()
	defer t.Unlock()
	return f()
}

// together is alone, but what a run gave that began after the call serves it too: of many who wait, one runs.
func (k *keyed[K, V]) together(key K, f func() (V, error)) (V, error) {
	t, ticket := k.get(key)
	defer k.put(key, t)
	t.Lock()
	defer t.Unlock()
	if t.done >= ticket {
		return t.last, t.err
	}
	k.mu.Lock()
	upTo := t.asked
	k.mu.Unlock()
	t.last, t.err = f()
	t.done = upTo
	return t.last, t.err
}
