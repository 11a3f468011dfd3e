package graph

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/evenhand/evenhand/auth"
)

// edge is a handler whose fields are counted.
type edge struct {
	*Handler
	ran atomic.Int64
}

func newEdge(c Config, p Parts) *edge {
	e := &edge{Handler: NewHandler(New(p).Schema(), c, HandlerOptions{})}
	e.exec.AroundFields(func(ctx context.Context, next graphql.Resolver) (any, error) {
		e.ran.Add(1)
		return next(ctx)
	})
	return e
}

func principal(tenant string, r auth.Role) *auth.Principal {
	return &auth.Principal{Tenant: tenant, Subject: "tester", Roles: []auth.Role{r}, May: auth.Grants(r), Verified: true}
}

// post sends a body as an administrator of tenant a; headers are pairs.
func (e *edge) post(body string, headers ...string) *httptest.ResponseRecorder {
	return e.as(principal("a", auth.Admin), "POST", body, headers...)
}

func (e *edge) as(p *auth.Principal, method, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if p != nil {
		r = r.WithContext(auth.With(r.Context(), p))
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// operation is the body of a document and its variables.
func operation(query string, variables ...any) string {
	b := map[string]any{"query": query}
	if len(variables) > 0 {
		b["variables"] = variables[0]
	}
	out, _ := json.Marshal(b)
	return string(out)
}

// codeOf is the code of the first error, "" without errors.
func codeOf(w *httptest.ResponseRecorder) string {
	var res struct {
		Errors []struct {
			Extensions struct{ Code string }
		}
	}
	if json.Unmarshal(w.Body.Bytes(), &res) != nil {
		return "no JSON"
	}
	if len(res.Errors) == 0 {
		return ""
	}
	return res.Errors[0].Extensions.Code
}

const (
	viewerQuery = `{"query":"{viewer{tenantId subject}}"}`
	asResult    = "application/graphql-response+json"
)

func TestHTTP(t *testing.T) {
	e := newEdge(DefaultConfig(), Parts{})
	for _, tc := range []struct {
		name, body string
		headers    []string
		status     int
		code       string
	}{
		{"a query", viewerQuery, nil, 200, ""},
		{"content type with a charset", viewerQuery, []string{"Content-Type", "application/json; charset=utf-8"}, 200, ""},
		{"the newer answer", viewerQuery, []string{"Accept", asResult + ", application/json;q=0.9"}, 200, ""},
		{"operationName", `{"query":"query A{viewer{tenantId}} query B{viewer{subject}}","operationName":"B","extensions":{"clientLibrary":{"name":"x"}}}`, nil, 200, ""},
		{"no such operation", `{"query":"query A{viewer{tenantId}} query B{viewer{subject}}"}`, nil, 200, "BAD_USER_INPUT"},
		{"a syntax error is told with 200 to who knows no better", `{"query":"{viewer{"}`, nil, 200, "BAD_USER_INPUT"},
		{"and with 400", `{"query":"{viewer{"}`, []string{"Accept", asResult}, 400, "BAD_USER_INPUT"},
		{"an unknown field", `{"query":"{viewer{nothing}}"}`, []string{"Accept", asResult}, 400, "BAD_USER_INPUT"},
		{"a missing variable", `{"query":"query($i:ID!){llmInteractionAudit(id:$i){id}}"}`, []string{"Accept", asResult}, 400, "BAD_USER_INPUT"},
		{"no operation", `{"query":"fragment f on Viewer{subject}"}`, []string{"Accept", asResult}, 400, "BAD_USER_INPUT"},
		{"introspection", `{"query":"{__schema{types{name}}}"}`, []string{"Accept", asResult}, 400, "FORBIDDEN"},
		{"introspection in a fragment", `{"query":"{...f} fragment f on Query{__type(name:\"Query\"){name}}"}`, nil, 200, "FORBIDDEN"},
		{"@defer", `{"query":"{...@defer{viewer{subject}}}"}`, nil, 200, "BAD_USER_INPUT"},
		{"a batch", "[" + viewerQuery + "]", nil, 400, "BAD_USER_INPUT"},
		{"no JSON", `{"query":`, nil, 400, "BAD_USER_INPUT"},
		{"one key twice", `{"query":"{viewer{tenantId}}","query":"x"}`, nil, 400, "BAD_USER_INPUT"},
		{"invalid UTF-8", "{\"query\":\"\xff\"}", nil, 400, "BAD_USER_INPUT"},
		{"no query", `{"extensions":{"persistedQuery":{"version":1}}}`, nil, 400, "BAD_USER_INPUT"},
		{"query of another type", `{"query":7}`, nil, 400, "BAD_USER_INPUT"},
		{"variables of another type", `{"query":"{viewer{subject}}","variables":[]}`, nil, 400, "BAD_USER_INPUT"},
		{"an empty body", "", nil, 400, "BAD_USER_INPUT"},
		{"multipart", viewerQuery, []string{"Content-Type", "multipart/form-data; boundary=x"}, 415, "BAD_USER_INPUT"},
		{"a form", viewerQuery, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "BAD_USER_INPUT"},
		{"text", viewerQuery, []string{"Content-Type", "text/plain"}, 415, "BAD_USER_INPUT"},
		{"no content type", viewerQuery, []string{"Content-Type", ""}, 415, "BAD_USER_INPUT"},
		{"compressed", viewerQuery, []string{"Content-Encoding", "gzip"}, 415, "BAD_USER_INPUT"},
		{"a subscription without events", `{"query":"subscription{flagged{id}}"}`, nil, 406, "BAD_USER_INPUT"},
		{"another tenant's filter", `{"query":"{llmInteractionAudits(filter:{tenantId:\"b\"}){id}}"}`, nil, 200, "FORBIDDEN"},
		{"a number of 70 bits", `{"query":"mutation{createLlmInteractionAudit(input:{n:999999999999999999999}){id}}"}`, nil, 200, "BAD_USER_INPUT"},
		{"a number out of range", `{"query":"mutation{createLlmInteractionAudit(input:{n:1e999}){id}}"}`, nil, 200, "BAD_USER_INPUT"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := e.post(tc.body, tc.headers...)
			if w.Code != tc.status || codeOf(w) != tc.code {
				t.Errorf("%d %s: %s", w.Code, codeOf(w), w.Body)
			}
			want := "application/json; charset=utf-8"
			if len(tc.headers) == 2 && strings.Contains(tc.headers[1], asResult) {
				want = asResult + "; charset=utf-8"
			}
			if got := w.Header().Get("Content-Type"); got != want || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s, %v", got, w.Header())
			}
		})
	}
	for _, method := range []string{"GET", "PUT", "HEAD", "OPTIONS"} {
		if w := e.as(principal("a", auth.Admin), method, ""); w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if w := e.as(nil, "POST", viewerQuery); w.Code != 401 || codeOf(w) != "UNAUTHENTICATED" || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := e.as(principal("", auth.Admin), "POST", viewerQuery); w.Code != 401 {
		t.Errorf("without a tenant: %d", w.Code)
	}
}

// TestRoom: what does not fit is refused at once and has not run.
func TestRoom(t *testing.T) {
	c := DefaultConfig()
	c.InFlight = 1
	e := newEdge(c, Parts{})
	release, ok := e.room()
	if !ok {
		t.Fatal("no room at the beginning")
	}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		if w := e.post(viewerQuery, "Accept", accept); w.Code != http.StatusTooManyRequests || codeOf(w) != "OVERLOADED" || w.Header().Get("Retry-After") == "" || e.ran.Load() != 0 {
			t.Errorf("%s: %d %s", accept, w.Code, w.Body)
		}
	}
	release()
	if w := e.post(viewerQuery); w.Code != 200 || codeOf(w) != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestOmittedVariable: a field of an input whose variable was not given was not sent.
func TestOmittedVariable(t *testing.T) {
	e := newEdge(DefaultConfig(), Parts{})
	doc := `mutation($b:JSON,$c:JSON){createLlmInteractionAudit(input:{a:1,b:$b,c:$c,d:[{e:$b}]}){id}}`
	_, op, errs := e.prepare(t.Context(), nil, request{query: doc, variables: []byte(`{"c":null}`)})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got, _ := json.Marshal(op.Operation.SelectionSet[0].(interface {
		ArgumentMap(map[string]any) map[string]any
	}).ArgumentMap(op.Variables))
	if string(got) != `{"input":{"a":1,"c":null,"d":[{}]}}` {
		t.Errorf("%s", got)
	}
}

func FuzzHandler(f *testing.F) {
	c := DefaultConfig()
	e := newEdge(c, Parts{})
	e.exec.AroundRootFields(func(context.Context, graphql.RootResolver) graphql.Marshaler { return graphql.Null })
	for _, s := range []string{viewerQuery, operation(standardIntrospection), `{"query":"{a:viewer{...f}} fragment f on Viewer{...f}"}`, "[]", `{"query":"#"}`,
		operation(`query($f:LlmInteractionAuditFilterInput){llmInteractionAudits(filter:$f,pagination:{limit:5}){id findings{kind}}}`, map[string]any{"f": map[string]any{"tenantId": "a"}}),
		`{"query":"mutation{createLlmInteractionAudit(input:{a:[[[1]]],b:\"\\ud800\"}){id}}"}`, `{"query":"{viewer @skip(if:true){subject}}"}`, `{"query":"\"\"\"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := e.post(string(body))
		if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

const standardIntrospection = `query IntrospectionQuery { __schema { description queryType { name kind } mutationType { name kind } subscriptionType { name kind }
  types { ...FullType } directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } } } }
fragment FullType on __Type { kind name description specifiedByURL isOneOf
  fields(includeDeprecated: true) { name description args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
  inputFields(includeDeprecated: true) { ...InputValue } interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }`

// TestPlayground: the page's policy lets its own script run, and nothing else.
func TestPlayground(t *testing.T) {
	w := httptest.NewRecorder()
	Playground().ServeHTTP(w, httptest.NewRequest("GET", Path+"/playground", nil))
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s lacks %s", policy, want)
		}
	}
	if body := w.Body.String(); w.Code != 200 || strings.Count(body, "<script>") != 1 || strings.Count(body, "<style>") != 1 || strings.Contains(body, "http://") || strings.Contains(body, "https://") || strings.Contains(body, "innerHTML") {
		t.Errorf("%d, the page has other parts than its own", w.Code)
	}
}

// TestPlaygroundRuns runs the page's script where there is a node to run it; CI has one.
func TestPlaygroundRuns(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("no node (Debian: nodejs)")
	}
	_, script, _ := strings.Cut(playground, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	page, err := os.ReadFile("testdata/playground.js")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "-")
	cmd.Stdin = strings.NewReader(string(page) + "\n(async () => {" + script + "\nawait check({ subscribes, run, stop }); })().catch(e => { console.error(e); process.exit(1); });\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPlaygroundPrints: a long answer is printed whole, so nothing of the page scrolls on paper.
func TestPlaygroundPrints(t *testing.T) {
	_, print, _ := strings.Cut(playground, "@media print {")
	for _, want := range []string{"body { display: block; height: auto; }", "pre { overflow: visible; }"} {
		if !strings.Contains(print, want) {
			t.Errorf("on paper there is no %s", want)
		}
	}
}

// TestRefused: who is not let in reads GraphQL's errors.
func TestRefused(t *testing.T) {
	for status, code := range map[int]string{401: "UNAUTHENTICATED", 403: "FORBIDDEN", 429: "OVERLOADED", 503: "UNAVAILABLE", 400: "BAD_USER_INPUT"} {
		w := httptest.NewRecorder()
		Refused(w, httptest.NewRequest("POST", Path, nil), &auth.Denied{Status: status, Reason: "why", Say: "words"})
		if w.Code != status || codeOf(w) != code || !strings.Contains(w.Body.String(), `"reason":"why"`) || strings.Contains(w.Body.String(), `"data"`) {
			t.Errorf("%d: %d %s", status, w.Code, w.Body)
		}
	}
}
