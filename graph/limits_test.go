package graph

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// bomb is an operation that must be refused before anything runs.
type bomb struct {
	name, body string
	status     int
	limit      string // that the answer names, "" for none
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

func bombs() []bomb {
	each := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i, i+1)
		}
		return b.String()
	}
	return []bomb{
		{"depth", operation("{" + repeat("llmInteractionAuditConnection{nodes{", 400) + "id" + repeat("}}", 400) + "}"), 200, "depth"},
		{"depth by fragments", operation("{breaches{nodes{...f0}}}" + each(40, "fragment f%d on Breach{interactions{...f%d}}") + "fragment f40 on Breach{id}"), 200, "depth"},
		{"aliases", operation("{" + each(100, "a%d: viewer{b%d:subject}") + "}"), 200, "aliases"},
		{"aliases by fragments", operation("{viewer{" + repeat("...f ", 20) + "}} fragment f on Viewer{a:subject b:subject}"), 200, "aliases"},
		{"fragment cycle", operation("{viewer{...a}} fragment a on Viewer{...b} fragment b on Viewer{...a}"), 200, ""},
		{"fragment cycle that is not used", operation("{viewer{subject}} fragment a on Viewer{subject ...a}"), 200, ""},
		{"laughs", operation("{viewer{...f0}}" + each(60, "fragment f%d on Viewer{...f%[2]d ...f%[2]d ...f%[2]d}") + "fragment f60 on Viewer{subject}"), 200, "fields"},
		{"laughs in inline fragments", operation("{viewer{...f0}}" + each(30, "fragment f%d on Viewer{... on Viewer{...f%[2]d} ... on Viewer{...f%[2]d}}") + "fragment f30 on Viewer{subject}"), 200, "fields"},
		{"field duplication", operation("{" + repeat("viewer{subject} ", 1500) + "}"), 200, "tokens"},
		{"field duplication within the tokens", operation("{viewer{" + repeat("subject ", 4000) + "}}"), 200, "fields"},
		{"fields that merge pair by pair", operation("{" + repeat("llmInteractionAudits{"+repeat("findings{kind} ", 30)+"}", 15) + "}"), 200, ""},
		{"directives", operation("{viewer{subject " + repeat("@skip(if:true) ", 500) + "}}"), 200, "directives"},
		{"directives by fragments", operation("{viewer{" + repeat("...f @include(if:true) ", 60) + "}} fragment f on Viewer{subject}"), 200, "directives"},
		{"1 MiB of a query", operation("{viewer{" + repeat("subject ", (1<<20)/8-200) + "}}"), 200, "tokens"},
		{"1 MiB of comments", operation(repeat("#\n", 340_000) + "{viewer{subject}}"), 200, "tokens"},
		{"1 MiB of one string", operation(`{llmInteractionAudit(id:"` + repeat("x", 1<<20-200) + `"){nothing}}`), 200, ""},
		{"more than a body may have", operation("{viewer{" + repeat("subject ", (1<<20)/8) + "}}"), 413, ""},
		{"nested literals", operation("mutation{createLlmInteractionAudit(input:" + repeat("[", 2000) + repeat("]", 2000) + "){id}}"), 200, "nesting"},
		{"nested variables", `{"query":"mutation($i:JSON!){createLlmInteractionAudit(input:$i){id}}","variables":{"i":` + repeat("[", 100_000) + repeat("]", 100_000) + `}}`, 400, ""},
		{"many variables", operation("query("+each(2000, "$v%d:Int=%d ")+"){viewer{subject}}", map[string]any{}), 200, "tokens"},
		{"variables that nobody asked for", operation("{llmInteractionAudit(id:7){nothing}}", map[string]any{"x": strings.Split(repeat("1,", 200_000), ",")}), 200, ""},
		{"many operations", operation(each(1000, "query q%d{viewer{subject}} #%d\n")), 200, "tokens"},
		{"a type of many lists", operation("query($v:" + repeat("[", 2400) + "Int" + repeat("]", 2400) + "){viewer{subject}}"), 200, ""},
		{"introspection", operation(standardIntrospection), 200, ""},
		{"200 with everything", operation(everything(200)), 200, "cost"},
		{"rows by a variable", operation(`query($n:Int){llmInteractionAuditConnection(first:$n){nodes{findings{evidence} verdicts{findings{kind}} llmResponse}}}`, map[string]any{"n": 200}), 200, "cost"},
		{"a page below zero", operation(`{llmInteractionAuditConnection(first:-1){nodes{biasReportSummary llmResponse originalQuery}}}`), 200, "cost"},
		{"pages of pages", operation(`{breaches(first:200){nodes{interactions{id} history{at}}}}`), 200, "cost"},
		{"mutations", operation("mutation{" + repeat(`recordFeedback(id:"x",input:{}){id} `, 1) + each(30, `a%d:recordFeedback(id:"%d",input:{}){id} `) + "}"), 200, "cost"},
	}
}

