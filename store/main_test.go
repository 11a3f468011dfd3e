package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// fixture is a migrated database with helpers that write rows as the sink does.
type fixture struct {
	testing.TB
	conn driver.Conn
	db   string
	*store.Store
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	conn := enginetest.Conn(t, cfg)
	return &fixture{TB: t, conn: conn, db: cfg.Database, Store: store.New(conn, cfg.Database)}
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if err := f.conn.Exec(f.Context(), strings.ReplaceAll(sql, "{{db}}", f.db), args...); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) count(sql string) (n uint64) {
	f.Helper()
	if err := f.conn.QueryRow(context.Background(), strings.ReplaceAll(sql, "{{db}}", f.db)).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

// keepUnmerged stops merges, so that versions stay apart in parts.
func (f *fixture) keepUnmerged() {
	for _, table := range []string{"interactions", "verdicts", "audit_current", "interaction_texts"} {
		f.exec("SYSTEM STOP MERGES {{db}}." + table)
	}
}

// event is an interaction with a verdict as the sink would get them.
type event struct {
	tenant   string
	id       audit.ID
	content  string // stands for the whole content; the digest is made of it
	at       time.Time
	broker   time.Time
	part     int32
	offset   int64
	user     string
	prompt   string
	response string
	domain   audit.Domain
	app      string
	provider string
	model    string
	sens     string
	flagged  bool
	findings []audit.Finding
	status   audit.Status
	reason   string
	facts    int
	reviewed bool
	review   string // confirmed or dismissed
}

func (e event) digest() [32]byte { return sha256.Sum256([]byte(e.content)) }

func (e event) origin() audit.Origin {
	return audit.Origin{Topic: "llm.interactions", Partition: int(e.part), Offset: e.offset, BrokerTime: e.broker}
}

func (e event) kinds() (kinds, bias []string) {
	for _, f := range e.findings {
		if f.Side == audit.Output {
			kinds = append(kinds, f.Kind)
			if f.Ground != "" {
				bias = append(bias, f.Kind)
			}
		}
	}
	return kinds, bias
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// row is a row by column name.
type row = map[string]any

// insert writes rows of equal columns as one block.
func (f *fixture) insert(table string, rows ...row) {
	f.Helper()
	if len(rows) == 0 {
		return
	}
	columns := slices.Sorted(maps.Keys(rows[0]))
	var names []string
	for _, c := range columns {
		names = append(names, "`"+c+"`")
	}
	b, err := f.conn.PrepareBatch(f.Context(), fmt.Sprintf("INSERT INTO %s.%s (%s)", f.db, table, strings.Join(names, ", ")))
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range rows {
		var values []any
		for _, c := range columns {
			values = append(values, r[c])
		}
		if err := b.Append(values...); err != nil {
			f.Fatal(err)
		}
	}
	if err := b.Send(); err != nil {
		f.Fatal(err)
	}
}

// write stores events with all that the hot path writes but the marker.
func (f *fixture) write(events ...event) {
	f.Helper()
	var texts, users, verdicts, facts, flat []row
	for _, e := range events {
		texts = append(texts, e.textRows()...)
		if e.user != "" {
			users = append(users, row{"tenant_id": e.tenant, "user_id": e.user, "event_day": e.at, "event_id": e.id.String(), "sort_ts": e.at, "version": e.origin().Version()})
		}
		verdicts, facts, flat = append(verdicts, e.verdictRow()), append(facts, e.factRow()), append(flat, e.flatRow())
	}
	f.insert("interaction_texts", texts...)
	f.insert("interaction_users", users...)
	f.insert("verdicts", verdicts...)
	f.insert("interactions", facts...)
	f.insert("audit_current", flat...)
}

func (e event) textRows() (rows []row) {
	d := e.digest()
	user := fmt.Sprintf(`{"id":%q,"email":"u@example.org","role":"clerk"}`, e.user)
	for kind, text := range map[string]string{"prompt": e.prompt, "response": e.response, "user": user} {
		rows = append(rows, row{"tenant_id": e.tenant, "event_day": e.at, "event_id": e.id.String(), "kind": kind,
			"source_id": string(d[:]), "version": e.origin().Version(), "text": text})
	}
	return rows
}

func (e event) factRow() row {
	d := e.digest()
	return row{
		"tenant_id": e.tenant, "event_day": e.at, "event_id": e.id.String(), "content_digest": string(d[:]), "version": e.origin().Version(),
		"event_ts": e.at, "sort_ts": e.at, "topic": "llm.interactions", "partition": e.part, "offset": e.offset, "broker_ts": e.broker,
		"trace_id": trace(e.id), "app": e.app, "domain": string(e.domain), "provider": e.provider, "model": e.model,
		"sensitivity_score": e.sens, "status": "success", "prompt_tokens": int32(audit.Unknown), "cost_micro_usd": int64(2500),
		"contained_pii": int8(-1), "contained_proprietary": int8(0), "contained_customer_data": int8(1),
		"prompt_chars": uint32(len(e.prompt)), "response_chars": uint32(len(e.response)),
	}
}

func trace(id audit.ID) string { return strings.ReplaceAll(id.String(), "-", "") }

// judged are the columns that verdicts and audit_current share.
func (e event) judged() row {
	_, bias := e.kinds()
	var top uint8
	var sum int64
	for _, f := range e.findings {
		if f.Side == audit.Output {
			top, sum = max(top, f.Severity.Level()), sum+int64(f.Score)
		}
	}
	return row{
		"bias_detected": flag(len(bias) > 0), "flagged": flag(e.flagged), "bias_types": bias, "bias_sum": sum, "threshold": int64(300_000),
		"max_severity": top, "confidence": int32(800_000 * int32(flag(len(bias) > 0))), "action": "none", "mitigation": "",
	}
}

func (e event) verdictRow() row {
	d := e.digest()
	out := e.judged()
	var kind, rule, version, ground, side, entity []string
	var level, abusive []uint8
	var score []int64
	var conf []int32
	var start, end []uint32
	for _, x := range e.findings {
		kind, rule, version, ground = append(kind, x.Kind), append(rule, x.Rule), append(version, "2026.11.1"), append(ground, string(x.Ground))
		side, entity, level, abusive = append(side, string(x.Side)), append(entity, x.Entity), append(level, x.Severity.Level()), append(abusive, flag(x.Abusive))
		score, conf, start, end = append(score, int64(x.Score)), append(conf, int32(x.Confidence)), append(start, x.Span.Start), append(end, x.Span.End)
	}
	maps.Copy(out, row{
		"tenant_id": e.tenant, "event_day": e.at, "event_id": e.id.String(), "content_digest": string(d[:]), "analyzer": audit.HotAnalyzer,
		"result_id": audit.HotResultID(e.tenant, e.id, d).String(), "version": e.origin().Version(), "rule_set": "r1", "status": string(e.status), "reason": e.reason,
		"findings.kind": kind, "findings.rule": rule, "findings.rule_version": version, "findings.ground": ground, "findings.severity": level,
		"findings.score": score, "findings.confidence": conf, "findings.side": side, "findings.start": start, "findings.end": end,
		"findings.abusive": abusive, "findings.entity": entity, "scores.name": []string{"bias", "toxicity"}, "scores.value": []int64{out["bias_sum"].(int64), 250_000},
		"analysis_ts": e.broker, "duration_us": uint32(120),
	})
	return out
}

func (e event) flatRow() row {
	d := e.digest()
	kinds, _ := e.kinds()
	var severities []uint8
	for _, f := range e.findings {
		if f.Side == audit.Output {
			severities = append(severities, f.Severity.Level())
		}
	}
	out := e.judged()
	maps.Copy(out, row{
		"tenant_id": e.tenant, "event_day": e.at, "sort_ts": e.at, "event_id": e.id.String(), "content_digest": string(d[:]),
		"version": e.origin().CurrentVersion(max(1, e.facts)), "event_ts": e.at, "broker_ts": e.broker, "trace_id": trace(e.id),
		"app": e.app, "domain": string(e.domain), "provider": e.provider, "model": e.model, "sensitivity_score": e.sens, "status": "success",
		"analysis_status": string(e.status), "rule_set": "r1", "cost_micro_usd": int64(2500), "kinds": kinds, "severities": severities, "n_findings": uint16(len(e.findings)), "toxicity": int64(250_000),
		"human_reviewed": flag(e.reviewed), "review": e.review, "topic": "llm.interactions", "partition": e.part, "offset": e.offset,
	})
	return out
}

// mark writes a commit marker.
func (f *fixture) mark(part int32, generation int32, lo, hi int64, rows, rejected uint32) {
	f.insert("ingest_batches", row{"topic": "llm.interactions", "partition": part, "lo": lo, "hi": hi, "generation": generation,
		"version": uint64(generation), "rows": rows, "rejected": rejected, "skipped": uint32(hi-lo+1) - rows - rejected})
}

var noon = time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour) // yesterday at noon

// sample makes the i-th of a series of events, a minute apart, with varied fields.
func sample(tenant string, i int) event {
	e := event{
		tenant: tenant, id: audit.DeriveID(tenant, fmt.Sprint(i)), content: fmt.Sprint(tenant, i), at: noon.Add(-time.Duration(i) * time.Minute),
		offset: int64(i), user: fmt.Sprintf("user-%d", i%3), prompt: "Should we hire her?", response: "Héé, women are bad at coding.",
		domain: audit.Domains[i%len(audit.Domains)], app: fmt.Sprintf("app-%d", i%2), provider: []string{"openai", "anthropic", "mistral"}[i%3],
		model: fmt.Sprintf("m-%d", i%4), sens: []string{"low", "medium", "high"}[i%3], status: audit.Done,
	}
	e.broker = e.at.Add(time.Second)
	if i%4 == 0 {
		e.flagged = true
		e.findings = []audit.Finding{{Kind: "charter.sex", Rule: "sex.capability", Ground: audit.Sex, Severity: audit.High, Score: 600_000,
			Confidence: 800_000, Side: audit.Output, Span: audit.Span{Start: 5, End: 17}}}
	}
	if i%6 == 0 {
		e.findings = append(e.findings, audit.Finding{Kind: "safety.pii_leakage", Rule: "pii.card", Severity: audit.Medium, Side: audit.Input, Span: audit.Span{Start: 0, End: 6}})
	}
	return e
}

func series(tenant string, n int) []event {
	var es []event
	for i := range n {
		es = append(es, sample(tenant, i))
	}
	return es
}
