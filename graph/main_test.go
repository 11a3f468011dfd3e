package graph_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/sinks"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// fixture is a store with a schema in front of it.
type fixture struct {
	api
	conn driver.Conn
	db   string
	*store.Store
	sent int64
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	at := enginetest.Database(t)
	migratetest.Run(t, at)
	f := &fixture{conn: enginetest.Conn(t, at), db: at.Database}
	f.Store = store.New(f.conn, f.db)
	f.api = newAPI(t, graph.Parts{Store: f.Store})
	return f
}

// api asks as HTTP would.
type api struct {
	testing.TB
	ex *executor.Executor
}

func newAPI(t testing.TB, p graph.Parts) api {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	p.Log = log
	e := executor.New(graph.New(p).Schema())
	e.SetErrorPresenter(graph.Presenter(log))
	e.SetRecoverFunc(graph.Recoverer(log))
	return api{t, e}
}

// as makes a caller of tenant acme.
func as(r auth.Role) *auth.Principal {
	return &auth.Principal{Tenant: "acme", Subject: "ann", Roles: []auth.Role{r}, May: auth.Grants(r), Verified: true}
}

var admin = as(auth.Admin)

// answer is what a caller gets.
type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors []struct {
		Message    string         `json:"message"`
		Path       []any          `json:"path"`
		Extensions map[string]any `json:"extensions"`
	} `json:"errors"`
}

// codes are those of the errors, joined.
func (a *answer) codes() string {
	var codes []string
	for _, e := range a.Errors {
		codes = append(codes, fmt.Sprint(e.Extensions["code"]))
	}
	return strings.Join(codes, " ")
}

// ask runs one operation; variables are JSON, "" for none.
func (q api) ask(p *auth.Principal, query, variables string) (a answer) {
	q.Helper()
	return q.askIn(q.Context(), p, query, variables)
}

func (q api) askIn(ctx context.Context, p *auth.Principal, query, variables string) (a answer) {
	q.Helper()
	params := &graphql.RawParams{Query: query}
	if variables != "" {
		d := json.NewDecoder(strings.NewReader(variables))
		d.UseNumber()
		if err := d.Decode(&params.Variables); err != nil {
			q.Fatal(err)
		}
	}
	ctx = graphql.StartOperationTrace(auth.With(ctx, p))
	op, errs := q.ex.CreateOperationContext(ctx, params)
	var res *graphql.Response
	if len(errs) > 0 {
		res = q.ex.DispatchError(graphql.WithOperationContext(ctx, op), errs)
	} else {
		next, ctx := q.ex.DispatchOperation(ctx, op)
		res = next(ctx)
	}
	b, err := json.Marshal(res)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		q.Fatal(err)
	}
	return a
}

// get is ask where nothing may go wrong; the data is read into to.
func (q api) get(p *auth.Principal, query, variables string, to any) {
	q.Helper()
	a := q.ask(p, query, variables)
	if len(a.Errors) > 0 {
		q.Fatalf("%+v", a.Errors)
	}
	if err := json.Unmarshal(a.Data, to); err != nil {
		q.Fatal(err)
	}
}

var noon = time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour) // yesterday's

