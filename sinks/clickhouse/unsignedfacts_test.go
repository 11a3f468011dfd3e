package clickhouse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/seal"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// Seals without a signature vouch for what is from before there was one, or from the day of the upgrade, and for nothing that is made up later.
func TestUnsignedFactSeals(t *testing.T) {
	conn, db := fresh(t)
	key, check := withKey(t, conn, db)
	exec := func(sql string) {
		t.Helper()
		if err := conn.Exec(t.Context(), strings.ReplaceAll(sql, "{db}", db)); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	day := func(i int) string { return brokerTime.AddDate(0, 0, -i).Format(time.DateOnly) }
	on := func(i int) string { return " WHERE event_day = toDate('" + day(i) + "')" }

	// A process with the key and one that has none yet, on the day of the upgrade.
	with, without := chsink.New(conn, db, chsink.Options{Seal: key}), chsink.New(conn, db, chsink.Options{})
	facts(t, with, 1, "")
	facts(t, without, 2, "")
	at := brokerTime.AddDate(0, 0, -3)
	opened := &audit.HumanGate{ID: audit.DeriveID("gate of two"), Event: audit.DeriveID("event", "3"), Tenant: "acme", At: at, Opened: at, Expires: at.Add(time.Hour), State: audit.GateOpen, TraceID: "t", Model: "m"}
	decided := *opened
	decided.State, decided.By, decided.Decided, decided.Proposal = audit.GateDenied, "bob", at.Add(time.Minute), audit.NewID(at)
	for _, err := range []error{with.Gate(t.Context(), opened), without.Gate(t.Context(), &decided)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// Hours later another one with the key writes and notes those.
	writers, signing := map[string]uint64{}, uuid.Nil
	rows, err := conn.Query(t.Context(), "SELECT writer, max(n), max(signer != '') FROM "+db+".fact_seals GROUP BY writer")
	if err != nil {
		t.Fatal(err)
	}
	var names, numbers []string
	for rows.Next() {
		var id uuid.UUID
		var n uint64
		var signs uint8
		if err := rows.Scan(&id, &n, &signs); err != nil {
			t.Fatal(err)
		}
		if writers[id.String()] = n; signs == 1 {
			signing = id
		}
		names, numbers = append(names, fmt.Sprint(seal.WriterHash(id))), append(numbers, fmt.Sprint(n))
	}
	_ = rows.Close()
	const columns = "INSERT INTO {db}.fact_seals (writer, n, version, seal_version, sealed_at, stored, `seals.object`, `seals.day`, `seals.tenant`, `seals.name`, `seals.version`, `seals.row`, before, signer, signature) "
	other := uuid.New().String()
	exec(columns + fmt.Sprintf("SELECT '%s', 1, 1, 1, max(sealed_at) + INTERVAL 3 HOUR, 0, ['writer', 'writer'], [toDate(0), toDate(0)], [0, 0], [%s], [0, 0], [%s], '', '%s', 'x' FROM {db}.fact_seals",
		other, strings.Join(names, ", "), strings.Join(numbers, ", "), key.ID()))
	digest := one[string](t, conn, "SELECT "+seal.Ledger.DigestSQL()+" FROM "+db+".fact_seals WHERE writer = '"+other+"'")
	exec(fmt.Sprintf("INSERT INTO {db}.fact_seals SELECT * REPLACE (unhex('%x') AS signature, 1 AS version) FROM {db}.fact_seals WHERE writer = '%s'", key.Sign([32]byte([]byte(digest))), other))
	exec("OPTIMIZE TABLE {db}.fact_seals FINAL")
	found := func(r *store.Report) (out []string) {
		for _, f := range r.Faults {
			if strings.HasPrefix(string(f.Code), "fact_") || strings.HasPrefix(string(f.Code), "seal_") {
				out = append(out, fmt.Sprint(f.Code, " ", f.Day, f.Writer, " ", f.Count))
			}
		}
		slices.Sort(out)
		return out
	}
	if r := check(); len(found(r)) > 0 || r.FactSeals.UnsignedRows != writers[unsignedWriter(writers, signing)] || r.FactSeals.UnsignedFacts != 16 || r.FactSeals.Unsealed+r.FactSeals.Unfinished != 0 {
		t.Fatalf("before: %+v %s", r.FactSeals, found(r))
	}

	first := fmt.Sprintf("fromUnixTimestamp64Milli(%d, 'UTC')", one[time.Time](t, conn, "SELECT min(sealed_at) FROM "+db+".fact_seals").UnixMilli())
	forge := func(i int, at, table string) string {
		id := uuid.New().String()
		f := seal.Facts[slices.IndexFunc(seal.Facts[:], func(f seal.Fact) bool { return f.Table == table })]
		exec(columns + fmt.Sprintf("SELECT '%s', 1, 1, 1, %s, 1, ['%s'], [event_day], [%d], [%s], [version], [%s], '', '', '' FROM {db}.%[3]s FINAL", id, at, table, seal.TenantHash("acme"), f.Name().SQL(nil), f.SQL(nil)) + on(i))
		return id
	}
	invent := func(i int) {
		exec("INSERT INTO {db}.reviews SELECT * REPLACE (generateUUIDv4() AS review_id, toDate('" + day(i) + "') AS event_day) FROM (SELECT * FROM {db}.reviews" + on(2) + ")")
	}
	exec("ALTER TABLE {db}.reviews UPDATE decision = 'dismissed'" + on(1) + " SETTINGS mutations_sync = 1")
	altered := forge(1, first, "reviews")
	invent(4)
	invented := forge(4, first, "reviews")
	invent(5)
	forge(5, "toDateTime64('"+brokerTime.AddDate(0, 0, -50).Format(time.DateOnly)+"', 3, 'UTC')", "reviews")
	late := forge(2, first+" + INTERVAL 25 HOUR", "feedback")
	exec("INSERT INTO {db}.fact_seals SELECT * REPLACE (n + 1 AS n, " + seal.Ledger.DigestSQL() + " AS before, '' AS signer, '' AS signature) FROM {db}.fact_seals WHERE writer = '" + signing.String() + "' ORDER BY n DESC LIMIT 1")

	got := found(check())
	want := []string{"fact_altered " + day(1) + " 1", "fact_added " + day(4) + " 1", "fact_added " + day(5) + " 1"}
	for _, id := range []string{altered, invented, late, signing.String()} {
		want = append(want, "seal_unsigned "+id+" 1")
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// unsignedWriter is the one that is not the other.
func unsignedWriter(writers map[string]uint64, signing uuid.UUID) string {
	for id := range writers {
		if id != signing.String() {
			return id
		}
	}
	return ""
}
