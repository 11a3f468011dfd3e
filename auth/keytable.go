package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// KeyTable is the table api_keys. A revocation is a newer row of the key: rows have version 1 when made and
// 2 when revoked, so that the later fact stands, whoever writes last.
type KeyTable struct {
	conn     driver.Conn
	database string
}

var _ KeyStore = (*KeyTable)(nil)

// NewKeyTable gives the table in a database. Whoever opened conn closes it.
func NewKeyTable(conn driver.Conn, database string) *KeyTable { return &KeyTable{conn, database} }

// keyRow is a row of the table.
type keyRow struct {
	ID      string    `ch:"key_id"`
	Version uint64    `ch:"version"`
	Tenant  string    `ch:"tenant_id"`
	Name    string    `ch:"name"`
	Scopes  []string  `ch:"scopes"`
	Hash    string    `ch:"hash"`
	Created time.Time `ch:"created_at"`
	By      string    `ch:"created_by"`
	Expires time.Time `ch:"expires_at"`
	Revoked time.Time `ch:"revoked_at"`
	RevBy   string    `ch:"revoked_by"`
}

const keyColumns = "key_id, version, tenant_id, name, scopes, hash, created_at, created_by, expires_at, revoked_at, revoked_by"

// Keys lists all keys, newest first. More than 100,000 are an error.
func (t *KeyTable) Keys(ctx context.Context) ([]APIKey, error) {
	return t.read(ctx, "ORDER BY created_at DESC, key_id LIMIT "+fmt.Sprint(maxLiveKeys+1))
}

func (t *KeyTable) read(ctx context.Context, where string, args ...any) ([]APIKey, error) {
	var rows []keyRow
	if err := t.conn.Select(ctx, &rows, "SELECT "+keyColumns+" FROM "+t.database+".api_keys FINAL "+where, args...); err != nil {
		return nil, chconn.Wrap("auth: keys", err)
	}
	if len(rows) > maxLiveKeys {
		return nil, audit.E("auth: keys", audit.KindOverloaded, fmt.Errorf("there are more than %d", maxLiveKeys))
	}
	out := make([]APIKey, len(rows))
	for i, r := range rows {
		out[i] = APIKey{ID: r.ID, Tenant: r.Tenant, Name: r.Name, Created: r.Created, By: r.By, Expires: stored(r.Expires), Revoked: stored(r.Revoked), RevBy: r.RevBy}
		copy(out[i].hash[:], r.Hash)
		for _, s := range r.Scopes {
			out[i].Scopes = append(out[i].Scopes, Permission(s))
		}
	}
	return out, nil
}

// stored gives the zero time for the table's, which is 1970.
func stored(t time.Time) time.Time {
	if t.UnixMilli() == 0 {
		return time.Time{}
	}
	return t.UTC()
}

func storable(t time.Time) time.Time {
	if t.IsZero() {
		return time.UnixMilli(0).UTC()
	}
	return t.UTC()
}

// Add stores a new key.
func (t *KeyTable) Add(ctx context.Context, k APIKey) error { return t.write(ctx, k, 1) }

// Revoke revokes a key and gives it. A key that was revoked before stays so: the first time is given.
func (t *KeyTable) Revoke(ctx context.Context, id, by string, now time.Time) (APIKey, error) {
	found, err := t.read(ctx, "WHERE key_id = {id:String}", clickhouse.Named("id", id))
	switch {
	case err != nil:
		return APIKey{}, err
	case len(found) == 0:
		return APIKey{}, audit.E("auth: keys", audit.KindInvalid, errors.New("there is no key of this id; 'evenhand keys list' shows all"))
	case !found[0].Revoked.IsZero():
		return found[0], nil
	}
	k := found[0]
	k.Revoked, k.RevBy = now.UTC(), by
	return k, t.write(ctx, k, 2)
}

// Usable counts keys that are neither revoked nor expired.
func (t *KeyTable) Usable(ctx context.Context) (n uint64, err error) {
	err = t.conn.QueryRow(ctx, "SELECT count() FROM "+t.database+".api_keys FINAL WHERE toUnixTimestamp64Milli(revoked_at) = 0 AND (toUnixTimestamp64Milli(expires_at) = 0 OR expires_at > now64(3))").Scan(&n)
	return n, chconn.Wrap("auth: keys", err)
}

func (t *KeyTable) write(ctx context.Context, k APIKey, version uint64) error {
	batch, err := t.conn.PrepareBatch(ctx, "INSERT INTO "+t.database+".api_keys ("+keyColumns+")")
	if err != nil {
		return chconn.Wrap("auth: keys", err)
	}
	defer func() { _ = batch.Abort() }()
	row := keyRow{ID: k.ID, Version: version, Tenant: k.Tenant, Name: k.Name, Hash: string(k.hash[:]), Created: storable(k.Created), By: k.By,
		Expires: storable(k.Expires), Revoked: storable(k.Revoked), RevBy: k.RevBy}
	for _, s := range k.Scopes {
		row.Scopes = append(row.Scopes, string(s))
	}
	if err := batch.AppendStruct(&row); err != nil {
		return chconn.Wrap("auth: keys", err)
	}
	return chconn.Wrap("auth: keys", batch.Send())
}
