package door_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/auth/authtest"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/gates/door"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/schemas/openapi"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }

// memory decides as the log does; package gates' tests have the real one.
type memory struct {
	mu sync.Mutex
	m  map[arbiter.Key]arbiter.Decision
}

func (l *memory) Propose(_ context.Context, p arbiter.Proposal) (arbiter.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.m[p.Key]; !ok {
		l.m[p.Key] = arbiter.Decision{Key: p.Key, Seq: 1, Value: p.Value, Proposal: p.ID, Time: time.Now().UTC().Truncate(time.Millisecond)}
	}
	return l.m[p.Key], nil
}

func (l *memory) History(_ context.Context, k arbiter.Key) (ds []arbiter.Decision, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, ok := l.m[k]; ok {
		ds = append(ds, d)
	}
	return ds, nil
}

func (*memory) Watch(context.Context, uint64) iter.Seq2[arbiter.Decision, error] {
	return func(func(arbiter.Decision, error) bool) {}
}

// clock is a clock that stands until it is moved.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// front is the doors behind real authentication by role, and what is described of them.
type front struct {
	*testing.T
	*httptest.Server
	clock     *clock // of authentication
	keys      *authtest.Keyring
	gates     *gates.Service
	door      *door.Door
	doc       map[string]any
	compiling sync.Mutex // compiler is for one at a time
	compiler  *jsonschema.Compiler
}

