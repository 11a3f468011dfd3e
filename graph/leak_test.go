package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/graph"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/repair"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
)

// Every text, name and identity of the tenants bears a mark; what A may read only with a permission bears
// another one. Marks are never sent but as guesses, and an answer may repeat only what its request had.
const (
	markB      = "qxbqx"       // anything of tenant beta
	markText   = "qxaqxtext"   // texts of tenant acme
	markPeople = "qxaqxpeople" // people of tenant acme
)

var marks = regexp.MustCompile(`(?i)qx[ab]qx[a-z]*[-_.]?[0-9a-z]*`)

// tooMany is a number that only beta has.
const tooMany = 900_000_000

// injections are strings that would do something if they became a part of a statement.
var injections = []string{
	`' OR 1=1 --`, `' OR tenant_id='beta' --`, `\' OR tenant_id=\'beta\' --`, `') OR ('1'='1`, `'; DROP TABLE audit_current; --`, `" OR ""="`, `1 UNION ALL SELECT * FROM interaction_texts`,
	`') UNION ALL SELECT text FROM interaction_texts WHERE tenant_id='beta' --`, `{tenant:String}`, `?`, `$1`, `\`, `\\`, `\0`, `%`, `_`, `*`, "`", "```", `--`, `/* */`, `#`, `;`, `''`, `\x27 OR 1=1`,
	"\u2019 OR 1=1", "\u02bc OR 1=1", "a\nb", "\u0000", "\u202e", `beta`, `acme'`, `acme\'--`, `toUUID('x')`, `fromUnixTimestamp64Milli(0)`, `now()`, `SELECT 1`, `FORMAT JSON`, `SETTINGS readonly=0`,
	`charter.sex') OR has(kinds,'x`, strings.Repeat("'", 300), `${7*7}`, `{{7*7}}`, `<script>`, `../../etc/passwd`,
}

// world is two tenants with everything that the schema can show.
type world struct {
	*fixture
	handler *graph.Handler
	writer  *facts.Writer
	taken   *taken
	asked   *asked
	ids     map[string][]string // of each tenant: interactions, breaches, reviews, tickets
	words   map[string][]string // values of each tenant for filters
	cursors map[string][]string
	rows    *sink.Sink
	events  int // of acme
}

// taken is where createLlmInteractionAudit puts interactions.
type taken struct {
	mu sync.Mutex
	ms []ingest.Message
}

func (p *taken) Produce(_ context.Context, ms []ingest.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ms = append(p.ms, ms...)
	return nil
}

// quiet takes what the writer of facts publishes.
type quiet struct{}

func (quiet) Publish(context.Context, []audit.StreamEvent) error { return nil }
func (quiet) Opinions(context.Context, []audit.Opinion) error    { return nil }

