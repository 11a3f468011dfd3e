package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/sinks"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fresh gives an empty database on the shared engine.
func fresh(t *testing.T) (driver.Conn, string) {
	t.Helper()
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	return enginetest.Conn(t, cfg), cfg.Database
}

var brokerTime = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// record makes the i-th delivery of event id with some content.
func record(id int, content string, offset int64) audit.Record {
	in := &audit.Interaction{
		ID: audit.DeriveID("event", fmt.Sprint(id)), Tenant: "acme", Time: brokerTime.Add(-time.Minute), TraceID: fmt.Sprintf("%032x", id+1),
		Domain: audit.HR, Provider: "openai", Model: "gpt-4o-mini", Status: "success", UserID: "u1", Prompt: "Who fits?", Query: "Who fits?", Response: content,
		PromptTokens: 3, ResponseTokens: audit.Unknown, LatencyMS: 10, CostMicroUSD: 250, ContainedPII: -1, ContainedProprietary: -1, ContainedCustomerData: 1,
	}
	copy(in.Digest[:], fmt.Sprintf("%-32s", content))
	v := &audit.Verdict{
		ResultID: audit.HotResultID(in.Tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: "r1", Status: audit.Done, Detected: true,
		BiasTypes: []string{"charter.age", "charter.sex"}, BiasSum: 1_200_000, Threshold: 150_000, Flagged: true, Action: audit.Warn, Confidence: 800_000, MaxSeverity: 3,
		Mitigation: audit.MitigationBlock, Scores: []audit.NamedScore{{Name: "bias", Value: 1_000_000}, {Name: "charter.sex", Value: 600_000}},
		Findings: []audit.Finding{
			{Kind: "charter.sex", Rule: "sex.a", RuleVersion: "1", Ground: audit.Sex, Severity: audit.High, Score: 1_200_000, Confidence: 800_000, Side: audit.Output, Span: audit.Span{Start: 0, End: 3}},
			{Kind: "charter.age", Rule: "age.b", RuleVersion: "1", Ground: audit.Age, Severity: audit.Medium, Score: 600_000, Confidence: 700_000, Side: audit.Output, Span: audit.Span{Start: 1, End: 4}},
		},
		Time: brokerTime.Add(time.Second), Duration: 55 * time.Microsecond,
	}
	return audit.Record{Origin: audit.Origin{Topic: "llm.interactions", Partition: 1, Offset: offset, BrokerTime: brokerTime.Add(time.Duration(offset) * time.Millisecond)}, Interaction: in, Verdict: v}
}

func send(t *testing.T, s *chsink.Sink, b *sinks.Batch) {
	t.Helper()
	p, err := s.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func one[T any](t *testing.T, conn driver.Conn, q string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), q).Scan(&v); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return v
}

func batch(records []audit.Record, rejected ...audit.Rejected) *sinks.Batch {
	m := sinks.Marker{Topic: "llm.interactions", Partition: 1, Generation: 1, Rows: uint32(len(records)), Rejected: uint32(len(rejected))}
	m.Lo = records[0].Origin.Offset
	m.Hi = m.Lo + int64(len(records)+len(rejected)) - 1
	m.First = sinks.Edge{Offset: m.Lo, Time: records[0].Origin.BrokerTime, Hash: 1<<63 + 5}
	m.Last = sinks.Edge{Offset: m.Hi, Time: records[len(records)-1].Origin.BrokerTime, Hash: 7}
	return &sinks.Batch{Records: records, Rejected: rejected, Markers: []sinks.Marker{m}}
}

func TestWritingARangeAgainChangesNothing(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	b := batch([]audit.Record{record(1, "one", 0), record(2, "two", 1)},
		audit.Rejected{Origin: audit.Origin{Topic: "llm.interactions", Partition: 1, Offset: 2, BrokerTime: brokerTime}, Tenant: "acme", Reason: "bad_json", Detail: "at byte 3", Value: []byte("{\xff")})
	p, err := s.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the same Prepared may be sent again after an unknown outcome
		if err := p.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string]uint64{"interactions": 2, "verdicts": 2, "audit_current": 2, "interaction_texts": 2*3 + 1, "interaction_users": 2, "rejected": 1, "ingest_batches": 1} {
		if got := one[uint64](t, conn, "SELECT count() FROM "+db+"."+table+" FINAL"); got != want {
			t.Errorf("%s holds %d rows under FINAL, want %d", table, got, want)
		}
	}
	rep, err := store.New(conn, db).Check(t.Context())
	if err != nil || !rep.OK() {
		t.Errorf("check: %v %+v", err, rep)
	}
	if got := one[string](t, conn, "SELECT text FROM "+db+".interaction_texts FINAL WHERE kind = 'rejected'"); got != `{"key":"","value_base64":"e/8="}` {
		t.Errorf("rejected text %s", got)
	}
}

