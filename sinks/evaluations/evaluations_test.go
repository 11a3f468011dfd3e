package evaluations

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/evenhand/evenhand/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	traceID    = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID     = "00f067aa0ba902b7"
	secretText = "words that people said"
)

// receiver is an OTLP receiver on loopback.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	records  []*logspb.LogRecord
	service  string
	raw      bytes.Buffer
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body io.Reader = req.Body
		if req.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(req.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		var m collogspb.ExportLogsServiceRequest
		if err = errors.Join(err, proto.Unmarshal(b, &m)); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.Write(b)
		r.requests = append(r.requests, req)
		for _, rl := range m.ResourceLogs {
			r.service = text(rl.Resource.Attributes, "service.name")
			for _, sl := range rl.ScopeLogs {
				r.records = append(r.records, sl.LogRecords...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func text(kvs []*commonpb.KeyValue, key string) string {
	for _, kv := range kvs {
		if kv.Key == key {
			switch v := kv.Value.Value.(type) {
			case *commonpb.AnyValue_StringValue:
				return v.StringValue
			case *commonpb.AnyValue_DoubleValue:
				return fmt.Sprint(v.DoubleValue)
			}
		}
	}
	return "-"
}

// line is a record as the tests compare it: name, label, score, explanation, error.
func line(r *logspb.LogRecord) string {
	a := func(key string) string { return text(r.Attributes, key) }
	return strings.Join([]string{r.EventName, a("gen_ai.evaluation.name"), a("gen_ai.evaluation.score.label"), a("gen_ai.evaluation.score.value"), a("gen_ai.evaluation.explanation"), a("error.type")}, "|")
}

func lines(rs []*logspb.LogRecord) (out []string) {
	for _, r := range rs {
		out = append(out, line(r))
	}
	return out
}

func record(v audit.Verdict) audit.Record {
	v.ResultID, v.Time = audit.DeriveID("result"), time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	return audit.Record{Verdict: &v, Interaction: &audit.Interaction{
		ID: audit.DeriveID("event"), Tenant: "acme", Domain: audit.HR, TraceID: traceID, SpanID: spanID,
		Prompt: secretText, Query: secretText, Messages: secretText, Response: secretText, UserID: secretText, UserEmail: secretText, Application: "app",
		Metadata: `{"gen_ai.response.id":"chatcmpl-1","note":"` + secretText + `"}`,
	}}
}

var biased = audit.Verdict{
	Analyzer: audit.HotAnalyzer, Status: audit.Done, Action: audit.Warn, Detected: true, Flagged: true, Gated: true, BiasTypes: []string{"charter.sex"},
	BiasSum: 1_200_000, SafetySum: 100_000, Findings: []audit.Finding{
		{Kind: "charter.sex", Rule: "sex.b", Side: audit.Output}, {Kind: "charter.sex", Rule: "sex.a", Side: audit.Output}, {Kind: "charter.sex", Rule: "sex.a", Side: audit.Output},
		{Kind: "charter.age", Rule: "age.a", Side: audit.Input}, {Kind: "safety.violence", Rule: "violence.a", Side: audit.Output}, {Kind: "gate.financial", Rule: "gate.transfer", Side: audit.Output},
	},
}

func with(change func(*audit.Verdict)) audit.Verdict {
	v := biased
	change(&v)
	return v
}

func TestWhatIsSaidOfAVerdict(t *testing.T) {
	clean := audit.Verdict{Analyzer: audit.HotAnalyzer, Status: audit.Done, Action: audit.NoAction}
	judged := audit.Verdict{
		Analyzer: audit.JudgeAnalyzer, Status: audit.Done, Detected: true, Flagged: true, Action: audit.Warn, Mitigation: audit.MitigationRephrase, BiasTypes: []string{"charter.sex", "judge.stereotype"},
		Scores:   []audit.NamedScore{{Name: audit.ScoreJudge, Value: 800_000}, {Name: audit.ScoreDEI, Value: 400_000}, {Name: audit.ScoreOffensive}},
		Findings: []audit.Finding{{Kind: "judge.stereotype", Rule: "judge.stereotype.gender", Side: audit.Output}, {Kind: "dei.person_first", Rule: "dei.person_first", Side: audit.Output}},
	}
	says := func(change func(*audit.Verdict)) audit.Verdict { v := judged; change(&v); return v }
	outside := audit.Verdict{Analyzer: "external:someone@example.org", Status: audit.Done, Detected: true, BiasTypes: []string{"charter.age", "charter.sex"}, Scores: []audit.NamedScore{{Name: "bias", Value: 420_000}}}
	const e = "gen_ai.evaluation.result|"
	for _, tc := range []struct {
		name    string
		verdict audit.Verdict
		flagged []string
		all     []string
	}{
		{"flagged and gated", biased, []string{e + "evenhand.bias|flagged|1|sex.a, sex.b|-", e + "evenhand.gate|flagged|-|gate.transfer|-"},
			[]string{e + "evenhand.bias|flagged|1|sex.a, sex.b|-", e + "evenhand.safety|detected|0.1|violence.a|-", e + "evenhand.gate|flagged|-|gate.transfer|-"}},
		{"below the threshold", with(func(v *audit.Verdict) { v.Flagged, v.Gated, v.BiasSum = false, false, 100_000 }), nil,
			[]string{e + "evenhand.bias|detected|0.1|sex.a, sex.b|-", e + "evenhand.safety|detected|0.1|violence.a|-"}},
		{"clean", clean, nil, []string{e + "evenhand.bias|pass|0|-|-", e + "evenhand.safety|pass|0|-|-"}},
		{"nothing to look at", audit.Verdict{Status: audit.Skipped}, nil, nil},
		{"failed", audit.Verdict{Analyzer: audit.HotAnalyzer, Status: audit.Failed, Reason: "timeout"}, nil, []string{e + "evenhand.bias|-|-|-|timeout"}},
		{"given up", audit.Verdict{Analyzer: audit.HotAnalyzer, Status: audit.Abandoned, Reason: "panic"}, nil, []string{e + "evenhand.bias|-|-|-|panic"}},
		{"in part: no pass", with(func(v *audit.Verdict) {
			v.Status, v.Reason, v.Gated, v.SafetySum, v.Findings = audit.Partial, "panic", false, 0, v.Findings[:3]
		}),
			[]string{e + "evenhand.bias|flagged|1|sex.a, sex.b|panic"}, []string{e + "evenhand.bias|flagged|1|sex.a, sex.b|panic", e + "evenhand.safety|-|-|-|panic"}},
		{"an outside analyzer", outside, []string{e + "evenhand.bias|flagged|0.42|charter.age, charter.sex|-"}, []string{e + "evenhand.bias|flagged|0.42|charter.age, charter.sex|-"}},
		{"an outside analyzer sees none", audit.Verdict{Analyzer: "external:x", Status: audit.Done}, nil, []string{e + "evenhand.bias|pass|-|-|-"}},
		{"the judge: non-compliant", judged,
			[]string{e + "evenhand.judge.bias|flagged|0.8|judge.stereotype.gender|-", e + "evenhand.judge.dei|flagged|0.4|dei.person_first|-"},
			[]string{e + "evenhand.judge.bias|flagged|0.8|judge.stereotype.gender|-", e + "evenhand.judge.dei|flagged|0.4|dei.person_first|-", e + "evenhand.judge.offensive|pass|0|-|-"}},
		{"the judge: a person should look", says(func(v *audit.Verdict) {
			v.Flagged, v.Action, v.Mitigation = false, audit.NoAction, audit.MitigationReview
		}), nil,
			[]string{e + "evenhand.judge.bias|detected|0.8|judge.stereotype.gender|-", e + "evenhand.judge.dei|detected|0.4|dei.person_first|-", e + "evenhand.judge.offensive|pass|0|-|-"}},
		{"the judge: compliant", says(func(v *audit.Verdict) {
			v.Flagged, v.Detected, v.Action, v.Mitigation, v.BiasTypes, v.Findings = false, false, audit.NoAction, "", nil, nil
			v.Scores = []audit.NamedScore{{Name: audit.ScoreJudge}, {Name: audit.ScoreDEI, Value: 1_000_000}, {Name: audit.ScoreOffensive}}
		}), nil, []string{e + "evenhand.judge.bias|pass|0|-|-", e + "evenhand.judge.dei|pass|1|-|-", e + "evenhand.judge.offensive|pass|0|-|-"}},
		{"the judge: nothing that it can name", says(func(v *audit.Verdict) { v.Findings, v.Scores = nil, v.Scores[1:] }), []string{e + "evenhand.judge.dei|flagged|0.4|-|-", e + "evenhand.judge.offensive|flagged|0|-|-"}, nil},
		{"the judge: some scores", says(func(v *audit.Verdict) { v.Scores = v.Scores[:1] }), []string{e + "evenhand.judge.bias|flagged|0.8|judge.stereotype.gender|-"}, nil},
		{"the judge: failed", audit.Verdict{Analyzer: audit.JudgeAnalyzer, Status: audit.Failed, Reason: "timeout"}, nil, []string{e + "evenhand.judge.bias|-|-|-|timeout"}},
		{"the judge: given up", audit.Verdict{Analyzer: audit.JudgeAnalyzer, Status: audit.Abandoned, Reason: "text_dropped"}, nil, []string{e + "evenhand.judge.bias|-|-|-|text_dropped"}},
		{"the judge: not asked", audit.Verdict{Analyzer: audit.JudgeAnalyzer, Status: audit.Skipped, Reason: "budget"}, nil, nil},
		{"many rules", with(func(v *audit.Verdict) {
			v.Gated, v.Findings = false, nil
			for i := range 23 {
				v.Findings = append(v.Findings, audit.Finding{Kind: "charter.sex", Rule: fmt.Sprintf("r%02d", i), Side: audit.Output})
			}
		}), []string{e + "evenhand.bias|flagged|1|r00, r01, r02, r03, r04, r05, r06, r07, r08, r09, r10, r11, r12, r13, r14, r15, r16, r17, r18, r19 and 3 more|-"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for only, want := range map[string][]string{Flagged: tc.flagged, All: tc.all} {
				if only == All && want == nil && tc.flagged != nil {
					continue
				}
				r := newReceiver(t)
				s := sender(t, Config{Endpoint: r.URL, Only: only, Queue: 10})
				s.Records([]audit.Record{record(tc.verdict)})
				closed(t, s)
				if diff := cmp.Diff(want, lines(r.records)); diff != "" {
					t.Errorf("%s: %s", only, diff)
				}
				if strings.Contains(r.raw.String(), secretText) || strings.Contains(r.raw.String(), "someone@") {
					t.Errorf("%s: texts or people went out", only)
				}
			}
		})
	}
}

func sender(t *testing.T, c Config) *Sender {
	t.Helper()
	s, err := New(t.Context(), c, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t *testing.T, s *Sender) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The record is a child of the call's span and goes where the settings say, with their headers.
func TestAnEventOnTheWire(t *testing.T) {
	r := newReceiver(t)
	c := Config{Endpoint: r.URL + "/otlp", Headers: "Authorization=Bearer%20k%2C1, x-tenant=acme", Only: Flagged, Queue: 10}
	counted := map[string]int{}
	s, err := New(t.Context(), c, Options{Version: "1", Count: func(o string, n int) { counted[o] += n }})
	if err != nil {
		t.Fatal(err)
	}
	plain := record(biased)
	plain.Interaction.SpanID = ""
	foreign := record(biased)
	foreign.Interaction.TraceID = "none"
	s.Records([]audit.Record{record(biased), plain, foreign})
	closed(t, s)
	if len(r.records) != 4 || counted[Sent] != 4 || len(r.requests) != 1 {
		t.Fatalf("%d records in %d requests, counted %v", len(r.records), len(r.requests), counted)
	}
	req, got := r.requests[0], r.records[0]
	if req.URL.Path != "/otlp/v1/logs" || req.Header.Get("Authorization") != "Bearer k,1" || req.Header.Get("X-Tenant") != "acme" || r.service != "evenhand" {
		t.Errorf("%s %v %s", req.URL.Path, req.Header, r.service)
	}
	if fmt.Sprintf("%x/%x", got.TraceId, got.SpanId) != traceID+"/"+spanID || got.TimeUnixNano != uint64(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC).UnixNano()) {
		t.Errorf("%x %x %d", got.TraceId, got.SpanId, got.TimeUnixNano)
	}
	if fmt.Sprintf("%x/%x", r.records[2].TraceId, r.records[2].SpanId) != traceID+"/" {
		t.Errorf("without a span: %x %x", r.records[2].TraceId, r.records[2].SpanId)
	}
	for key, want := range map[string]string{
		"gen_ai.response.id": "chatcmpl-1", "evenhand.audit_id": audit.DeriveID("event").String(), "evenhand.result_id": audit.DeriveID("result").String(),
		"evenhand.tenant": "acme", "evenhand.analyzer": "hot", "evenhand.action": "warn", "evenhand.status": "done",
	} {
		if v := text(got.Attributes, key); v != want {
			t.Errorf("%s is %q", key, v)
		}
	}
}

func TestResponseIDs(t *testing.T) {
	for metadata, want := range map[string]string{
		`{"gen_ai.response.id":"chatcmpl-1"}`: "chatcmpl-1", `{"gateway":{"response_id":"resp_2"}}`: "resp_2", ``: "", `{"gen_ai.response.id":7}`: "",
		`{"gen_ai.response.id":"Ada Lovelace"}`: "", `{"gen_ai.response.id":"` + strings.Repeat("a", 129) + `"}`: "", `[`: "",
	} {
		if got := responseID(metadata); got != want {
			t.Errorf("%s: %q", metadata, got)
		}
	}
}

// stuck is an exporter that takes nothing until it is let go.
type stuck struct {
	begun, letGo chan struct{}
	errs         []error
	taken        int
}

func (e *stuck) Export(_ context.Context, rs []sdklog.Record) error {
	e.begun <- struct{}{}
	<-e.letGo
	if len(e.errs) > 0 {
		err := e.errs[0]
		e.errs = e.errs[1:]
		return err
	}
	e.taken += len(rs)
	return nil
}
func (*stuck) Shutdown(context.Context) error   { return nil }
func (*stuck) ForceFlush(context.Context) error { return nil }

// While the backend hangs, nobody waits: what has no room is dropped and counted.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &stuck{begun: make(chan struct{}, 10), letGo: make(chan struct{})}
		var mu sync.Mutex
		counted := map[string]int{}
		s := newSender(e, Config{Only: Flagged, Queue: 10}, Options{Count: func(o string, n int) { mu.Lock(); counted[o] += n; mu.Unlock() }})
		v := with(func(v *audit.Verdict) { v.Gated = false })
		s.Records([]audit.Record{record(v)})
		<-e.begun // after it lingered for others
		before := time.Now()
		for range 25 {
			s.Records([]audit.Record{record(v)})
		}
		if time.Since(before) != 0 {
			t.Error("a caller waited")
		}
		close(e.letGo)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if e.taken != 11 || counted[Dropped] != 15 || counted[Sent] != 11 {
			t.Errorf("taken %d, counted %v", e.taken, counted)
		}
	})
}

// A backend that is not there is tried again for a while; one that refuses is not.
func TestWhatIsLost(t *testing.T) {
	away := &url.Error{Op: "Post", Err: errors.New("connection refused")}
	for _, tc := range []struct {
		name string
		errs []error
		want string
	}{{"back soon", []error{away, away, away}, "map[sent:1]"}, {"refused", []error{errors.New("400")}, "map[lost:1]"}, {"away", slices.Repeat([]error{away}, 100), "map[lost:1]"}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &stuck{begun: make(chan struct{}, 1000), letGo: make(chan struct{}), errs: tc.errs}
				close(e.letGo)
				counted := map[string]int{}
				s := newSender(e, Config{Queue: 10}, Options{Count: func(o string, n int) { counted[o] += n }})
				s.Record(new(record(with(func(v *audit.Verdict) { v.Gated = false }))))
				if err := s.Close(t.Context()); err != nil || fmt.Sprint(counted) != tc.want {
					t.Error(err, counted)
				}
			})
		})
	}
}

