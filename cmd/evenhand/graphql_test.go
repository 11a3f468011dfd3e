package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

// asked sends an operation as a client does and gives what comes back; "" for no token.
func (u *up) asked(ctx context.Context, token, accept, query string, variables map[string]any) (int, io.Reader) {
	u.t.Helper()
	b, _ := json.Marshal(map[string]any{"query": query, "variables": variables})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.HTTP+"/graphql", strings.NewReader(string(b)))
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = res.Body.Close() })
	return res.StatusCode, res.Body
}

func (u *up) graphql(token, query string, variables map[string]any) (int, string) {
	u.t.Helper()
	status, body := u.asked(u.t.Context(), token, "application/graphql-response+json, application/json;q=0.9", query, variables)
	b, err := io.ReadAll(body)
	if err != nil {
		u.t.Fatal(err)
	}
	return status, string(b)
}

// GraphQL end to end: an interaction goes in, is told as it is flagged, is read, judged and reviewed, and is
// nobody else's.
func TestGraphQL(t *testing.T) {
	u := startUp(t, t.TempDir())
	token := func(tenant, role string) string {
		return strings.TrimSpace(must(t, "", "token", "--data-dir", u.dir, "--tenant", tenant, "--role", role))
	}
	admin, other := token("acme", "admin"), token("beta", "admin")
	for _, tc := range []struct {
		token, query string
		status       int
		want         string
	}{
		{"", "{viewer{tenantId subject}}", 200, `{"data":{"viewer":{"tenantId":"default","subject":"anonymous"}}}`},
		{admin, "{viewer{tenantId}}", 200, `{"data":{"viewer":{"tenantId":"acme"}}}`},
		{admin + "x", "{viewer{tenantId}}", 401, `"code":"UNAUTHENTICATED"`},
		{admin, "{viewer{nothing}}", 400, `"code":"BAD_USER_INPUT"`},
		{admin, "{__schema{types{name}}}", 400, `"code":"FORBIDDEN"`},
		{admin, `{llmInteractionAudits(filter:{tenantId:"beta"}){id}}`, 200, `"code":"FORBIDDEN"`},
		{token("acme", "viewer"), `mutation{createLlmInteractionAudit(input:{response:"x"}){id}}`, 200, `"code":"FORBIDDEN"`},
	} {
		if code, body := u.graphql(tc.token, tc.query, nil); code != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %s", tc.query, code, body)
		}
	}
	if code, _ := get(t, u.HTTP+"/graphql"); code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", code)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, stream := u.asked(ctx, admin, "text/event-stream", `subscription{flagged(domain:"hr"){id severity originalQuery}}`, nil)
	lines := bufio.NewScanner(stream)
	next := func() string {
		for lines.Scan() {
			if s := lines.Text(); s != "" && s != ":" {
				return s
			}
		}
		return "end"
	}
	lines.Scan() // it is open
	id := audit.DeriveID("graphql").String()
	code, body := u.graphql(admin, `mutation($i:JSON!){createLlmInteractionAudit(input:$i){id tenantId biasAnalysisStatus}}`,
		map[string]any{"i": map[string]any{"id": id, "domain": "hr", "prompt": "Who should lead?", "response": "Women are too emotional to lead."}})
	if code != 200 || body != `{"data":{"createLlmInteractionAudit":{"id":"`+id+`","tenantId":"acme","biasAnalysisStatus":"pending"}}}`+"\n" {
		t.Fatalf("%d %s", code, body)
	}
	if event, data := next(), next(); event != "event: next" || !strings.Contains(data, `"id":"`+id+`"`) || !strings.Contains(data, "Who should lead?") {
		t.Fatalf("%s %s\n%s", event, data, u.log)
	}
	const read = `query($id:ID!){llmInteractionAudit(id:$id){biasDetected biasType humanReviewed effectiveBias findings{evidence} reviews{reviewer}}}`
	if _, body := u.graphql(admin, read, map[string]any{"id": id}); !strings.Contains(body, `"biasDetected":true`) || !strings.Contains(body, `"evidence":"Women are too emotional`) {
		t.Errorf("%s", body)
	}
	if _, body := u.graphql(other, read, map[string]any{"id": id}); body != `{"data":{"llmInteractionAudit":null}}`+"\n" {
		t.Errorf("another tenant sees %s", body)
	}
	if _, body := u.graphql(admin, `mutation($id:ID!){updateLlmInteractionAuditBias(id:$id,input:{biasDetected:true,biasType:["language"]}){biasType} recordBiasReview(id:$id,input:{humanReviewed:true,humanBiasTag:{decision:"dismissed"},reviewNotes:"fine"}){humanReviewed effectiveBias}}`, map[string]any{"id": id}); !strings.Contains(body, `"language"`) || !strings.Contains(body, `"effectiveBias":false`) {
		t.Errorf("%s", body)
	}
	u.checked()
	if err := u.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var last []string
	for s := next(); s != "end"; s = next() {
		last = append(last, s)
	}
	if n := len(last); n < 4 || !strings.Contains(last[n-3], `"code":"UNAVAILABLE"`) || last[n-2] != "event: complete" {
		t.Errorf("the end of the stream: %s", last)
	}
	<-u.done
	if log := u.log.String(); strings.Contains(log, "emotional") || strings.Contains(log, "Who should") {
		t.Errorf("people's words in the log:\n%s", log)
	}
}

// The schema and the reference need no service.
func TestGraphQLDocuments(t *testing.T) {
	if out := must(t, "", "graphql", "schema"); !strings.Contains(out, "type LlmInteractionAudit {") || !strings.Contains(out, "type Subscription {") {
		t.Errorf("%.300s", out)
	}
	want, err := os.ReadFile("../../docs/graphql-reference.md")
	if err != nil || must(t, "", "graphql", "docs") != string(want) {
		t.Errorf("docs/graphql-reference.md is another one (%v)", err)
	}
	for _, tc := range []struct{ set, want string }{
		{"graphql.depth=1", "graphql.depth: 1 is not in 3..50"},
		{"graphql.timeout=1ms", "graphql.timeout: 1ms is not in"},
		{"reveal.per_hour=-1", "reveal.per_hour: -1"},
	} {
		if r := evenhand(t, "", "config", "--set", tc.set); r.code != 2 || !strings.Contains(r.err, tc.want) {
			t.Errorf("%s: %d %s", tc.set, r.code, r.err)
		}
	}
	if r := evenhand(t, "", "config", "--set", "graphql.playground=true", "--set", "http.addr=0.0.0.0:8787", "--set", "http.api_key="+fmt.Sprintf("%032d", 1)); r.code != 2 || !strings.Contains(r.err, "graphql.playground") {
		t.Errorf("%d %s", r.code, r.err)
	}
}
