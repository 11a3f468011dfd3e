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
	"github.com/evenhand/evenhand/sinks"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// unsealed are the columns that a seal does not take in: what a later analysis may set, what only other analyzers
// fill, when and how long. A verdict of another content is one that is missing.
var unsealed = map[string][]string{
	"interactions": {"contained_pii", "sensitivity_score", "written_at"},
	"verdicts":     {"content_digest", "analysis_ts", "duration_us", "written_at", "said", "input_digest", "calls", "tokens_in", "tokens_out", "cost_micro_usd"},
}

// sealedStore holds n interactions, each of a day of its own and the i-th at offset i, under one signed marker.
func sealedStore(t *testing.T, n int) (s *chsink.Sink, exec func(q string, args ...any), check func() *store.Report, day func(i int) string) {
	t.Helper()
	conn, db := fresh(t)
	key, err := seal.MakeKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	public := seal.Public{}
	public.Add(key.Public())
	s = chsink.New(conn, db, chsink.Options{Seal: key})
	var rs []audit.Record
	for i := range n {
		r := record(i, fmt.Sprint("answer ", i), int64(i))
		r.Interaction.Time = brokerTime.AddDate(0, 0, -i)
		r.Interaction.Metadata = `{"a":1}`
		rs = append(rs, r)
	}
	for some := range slices.Chunk(rs, 80) {
		send(t, s, batch(some))
	}
	exec = func(q string, args ...any) {
		t.Helper()
		if err := conn.Exec(t.Context(), strings.ReplaceAll(q, "{db}", db), args...); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	check = func() *store.Report {
		t.Helper()
		r, err := store.New(conn, db).CheckWith(t.Context(), store.CheckOptions{Keys: public, AtRest: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return s, exec, check, func(i int) string { return brokerTime.AddDate(0, 0, -i).Format(time.DateOnly) }
}

func faultOf(r *store.Report, code store.FaultCode) uint64 {
	n := uint64(0)
	for _, f := range r.Faults {
		if f.Code == code {
			n += f.Count
		}
	}
	return n
}

// Whatever column of an interaction or of its verdict is altered by hand, the check tells.
func TestEveryColumnIsSealed(t *testing.T) {
	conn, db := fresh(t)
	var columns []column
	for _, table := range []string{"interactions", "verdicts"} {
		rows, err := conn.Query(t.Context(), "SELECT name, type FROM system.columns WHERE database = ? AND table = ? AND NOT is_in_sorting_key AND name != 'version'", db, table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			c := column{table: table}
			if err := rows.Scan(&c.name, &c.kind); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(unsealed[table], c.name) {
				columns = append(columns, c)
			}
		}
		_ = rows.Close()
	}
	if len(columns) < 60 {
		t.Fatalf("%d columns", len(columns))
	}
	_, exec, check, day := sealedStore(t, len(columns))
	if r := check(); !r.OK() || r.Seals.Interactions != uint64(len(columns)) || r.Seals.Verdicts != r.Seals.Interactions || r.Seals.Texts != r.Seals.Interactions || r.Seals.Signed != r.Seals.Markers {
		t.Fatalf("before: %+v %+v", r.Seals, r.Faults)
	}
	alterEach(exec, columns, func(i int) string { return "event_day = toDate('" + day(i) + "')" })
	r := check()
	for i, c := range columns {
		want := store.FaultInteractionAltered
		if c.table == "verdicts" {
			want = store.FaultVerdictAltered
		}
		if !slices.ContainsFunc(r.Faults, func(f store.Fault) bool { return f.Code == want && f.Day == day(i) && f.Count == 1 }) {
			t.Errorf("%s.%s was altered and the check did not tell", c.table, c.name)
		}
	}
	if a, v := faultOf(r, store.FaultInteractionAltered), faultOf(r, store.FaultVerdictAltered); a+v < uint64(len(columns)) {
		t.Errorf("%d and %d altered of %d", a, v, len(columns))
	}
}

type column struct{ table, name, kind string }

// alterEach gives each column another value, the i-th in the rows of where(i).
func alterEach(exec func(q string, args ...any), columns []column, where func(i int) string) {
	updates := map[string][]string{}
	for i, c := range columns { // one mutation a table: each reads the table
		updates[c.table] = append(updates[c.table], fmt.Sprintf("`%s` = if(%s, %s, `%[1]s`)", c.name, where(i), another(c.name, c.kind)))
	}
	for table, all := range updates {
		exec("ALTER TABLE {db}." + table + " UPDATE " + strings.Join(all, ", ") + " WHERE 1 SETTINGS mutations_sync = 1")
	}
}

// another is an expression of another value of a column.
func another(name, kind string) string {
	x := "`" + name + "`"
	switch {
	case strings.Contains(name, "."): // Nested: all columns stay of one length
		if strings.Contains(kind, "String") {
			return "arrayMap(x -> concat(x, 'x'), " + x + ")"
		}
		return "arrayMap(x -> x + 1, " + x + ")"
	case strings.HasPrefix(kind, "Array"):
		return "arrayPushBack(" + x + ", 'x')"
	case strings.Contains(kind, "FixedString"):
		return "toFixedString('x', 32)"
	case strings.Contains(kind, "String"):
		return "concat(" + x + ", 'x')"
	case strings.Contains(kind, "Bool"):
		return "NULL"
	case kind == "UUID":
		return "generateUUIDv4()"
	case kind == "UInt8":
		return "1 - " + x
	}
	return x + " + 1"
}

// What is deleted, added or altered behind the program's back is told, and what retention and redelivery do is not.
func TestSeals(t *testing.T) {
	everywhere := []string{"interactions", "verdicts", "audit_current", "interaction_texts", "interaction_users"}
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, s *chsink.Sink, exec func(string, ...any), day func(int) string)
		want map[store.FaultCode]uint64
	}{
		{"nothing", func(*testing.T, *chsink.Sink, func(string, ...any), func(int) string) {}, nil},
		{"an interaction deleted from all tables", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), day func(int) string) {
			for _, table := range everywhere {
				exec("ALTER TABLE {db}." + table + " DELETE WHERE event_day = toDate('" + day(3) + "') SETTINGS mutations_sync = 1")
			}
		}, map[store.FaultCode]uint64{store.FaultInteractionDeleted: 1}},
		{"a text altered, one deleted, all deleted", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), day func(int) string) {
			exec("ALTER TABLE {db}.interaction_texts UPDATE text = concat(text, '.') WHERE kind = 'response' AND event_day = toDate('" + day(1) + "') SETTINGS mutations_sync = 1")
			exec("ALTER TABLE {db}.interaction_texts DELETE WHERE kind = 'metadata' AND event_day = toDate('" + day(2) + "') SETTINGS mutations_sync = 1")
			exec("ALTER TABLE {db}.interaction_texts DELETE WHERE event_day = toDate('" + day(3) + "') SETTINGS mutations_sync = 1")
		}, map[store.FaultCode]uint64{store.FaultTextAltered: 2, store.FaultTextDeleted: 1}},
		{"texts that retention dropped", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), day func(int) string) {
			exec("ALTER TABLE {db}.interaction_texts DELETE WHERE event_day = toDate('" + day(3) + "') SETTINGS mutations_sync = 1")
			exec("INSERT INTO {db}.retention_runs (object, class, period, tenant_id, drop_id, version, action, state, at) SELECT 'interaction_texts', 'std', toDate('" + day(3) + "'), 'acme', generateUUIDv4(), 2, 'drop', 'done', now64(3)")
		}, nil},
		{"a row added by hand", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), day func(int) string) {
			for _, table := range everywhere[:3] {
				exec("INSERT INTO {db}." + table + " SELECT * REPLACE (toUUID('11111111-2222-4333-8444-555555555555') AS event_id) FROM {db}." + table + " WHERE event_day = toDate('" + day(1) + "')")
			}
		}, map[store.FaultCode]uint64{store.FaultInteractionAdded: 1}},
		{"a marker altered", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), _ func(int) string) {
			exec("ALTER TABLE {db}.ingest_batches UPDATE skipped = skipped + 1, rows = rows - 1 WHERE 1 SETTINGS mutations_sync = 1")
		}, map[store.FaultCode]uint64{store.FaultSealBroken: 1}},
		{"a row and its seal altered", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), day func(int) string) {
			exec("ALTER TABLE {db}.verdicts UPDATE flagged = 0 WHERE event_day = toDate('" + day(1) + "') SETTINGS mutations_sync = 1")
			exec("ALTER TABLE {db}.ingest_batches UPDATE `seals.verdict` = arrayMap((x, i) -> if(i = 2, (SELECT any(" + seal.Verdict.SQL(nil) + ") FROM {db}.verdicts WHERE event_day = toDate('" + day(1) +
				"')), x), `seals.verdict`, arrayEnumerate(`seals.verdict`)) WHERE 1 SETTINGS mutations_sync = 1")
		}, map[store.FaultCode]uint64{store.FaultSealBroken: 1}},
		{"rows altered and sealed elsewhere by a marker without a signature", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), day func(int) string) {
			on := " WHERE event_day = toDate('" + day(1) + "')"
			exec("ALTER TABLE {db}.interactions UPDATE model = 'other'" + on + " SETTINGS mutations_sync = 1")
			exec("ALTER TABLE {db}.verdicts UPDATE flagged = 0" + on + " SETTINGS mutations_sync = 1")
			exec("ALTER TABLE {db}.interaction_texts UPDATE text = 'none'" + on + " AND kind = 'response' SETTINGS mutations_sync = 1")
			exec("INSERT INTO {db}.ingest_batches SELECT * REPLACE (0 AS partition, 0 AS lo, 0 AS hi, 1 AS rows, [(SELECT any(" + seal.Event.SQL(nil) + ") FROM {db}.interactions" + on + ")] AS `seals.event`, [(SELECT any(" +
				seal.Interaction.SQL(nil) + ") FROM {db}.interactions" + on + ")] AS `seals.interaction`, [(SELECT any(" + seal.Verdict.SQL(nil) + ") FROM {db}.verdicts" + on + ")] AS `seals.verdict`, [(SELECT " +
				seal.TextsSQL() + " FROM {db}.interaction_texts" + on + " AND " + seal.SealedSQL() + ")] AS `seals.texts`, '' AS signer, '' AS signature) FROM {db}.ingest_batches")
		}, map[store.FaultCode]uint64{store.FaultInteractionAltered: 1, store.FaultVerdictAltered: 1, store.FaultTextAltered: 1}},
		{"a range that the log no longer held", func(t *testing.T, s *chsink.Sink, _ func(string, ...any), _ func(int) string) { send(t, s, lost(5, 9)) }, nil},
		{"an interaction altered and moved into a lost range", func(t *testing.T, s *chsink.Sink, exec func(string, ...any), day func(int) string) {
			send(t, s, lost(5, 9))
			exec("ALTER TABLE {db}.interactions UPDATE model = 'other', offset = 7 WHERE event_day = toDate('" + day(1) + "') SETTINGS mutations_sync = 1")
			exec("ALTER TABLE {db}.verdicts UPDATE flagged = 0 WHERE event_day = toDate('" + day(1) + "') SETTINGS mutations_sync = 1")
			exec("ALTER TABLE {db}.interaction_texts UPDATE text = 'none' WHERE kind = 'response' AND event_day = toDate('" + day(1) + "') SETTINGS mutations_sync = 1")
		}, map[store.FaultCode]uint64{store.FaultInteractionAltered: 1, store.FaultVerdictAltered: 1, store.FaultTextAltered: 1}},
		{"a row added in a lost range", func(t *testing.T, s *chsink.Sink, exec func(string, ...any), day func(int) string) {
			send(t, s, lost(5, 9))
			for _, table := range everywhere[:3] {
				exec("INSERT INTO {db}." + table + " SELECT * REPLACE (toUUID('11111111-2222-4333-8444-555555555555') AS event_id" + map[bool]string{true: ", 7 AS offset"}[table != "verdicts"] + ") FROM {db}." + table + " WHERE event_day = toDate('" + day(1) + "')")
			}
		}, map[store.FaultCode]uint64{store.FaultInteractionAdded: 1}},
		{"seals taken away", func(_ *testing.T, _ *chsink.Sink, exec func(string, ...any), _ func(int) string) {
			exec("ALTER TABLE {db}.ingest_batches UPDATE signer = '', signature = '' WHERE 1 SETTINGS mutations_sync = 1")
		}, nil}, // of one marker alone nothing tells that it ever was signed: see TestSealsTakenAway
		{"delivered again and elsewhere, earlier", func(t *testing.T, s *chsink.Sink, _ func(string, ...any), _ func(int) string) {
			r := record(2, "answer 2", 9)
			r.Interaction.Time, r.Interaction.Metadata = brokerTime.AddDate(0, 0, -2), `{"a":1}`
			r.Origin.Partition, r.Origin.BrokerTime = 0, brokerTime.Add(-time.Hour)
			send(t, s, &sinks.Batch{Records: []audit.Record{r}, Markers: []sinks.Marker{{Topic: r.Origin.Topic, Partition: 0, Lo: 9, Hi: 9, Rows: 1, Generation: 1,
				First: sinks.Edge{Offset: 9, Time: r.Origin.BrokerTime, Hash: 1}, Last: sinks.Edge{Offset: 9, Time: r.Origin.BrokerTime, Hash: 1}}}})
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, exec, check, day := sealedStore(t, 5)
			tc.do(t, s, exec, day)
			r := check()
			got := map[store.FaultCode]uint64{}
			for _, code := range []store.FaultCode{store.FaultInteractionDeleted, store.FaultInteractionAltered, store.FaultInteractionAdded, store.FaultVerdictAltered, store.FaultTextAltered,
				store.FaultTextDeleted, store.FaultSealBroken, store.FaultSealUnknown, store.FaultSealMissing, store.FaultSealUnsigned} {
				if n := faultOf(r, code); n > 0 {
					got[code] = n
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) || tc.want == nil && !r.OK() && tc.name != "seals taken away" {
				t.Errorf("got %v, want %v: %+v", got, tc.want, r.Faults)
			}
		})
	}
}

