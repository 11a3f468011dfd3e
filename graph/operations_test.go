package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/graph"
	"github.com/evenhand/evenhand/repair"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
)

var update = flag.Bool("update", false, "write the answers of testdata/operations anew")

// streams keeps what is published.
type streams struct {
	mu     sync.Mutex
	events []audit.StreamEvent
}

func (s *streams) Publish(_ context.Context, es []audit.StreamEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, es...)
	return nil
}

func (s *streams) Opinions(context.Context, []audit.Opinion) error { return nil }

// writing gives the fixture a writer of facts.
func (f *fixture) writing() *streams {
	f.Helper()
	s := &streams{}
	w, err := facts.New(facts.Parts{Store: f.Store, Rows: sink.New(f.conn, f.db, sink.Options{}), Current: repair.New(f.conn, f.db), Stream: s, Opinions: s, RevealsPerHour: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.api = newAPI(f.TB, graph.Parts{Store: f.Store, Facts: w})
	return s
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// The operations of the specification, as they are written there, one after the other.
func TestOperations(t *testing.T) {
	f := newFixture(t)
	published := f.writing()
	r := sample("acme", 21)
	r.Interaction.Time = time.Date(2026, 3, 1, 9, 30, 0, 120_000_000, time.UTC)
	r.Verdict.Time, r.Origin.BrokerTime = r.Interaction.Time, r.Interaction.Time
	id := r.Interaction.ID.String()
	f.write(r, sample("acme", 22), sample("beta", 21))
	files, err := filepath.Glob("testdata/operations/*.graphql")
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		query, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(file, ".graphql")
		variables, err := os.ReadFile(name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		a := f.ask(admin, string(query), strings.ReplaceAll(string(variables), `"ID"`, `"`+id+`"`))
		if len(a.Errors) > 0 {
			t.Fatalf("%s: %+v", name, a.Errors)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, a.Data, "", "  "); err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{id: true, r.Verdict.ResultID.String(): true}
		got := uuids.ReplaceAllStringFunc(b.String()+"\n", func(u string) string { // those of new facts
			if known[u] {
				return u
			}
			return "NEW"
		})
		if *update {
			if err := os.WriteFile(name+".want.json", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name + ".want.json")
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	f.same(r.Interaction.ID)
	if len(published.events) != 1 || published.events[0].AuditID != r.Interaction.ID || published.events[0].TraceID != r.Interaction.TraceID {
		t.Errorf("published %+v", published.events)
	}
}

const reviewed = `query($f: LlmInteractionAuditFilterInput) { llmInteractionAudits(filter: $f) { id biasDetected effectiveBias humanReviewed humanBiasTag reviewNotes } }`

// What a mutation answers is what the next query finds, and what filters go by.
func TestReadYourWrite(t *testing.T) {
	f := newFixture(t)
	f.writing()
	records := series("acme", 8) // 0, 3 and 7 are detected
	f.write(records...)
	review := func(p *auth.Principal, i int, input string) record {
		t.Helper()
		var got struct{ RecordBiasReview record }
		f.get(p, `mutation($id: ID!, $input: RecordBiasReviewInput!) { recordBiasReview(id: $id, input: $input) { `+everything+` } }`, `{"id":"`+records[i].Interaction.ID.String()+`","input":`+input+`}`, &got)
		again := f.one(p, records[i].Interaction.ID, everything)
		a, _ := json.Marshal(got.RecordBiasReview)
		b, _ := json.Marshal(again)
		if !bytes.Equal(a, b) {
			t.Errorf("the answer\n%s\nthe next query\n%s", a, b)
		}
		f.same(records[i].Interaction.ID)
		return again
	}
	eve := as(auth.Reviewer)
	eve.Subject = "eve"
	if r := review(as(auth.Reviewer), 0, `{"humanReviewed":true,"humanBiasTag":{"decision":"dismissed"},"reviewNotes":"a quotation"}`); r["effectiveBias"] != false || r["biasDetected"] != true || r["reviewNotes"] != "a quotation" {
		t.Errorf("dismissed: %v", r)
	}
	if r := review(as(auth.Reviewer), 0, `{"humanReviewed":true,"humanBiasTag":["charter.sex"]}`); r["effectiveBias"] != false || fmt.Sprint(r["humanBiasTag"]) != "map[decision:dismissed tags:[charter.sex]]" {
		t.Errorf("tags alone keep the decision: %v", r)
	}
	review(admin, 1, `{"humanReviewed":true,"humanBiasTag":{"decision":"confirmed","tags":["language"]}}`)
	if r := review(eve, 1, `{"humanReviewed":true,"humanBiasTag":"representation"}`); len(r["reviews"].([]any)) != 2 || r["effectiveBias"] != true || fmt.Sprint(r["humanBiasTag"]) != "map[decision:confirmed tags:[language]]" {
		t.Errorf("who is unsure overturns nobody: %v", r)
	}
	if r := review(eve, 1, `{"humanReviewed":true,"humanBiasTag":{"decision":"dismissed"},"reviewNotes":"a saying"}`); r["effectiveBias"] != false || r["reviewNotes"] != "a saying" {
		t.Errorf("of two decisions the newest shows: %v", r)
	}
	if r := review(eve, 1, `{"humanReviewed":false}`); len(r["reviews"].([]any)) != 4 || r["effectiveBias"] != true || r["humanBiasTag"].(map[string]any)["decision"] != "confirmed" {
		t.Errorf("one that is taken back lets the other's show: %v", r)
	}
	for _, tc := range []struct {
		filter string
		want   []int
	}{{`{"humanReviewed":true}`, []int{0, 1}}, {`{"reviewDecision":"confirmed"}`, []int{1}}, {`{"reviewDecision":"unsure"}`, nil}, {`{"humanReviewed":false,"biasDetected":true}`, []int{3, 7}}, {`{"effectiveBias":true}`, []int{1, 3, 7}}, {`{"effectiveBias":false,"biasDetected":true}`, []int{0}}, {`{"effectiveBias":true,"humanReviewed":true}`, []int{1}}} {
		var got struct{ LlmInteractionAudits []struct{ ID string } }
		f.get(admin, reviewed, `{"f":`+tc.filter+`}`, &got)
		var ids, want []string
		for _, n := range got.LlmInteractionAudits {
			ids = append(ids, n.ID)
		}
		for _, i := range tc.want {
			want = append(want, records[i].Interaction.ID.String())
		}
		if strings.Join(ids, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", tc.filter, ids, want)
		}
	}
	none := `"id":"` + sample("beta", 0).Interaction.ID.String() + `"`
	f.write(sample("beta", 0))
	for query, vars := range map[string]string{updateOp: `{` + none + `,"input":{}}`, reviewOp: `{` + none + `,"input":{"humanReviewed":true}}`,
		`mutation($id: ID!) { revealLlmInteractionAudit(id: $id, reason: "case 7") { id } }`: `{` + none + `}`, `mutation($id: ID!) { recordFeedback(id: $id, input: {helped: true}) { id } }`: `{` + none + `}`} {
		if a := f.ask(admin, query, vars); a.codes() != "NOT_FOUND" {
			t.Errorf("another tenant's: %s %+v", a.Data, a.Errors)
		}
	}
	unknown := `"id":"` + records[2].Interaction.ID.String() + `"`
	if a := f.ask(admin, updateOp, `{`+unknown+`,"input":{"biasType":["no.such"]}}`); a.codes() != "BAD_USER_INPUT" || !strings.Contains(a.Errors[0].Message, "biasType") {
		t.Errorf("a key that is not in the vocabulary: %+v", a.Errors)
	}
}

// Of many reviews those that can be stored are, in their order, and each result says what became of it.
func TestManyReviews(t *testing.T) {
	f := newFixture(t)
	f.writing()
	records := series("acme", 5)
	f.write(append(records, sample("beta", 0))...)
	id := func(i int) string { return records[i].Interaction.ID.String() }
	const op = `mutation($r: [BiasReviewInput!]!) { recordBiasReviews(inputs: $r) { id interaction { id originalQuery effectiveBias reviewNotes } error { code message } } }`
	said := func(id, decision, note string) string {
		return fmt.Sprintf(`{"id":%q,"input":{"humanReviewed":true,"humanBiasTag":{"decision":%q},"reviewNotes":%q}}`, id, decision, note)
	}
	inputs := []string{said(id(0), "dismissed", "one"), said(sample("beta", 0).Interaction.ID.String(), "confirmed", ""), said("42", "confirmed", ""), said(id(1), "yes", ""), said(id(3), "confirmed", "two"), said(id(0), "confirmed", "three")}
	var got struct {
		RecordBiasReviews []struct {
			ID          string
			Interaction *struct {
				ID, OriginalQuery, ReviewNotes string
				EffectiveBias                  bool
			}
			Error *struct{ Code, Message string }
		}
	}
	f.get(as(auth.Reviewer), op, `{"r":[`+strings.Join(inputs, ",")+`]}`, &got)
	if len(got.RecordBiasReviews) != len(inputs) {
		t.Fatalf("%+v", got)
	}
	for i, want := range []string{"", "NOT_FOUND no such interaction", "BAD_USER_INPUT id: not a UUID", "BAD_USER_INPUT humanBiasTag.decision: want", "", ""} {
		r := got.RecordBiasReviews[i]
		switch {
		case !strings.Contains(inputs[i], r.ID), want == "" && (r.Error != nil || r.Interaction == nil || r.Interaction.ID != r.ID || r.Interaction.OriginalQuery != "Should we hire her?"):
			t.Errorf("the %d-th: %+v", i, r)
		case want != "" && (r.Interaction != nil || r.Error == nil || !strings.HasPrefix(r.Error.Code+" "+r.Error.Message, want)):
			t.Errorf("the %d-th: %+v, want %s", i, r, want)
		}
	}
	for i, want := range map[int]string{0: "confirmed three", 1: " ", 3: "confirmed two"} {
		r := f.one(admin, records[i].Interaction.ID, "humanBiasTag reviewNotes")
		tag, _ := r["humanBiasTag"].(record)
		if holds := strings.ReplaceAll(fmt.Sprint(tag["decision"], " ", r["reviewNotes"]), "<nil>", ""); holds != want {
			t.Errorf("of %d %q holds, want %q", i, holds, want)
		}
	}
	if a := f.ask(as(auth.Reviewer), op, `{"r":[`+strings.Repeat(said(id(0), "confirmed", "")+",", 100)+said(id(0), "confirmed", "")+`]}`); a.codes() != "BAD_USER_INPUT" || !strings.Contains(a.Errors[0].Message, "inputs: 101 at once are more than 100") {
		t.Errorf("%+v", a.Errors)
	}
	if a := f.ask(as(auth.Viewer), op, `{"r":[]}`); a.codes() != "FORBIDDEN" {
		t.Errorf("a viewer: %+v", a.Errors)
	}
}

// What was said of a flag is read back, newest first, each with its own note.
func TestFeedbackIsReadBack(t *testing.T) {
	f := newFixture(t)
	f.writing()
	records := series("acme", 2)
	f.write(records...)
	id := records[0].Interaction.ID
	const give = `mutation($id: ID!, $in: RecordFeedbackInput!) { recordFeedback(id: $id, input: $in) { helped note } }`
	for _, in := range []string{`{"helped":true,"note":"caught it"}`, `{"helped":false}`, `{"note":"after all, I do not know"}`} {
		if a := f.ask(as(auth.Reviewer), give, `{"id":"`+id.String()+`","in":`+in+`}`); len(a.Errors) > 0 {
			t.Fatalf("%+v", a.Errors)
		}
	}
	for who, want := range map[*auth.Principal]string{
		as(auth.Reviewer): `[{"by":"ann","helped":null,"note":"after all, I do not know"},{"by":"ann","helped":false,"note":null},{"by":"ann","helped":true,"note":"caught it"}]`,
		as(auth.Viewer):   `[{"by":"ann","helped":null,"note":null},{"by":"ann","helped":false,"note":null},{"by":"ann","helped":true,"note":null}]`,
	} {
		if got, _ := json.Marshal(f.one(who, id, "feedback { by helped note }")["feedback"]); string(got) != want {
			t.Errorf("%v: %s, want %s", who.Roles, got, want)
		}
	}
	if got := f.one(admin, records[1].Interaction.ID, "feedback { id }")["feedback"]; len(got.([]any)) != 0 {
		t.Errorf("another's: %v", got)
	}
}

// A reviewer sees who the user was after giving a reason, of that one record and no other.
func TestReveal(t *testing.T) {
	f := newFixture(t)
	f.writing()
	records := series("acme", 4)
	f.write(records...)
	ann := as(auth.Reviewer)
	reveal := func(i int) answer {
		return f.ask(ann, `mutation($id: ID!) { revealLlmInteractionAudit(id: $id, reason: "complaint 7, asked by the user") { userEmail originalQuery textState } }`, `{"id":"`+records[i].Interaction.ID.String()+`"}`)
	}
	if a := reveal(0); string(a.Data) != `{"revealLlmInteractionAudit":{"userEmail":"u@example.org","originalQuery":"Should we hire her?","textState":"present"}}` {
		t.Errorf("%s %+v", a.Data, a.Errors)
	}
	if r := f.one(ann, records[0].Interaction.ID, "userEmail originalQuery"); r["userEmail"] != nil || r["originalQuery"] != "Should we hire her?" {
		t.Errorf("a query after it: %v", r)
	}
	var a answer
	for i := range 4 {
		a = reveal(i)
	}
	if a.codes() != "OVERLOADED" {
		t.Errorf("above the limit: %s %+v", a.Data, a.Errors)
	}
	var fb struct{ RecordFeedback record }
	f.get(ann, `mutation($id: ID!) { recordFeedback(id: $id, input: {helped: false, note: "it was a quotation"}) { by helped note } }`, `{"id":"`+records[1].Interaction.ID.String()+`"}`, &fb)
	if fb.RecordFeedback["by"] != "ann" || fb.RecordFeedback["helped"] != false || fb.RecordFeedback["note"] != "it was a quotation" {
		t.Errorf("%v", fb)
	}
	var tax struct{ PutTaxonomyEntry record }
	f.get(admin, `mutation { putTaxonomyEntry(input: {biasKey: "house.style", description: "ours", severityLevel: 2}) { id biasKey description severityLevel } }`, "", &tax)
	if tax.PutTaxonomyEntry["biasKey"] != "house.style" || tax.PutTaxonomyEntry["severityLevel"] != 2.0 {
		t.Errorf("%v", tax)
	}
}
