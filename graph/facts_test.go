package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/graph"
	"github.com/evenhand/evenhand/store"
)

// recorder remembers what a mutation asked for.
type recorder struct {
	graph.Facts
	by  *auth.Principal
	id  audit.ID
	got any
	err error
}

func (r *recorder) keep(by *auth.Principal, id audit.ID, got any) (*store.Item, error) {
	r.by, r.id, r.got = by, id, got
	return &store.Item{Tenant: by.Tenant, EventID: id, Time: noon, HumanReviewed: true, BiasTypes: []string{"language"}, BiasDetected: true}, r.err
}

func (r *recorder) UpdateBias(_ context.Context, by *auth.Principal, id audit.ID, b facts.Bias) (*store.Item, error) {
	return r.keep(by, id, b)
}

func (r *recorder) Review(_ context.Context, by *auth.Principal, id audit.ID, v facts.Review) (*store.Item, error) {
	return r.keep(by, id, v)
}

func (r *recorder) Reviews(ctx context.Context, by *auth.Principal, n int, next func(int) (audit.ID, facts.Review, error)) ([]*store.Item, []error) {
	return each(n, next, func(id audit.ID, v facts.Review) (*store.Item, error) { return r.Review(ctx, by, id, v) })
}

// each gives reviews that are asked for at once to what takes one.
func each(n int, next func(int) (audit.ID, facts.Review, error), review func(audit.ID, facts.Review) (*store.Item, error)) ([]*store.Item, []error) {
	items, errs := make([]*store.Item, n), make([]error, n)
	for i := range n {
		id, v, err := next(i)
		if err == nil {
			items[i], err = review(id, v)
		}
		errs[i] = err
	}
	return items, errs
}

func (r *recorder) Reveal(_ context.Context, by *auth.Principal, id, _ audit.ID, reason string) (*store.Item, error) {
	return r.keep(by, id, reason)
}

func (r *recorder) Feedback(_ context.Context, by *auth.Principal, id audit.ID, v facts.Feedback) (*store.Feedback, error) {
	_, err := r.keep(by, id, v)
	return &store.Feedback{ID: id, By: by.Subject, Helped: v.Helped, Note: v.Note, At: noon}, err
}

func (r *recorder) PutTaxonomy(_ context.Context, by *auth.Principal, e store.TaxonomyEntry) (*store.TaxonomyEntry, error) {
	_, err := r.keep(by, audit.ID{}, e)
	return &e, err
}

const (
	updateOp = `mutation($id: ID!, $input: UpdateLlmInteractionAuditBiasInput!) { updateLlmInteractionAuditBias(id: $id, input: $input) { id biasDetected biasType } }`
	reviewOp = `mutation($id: ID!, $input: RecordBiasReviewInput!) { recordBiasReview(id: $id, input: $input) { id humanReviewed } }`
)

func given[T any](v T) facts.Patch[T] { return facts.Patch[T]{Given: true, Value: &v} }

func null[T any]() facts.Patch[T] { return facts.Patch[T]{Given: true} }

