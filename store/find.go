package store

import (
	"context"

	"github.com/evenhand/evenhand/audit"
)

// Find reads one interaction as lists show it. Where several contents came under the id, the first
// delivered is given. ErrNotFound when the tenant has none.
func (t *Tenant) Find(ctx context.Context, id audit.ID) (*Item, error) {
	items, err := t.Contents(ctx, id)
	if err != nil {
		return nil, err
	}
	return &items[0], nil
}

// Contents reads all that came under an id, in order of delivery: more than one where it came with other content,
// or on another day. ErrNotFound when the tenant has none.
func (t *Tenant) Contents(ctx context.Context, id audit.ID) ([]Item, error) {
	items, err := t.byID(ctx, "store: find", []audit.ID{id})
	if err == nil && len(items) == 0 {
		err = ErrNotFound
	}
	return items, err
}

// Reread reads an item again, as it is now.
func (t *Tenant) Reread(ctx context.Context, it *Item) (*Item, error) {
	now, err := t.RereadAll(ctx, []*Item{it})
	if err != nil {
		return nil, err
	}
	if now[it.Key()] == nil {
		return nil, ErrNotFound
	}
	return now[it.Key()], nil
}

// RereadAll reads items again, as they are now; those that are gone are left out.
func (t *Tenant) RereadAll(ctx context.Context, of []*Item) (map[Key]*Item, error) {
	if len(of) == 0 {
		return nil, nil
	}
	places := make([]Cursor, len(of))
	for i, it := range of {
		places[i] = it.Cursor()
	}
	q := t.from("audit_current").current()
	q.prewhere = among(places)
	items, err := t.items(ctx, "store: read again", q, "")
	now := make(map[Key]*Item, len(items))
	for i := range items {
		now[items[i].Key()] = &items[i]
	}
	return now, err
}