func newFront(t *testing.T) *front {
	t.Helper()
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	conn := enginetest.Conn(t, cfg)
	c := gates.DefaultConfig()
	c.Approvers = true
	s, err := gates.New(c, gates.Parts{Store: store.New(conn, cfg.Database), Rows: clickhouse.New(conn, cfg.Database, clickhouse.Options{}), Log: &memory{m: map[arbiter.Key]arbiter.Decision{}}})
	if err != nil {
		t.Fatal(err)
	}
	key, err := auth.MakeDevKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clk, keys := &clock{t: time.Now()}, &authtest.Keyring{}
	a, err := auth.New(t.Context(), auth.Config{Required: true, Dev: key, Keys: keys, KeyHold: time.Hour}, auth.Options{Now: clk.now, LookEvery: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f := &front{T: t, clock: clk, keys: keys, gates: s, door: door.New(s, door.Options{Held: 3, KeepAlive: 50 * time.Millisecond}), compiler: jsonschema.NewCompiler()}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.Document))
	if err == nil {
		err = f.compiler.AddResource("mem:///openapi.json", doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.doc = doc.(map[string]any)["paths"].(map[string]any)
	f.Server = httptest.NewServer(a.Middleware(auth.Read, nil, f.door))
	f.Server.Config.RegisterOnShutdown(f.door.Drain)
	t.Cleanup(func() {
		f.door.Drain()
		f.Server.CloseClientConnections()
		f.Close()
		s.Close()
		a.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	tokens = map[string]string{}
	for _, who := range []string{"ann acme approver", "carl acme approver", "svc acme service", "vera acme viewer", "eve beta approver"} {
		w := strings.Fields(who)
		if tokens[w[0]], err = key.Sign(w[1], w[0], []auth.Role{auth.Role(w[2])}, time.Hour, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

var tokens map[string]string

// open opens a gate of acme.
func (f *front) open(timeout time.Duration) audit.ID {
	f.Helper()
	id, err := f.gates.Open(f.Context(), gates.Request{Tenant: "acme", Rule: gates.Rule{ID: "financial", Description: "Financial transaction", Pattern: "p", Category: "financial"},
		MatchedText: "transfer $5,000", Provider: "openai", Method: "chat.completions.create", Requester: "svc", Timeout: timeout})
	if err != nil {
		f.Fatal(err)
	}
	return id
}

// ask sends a request as somebody; what is answered must be as it is described under the path.
func (f *front) ask(who, method, path, described, body string) (int, string) {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	if who != "" {
		req.Header.Set("Authorization", "Bearer "+tokens[who])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		f.Fatal(err)
	}
	at := fmt.Sprintf("/paths/%s/%s/responses/%d", strings.ReplaceAll(described, "/", "~1"), strings.ToLower(method), res.StatusCode)
	if op, ok := f.doc[described].(map[string]any)[strings.ToLower(method)].(map[string]any); ok {
		answer, _ := op["responses"].(map[string]any)[fmt.Sprint(res.StatusCode)].(map[string]any)
		if ref, ok := answer["$ref"].(string); ok {
			at = strings.TrimPrefix(ref, "#")
		} else if answer == nil {
			f.Errorf("%s %s %d is not described", method, described, res.StatusCode)
			return res.StatusCode, string(b)
		}
		f.compiling.Lock()
		schema, err := f.compiler.Compile("mem:///openapi.json#" + strings.ReplaceAll(strings.ReplaceAll(at, "{", "%7B"), "}", "%7D") + "/content/application~1json/schema")
		f.compiling.Unlock()
		if err != nil {
			f.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			f.Errorf("%s %s %d: %v\n%s", method, described, res.StatusCode, err, b)
		}
	}
	return res.StatusCode, string(b)
}

func TestDoors(t *testing.T) {
	f := newFront(t)
	const one = "/v1/gates/{id}"
	id := f.open(0)
	path := "/v1/gates/" + id.String()
	for _, tc := range []struct {
		name, who, method, path, described, body string
		status                                   int
		want, lacks                              string
	}{
		{"a list", "ann", "GET", "/v1/gates", "/v1/gates", "", 200, `"matchedText":"transfer $5,000"`, ""},
		{"a list without texts", "vera", "GET", "/v1/gates?state=all&limit=5", "/v1/gates", "", 200, `"matchedText":null`, "$5,000"},
		{"another tenant's list", "eve", "GET", "/v1/gates?state=all", "/v1/gates", "", 200, `"gates":[]`, "$5,000"},
		{"an unknown state", "ann", "GET", "/v1/gates?state=x", "/v1/gates", "", 400, "state", ""},
		{"a limit that is none", "ann", "GET", "/v1/gates?limit=201", "/v1/gates", "", 400, "limit", ""},
		{"a cursor that is none", "ann", "GET", "/v1/gates?after=x", "/v1/gates", "", 400, "cursor", ""},
		{"nobody", "", "GET", "/v1/gates", "/v1/gates", "", 401, "no_credential", ""},
		{"one", "svc", "GET", path, one, "", 200, `"state":"open"`, ""},
		{"another tenant's", "eve", "GET", path, one, "", 404, "no such gate", ""},
		{"no id", "ann", "GET", "/v1/gates/x", one, "", 404, reply.NotFound, ""},
		{"a wrong method", "ann", "DELETE", path, one, "", 405, "GET only", ""},
		{"still open", "svc", "GET", path + "/wait?timeout=0.05", one + "/wait", "", 202, `"decision":null`, ""},
		{"a wait without end", "svc", "GET", path + "/wait?timeout=1e9", one + "/wait", "", 400, "timeout", ""},
		{"NaN", "svc", "GET", path + "/wait?timeout=NaN", one + "/wait", "", 400, "timeout", ""},
		{"no permission", "vera", "POST", path + "/decision", one + "/decision", `{"decision":"approve"}`, 403, "approve", ""},
		{"one's own", "svc", "POST", path + "/decision", one + "/decision", `{"decision":"approve"}`, 403, "permission", ""},
		{"another tenant decides", "eve", "POST", path + "/decision", one + "/decision", `{"decision":"approve"}`, 404, "no such gate", ""},
		{"no decision", "ann", "POST", path + "/decision", one + "/decision", `{"decision":"perhaps"}`, 400, "approve nor deny", ""},
		{"an unknown field", "ann", "POST", path + "/decision", one + "/decision", `{"decision":"deny","why":"x"}`, 400, reply.BadRequest, ""},
		{"two objects", "ann", "POST", path + "/decision", one + "/decision", `{"decision":"deny"}{}`, 400, "follows", ""},
		{"a long note", "ann", "POST", path + "/decision", one + "/decision", `{"decision":"deny","note":"` + strings.Repeat("x", 2001) + `"}`, 400, "note", "xxx"},
		{"a body without end", "ann", "POST", path + "/decision", one + "/decision", `{"note":"` + strings.Repeat("x", 70_000), 413, "PAYLOAD_TOO_LARGE", ""},
		{"denied", "ann", "POST", path + "/decision", one + "/decision", `{"decision":"deny","note":"above the limit"}`, 200, `"detail":"above the limit"`, ""},
		{"denied again", "ann", "POST", path + "/decision", one + "/decision", `{"decision":"deny"}`, 200, `"reason":"denied"`, ""},
		{"approved later", "carl", "POST", path + "/decision", one + "/decision", `{"decision":"approve"}`, 409, `"decidedBy":"ann"`, ""},
		{"decided", "svc", "GET", path + "/wait", one + "/wait", "", 200, `"hitlGateTriggered":true`, ""},
		{"decided, without texts", "vera", "GET", path, one, "", 200, `"reason":"denied"`, "above the limit"},
		{"no longer open", "ann", "GET", "/v1/gates", "/v1/gates", "", 200, `"gates":[]`, ""},
		{"by its state", "ann", "GET", "/v1/gates?state=denied", "/v1/gates", "", 200, id.String(), ""},
	} {
		status, got := f.ask(tc.who, tc.method, tc.path, tc.described, tc.body)
		if status != tc.status || !strings.Contains(got, tc.want) || tc.lacks != "" && strings.Contains(got, tc.lacks) {
			t.Errorf("%s: %d %s", tc.name, status, got)
		}
	}
	expired := "/v1/gates/" + f.open(50*time.Millisecond).String()
	if status, got := f.ask("svc", "GET", expired+"/wait", one+"/wait", ""); status != 200 || !strings.Contains(got, `"reason":"timeout"`) {
		t.Errorf("at the deadline: %d %s", status, got)
	}
}

// stream follows the events of somebody; next gives one as "event id-of-gate".
func (f *front) stream(who, last string) (next func() (event, id, data string), end func()) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+"/v1/gates/events", nil)
	if err != nil {
		f.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+tokens[who])
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req) //nolint:bodyclose // end closes it
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		f.Fatal(err, res)
	}
	lines := bufio.NewScanner(res.Body)
	return func() (event, id, data string) {
		f.Helper()
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
			case "event":
				event = value
			case "id":
				id = value
			case "data":
				return event, id, value
			}
		}
		return "end", "", ""
	}, func() { cancel(); _ = res.Body.Close() }
}

func TestStream(t *testing.T) {
	f := newFront(t)
	id := f.open(0)
	next, end := f.stream("ann", "")
	event, last, data := next()
	var g gates.Gate
	if err := json.Unmarshal([]byte(data), &g); err != nil || event != gates.EventOpened || g.ID != id || *g.Request.MatchedText != "transfer $5,000" {
		t.Errorf("%s %s %v", event, data, err)
	}
	end()
	if status, got := f.ask("carl", "POST", "/v1/gates/"+id.String()+"/decision", "/v1/gates/{id}/decision", `{"decision":"approve","note":"fine"}`); status != 200 {
		t.Fatal(status, got)
	}
	next, end = f.stream("vera", last)
	defer end()
	if event, _, data = next(); event != gates.EventDecided || !strings.Contains(data, id.String()) || strings.Contains(data, "$5,000") || strings.Contains(data, "fine") {
		t.Errorf("after a break, without texts: %s %s", event, data)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL+"/v1/gates/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+tokens["ann"])
	req.Header.Set("Last-Event-ID", "nonsense")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusBadRequest {
		t.Fatal(err, res.StatusCode)
	}
	_ = res.Body.Close()
	quiet, endQuiet := f.stream("eve", "") // of another tenant: nothing
	defer endQuiet()
	f.door.Drain()
	if event, _, data := next(); event != "end" {
		t.Errorf("drained: %s %s", event, data)
	}
	if event, _, data := quiet(); event != "end" {
		t.Errorf("another tenant was told: %s %s", event, data)
	}
}

// A credential that no longer holds ends its stream, and a wait, with what a new request is answered.
func TestStreamEndsWithItsCredential(t *testing.T) {
	f := newFront(t)
	id := f.open(0)
	k, raw, err := auth.NewAPIKey("acme", "watcher", []auth.Permission{auth.Approve, auth.Read}, "ann", time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	f.keys.Hold(k)
	tokens["key"] = raw.Reveal()
	for _, tc := range []struct {
		name, who, reason string
		withdraw          func()
	}{
		{"a revoked key", "key", "key_revoked", func() {
			f.keys.Revoke(f.clock.now())
			f.clock.pass(10 * time.Second)
		}},
		{"an expired token", "ann", "token_expired", func() { f.clock.pass(time.Hour + time.Minute) }},
	} {
		next, end := f.stream(tc.who, "")
		defer end()
		if event, _, _ := next(); event != gates.EventOpened {
			t.Fatalf("%s: %s", tc.name, event)
		}
		waited := make(chan string, 1)
		go func() {
			status, body := f.ask(tc.who, "GET", "/v1/gates/"+id.String()+"/wait?timeout=1", "/v1/gates/{id}/wait", "")
			waited <- fmt.Sprint(status, body)
		}()
		tc.withdraw()
		event, _, data := next()
		status, body := f.ask(tc.who, "GET", "/v1/gates", "/v1/gates", "")
		if event != "error" || status != 401 || data != strings.TrimSpace(body) || !strings.Contains(data, `"reason":"`+tc.reason+`"`) {
			t.Errorf("%s: %s %s, a new request %d %s", tc.name, event, data, status, body)
		}
		if event, _, data := next(); event != "end" {
			t.Errorf("%s reads on: %s %s", tc.name, event, data)
		}
		if got := <-waited; !strings.HasPrefix(got, "401") {
			t.Errorf("%s waits on: %s", tc.name, got)
		}
	}
}

// More than the limit of those who wait are told to come again.
func TestTooManyWait(t *testing.T) {
	f := newFront(t)
	f.open(0)
	for range 3 {
		next, end := f.stream("ann", "")
		defer end()
		next()
	}
	if status, got := f.ask("ann", "GET", "/v1/gates/events", "/v1/gates/events", ""); status != http.StatusTooManyRequests || !strings.Contains(got, "OVERLOADED") {
		t.Errorf("%d %s", status, got)
	}
}