func newWorld(t *testing.T) *world {
	w := &world{fixture: newFixture(t), taken: &taken{}, asked: &asked{}, ids: map[string][]string{}, words: map[string][]string{}, cursors: map[string][]string{}, events: 40}
	w.rows = sink.New(w.conn, w.db, sink.Options{})
	var err error
	w.writer, err = facts.New(facts.Parts{Store: w.Store, Rows: w.rows, Current: repair.New(w.conn, w.db), Stream: quiet{}, Opinions: quiet{}, RevealsPerHour: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	cfg := graph.DefaultConfig()
	cfg.Cost, cfg.Depth, cfg.Aliases, cfg.Fields, cfg.Tokens, cfg.Directives = 100_000, 50, 1000, 5000, 50_000, 1000 // what is asked here is asked on purpose
	log := slog.New(slog.NewTextHandler(failing{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	answers, err := gates.New(gates.DefaultConfig(), gates.Parts{Store: w.Store, Rows: w.rows, Log: &memory{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(answers.Close)
	w.handler = graph.NewHandler(graph.New(graph.Parts{
		Store: w.Store, Gates: answers, Judge: w.asked.of(w.Store), Facts: w.writer, Log: log, Intake: &graph.Intake{Decoder: ingest.NewDecoder(ingest.Options{}), Producer: w.taken},
	}).Schema(), cfg, graph.HandlerOptions{Log: log})
	w.fill(t, "acme", w.events)
	w.fill(t, "beta", 3*w.events)
	return w
}

// memory decides gates as the log does.
type memory struct{ sync.Map }

func (m *memory) Propose(_ context.Context, p arbiter.Proposal) (arbiter.Decision, error) {
	d, _ := m.LoadOrStore(p.Key, arbiter.Decision{Key: p.Key, Seq: 1, Value: p.Value, Proposal: p.ID, Time: time.Now()})
	return d.(arbiter.Decision), nil
}

func (m *memory) History(_ context.Context, k arbiter.Key) (ds []arbiter.Decision, err error) {
	if d, ok := m.Load(k); ok {
		ds = append(ds, d.(arbiter.Decision))
	}
	return ds, nil
}

func (m *memory) Watch(context.Context, uint64) iter.Seq2[arbiter.Decision, error] {
	return func(func(arbiter.Decision, error) bool) {}
}

// failing is a log that must stay empty of errors.
type failing struct{ t *testing.T }

func (f failing) Write(b []byte) (int, error) {
	// The engine may end and come back under so many queries; who writes then is told to try again.
	if !strings.Contains(string(b), "context") && !strings.Contains(string(b), "code=UNAVAILABLE") {
		f.t.Errorf("logged: %s", b)
	}
	return len(b), nil
}

// fill writes interactions, what was said about them, breaches with tickets, and counts of a tenant.
func (w *world) fill(t *testing.T, tenant string, n int) {
	mark, text, people, offset := "qxaqxword", markText, markPeople, 0
	if tenant == "beta" {
		mark, text, people, offset = markB+"word", markB+"text", markB+"people", 7_000_000
	}
	words := []string{mark + "-app", mark + "-provider", mark + "-model", people + "-id"}
	w.words[tenant] = words
	var rs []audit.Record
	for i := range n {
		r := sample(tenant, i*7%n+i%2) // more of the flagged ones
		in := r.Interaction
		in.ID = audit.DeriveID("leak", tenant, fmt.Sprint(i))
		in.TraceID = fmt.Sprintf("%032x", 0xabcdef0000+i+offset)
		in.Application, in.Provider, in.Model = words[0], words[1], words[2]
		in.UserID, in.UserEmail, in.UserRole = words[3], people+"-mail@example.org", people+"-role"
		in.QueryContext, in.RedactionSummary, in.ErrorMessage = `{"c":"`+text+`-context"}`, `{"r":"`+text+`-redacted"}`, text+"-error"
		in.Query, in.Prompt = text+"-query", text+"-prompt "+text+"-query"
		in.Messages = `[{"content":"` + text + `-query","role":"user"}]`
		in.Response, in.SanitizedPrompt = text+"-response "+text+"-more", text+"-sanitized"
		in.RetrievedContext, in.Metadata, in.GroupAttributes = `[{"id":"1","text":"`+text+`-retrieved"}]`, `{"m":"`+text+`-meta"}`, `{"g":"`+people+`-group"}`
		if offset > 0 {
			in.PromptTokens, in.CostMicroUSD = tooMany, tooMany*1_000_000
		}
		in.Time = noon.Add(-time.Duration(i) * time.Minute)
		r.Verdict.ResultID = audit.HotResultID(tenant, in.ID, in.Digest)
		r.Verdict.RuleSet = mark + "-rules"
		for j := range r.Verdict.Findings {
			f := &r.Verdict.Findings[j]
			f.Rule, f.RuleVersion, f.Span = mark+"-rule", mark+"-version", audit.Span{Start: 0, End: uint32(len(text)) + 9}
		}
		if i%5 == 1 {
			r.Verdict.Reason = mark + "-reason"
		}
		rs = append(rs, r)
		w.ids[tenant] = append(w.ids[tenant], in.ID.String())
	}
	w.write(rs...)
	who := &auth.Principal{Tenant: tenant, Subject: mark + "-reviewer", May: auth.Permissions}
	for i := range 3 {
		id := rs[i].Interaction.ID
		note, yes := text+"-note", true
		_, e1 := w.writer.Review(t.Context(), who, id, facts.Review{HumanReviewed: true, Tag: given(facts.Tag{Decision: "confirmed", Tags: []string{"language"}}), Notes: given(note)})
		_, e2 := w.writer.UpdateBias(t.Context(), who, id, facts.Bias{Detected: given(true), Types: given([]string{"language"}), Report: given(json.RawMessage(`{"q":"` + text + `-report"}`)), Mitigation: given(json.RawMessage(`{"details":"` + text + `-mitigation"}`))})
		_, e3 := w.writer.Feedback(t.Context(), who, id, facts.Feedback{Helped: &yes, Note: text + "-feedback"})
		_, e4 := w.writer.Reveal(t.Context(), who, id, audit.ID{}, text+"-why")
		if err := errors.Join(e1, e2, e3, e4); err != nil {
			t.Fatal(err)
		}
	}
	all := append(slices.Clone(w.ids["acme"][:2]), w.ids[tenant]...) // a breach that names another tenant's interactions
	if tenant == "acme" {
		for i := range 3 {
			all = append(all, audit.DeriveID("leak", "beta", fmt.Sprint(i)).String())
		}
	}
	for i := range 5 {
		breach, ticket := audit.DeriveID("breach", tenant, fmt.Sprint(i)), audit.DeriveID("ticket", tenant, fmt.Sprint(i))
		w.ids[tenant] = append(w.ids[tenant], breach.String(), ticket.String())
		for seq, state := range []string{"open", "mitigated"} {
			w.run("INSERT INTO {{db}}.breaches (tenant_id, breach_id, seq, version, state, reason, policy, tier, domain, kind, opened_at, changed_at, window_from, window_to, n, k, rate, lower, upper, baseline, severity, rule_set, `top_rules.rule`, `top_rules.interactions`, event_ids) "+
				"VALUES (?, ?, ?, 1, ?, ?, ?, 'policy', 'hr', 'charter.sex', ?, ?, ?, ?, ?, ?, 0.5, 0.4, 0.6, 0.1, 3, ?, [?], [3], ?)",
				tenant, uuid.UUID(breach), uint32(seq+1), state, mark+"-reason", mark+"-policy", noon, noon.Add(time.Duration(seq)*time.Minute), noon, noon.Add(time.Hour),
				uint64(100+offset*100), uint64(50+offset*100), mark+"-rules", mark+"-rule", asUUIDs(all[:min(len(all), 8)]))
		}
		w.run("INSERT INTO {{db}}.tickets (tenant_id, breach_id, ticket_id, version, seq, target, action, payload, state, attempts, remote_id, remote_key, url, error_detail, created_at) VALUES (?, ?, ?, 1, 1, 'linear', 'open', ?, 'sent', 1, ?, ?, ?, ?, ?)",
			tenant, uuid.UUID(breach), uuid.UUID(ticket), mark+"-payload", mark+"-remote", mark+"-1", "https://example.org/"+mark+"-url", mark+"-detail", noon)
	}
	for i := range 4 {
		g := audit.HumanGate{ID: audit.DeriveID("gate", tenant, fmt.Sprint(i)), Tenant: tenant, Provider: mark + "-provider", Method: mark + "-method", TraceID: mark + "-trace", Model: mark + "-model", Application: mark + "-app",
			Requester: mark + "-requester", User: people + "-user", At: noon, Opened: noon.Add(time.Duration(i) * time.Second), Expires: time.Now().Add(time.Hour), State: audit.GateOpen}
		g.Event, _ = audit.ParseID(all[len(all)-1-i]) // of acme's gates it is beta's: a gate may name any
		for _, rule := range []string{"one", "two"} {
			g.Matches = append(g.Matches, audit.GateMatch{Rule: audit.GateRule{ID: mark + "-" + rule, Description: mark + "-description", Pattern: mark + "-pattern", Category: mark + "-category"}, Text: text + "-matched", Side: audit.Output})
		}
		if err := w.rows.Gate(t.Context(), &g); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			g.State, g.By, g.Decided, g.Proposal = audit.GateDenied, mark+"-decider", noon.Add(time.Minute), audit.DeriveID("proposal", tenant)
			if err := errors.Join(w.rows.GateNote(t.Context(), &g, g.Proposal, text+"-gatenote"), w.rows.Gate(t.Context(), &g)); err != nil {
				t.Fatal(err)
			}
		}
		w.ids[tenant] = append(w.ids[tenant], g.ID.String())
	}
	for _, table := range []string{"hourly (tenant_id, dim, hour,", "daily (tenant_id, dim, day,"} {
		w.run("INSERT INTO {{db}}.rollup_"+table+" app, domain, model, value, version, n, k) SELECT ?, arrayJoin(['all', 'detected', 'flagged', 'kind', 'charter.sex']), toDateTime(?, 'UTC') + number * 3600, ?, 'hr', ?, 'charter.sex', 1, ?, ? FROM numbers(24)",
			tenant, noon.Truncate(24*time.Hour).Unix(), mark+"-app", mark+"-model", uint64(10+offset*100), uint64(5+offset*100))
	}
	// Cursors as their owner gets them.
	for _, q := range []string{`{llmInteractionAuditConnection(first:3){edges{cursor}}}`, `{breaches(first:2){pageInfo{endCursor}}}`, `{gates(first:2){pageInfo{endCursor}}}`, `{llmInteractionAuditConnection(first:2,orderBy:{field:SEVERITY}){edges{cursor}}}`} {
		res := w.send(&auth.Principal{Tenant: tenant, Subject: "owner", May: auth.Permissions}, &operationText{query: q})
		for _, m := range regexp.MustCompile(`"(?:cursor|endCursor)":"([^"]+)"`).FindAllStringSubmatch(res, -1) {
			w.cursors[tenant] = append(w.cursors[tenant], m[1])
		}
	}
	if len(w.cursors[tenant]) < 4 {
		t.Fatalf("no cursors of %s", tenant)
	}
}

func asUUIDs(ids []string) (out []uuid.UUID) {
	for _, id := range ids {
		out = append(out, uuid.MustParse(id))
	}
	return out
}

// send gives everything that the caller sees.
func (w *world) send(p *auth.Principal, op *operationText) string {
	r := httptest.NewRequest("POST", graph.Path, strings.NewReader(op.body()))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r.WithContext(auth.With(r.Context(), p)))
	return fmt.Sprintf("%d %v %s", rec.Code, rec.Header(), rec.Body)
}

// value gives scalars: what is right, what is another tenant's, and what is an attack.
func (w *world) value(g *generator, name, of string) any {
	foreign := func(s []string) string { g.attacks++; return pickOne(g, s) }
	text := func(own ...string) any {
		switch g.IntN(6) {
		case 0:
			return foreign(w.words["beta"])
		case 1:
			return pickOne(g, injections)
		case 2:
			return pickOne(g, []string{"", "hr", "charter.sex", "language", "success", "warn", "done", "high"})
		}
		if len(own) == 0 {
			own = w.words["acme"]
		}
		return pickOne(g, own)
	}
	switch of {
	case "ID":
		switch {
		case name == "tenantId" && g.chance(3):
			return foreign([]string{"beta"})
		case name == "tenantId":
			return "acme"
		case name == "userId":
			return text(w.words["acme"][3])
		case g.chance(3):
			return foreign(w.ids["beta"])
		case g.chance(8):
			return pickOne(g, injections)
		case g.chance(8):
			return audit.DeriveID("nobody", fmt.Sprint(g.IntN(100))).String()
		}
		return pickOne(g, w.ids["acme"])
	case "Int":
		if g.chance(10) {
			return pickOne(g, []int{-1, 0, 201, 10_001, 1 << 30})
		}
		return 1 + g.IntN(5)
	case "Float":
		return pickOne(g, []float64{0, 0.1, 0.5, 1, -1, 2})
	case "Boolean":
		return g.chance(2)
	case "DateTime":
		return pickOne(g, []string{noon.AddDate(0, 0, -2).Format(time.RFC3339), noon.Format(time.RFC3339), noon.AddDate(0, 0, 2).Format(time.RFC3339), noon.AddDate(0, -1, 0).Format(time.RFC3339), "' OR 1=1"})
	case "JSON":
		if name == "input" { // of createLlmInteractionAudit; what it takes is not in the store
			return pickOne(g, []any{map[string]any{"prompt": "p", "response": "r"}, map[string]any{"prompt": "p", "tenant_id": foreign([]string{"beta"})},
				map[string]any{"id": foreign(w.ids["beta"]), "response": "r"}, pickOne(g, injections)})
		}
		return pickOne(g, []any{nil, []any{"language"}, "language", map[string]any{"bias": 0.5}, map[string]any{"decision": "confirmed", "tags": []any{"language"}}, map[string]any{"details": "a rewrite"},
			map[string]any{"bias_score": pickOne(g, injections)}, pickOne(g, injections)})
	}
	switch name {
	case "after":
		if g.chance(3) {
			return foreign(w.cursors["beta"])
		} else if g.chance(5) {
			return pickOne(g, injections)
		}
		return pickOne(g, w.cursors["acme"])
	case "domain":
		return text("hr", "general", "finance")
	case "kind", "biasType":
		return text("charter.sex", "language", "safety.pii_leakage")
	case "traceId":
		return text(fmt.Sprintf("%032x", 0xabcdef0000+g.IntN(5)), fmt.Sprintf("%032x", 0xabcdef0000+7_000_000))
	case "reviewedBy", "notReviewedBy":
		return text("caller-reviewer", "caller-admin")
	case "status":
		return text("success", "error", "blocked")
	case "biasAnalysisStatus":
		return text("done", "failed", "pending")
	case "sensitivityScore":
		return text("low", "high")
	case "action":
		return text("none", "warn", "block")
	case "reason", "reviewNotes", "note", "description", "biasKey": // these are kept and shown again
		return pickOne(g, append([]string{"because", "language"}, injections...))
	}
	return text()
}

// callers of acme: what they may not see must not be in their answers.
func callers() []*auth.Principal {
	var ps []*auth.Principal
	for _, r := range []auth.Role{auth.Admin, auth.Service, auth.Reviewer, auth.Viewer} {
		ps = append(ps, &auth.Principal{Tenant: "acme", Subject: "caller-" + string(r), Roles: []auth.Role{r}, May: auth.Grants(r), Verified: true})
	}
	return append(ps, &auth.Principal{Tenant: "acme", Subject: "key:1", May: []auth.Permission{auth.Read, auth.ReadPeople}, Verified: true},
		&auth.Principal{Tenant: "acme", Subject: "key:2", May: []auth.Permission{auth.Ingest}, Verified: true})
}

// leaks are the marks and ids of an answer that the caller may not have.
func (w *world) leaks(p *auth.Principal, op *operationText, res string) (found []string) {
	sent := op.body()
	for _, m := range marks.FindAllString(res, -1) {
		low := strings.ToLower(m)
		foreign := strings.HasPrefix(low, markB)
		hidden := !p.Can(auth.ReadTexts) && strings.HasPrefix(low, markText) || !p.Can(auth.ReadPeople) && strings.HasPrefix(low, markPeople)
		if hidden && p.Can(auth.Review) && strings.Contains(sent, "reveal") {
			hidden = false // asked for with a reason
		}
		if (foreign || hidden) && !strings.Contains(sent, m) {
			found = append(found, m)
		}
	}
	for _, id := range w.ids["beta"] {
		if strings.Contains(res, id) && !strings.Contains(sent, id) {
			found = append(found, id)
		}
	}
	for _, m := range regexp.MustCompile(`"(?:n|k|promptTokens|totalCount|analysed|interactions)":(\d+)`).FindAllStringSubmatch(res, -1) {
		if n, _ := strconv.Atoi(m[1]); n >= 100_000 {
			found = append(found, m[0])
		}
	}
	for _, m := range regexp.MustCompile(`"(?:totalCount|analysed|failed)":(\d+)`).FindAllStringSubmatch(res, -1) {
		if n, _ := strconv.Atoi(m[1]); n > w.events {
			found = append(found, m[0])
		}
	}
	return found
}

// TestNothingLeaksBetweenTenants sends generated operations of acme and looks for anything of beta.
// EVENHAND_LEAK_OPERATIONS is how many; 20,000 take some minutes.
func TestNothingLeaksBetweenTenants(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of operations")
	}
	n := 2000
	if s := os.Getenv("EVENHAND_LEAK_OPERATIONS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	w := newWorld(t)
	filled := time.Now()
	before, sums := w.ofTenant("beta"), w.columnsOfTenants()
	var leaked, internal, attacks, sent atomic.Int64
	used := map[string]int{}
	codes := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	const workers = 3
	for i := range workers {
		wg.Go(func() {
			g := &generator{Rand: rand.New(rand.NewPCG(uint64(i), 6)), schema: served, value: w.value, used: map[string]int{}}
			ps := callers()
			for j := i; j < n; j += workers {
				kind := "query"
				if g.chance(6) {
					kind = "mutation"
				}
				p := ps[g.IntN(len(ps))]
				op := g.operation(kind, "")
				res := w.send(p, op)
				sent.Add(1)
				attacks.Add(int64(op.attacks))
				if found := w.leaks(p, op, res); len(found) > 0 && leaked.Add(1) <= 5 {
					at := strings.Index(res, found[0])
					t.Errorf("%s sees %s in …%s…\n%s", p.Subject, found, res[max(0, at-300):min(len(res), at+300)], op.body())
				}
				if strings.Contains(res, `"INTERNAL"`) && internal.Add(1) <= 3 {
					t.Errorf("a fault of ours: %s\n%.2000s", op.body(), res)
				}
				mu.Lock()
				for _, m := range regexp.MustCompile(`"code":"([A-Z_]+)"`).FindAllStringSubmatch(res, -1) {
					codes[m[1]]++
				}
				if !strings.Contains(res, `"errors"`) {
					codes["none"]++
				}
				mu.Unlock()
			}
			mu.Lock()
			for k, v := range g.used {
				used[k] += v
			}
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("%v to fill, %v to ask", filled.Sub(began).Round(time.Millisecond), time.Since(filled).Round(time.Millisecond))
	t.Logf("%d operations, %d values of the other tenant, %d leaks, %d internal faults; errors by code: %v", sent.Load(), attacks.Load(), leaked.Load(), internal.Load(), codes)
	if missed := unused(used); len(missed) > 0 {
		t.Errorf("never asked for: %s", missed)
	}
	if after := w.ofTenant("beta"); after != before {
		t.Errorf("beta's rows have changed:\n%s\n%s", before, after)
	}
	if after := w.columnsOfTenants(); after != sums {
		t.Errorf("the tables have changed:\n%s\n%s", sums, after)
	}
	for _, m := range w.taken.ms {
		var to string
		for _, h := range m.Headers {
			if h.Key == ingest.HeaderTenant {
				to = string(h.Value)
			}
		}
		if to != "acme" {
			t.Errorf("an interaction was sent to %q", to)
		}
	}
	for _, r := range w.asked.all(t) {
		if r.Tenant != "acme" {
			t.Errorf("the judge was asked about an interaction of %q", r.Tenant)
		}
	}
	if codes["none"] < n/10 || attacks.Load() < int64(n/10) || len(w.taken.ms) == 0 || len(w.asked.ms) == 0 {
		t.Error("the operations do not reach far enough")
	}
}

// unused are fields, arguments, inputs and values of enumerations that no operation had.
func unused(used map[string]int) (missed []string) {
	for name, d := range served.Types {
		if d.BuiltIn || d == served.Subscription {
			continue
		}
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			if used[name+"."+f.Name] == 0 {
				missed = append(missed, name+"."+f.Name)
			}
			for _, a := range f.Arguments {
				if used[name+"."+f.Name+"("+a.Name+")"] == 0 {
					missed = append(missed, name+"."+f.Name+"("+a.Name+")")
				}
			}
		}
		for _, v := range d.EnumValues {
			if input(name) && used[name+"."+v.Name] == 0 {
				missed = append(missed, name+"."+v.Name)
			}
		}
	}
	slices.Sort(missed)
	return missed
}

// input tells whether an enumeration is a part of inputs.
func input(name string) bool {
	for _, d := range served.Types {
		for _, f := range d.Fields {
			if d.Kind == ast.InputObject && f.Type.Name() == name {
				return true
			}
		}
	}
	return false
}

// ofTenant is the number and the content of a tenant's rows in every table.
func (w *world) ofTenant(tenant string) string {
	var b strings.Builder
	for _, table := range w.names("SELECT table FROM system.columns WHERE database = '" + w.db + "' AND name = 'tenant_id' AND table IN (SELECT name FROM system.tables WHERE database = '" + w.db + "' AND engine LIKE '%MergeTree') ORDER BY table") {
		var n, sum uint64
		if err := w.conn.QueryRow(w.Context(), "SELECT count(), groupBitXor(cityHash64(*)) FROM "+w.db+"."+table+" FINAL WHERE tenant_id = ?", tenant).Scan(&n, &sum); err != nil {
			w.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %x\n", table, n, sum)
	}
	return b.String()
}

// columnsOfTenants are the tables as they are built.
func (w *world) columnsOfTenants() string {
	return strings.Join(w.names("SELECT concat(table, '.', name, ' ', type) FROM system.columns WHERE database = '"+w.db+"' ORDER BY table, name"), "\n")
}

func (w *world) names(sql string) (names []string) {
	rows, err := w.conn.Query(w.Context(), sql)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			w.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		w.Fatal(err)
	}
	return names
}

// TestAnotherTenantsIDLooksUnknown: nothing tells whether an id exists elsewhere, neither what is answered nor
// what is refused; the same holds for names that only another tenant has.
func TestAnotherTenantsIDLooksUnknown(t *testing.T) {
	w := newWorld(t)
	before := w.ofTenant("beta")
	nobody := audit.DeriveID("nobody").String()
	interaction, breach := w.ids["beta"][0], audit.DeriveID("breach", "beta", "0").String()
	const fields = "{id llmModel originalQuery findings{kind} verdicts{id} reviews{id}}"
	for _, tc := range []struct{ query, theirs, unknown string }{
		{`query($x:ID!){llmInteractionAudit(id:$x)` + fields + `}`, interaction, nobody},
		{`query($x:ID!){breach(id:$x){id state interactions{id} tickets{key}}}`, breach, nobody},
		{`mutation($x:ID!){recordBiasReview(id:$x,input:{humanReviewed:true,humanBiasTag:"language"})` + fields + `}`, interaction, nobody},
		{`mutation($x:ID!){updateLlmInteractionAuditBias(id:$x,input:{biasDetected:true})` + fields + `}`, interaction, nobody},
		{`mutation($x:ID!){recordFeedback(id:$x,input:{helped:true}){by}}`, interaction, nobody},
		{`mutation($x:ID!){askJudge(id:$x){outcome verdictId}}`, interaction, nobody},
		{`mutation($x:ID!){revealLlmInteractionAudit(id:$x,reason:"because")` + fields + `}`, interaction, nobody},
		{`query($x:ID!){llmInteractionAuditConnection(filter:{userId:$x}){totalCount nodes{id}}}`, w.words["beta"][3], "nobody"},
		{`query($x:String!){llmInteractionAuditConnection(filter:{llmModel:$x}){totalCount nodes{id}}}`, w.words["beta"][2], "nothing"},
		{`query($x:String!){llmInteractionAuditConnection(filter:{traceId:$x}){totalCount nodes{id}}}`, fmt.Sprintf("%032x", 0xabcdef0000+7_000_000), fmt.Sprintf("%032x", 0xeeeeee)},
		{`query($x:String!){biasTrend(input:{llmModel:$x}){series{group points{n k}}}}`, w.words["beta"][2], "nothing"},
		{`query($x:String!){biasTrend(input:{application:$x,groupBy:APPLICATION}){series{group points{n k}}}}`, w.words["beta"][0], "nothing"},
	} {
		ask := func(x string) string {
			res := w.send(callers()[0], &operationText{query: tc.query, variables: map[string]any{"x": x}})
			return strings.ReplaceAll(regexp.MustCompile(`20\d\d-[-0-9T:.]+Z`).ReplaceAllString(res, "T"), x, "X")
		}
		if theirs, unknown := ask(tc.theirs), ask(tc.unknown); theirs != unknown {
			t.Errorf("%s\ntheirs:  %s\nunknown: %s", tc.query, theirs, unknown)
		}
	}
	if after := w.ofTenant("beta"); after != before {
		t.Errorf("beta's rows have changed:\n%s\n%s", before, after)
	}
}