// The end of the program does not wait for a backend that hangs.
func TestCloseIsBounded(t *testing.T) {
	hang := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer srv.Close()
	defer close(hang)
	counted := map[string]int{}
	s, err := New(t.Context(), Config{Endpoint: srv.URL, Only: Flagged, Queue: 10}, Options{Count: func(o string, n int) { counted[o] += n }})
	if err != nil {
		t.Fatal(err)
	}
	s.Records([]audit.Record{record(biased)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); audit.KindOf(err) != audit.KindUnavailable || counted[Lost] != 2 {
		t.Error(err, counted)
	}
}

func TestFaultsOfSettings(t *testing.T) {
	for want, c := range map[string]Config{
		"": DefaultConfig(), "evenhand": {},
		"evaluations.endpoint": {Endpoint: "127.0.0.1:4318", Only: All, Queue: 1},
		"evaluations.headers":  {Headers: "hush", Only: All, Queue: 1}, "evaluations.only": {Only: "some", Queue: 1}, "evaluations.queue": {Only: All},
	} {
		err := c.Validate()
		if want == "evenhand" { // several at once
			if err == nil || strings.Count(err.Error(), "evaluations.") != 2 {
				t.Error(err)
			}
			continue
		}
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := New(t.Context(), Config{Endpoint: "ftp://x"}, Options{}); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
	for in, want := range map[string]string{"http://h:1": "http://h:1/v1/logs", "http://h:1/": "http://h:1/v1/logs", "https://h/otlp/v1/logs": "https://h/otlp/v1/logs"} {
		if got, err := (Config{Endpoint: in}).address(); err != nil || got != want {
			t.Errorf("%s: %s %v", in, got, err)
		}
	}
}

// Without an endpoint there is no sender, and an event costs nothing.
func TestNoEndpointNoCost(t *testing.T) {
	s, err := New(t.Context(), DefaultConfig(), Options{})
	if s != nil || err != nil {
		t.Fatal(s, err)
	}
	rs := []audit.Record{record(biased)}
	if n := testing.AllocsPerRun(100, func() { s.Records(rs) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	closed(t, s)
}

// What is not told costs nothing either: most verdicts flag nothing.
func TestCleanVerdictsAreFree(t *testing.T) {
	e := &stuck{begun: make(chan struct{}, 1), letGo: make(chan struct{})}
	s := newSender(e, DefaultConfig(), Options{})
	defer closed(t, s)
	rs := []audit.Record{record(audit.Verdict{Analyzer: audit.HotAnalyzer, Status: audit.Done})}
	if n := testing.AllocsPerRun(100, func() { s.Records(rs) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	e := &stuck{begun: make(chan struct{}, b.N+1000), letGo: make(chan struct{})}
	close(e.letGo)
	s := newSender(e, DefaultConfig(), Options{})
	defer func() { _ = s.Close(context.Background()) }()
	r := record(with(func(v *audit.Verdict) { v.Gated = false }))
	b.ReportAllocs()
	for b.Loop() {
		s.Record(&r)
	}
}