// sample makes the i-th of a tenant's interactions, a minute apart, with fields that vary independently.
func sample(tenant string, i int) audit.Record {
	pick := func(of ...string) string { return of[i%len(of)] }
	at := noon.Add(-time.Duration(i) * time.Minute)
	in := &audit.Interaction{
		ID: audit.DeriveID(tenant, fmt.Sprint(i)), GivenID: fmt.Sprint(i), Tenant: tenant, Time: at, TraceID: fmt.Sprintf("%032x", i+1),
		Application: pick("crm", "desk"), Domain: audit.Domains[i%len(audit.Domains)], Provider: pick("openai", "anthropic", "mistral"), Model: pick("m-0", "m-1", "m-2", "m-3"),
		UserID: pick("u-0", "u-1", "u-2", "u-3", "u-4", "u-5", "u-6"), UserEmail: "u@example.org", UserRole: "clerk",
		QueryContext: `{"step":1}`, Query: "Should we hire her?", Prompt: "Be brief.\n\nShould we hire her?",
		Messages: `[{"content":"Be brief.","role":"system"},{"content":"Should we hire her?","role":"user"}]`,
		Response: "Héé, women are bad at coding.", SanitizedPrompt: "Should we hire [PERSON]?", RedactionSummary: `{"PERSON":1}`, ErrorMessage: "slow",
		PromptTokens: int32(i), ResponseTokens: audit.Unknown, LatencyMS: 12, CostMicroUSD: 2500, SensitivityScore: pick("low", "medium", "high"),
		ContainedPII: audit.Tristate(i%3 - 1), ContainedProprietary: audit.Unknown, ContainedCustomerData: 1,
		Status: pick("success", "success", "error", "blocked", "success"), Digest: sha256.Sum256(fmt.Append(nil, tenant, i)),
	}
	v := &audit.Verdict{ResultID: audit.HotResultID(tenant, in.ID, in.Digest), Analyzer: audit.HotAnalyzer, RuleSet: "r1", Status: audit.Done, Action: audit.NoAction, Threshold: 300_000, Time: at.Add(time.Second), Duration: 1500 * time.Microsecond}
	o := audit.Origin{Topic: "llm.interactions", Offset: int64(i), BrokerTime: at.Add(time.Second)}
	switch i % 7 {
	case 0, 3:
		level := audit.Severities[i/7%4]
		v.Findings = []audit.Finding{{Kind: "charter.sex", Rule: "sex.capability", RuleVersion: "3", Ground: audit.Sex, Severity: level, Score: level.Weight(), Confidence: audit.Score(550_000 + 50_000*int64(i%8)), Side: audit.Output, Span: audit.Span{Start: 5, End: 17}}}
		v.Detected, v.BiasTypes, v.BiasSum, v.Confidence, v.MaxSeverity = true, []string{"charter.sex"}, level.Weight(), v.Findings[0].Confidence, level.Level()
		v.Flagged = v.BiasSum > v.Threshold
		v.Scores = []audit.NamedScore{{Name: audit.ScoreBias, Value: v.BiasSum}, {Name: audit.ScoreToxicity, Value: 250_000}}
		if v.Flagged {
			v.Action, v.Mitigation = audit.Warn, audit.MitigationRephrase
		}
	case 5:
		v.Findings = []audit.Finding{{Kind: "safety.pii_leakage", Rule: "pii.card", RuleVersion: "1", Severity: audit.Medium, Score: 300_000, Confidence: audit.One, Side: audit.Output, Span: audit.Span{Start: 0, End: 3}, Entity: "CREDIT_CARD"}}
		v.Unsafe, v.Gated, v.SafetySum, v.MaxSeverity, v.Action, v.Mitigation = true, i%2 == 0, 400_000, 2, audit.Block, audit.MitigationRedact
		v.Scores = []audit.NamedScore{{Name: audit.ScorePII, Value: 300_000}, {Name: audit.ScoreSafety, Value: 400_000}}
	case 6:
		v.Status, v.Reason = audit.Failed, "timeout"
	}
	return audit.Record{Origin: o, Interaction: in, Verdict: v}
}

func series(tenant string, n int) (rs []audit.Record) {
	for i := range n {
		rs = append(rs, sample(tenant, i))
	}
	return rs
}

// write stores records as the hot path does.
func (f *fixture) write(rs ...audit.Record) {
	f.Helper()
	for i := range rs {
		rs[i].Origin.Offset = f.sent
		f.sent++
	}
	lo := rs[0].Origin.Offset
	b := &sinks.Batch{Records: rs, Markers: []sinks.Marker{{Topic: "llm.interactions", Lo: lo, Hi: lo + int64(len(rs)) - 1, Rows: uint32(len(rs)), Generation: 1}}}
	p, err := sink.New(f.conn, f.db, sink.Options{}).Prepare(b)
	if err == nil {
		err = p.Send(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) run(sql string, args ...any) {
	f.Helper()
	if err := f.conn.Exec(f.Context(), strings.ReplaceAll(sql, "{{db}}", f.db), args...); err != nil {
		f.Fatal(err)
	}
}
