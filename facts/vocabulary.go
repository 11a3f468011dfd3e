package facts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/schemas/taxonomy"
	"github.com/evenhand/evenhand/store"
)

// Vocabulary is the taxonomy: what types, kinds and tags may be called. It is the installation's, whatever
// the tenant, and safe for concurrent use by many processes.
type Vocabulary struct {
	store *store.Store
	rows  Rows
	now   func() time.Time

	mu   sync.Mutex // guards what was read last
	at   time.Time
	keys map[string]store.VersionedEntry
}

// NewVocabulary makes a vocabulary over a store and a sink of the same database.
func NewVocabulary(st *store.Store, rows Rows) *Vocabulary {
	return &Vocabulary{store: st, rows: rows, now: time.Now}
}

// List reads all keys.
func (v *Vocabulary) List(ctx context.Context) (out []store.TaxonomyEntry, err error) {
	all, err := v.store.Vocabulary(ctx)
	for _, e := range all {
		out = append(out, e.TaxonomyEntry)
	}
	return out, err
}

// wordsFor is how long what was read is good for keys that are in it; others are looked up at once.
const wordsFor = time.Minute

// unknown gives those of some keys that the vocabulary does not have.
func (v *Vocabulary) unknown(ctx context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { _, ok := v.keys[k]; return ok })
	}
	if out := missing(); len(out) == 0 && v.now().Sub(v.at) < wordsFor {
		return nil, nil
	}
	if err := v.reread(ctx); err != nil {
		return nil, err
	}
	return missing(), nil
}

// reread reads the vocabulary; mu is held.
func (v *Vocabulary) reread(ctx context.Context) error {
	all, err := v.store.Vocabulary(ctx)
	if err != nil {
		return err
	}
	v.keys, v.at = make(map[string]store.VersionedEntry, len(all)), v.now()
	for _, e := range all {
		v.keys[e.Key] = e
	}
	return nil
}

// keysOf checks a list of keys of the taxonomy and gives it without repeats; faults are the caller's.
func (v *Vocabulary) keysOf(ctx context.Context, field string, keys []string, most int) (out []string, faults []error, err error) {
	if len(keys) > most {
		return nil, []error{fmt.Errorf("%s: holds %d keys; %d at most", field, len(keys), most)}, nil
	}
	unknown, err := v.unknown(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	out = []string{}
	for i, k := range keys {
		if slices.Contains(unknown, k) {
			faults = append(faults, v.fault(fmt.Sprintf("%s[%d]", field, i), k))
		} else if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out, faults, nil
}

// fault says of a key that it is unknown.
func (v *Vocabulary) fault(field, key string) error {
	if len(key) > maxKey || !taxonomy.KeyPattern.MatchString(key) { // may be anything: not repeated
		return fmt.Errorf("%s: is not a key of the taxonomy; biasTaxonomy lists them", field)
	}
	return fmt.Errorf("%s: %q is not in the taxonomy; the nearest key is %q", field, key, v.nearest(key))
}

// CheckType refuses a bias type that nothing can have found, for it is not in the taxonomy; field is named
// in the fault, which is of audit.KindInvalid.
func (v *Vocabulary) CheckType(ctx context.Context, field, key string) error {
	const op = "facts: bias type"
	unknown, err := v.unknown(ctx, []string{key})
	if err != nil || len(unknown) == 0 {
		return err
	}
	return audit.E(op, audit.KindInvalid, v.fault(field, key))
}

// CheckKind is CheckType of a finding's kind. Rules of gates and of personal data name kinds of their own, gate.RULE and
// pii.ENTITY, of which an operator's packs and settings may bring any: those pass.
func (v *Vocabulary) CheckKind(ctx context.Context, field, kind string) error {
	for _, family := range []string{"gate.", "pii."} {
		if len(kind) > len(family) && strings.HasPrefix(kind, family) {
			return nil
		}
	}
	return v.CheckType(ctx, field, kind)
}

// nearest is the key with the fewest letters to change.
func (v *Vocabulary) nearest(key string) (best string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	least := 1 << 30
	for k := range v.keys {
		if d := distance(key, k); d < least || d == least && k < best {
			least, best = d, k
		}
	}
	return best
}

// distance counts the bytes to insert, delete, replace or swap with the next one.
func distance(a, b string) int {
	above, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		above, row = row, next
	}
	return row[len(b)]
}
