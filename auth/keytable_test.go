package auth

import (
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	chschema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/store/migrate"
)

// table is an empty table api_keys in a database of the test's own.
func table(t *testing.T) *KeyTable {
	t.Helper()
	cfg := enginetest.Database(t)
	o := chschema.Options{Database: cfg.Database, Embedded: true}
	opts, err := chconn.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(opts)
	t.Cleanup(func() { _ = db.Close() })
	if err := migrate.Run(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	conn, err := chconn.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return NewKeyTable(conn, cfg.Database)
}

func TestKeyTable(t *testing.T) {
	kt := table(t)
	ctx := t.Context()
	if n, err := kt.Usable(ctx); err != nil || n != 0 {
		t.Fatalf("%d, %v", n, err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	k, raw, err := NewAPIKey("acme", "crawler 'x'", []Permission{Read, Ingest}, "ann", now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	past, _, err := NewAPIKey("acme", "old", []Permission{Read}, "ann", now.Add(-2*time.Hour), now.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []APIKey{k, past} {
		if err := kt.Add(ctx, each); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := kt.Usable(ctx); err != nil || n != 1 {
		t.Fatalf("%d usable, %v", n, err)
	}
	a := made(t, Config{Required: true, Keys: kt, KeyHold: time.Hour}, Options{})
	p, err := a.Authenticate(request(raw.Reveal()))
	if err != nil || p.Tenant != "acme" || !slices.Equal(p.May, []Permission{Ingest, Read}) {
		t.Fatalf("%+v, %v", p, err)
	}
	list, err := kt.Keys(ctx)
	if err != nil || len(list) != 2 || list[0].ID != k.ID || list[0].Name != k.Name || !list[0].Created.Equal(k.Created) || !list[0].Expires.Equal(k.Expires) || !list[0].Revoked.IsZero() || list[0].hash != k.hash || list[0].By != "ann" {
		t.Fatalf("%+v, %v", list, err)
	}
	first, err := kt.Revoke(ctx, k.ID, "ben", now)
	if err != nil || !first.Revoked.Equal(now) || first.RevBy != "ben" {
		t.Fatalf("%+v, %v", first, err)
	}
	if err := kt.Add(ctx, k); err != nil { // late, or sent twice: the revocation stands
		t.Fatal(err)
	}
	again, err := kt.Revoke(ctx, k.ID, "eve", now.Add(time.Minute))
	if err != nil || !again.Revoked.Equal(now) || again.RevBy != "ben" {
		t.Errorf("%+v, %v", again, err)
	}
	if n, err := kt.Usable(ctx); err != nil || n != 0 {
		t.Errorf("%d usable, %v", n, err)
	}
	if _, err := kt.Revoke(ctx, "aaaaaaaaaaaaaaaa", "ben", now); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
	b := made(t, Config{Required: true, Keys: kt, KeyHold: time.Hour}, Options{})
	_, err = b.Authenticate(request(raw.Reveal()))
	says(t, err, 401, KeyRevoked, raw.Reveal())
}