// Left out, null and a value are three different things.
func TestInputs(t *testing.T) {
	r := &recorder{}
	q := newAPI(t, graph.Parts{Store: store.New(nil, "none"), Facts: r})
	id := audit.NewID(noon)
	for _, tc := range []struct {
		op, input string
		want      any
	}{
		{updateOp, `{}`, facts.Bias{}},
		{updateOp, `{"biasDetected":null,"biasType":null,"biasScore":null,"biasConfidenceScore":null,"mitigationAction":null,"biasReportSummary":null}`,
			facts.Bias{Detected: null[bool](), Types: null[[]string](), Scores: null[[]audit.NamedScore](), Confidence: null[audit.Score](), Mitigation: null[json.RawMessage](), Report: null[json.RawMessage]()}},
		{updateOp, `{"biasDetected":true,"biasType":["language","representation"],"biasScore":{"b":1,"a":0.25},"biasConfidenceScore":0.86,"mitigationAction":{"type":"REPHRASE_PROMPT","details":"a < b"},"biasReportSummary":{"n":12345678901234567890,"a":[1.50,null]}}`,
			facts.Bias{Detected: given(true), Types: given([]string{"language", "representation"}), Scores: given([]audit.NamedScore{{Name: "a", Value: 250_000}, {Name: "b", Value: audit.One}}),
				Confidence: given(audit.Score(860_000)), Mitigation: given(json.RawMessage(`{"details":"a < b","type":"REPHRASE_PROMPT"}`)), Report: given(json.RawMessage(`{"a":[1.50,null],"n":12345678901234567890}`))}},
		{updateOp, `{"biasType":[]}`, facts.Bias{Types: given([]string{})}},
		{reviewOp, `{"humanReviewed":false}`, facts.Review{}},
		{reviewOp, `{"humanReviewed":true,"humanBiasTag":null,"reviewNotes":null}`, facts.Review{HumanReviewed: true, Tag: null[facts.Tag](), Notes: null[string]()}},
		{reviewOp, `{"humanReviewed":true,"humanBiasTag":{"decision":"dismissed","tags":["language"]},"reviewNotes":"fine"}`,
			facts.Review{HumanReviewed: true, Tag: given(facts.Tag{Decision: "dismissed", Tags: []string{"language"}}), Notes: given("fine")}},
		{reviewOp, `{"humanReviewed":true,"humanBiasTag":["language","sentiment"]}`, facts.Review{HumanReviewed: true, Tag: given(facts.Tag{Tags: []string{"language", "sentiment"}})}},
		{reviewOp, `{"humanReviewed":true,"humanBiasTag":"language"}`, facts.Review{HumanReviewed: true, Tag: given(facts.Tag{Tags: []string{"language"}})}},
		{`mutation($id: ID!, $input: RecordFeedbackInput!) { recordFeedback(id: $id, input: $input) { id by helped note at } }`, `{"helped":true,"note":"yes"}`, facts.Feedback{Helped: new(true), Note: "yes"}},
		{`mutation($id: ID!, $input: RecordFeedbackInput!) { recordFeedback(id: $id, input: $input) { by } }`, `{"helped":null}`, facts.Feedback{}},
	} {
		a := q.ask(admin, tc.op, fmt.Sprintf(`{"id":%q,"input":%s}`, id, tc.input))
		if len(a.Errors) > 0 || !reflect.DeepEqual(r.got, tc.want) || r.id != id || r.by != admin {
			t.Errorf("%s: asked for %+v of %s, want %+v: %+v", tc.input, r.got, r.id, tc.want, a.Errors)
		}
	}
	a := q.ask(admin, `mutation { updateLlmInteractionAuditBias(id: "`+id.String()+`", input: {biasScore: {x: 1, y: 0.5}, biasType: ["language"], biasDetected: true}) { biasType humanReviewed } }`, "")
	if string(a.Data) != `{"updateLlmInteractionAuditBias":{"biasType":["language"],"humanReviewed":true}}` || len(*r.got.(facts.Bias).Scores.Value) != 2 {
		t.Errorf("literals: %s %+v %+v", a.Data, a.Errors, r.got)
	}
	q.ask(admin, `mutation { putTaxonomyEntry(input: {biasKey: "house.style", description: "ours", severityLevel: 2}) { id biasKey severityLevel } }`, "")
	if want := (store.TaxonomyEntry{Key: "house.style", Description: "ours", Severity: 2}); r.got != want {
		t.Errorf("taxonomy: %+v", r.got)
	}
}

// slow takes nearly all the time that a request has for a review.
type slow struct{ *recorder }

func (s slow) Review(ctx context.Context, by *auth.Principal, id audit.ID, v facts.Review) (*store.Item, error) {
	if end, ok := ctx.Deadline(); ok {
		time.Sleep(time.Until(end) * 9 / 10)
	}
	return s.recorder.Review(ctx, by, id, v)
}

