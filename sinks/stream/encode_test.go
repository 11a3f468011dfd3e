package stream

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// document is seed 003, section 4.4.5, for encoding/json.
type document struct {
	AuditID    string             `json:"audit_id"`
	Tenant     string             `json:"tenant_id"`
	Detected   bool               `json:"bias_detected"`
	Score      map[string]float64 `json:"bias_score"`
	Type       []string           `json:"bias_type"`
	Confidence float64            `json:"bias_confidence_score"`
	Timestamp  time.Time          `json:"timestamp"`
	TraceID    string             `json:"trace_id"`
}

func documentOf(e audit.StreamEvent) document {
	d := document{
		AuditID: e.AuditID.String(), Tenant: strings.ToValidUTF8(e.Tenant, "\ufffd"), Detected: e.Detected, Score: map[string]float64{}, Type: []string{},
		Confidence: e.Confidence.Float(), Timestamp: e.Time.UTC().Truncate(time.Millisecond), TraceID: e.TraceID,
	}
	for _, s := range e.Scores {
		d.Score[s.Name] = s.Value.Capped().Float()
	}
	d.Type = append(d.Type, e.BiasTypes...)
	return d
}

var event = audit.StreamEvent{
	AuditID: audit.ID{1, 2, 3}, Tenant: "acme", Detected: true,
	Scores:    []audit.NamedScore{{Name: "bias", Value: 1_600_000}, {Name: "toxicity", Value: 250_001}},
	BiasTypes: []string{"charter.age", "gendered_language"}, Confidence: 930_000,
	Time: time.Date(2026, 11, 21, 10, 20, 30, 4_999_999, time.UTC), TraceID: "0af7651916cd43dd8448eb211c80319c", ResultID: audit.ID{9},
}

func TestEventIsTheSeedsPayload(t *testing.T) {
	const want = `{"audit_id":"01020300-0000-0000-0000-000000000000","tenant_id":"acme","bias_detected":true,` +
		`"bias_score":{"bias":1,"toxicity":0.250001},"bias_type":["charter.age","gendered_language"],` +
		`"bias_confidence_score":0.93,"timestamp":"2026-11-21T10:20:30.004Z","trace_id":"0af7651916cd43dd8448eb211c80319c"}`
	if got := string(appendEvent(nil, &event)); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestEventReadsBackAsEncodingJSON(t *testing.T) {
	odd := event
	odd.Tenant = "a\"b\\c\n\r\t\x01\x7f <&> \u2028 é 🙂 \xff\xfe z"
	odd.BiasTypes = []string{odd.Tenant}
	odd.BiasTypes[0] = "quote\"d"
	odd.Time = odd.Time.In(time.FixedZone("east", 3600))
	for name, e := range map[string]audit.StreamEvent{"full": event, "zero": {}, "odd": odd} {
		var got document
		if err := json.Unmarshal(appendEvent(nil, &e), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := documentOf(e)
		if name == "odd" { // each bad byte becomes one replacement, as encoding/json does it
			want.Tenant = "a\"b\\c\n\r\t\x01\x7f <&> \u2028 é 🙂 \ufffd\ufffd z"
		}
		if !got.Timestamp.Equal(want.Timestamp) {
			t.Errorf("%s: timestamp %v, want %v", name, got.Timestamp, want.Timestamp)
		}
		got.Timestamp, want.Timestamp = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, want)
		}
	}
}

func TestAppendScore(t *testing.T) {
	for s, want := range map[audit.Score]string{0: "0", 1: "0.000001", 100_000: "0.1", 250_001: "0.250001", 1_000_000: "1", 1_500_000: "1.5", -300_000: "-0.3"} {
		if got := string(appendScore(nil, s)); got != want {
			t.Errorf("%d: %s, want %s", s, got, want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("a\"\\\n\x00\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		var got, want string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &want); err != nil || got != want {
			t.Fatalf("%q reads back as %q, want %q", s, got, want)
		}
	})
}

func BenchmarkMessages(b *testing.B) {
	events := make([]audit.StreamEvent, 1000)
	for i := range events {
		events[i] = event
	}
	b.ReportAllocs()
	for b.Loop() {
		messages(events)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}
