package store

import (
	"context"

	"github.com/evenhand/evenhand/audit"
)

// Find reads one interaction as lists show it. Where several contents came under the id, the first
// delivered is given. ErrNotFound when the tenant has none.
func (t *Tenant) Find(ctx context.Context, id audit.ID) (*Item, error) {
	const op = "store: find"
	items, err := t.byID(ctx, op, []audit.ID{id})
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNotFound
	}
	return &items[0], nil
}

// Reread reads an item again, as it is now.
func (t *Tenant) Reread(ctx context.Context, it *Item) (*Item, error) {
	q := t.from("audit_current").current()
	q.prewhere = among([]Cursor{it.Cursor()})
	items, err := t.items(ctx, "store: read again", q, "")
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNotFound
	}
	return &items[0], nil
}
