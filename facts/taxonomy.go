package facts

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/schemas/taxonomy"
	"github.com/evenhand/evenhand/store"
)

const maxDescription = 500 // characters

// PutTaxonomy adds a key to the vocabulary or changes one, see Vocabulary.Put.
func (w *Writer) PutTaxonomy(ctx context.Context, by *auth.Principal, e store.TaxonomyEntry) (out *store.TaxonomyEntry, err error) {
	defer func() { w.counted(kindTaxonomy, err) }()
	if by == nil || by.Subject == "" {
		return nil, audit.E("facts: put taxonomy entry", audit.KindInvalid, errCaller)
	}
	if out, err = w.words.Put(ctx, e); err == nil {
		w.Logger.Info("the taxonomy was changed", "key", e.Key, "tenant", by.Tenant, "subject", by.Subject)
	}
	return out, err
}

// Put adds a key, or gives a known one another severity and, where there is one, description. A known key
// keeps its id, and none goes away.
func (v *Vocabulary) Put(ctx context.Context, e store.TaxonomyEntry) (*store.TaxonomyEntry, error) {
	const op = "facts: put taxonomy entry"
	if err := CheckEntry(e); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.reread(ctx); err != nil {
		return nil, err
	}
	was, known := v.keys[e.Key]
	if known {
		if e.ID = was.ID; e.Description == "" {
			e.Description = was.Description
		}
	} else {
		e.ID = v.freeID(e.Key)
	}
	// Above all versions of the shipped file, which are small: filling it in after an upgrade changes nothing.
	version := max(uint64(v.now().UnixMilli()), was.Version+1)
	err := stored(ctx, func(ctx context.Context) error {
		return v.rows.TaxonomyEntry(ctx, e.ID, e.Key, e.Description, e.Severity, version)
	})
	if err != nil {
		return nil, err
	}
	v.keys[e.Key] = store.VersionedEntry{TaxonomyEntry: e, Version: version}
	return &e, nil
}

// CheckEntry reports every fault of an entry.
func CheckEntry(e store.TaxonomyEntry) error {
	var errs []error
	if len(e.Key) > maxKey || !taxonomy.KeyPattern.MatchString(e.Key) {
		errs = append(errs, fmt.Errorf("biasKey: want lower_snake_case with at most one dot, %d characters at most", maxKey))
	}
	if e.Severity < 1 || e.Severity > 5 {
		errs = append(errs, fmt.Errorf("severityLevel: %d is not in 1..5", e.Severity))
	}
	return errors.Join(append(errs, words("description", e.Description, 0, maxDescription))...)
}

// freeID is the id of a new key: made of the key, so that two processes that add it at once agree, above
// those of the shipped file and within what GraphQL calls an Int. mu is held.
func (v *Vocabulary) freeID(key string) uint32 {
	taken := map[uint32]bool{}
	for _, e := range v.keys {
		taken[e.ID] = true
	}
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, n))
		if id := 1<<30 | binary.BigEndian.Uint32(sum[:])>>2; !taken[id] {
			return id
		}
	}
}