// lost is a batch that says of a range that the log no longer held it.
func lost(lo, hi int64) *sinks.Batch {
	return &sinks.Batch{Markers: []sinks.Marker{{Topic: "llm.interactions", Partition: 1, Lo: lo, Hi: hi, Skipped: uint32(hi - lo + 1), Generation: 1, Reason: "gap"}}}
}

// What came to an older program first and again to this one is not compared with the seal of the second time, and counted.
func TestDeliveredFirstToAnOlderProgram(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	send(t, s, batch([]audit.Record{record(1, "one", 0)}))
	if err := conn.Exec(t.Context(), "ALTER TABLE "+db+".ingest_batches UPDATE seal_version = 0 WHERE 1 SETTINGS mutations_sync = 1"); err != nil {
		t.Fatal(err)
	}
	send(t, s, batch([]audit.Record{record(1, "one", 1), record(2, "two", 2)}))
	r, err := store.New(conn, db).CheckWith(t.Context(), store.CheckOptions{AtRest: true})
	if err != nil || !r.OK() || r.Seals.Interactions != 1 || r.Seals.UnsealedInteractions != 1 || r.Seals.SealedElsewhere != 1 {
		t.Errorf("%v %+v %+v", err, r.Seals, r.Faults)
	}
}

// After a day with seals or signatures, a marker without is told.
func TestSealsTakenAway(t *testing.T) {
	_, exec, check, _ := sealedStore(t, 90)                                                                                        // two markers
	exec("ALTER TABLE {db}.ingest_batches UPDATE sealed_at = sealed_at - INTERVAL 2 DAY WHERE lo = 0 SETTINGS mutations_sync = 1") // breaks its signature, too
	exec("ALTER TABLE {db}.ingest_batches UPDATE signer = '', signature = '' WHERE lo > 0 SETTINGS mutations_sync = 1")
	if r := check(); faultOf(r, store.FaultSealUnsigned) != 1 || faultOf(r, store.FaultSealBroken) != 1 {
		t.Errorf("%+v", r.Faults)
	}
	exec("ALTER TABLE {db}.ingest_batches UPDATE seal_version = 0 WHERE lo > 0 SETTINGS mutations_sync = 1")
	if r := check(); faultOf(r, store.FaultSealMissing) != 1 {
		t.Errorf("%+v", r.Faults)
	}
}