func (s slow) Reviews(ctx context.Context, by *auth.Principal, n int, next func(int) (audit.ID, facts.Review, error)) ([]*store.Item, []error) {
	return each(n, next, func(id audit.ID, v facts.Review) (*store.Item, error) { return s.Review(ctx, by, id, v) })
}

// What there is no time for is told of as such; what was stored until then is answered.
func TestManyReviewsWithinTheirTime(t *testing.T) {
	q := newAPI(t, graph.Parts{Store: store.New(nil, "none"), Facts: slow{&recorder{}}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	one := fmt.Sprintf(`{"id":%q,"input":{"humanReviewed":true}}`, audit.NewID(noon))
	a := q.askIn(ctx, admin, `mutation($r: [BiasReviewInput!]!) { recordBiasReviews(inputs: $r) { interaction { humanReviewed } error { code message } } }`, `{"r":[`+one+`,`+one+`]}`)
	const want = `{"recordBiasReviews":[{"interaction":{"humanReviewed":true},"error":null},{"interaction":null,"error":{"code":"OVERLOADED","message":"the request's time was over before this one; send it again"}}]}`
	if string(a.Data) != want || len(a.Errors) > 0 {
		t.Errorf("%s %+v, want %s", a.Data, a.Errors, want)
	}
}

// Faults of the caller name the field and reach no writer.
func TestFaultsNameTheField(t *testing.T) {
	r := &recorder{}
	q := newAPI(t, graph.Parts{Store: store.New(nil, "none"), Facts: r})
	id := fmt.Sprintf(`%q`, audit.NewID(noon))
	for _, tc := range []struct{ query, variables, want string }{
		{updateOp, `{"id":` + id + `,"input":{"biasType":"language"}}`, "biasType: want an array"},
		{updateOp, `{"id":` + id + `,"input":{"biasType":["language",3]}}`, "biasType: want an array"},
		{updateOp, `{"id":` + id + `,"input":{"biasType":{"a":1}}}`, "biasType: want an array"},
		{updateOp, `{"id":` + id + `,"input":{"biasScore":[0.5]}}`, "biasScore: want an object"},
		{updateOp, `{"id":` + id + `,"input":{"biasScore":{"a":"0.5"}}}`, "biasScore: want numbers"},
		{updateOp, `{"id":` + id + `,"input":{"biasScore":{"a":1.5}}}`, "biasScore: want numbers"},
		{updateOp, `{"id":` + id + `,"input":{"biasScore":{"a":1e999}}}`, "biasScore: want numbers"},
		{updateOp, `{"id":` + id + `,"input":{"biasConfidenceScore":86}}`, "biasConfidenceScore: not in 0..1"},
		{updateOp, `{"id":` + id + `,"input":{"mitigationAction":"REPHRASE"}}`, "mitigationAction: want an object"},
		{updateOp, `{"id":` + id + `,"input":{"biasReportSummary":[1]}}`, "biasReportSummary: want an object"},
		{updateOp, `{"id":"42","input":{}}`, "id: not a UUID"},
		{reviewOp, `{"id":` + id + `,"input":{"humanReviewed":true,"humanBiasTag":{"decision":"yes"}}}`, "humanBiasTag.decision: want confirmed, dismissed, unsure"},
		{reviewOp, `{"id":` + id + `,"input":{"humanReviewed":true,"humanBiasTag":{"tags":"a"}}}`, "humanBiasTag.tags: want an array"},
		{reviewOp, `{"id":` + id + `,"input":{"humanReviewed":true,"humanBiasTag":{"by":"me"}}}`, "humanBiasTag.by: unknown member"},
		{reviewOp, `{"id":` + id + `,"input":{"humanReviewed":true,"humanBiasTag":7}}`, "humanBiasTag: want {decision"},
		{`mutation { putTaxonomyEntry(input: {biasKey: "a", severityLevel: 261}) { id } }`, "", "severityLevel: not in 1..5"},
		{`query { llmInteractionAudit(id: "x") { id } }`, "", "id: not a UUID"},
		{`query { llmInteractionAudits(pagination: {limit: 201}) { id } }`, "", "pagination.limit: 201 is not in 1..200"},
		{`query { llmInteractionAudits(pagination: {limit: 0}) { id } }`, "", "pagination.limit: 0"},
		{`query { llmInteractionAudits(pagination: {limit: -1}) { id } }`, "", "pagination.limit: -1"},
		{`query { llmInteractionAudits(pagination: {offset: -1}) { id } }`, "", "pagination.offset: -1"},
		{`query { llmInteractionAudits(pagination: {offset: 10001}) { id } }`, "", "pagination.offset: 10001"},
		{`query { llmInteractionAudits(filter: {llmModel: ""}) { id } }`, "", "filter.llmModel: empty"},
		{`query { llmInteractionAudits(filter: {eventId: "00000000-0000-0000-0000-000000000000"}) { id } }`, "", "filter.eventId: names no event"},
		{`query { llmInteractionAudits(filter: {domain: "law"}) { id } }`, "", "filter.domain: want one of general, hr"},
		{`query { llmInteractionAudits(filter: {biasAnalysisStatus: "fine"}) { id } }`, "", "filter.biasAnalysisStatus: want one of pending"},
		{`query { llmInteractionAudits(filter: {action: "warm"}) { id } }`, "", "filter.action: want one of none"},
		{`query { llmInteractionAudits(filter: {status: "errr"}) { id } }`, "", "filter.status: want one of success, error, blocked"},
		{`query { llmInteractionAudits(filter: {traceId: "ABC"}) { id } }`, "", "filter.traceId: want 32"},
		{`query { llmInteractionAudits(filter: {minConfidence: 2}) { id } }`, "", "filter.minConfidence: not in 0..1"},
		{`query { llmInteractionAudits(filter: {minBiasScore: -0.1}) { id } }`, "", "filter.minBiasScore: not in 0..1"},
		{`query { llmInteractionAudits(filter: {logTimestampStart: "yesterday"}) { id } }`, "", "want an instant in RFC 3339"},
		{`query { llmInteractionAudits(filter: {logTimestampStart: "2026-02-01T00:00:00Z", logTimestampEnd: "2026-01-01T00:00:00Z"}) { id } }`, "", "filter.logTimestampStart: lies behind"},
		{`query { llmInteractionAuditConnection(first: 1000) { totalCount } }`, "", "first: 1000 is not in 1..200"},
		{`query { llmInteractionAuditConnection(after: "x") { totalCount } }`, "", "after: not a cursor"},
		{`query { biasTrend(input: {measure: KIND}) { from } }`, "", "input.kind: measure KIND wants one"},
		{`query { biasTrend(input: {kind: "charter.sex"}) { from } }`, "", "input.kind: goes with measure KIND only"},
		{`query { biasTrend(input: {domain: "law"}) { from } }`, "", "input.domain: want one of general"},
		{`query { coverage(from: "2026-02-01T00:00:00Z", to: "2026-01-01T00:00:00Z") { analysed } }`, "", "from: lies behind"},
		{`query { breaches(first: 0) { nodes { id } } }`, "", "first: 0 is not in 1..200"},
		{`query { breaches(domain: "law") { nodes { id } } }`, "", "domain: want one of general"},
		{`query { breach(id: "1") { id } }`, "", "id: not a UUID"},
		{`query { nothing }`, "", "Cannot query field"},
		{`query { viewer { `, "", "Expected Name"},
		{`query($n: Int!) { llmInteractionAudits(pagination: {limit: $n}) { id } }`, `{"n":"many"}`, "cannot use string as Int"},
	} {
		a := q.ask(admin, tc.query, tc.variables)
		if len(a.Errors) != 1 || a.codes() != string(graph.BadUserInput) || !strings.Contains(a.Errors[0].Message, tc.want) {
			t.Errorf("%s %s: %+v, want %q", tc.query, tc.variables, a.Errors, tc.want)
		}
	}
	if r.got != nil {
		t.Errorf("a faulty input reached the writer: %+v", r.got)
	}
}

// What went wrong has its code; what is no fault of the caller is told in a fixed sentence.
func TestCodes(t *testing.T) {
	const secret = "what the user had asked"
	r := &recorder{}
	q := newAPI(t, graph.Parts{Store: store.New(nil, "none"), Facts: r})
	ask := func() answer {
		return q.ask(admin, `mutation($id: ID!) { revealLlmInteractionAudit(id: $id, reason: "case 7") { id } }`, fmt.Sprintf(`{"id":%q}`, audit.NewID(noon)))
	}
	for _, tc := range []struct {
		err           error
		code, message string
	}{
		{store.ErrNotFound, "NOT_FOUND", "no such interaction"},
		{fmt.Errorf("facts: %w", store.ErrNotFound), "NOT_FOUND", "no such interaction"},
		{audit.E("facts: reveal", audit.KindInvalid, audit.E("check", audit.KindInvalid, errors.New("reason: empty"))), "BAD_USER_INPUT", "reason: empty"},
		{audit.E("facts: reveal", audit.KindOverloaded, errors.New("more than 30 in an hour")), "OVERLOADED", "more than 30 in an hour"},
		{audit.E("facts: reveal", audit.KindUnavailable, errors.New(secret)), "UNAVAILABLE", "try again later"},
		{audit.E("facts: reveal", audit.KindInternal, errors.New(secret)), "INTERNAL", "logged"},
		{errors.New(secret), "INTERNAL", "logged"},
		{context.DeadlineExceeded, "UNAVAILABLE", "try again later"},
		{context.Canceled, "UNAVAILABLE", "try again later"},
		{&graph.Fault{Code: graph.BiasAnalysisFailed, Text: "the analysis failed"}, "BIAS_ANALYSIS_FAILED", "the analysis failed"},
	} {
		r.err = tc.err
		a := ask()
		if a.codes() != tc.code || !strings.Contains(a.Errors[0].Message, tc.message) || strings.Contains(a.Errors[0].Message, secret) {
			t.Errorf("%v: %+v, want %s", tc.err, a.Errors, tc.code)
		}
	}
	var log bytes.Buffer
	present := graph.Presenter(slog.New(slog.NewTextHandler(&log, nil)))
	for _, err := range []error{errors.New(secret), fmt.Errorf("%w", errors.New(secret)), audit.E("graph", audit.KindInvalid, errors.New(secret))} {
		if e := present(t.Context(), err); e.Extensions["code"] == "" {
			t.Errorf("%v has no code", e)
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || strings.Contains(got, secret) {
		t.Errorf("log: %s", got)
	}
	// What was broken off because the operation's time was over: nothing is away, and asking for less helps.
	log.Reset()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for _, err := range []error{audit.E("store: list", audit.KindUnavailable, context.Canceled), context.DeadlineExceeded} {
		if e := present(late, err); e.Extensions["code"] != "OVERLOADED" || !strings.Contains(e.Message, "graphql.timeout") {
			t.Errorf("%v: %+v", err, e)
		}
	}
	if e := present(late, audit.E("store: list", audit.KindInternal, errors.New(secret))); e.Extensions["code"] != "INTERNAL" {
		t.Errorf("%+v", e)
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 2 || strings.Count(got, "level=ERROR") != 1 {
		t.Errorf("log: %s", got)
	}
	broken := newAPI(t, graph.Parts{Store: store.New(nil, "none"), Facts: nil}) // calls what is nil
	if a := broken.ask(admin, reviewOp, fmt.Sprintf(`{"id":%q,"input":{"humanReviewed":true}}`, audit.NewID(noon))); a.codes() != "INTERNAL" || !strings.Contains(a.Errors[0].Message, "logged") {
		t.Errorf("a panic: %+v", a.Errors)
	}
}

// operations are all root fields, each with the permission that it wants.
var operations = map[string]auth.Permission{
	`query { llmInteractionAudit(id: "0") { id } }`:                                 auth.Read,
	`query { llmInteractionAudits { id } }`:                                         auth.Read,
	`query { llmInteractionAuditConnection { totalCount } }`:                        auth.Read,
	`query { biasTaxonomy { id } }`:                                                 auth.Read,
	`query { biasTrend(input: {}) { from } }`:                                       auth.Read,
	`query { coverage { from } }`:                                                   auth.Read,
	`query { breaches { nodes { id } } }`:                                           auth.Read,
	`query { breach(id: "0") { id } }`:                                              auth.Read,
	`query { gates { nodes { id } } }`:                                              auth.Read,
	`query { gate(id: "0") { id } }`:                                                auth.Read,
	`mutation { decideGate(id: "0", decision: DENY) { id } }`:                       auth.Approve,
	`query { viewer { subject } }`:                                                  auth.Read,
	`mutation { createLlmInteractionAudit(input: {}) { id } }`:                      auth.Ingest,
	`mutation { updateLlmInteractionAuditBias(id: "0", input: {}) { id } }`:         auth.Annotate,
	`mutation { recordBiasReview(id: "0", input: {humanReviewed: true}) { id } }`:   auth.Review,
	`mutation { recordBiasReviews(inputs: []) { id } }`:                             auth.Review,
	`mutation { revealLlmInteractionAudit(id: "0", reason: "r") { id } }`:           auth.Review,
	`mutation { recordFeedback(id: "0", input: {}) { id } }`:                        auth.Review,
	`mutation { askJudge(id: "0") { outcome } }`:                                    auth.Review,
	`mutation { putTaxonomyEntry(input: {biasKey: "a", severityLevel: 1}) { id } }`: auth.Administer,
	`subscription { flagged { id } }`:                                               auth.Read,
}

// Nobody gets an answer without a credential, a tenant and the permission.
func TestPermissions(t *testing.T) {
	q := newAPI(t, graph.Parts{Store: store.New(nil, "none")})
	if n := len(served.Query.Fields) - 2 + len(served.Mutation.Fields) + len(served.Subscription.Fields); n != len(operations) {
		t.Errorf("%d operations are tested, the schema has %d", len(operations), n)
	}
	for query, wants := range operations {
		if a := q.ask(nil, query, ""); a.codes() != "UNAUTHENTICATED" {
			t.Errorf("%s without a caller: %s %+v", query, a.Data, a.Errors)
		}
		homeless := as(auth.Admin)
		homeless.Tenant = ""
		if a := q.ask(homeless, query, ""); a.codes() != "FORBIDDEN" {
			t.Errorf("%s without a tenant: %s %+v", query, a.Data, a.Errors)
		}
		for _, has := range auth.Permissions {
			if has == wants {
				continue
			}
			p := &auth.Principal{Tenant: "acme", Subject: "key:1", May: []auth.Permission{has}}
			if a := q.ask(p, query, ""); a.codes() != "FORBIDDEN" || !strings.Contains(a.Errors[0].Message, string(wants)) {
				t.Errorf("%s with %s alone: %s %+v", query, has, a.Data, a.Errors)
			}
		}
	}
	for _, query := range []string{`{ llmInteractionAudits(filter: {tenantId: "beta"}) { id } }`, `{ llmInteractionAuditConnection(filter: {tenantId: "beta"}) { totalCount } }`} {
		if a := q.ask(admin, query, ""); a.codes() != "FORBIDDEN" {
			t.Errorf("another tenant's: %+v", a.Errors)
		}
	}
	if a := q.ask(as(auth.Reviewer), `{ llmInteractionAudits(filter: {userId: "u"}) { id } }`, ""); a.codes() != "FORBIDDEN" {
		t.Errorf("by user, without permission to see people: %+v", a.Errors)
	}
	if a := q.ask(as(auth.Reviewer), `{ viewer { tenantId subject roles permissions } }`, ""); string(a.Data) != `{"viewer":{"tenantId":"acme","subject":"ann","roles":["reviewer"],"permissions":["read","texts","review"]}}` {
		t.Errorf("viewer: %s", a.Data)
	}
}