// everything is a list with all that a record can be asked for.
func everything(limit int) string {
	return fmt.Sprintf(`{llmInteractionAudits(pagination:{limit:%d}){%s findings{kind rule severity score evidence} verdicts{analyzer findings{kind}} reviews{notes}}}`, limit, specified)
}

// specified are the fields of the specification.
const specified = `id tenantId userId userEmail userRole queryContext originalQuery llmProvider llmModel sanitizedPrompt llmResponse promptTokens responseTokens
 estimatedCostUsd redactionSummary sensitivityScore containedPii containedProprietary containedCustomerData status errorMessage logTimestamp
 biasDetected biasType biasScore biasConfidenceScore mitigationAction biasReportSummary humanReviewed humanBiasTag reviewNotes`

// TestBombs counts work, not time: no field ran, and what was looked at is bounded by the limits.
func TestBombs(t *testing.T) {
	for _, b := range bombs() {
		t.Run(b.name, func(t *testing.T) {
			e := newEdge(DefaultConfig(), Parts{})
			w := e.post(b.body)
			code := codeOf(w)
			if w.Code != b.status || code != "BAD_USER_INPUT" && code != "FORBIDDEN" || e.ran.Load() != 0 {
				t.Errorf("%d %s, %d fields ran: %.300s", w.Code, code, e.ran.Load(), w.Body)
			}
			if b.limit != "" && !strings.Contains(w.Body.String(), `"limit":"`+b.limit+`"`) {
				t.Errorf("wants the limit %s: %.300s", b.limit, w.Body)
			}
			if w.Body.Len() > 20_000 {
				t.Errorf("an answer of %d bytes", w.Body.Len())
			}
		})
	}
}

// BenchmarkBombs says how long the slowest refusal takes; it must stay below 50 ms.
func BenchmarkBombs(b *testing.B) {
	for _, x := range bombs() {
		b.Run(strings.ReplaceAll(x.name, " ", "_"), func(b *testing.B) {
			e := newEdge(DefaultConfig(), Parts{})
			var slowest time.Duration
			for b.Loop() {
				began := time.Now()
				e.post(x.body)
				slowest = max(slowest, time.Since(began))
			}
			b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-slowest")
		})
	}
}

// reviews are n inputs of recordBiasReviews.
func reviews(n int) (out []any) {
	for range n {
		out = append(out, map[string]any{"id": "x", "input": map[string]any{"humanReviewed": true}})
	}
	return out
}