func TestMarkersComeBackAsWritten(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	first, second := batch([]audit.Record{record(1, "one", 0), record(2, "two", 1)}), batch([]audit.Record{record(3, "three", 2)})
	send(t, s, first)
	send(t, s, second)
	hole := sinks.Marker{Topic: "llm.interactions", Partition: 1, Generation: 1, Lo: 3, Hi: 9, Skipped: 7}
	send(t, s, &sinks.Batch{Markers: []sinks.Marker{hole}})
	ms, epoch, err := s.Markers(t.Context(), "llm.interactions", 1, 1)
	if err != nil || epoch != 0 || len(ms) != 3 || ms[0] != first.Markers[0] || ms[1] != second.Markers[0] || ms[2] != hole {
		t.Errorf("markers %+v, epoch %d, %v", ms, epoch, err)
	}
	if ms, _, _ := s.Markers(t.Context(), "llm.interactions", 1, 3); len(ms) != 1 || ms[0] != hole {
		t.Errorf("from 3: %+v", ms)
	}
	replaced := hole
	replaced.Epoch, replaced.Lo, replaced.Hi, replaced.Skipped = 1, 0, 0, 1
	send(t, s, &sinks.Batch{Markers: []sinks.Marker{replaced}})
	if ms, epoch, _ := s.Markers(t.Context(), "llm.interactions", 1, 0); epoch != 1 || len(ms) != 1 || ms[0] != replaced {
		t.Errorf("the newest epoch alone counts: %+v %d", ms, epoch)
	}
	if ms, epoch, err := s.Markers(t.Context(), "llm.interactions", 2, 0); err != nil || epoch != 0 || len(ms) != 0 {
		t.Errorf("another partition has none: %+v %d %v", ms, epoch, err)
	}
}

func TestEventsOfARangeAreThoseThatWerePublished(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	b := batch([]audit.Record{record(1, "one", 0), record(2, "two", 1)})
	send(t, s, b)
	evs, err := s.Events(t.Context(), b.Markers[0])
	if err != nil || len(evs) != 2 {
		t.Fatalf("%v %v", evs, err)
	}
	want := map[audit.ID]audit.StreamEvent{}
	for i := range b.Records {
		want[b.Records[i].Interaction.ID] = b.Records[i].Event()
	}
	for _, e := range evs {
		if got, w := fmt.Sprint(e), fmt.Sprint(want[e.AuditID]); got != w {
			t.Errorf("got  %s\nwant %s", got, w)
		}
	}
}

// The cases of delivery that keys and versions are made for.
func TestTheFirstDeliveryWins(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	send(t, s, batch([]audit.Record{record(1, "same", 0)}))

	again := record(1, "same", 50) // the same event at another offset and partition, after a rule upgrade
	again.Origin.Partition = 3
	again.Verdict.RuleSet, again.Verdict.Detected, again.Verdict.Findings = "r2", false, nil
	again.Verdict.BiasTypes, again.Verdict.BiasSum, again.Verdict.Flagged = nil, 0, false
	other := record(1, "other content", 51) // the same id with other content
	b := batch([]audit.Record{again, other})
	b.Markers[0].Partition, b.Markers[0].Lo, b.Markers[0].Hi, b.Markers[0].Rows = 3, 50, 50, 1
	m := b.Markers[0]
	m.Partition, m.Lo, m.Hi = 1, 51, 51
	gap := sinks.Marker{Topic: m.Topic, Partition: 1, Generation: 1, Lo: 1, Hi: 50, Skipped: 50}
	b.Markers = append(b.Markers, gap, m)
	send(t, s, b)

	if n := one[uint64](t, conn, "SELECT count() FROM "+db+".interactions FINAL"); n != 2 {
		t.Errorf("%d rows: the re-delivery must fold, other content must stay", n)
	}
	if off := one[int64](t, conn, "SELECT offset FROM "+db+".interactions FINAL WHERE content_digest = toFixedString('same', 32) OR startsWith(content_digest, 'same')"); off != 0 {
		t.Errorf("offset %d: the first delivery wins", off)
	}
	if rs := one[string](t, conn, "SELECT rule_set FROM "+db+".verdicts FINAL WHERE startsWith(content_digest, 'same')"); rs != "r1" {
		t.Errorf("rule set %s: the first verdict stays", rs)
	}
	if d := one[uint8](t, conn, "SELECT bias_detected FROM "+db+".audit_current FINAL WHERE startsWith(content_digest, 'same')"); d != 1 {
		t.Error("the flat row must say what the first verdict says")
	}
	rep, err := store.New(conn, db).Check(t.Context())
	if err != nil || !rep.OK() || rep.Duplicates != 1 || rep.IDConflicts != 1 {
		t.Errorf("check: %v %+v", err, rep)
	}
}

func TestABigBatchOverManyDays(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	var rs []audit.Record
	for i := range 3000 {
		r := record(i, fmt.Sprint("text ", i), int64(i))
		r.Interaction.Time = r.Interaction.Time.AddDate(0, 0, -i%90)
		rs = append(rs, r)
	}
	send(t, s, batch(rs))
	if n := one[uint64](t, conn, "SELECT count() FROM "+db+".audit_current FINAL"); n != 3000 {
		t.Errorf("%d rows", n)
	}
}

func TestARuleSetIsNotedOnce(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	for range 2 {
		if err := s.RuleSet(t.Context(), "r1", map[string]string{"charter.sex": "2026.11.1", "charter.age": "7"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := one[string](t, conn, "SELECT arrayStringConcat(arraySort(groupArray(concat(rule_set, ' ', kind, ' ', rule_version))), ', ') FROM "+db+".rule_sets"); got != "r1 charter.age 7, r1 charter.sex 2026.11.1" {
		t.Error(got)
	}
	if n := one[uint64](t, conn, "SELECT countIf(bitNot(version) = toUnixTimestamp64Milli(first_seen)) FROM "+db+".rule_sets"); n != 2 {
		t.Error("a later row would win")
	}
}