// A signature is of one key: another installation's does not pass.
func TestSealsOfAnotherKey(t *testing.T) {
	conn, db := fresh(t)
	var keys [2]*seal.Key
	for i := range keys {
		k, err := seal.MakeKey(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = k
	}
	send(t, chsink.New(conn, db, chsink.Options{Seal: keys[0]}), batch([]audit.Record{record(1, "a", 0)}))
	for i, want := range []uint64{0, 1} {
		public := seal.Public{}
		public.Add(keys[i].Public())
		r, err := store.New(conn, db).CheckWith(t.Context(), store.CheckOptions{Keys: public})
		if err != nil || faultOf(r, store.FaultSealUnknown) != want || faultOf(r, store.FaultSealBroken) != 0 {
			t.Errorf("key %d: %v %+v", i, err, r.Faults)
		}
	}
}

// The forms of Go and of the store's SQL are the same for awkward values.
func TestFormsOfAwkwardValues(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	r := record(1, "\x00 quote' back\\slash ü \U0001F642\n", 0)
	r.Interaction.ID = audit.ID(uuid.Max)
	r.Interaction.GivenID, r.Interaction.TraceID, r.Interaction.Model = "x:1,\x00", strings.Repeat("0", 32), "\\N"
	r.Interaction.CostMicroUSD, r.Interaction.LatencyMS = -1, -1
	copy(r.Interaction.Digest[:], "\x00ab\x00\x00")
	r.Verdict.Findings, r.Verdict.Scores, r.Verdict.BiasTypes, r.Verdict.FailedBy = nil, nil, nil, []string{"", "a,b", "1:2"}
	r.Verdict.ResultID = audit.HotResultID(r.Interaction.Tenant, r.Interaction.ID, r.Interaction.Digest)
	r.Verdict.BiasSum = -5
	none := record(2, "", 1)
	none.Interaction.Prompt, none.Interaction.Query, none.Interaction.Response, none.Interaction.UserID = "", "", "", ""
	send(t, s, batch([]audit.Record{r, none}))
	rep, err := store.New(conn, db).CheckWith(t.Context(), store.CheckOptions{})
	if err != nil || !rep.OK() || rep.Seals.Interactions != 2 || rep.Seals.Texts != 2 || rep.Seals.Verdicts != 2 {
		t.Errorf("%v %+v %+v", err, rep.Seals, rep.Faults)
	}
}