func TestCost(t *testing.T) {
	on := DefaultConfig()
	on.Introspection = true
	for _, tc := range []struct {
		name, query string
		config      Config
		vars        map[string]any
		want        int // points, rounded up
	}{
		{"nothing", "{viewer{subject}}", on, nil, 1},
		{"one record of the specification", `{llmInteractionAudit(id:"x"){` + specified + `}}`, on, nil, 9},
		{"the default page of the specification", "{llmInteractionAudits{" + specified + "}}", on, nil, 192},
		{"a page of 50 with findings and evidence", "{llmInteractionAudits(pagination:{limit:50}){" + specified + " findings{kind rule severity score start end evidence}}}", on, nil, 243},
		{"200 rows", "{llmInteractionAudits(pagination:{limit:200}){id logTimestamp llmProvider llmModel biasDetected biasType biasScore severity domain}}", on, nil, 81},
		{"200 prompts and responses", "{llmInteractionAuditConnection(first:200){nodes{id originalQuery llmResponse}}}", on, nil, 170},
		{"nodes and edges", "{llmInteractionAuditConnection(first:100){nodes{id} edges{cursor node{id}} totalCount}}", on, nil, 74},
		{"by variable", "query($p:PaginationInput){llmInteractionAudits(pagination:$p){id}}", on, map[string]any{"p": map[string]any{"limit": 200}}, 49},
		{"left out", "query($no:Boolean!){llmInteractionAudits @include(if:$no){id} viewer{subject}}", on, map[string]any{"no": false}, 1},
		{"a review", `mutation{recordBiasReview(id:"x",input:{humanReviewed:true}){id}}`, on, nil, 11},
		{"100 reviews", "mutation($r:[BiasReviewInput!]!){recordBiasReviews(inputs:$r){id interaction{id effectiveBias} error{code message}}}", on, map[string]any{"r": reviews(100)}, 224},
		{"two reviews", `mutation{recordBiasReviews(inputs:[{id:"x",input:{humanReviewed:true}},{id:"y",input:{humanReviewed:true}}]){id}}`, on, nil, 15},
		{"a list of one review", `mutation{recordBiasReviews(inputs:{id:"x",input:{humanReviewed:true}}){id}}`, on, nil, 13},
		{"introspection by tools", standardIntrospection, on, nil, 220},
		{"a trend", "{biasTrend(input:{measure:DETECTED,groupBy:DOMAIN}){series{group points{at n k rate lower upper}}}}", on, nil, 67},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEdge(tc.config, Parts{})
			vars, _ := json.Marshal(tc.vars)
			_, op, errs := e.prepare(t.Context(), nil, request{query: tc.query, variables: vars})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := (cost(op.Operation.SelectionSet, op.Variables, 1) + point - 1) / point; got != tc.want {
				t.Errorf("%d points, want %d", got, tc.want)
			}
		})
	}
	bomb := "{__schema{types{fields{type{fields{type{fields{type{name}}}}}}}}}"
	if _, _, errs := newEdge(on, Parts{}).prepare(t.Context(), nil, request{query: bomb}); len(errs) == 0 {
		t.Error("recursion of introspection is taken")
	}
	if w := newEdge(on, Parts{}).post(operation(standardIntrospection)); codeOf(w) != "" || !strings.Contains(w.Body.String(), "LlmInteractionAudit") {
		t.Errorf("introspection: %.300s", w.Body)
	}
}

// TestPricesAreOfTheSchema: a field that is renamed does not lose its price unseen.
func TestPricesAreOfTheSchema(t *testing.T) {
	schema := New(Parts{}).Schema().Schema()
	for name := range prices {
		typ, field, _ := strings.Cut(name, ".")
		def := schema.Types[typ]
		if name == "Query.__schema" {
			continue
		}
		if def == nil || def.Fields.ForName(field) == nil {
			t.Errorf("%s is not in the schema", name)
		}
	}
	for _, typ := range []string{"Mutation", "Subscription"} {
		for _, f := range schema.Types[typ].Fields {
			if prices[typ+"."+f.Name].own == 0 {
				t.Errorf("%s.%s has no price", typ, f.Name)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	bad := DefaultConfig()
	bad.Cost, bad.Depth, bad.BodyBytes, bad.Timeout, bad.StreamPoll = 0, 99, 1, 0, time.Hour
	err := bad.Validate()
	for _, want := range []string{"graphql.cost: 0 is not in 10..100000", "graphql.depth: 99", "graphql.body_bytes: 1", "graphql.timeout: 0s is not in 100ms..5m0s", "graphql.stream_poll"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %s: %v", want, err)
		}
	}
}
