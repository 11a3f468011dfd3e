package ingest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

var brokerTime = time.Date(2026, 11, 21, 10, 43, 0, 0, time.UTC)

// benchEvent is an ordinary event of about 2.6 KB: a chat of two messages and a long answer.
func benchEvent() []byte {
	answer := strings.Repeat("The candidate has led two teams and shipped the billing system on time.\n", 25)
	b, _ := json.Marshal(map[string]any{
		"id": "01a1fdb3-bfcb-7b1e-9d55-0c1f2a3b4c5d", "tenant_id": "acme", "timestamp": "2026-11-21T10:42:58.123Z",
		"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7", "conversation_id": "c-1829",
		"application": "hr-assistant", "domain": "hr", "user_id": "u-77", "user_role": "recruiter",
		"query_context": map[string]any{"screen": "candidate", "locale": "en"},
		"messages": []any{
			map[string]any{"role": "system", "content": "You help recruiters and answer briefly."},
			map[string]any{"role": "user", "content": "Summarise this candidate for the hiring manager, please."},
		},
		"response": answer, "provider": "openai", "model": "gpt-4o-mini", "prompt_tokens": 412, "response_tokens": 380,
		"latency_ms": 812, "estimated_cost_usd": 0.00031, "status": "success", "metadata": map[string]any{"release": "2026.11"},
	})
	return b
}

func BenchmarkDecode(b *testing.B) {
	d := NewDecoder(Options{})
	rec := sources.Record{Value: benchEvent(), Time: brokerTime}
	o := audit.Origin{Topic: "llm.interactions", BrokerTime: brokerTime}
	b.SetBytes(int64(len(rec.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, rej := d.Decode(rec, o); rej != nil {
			b.Fatal(rej.Detail)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	d := NewDecoder(Options{})
	rec := sources.Record{Value: benchEvent(), Time: brokerTime}
	in, _ := d.Decode(rec, audit.Origin{BrokerTime: brokerTime})
	st := newState(d)
	b.ReportAllocs()
	for b.Loop() {
		in.Digest = st.digest(in, in.Time)
	}
}

// BenchmarkEncodingJSON is the yardstick: the same event into a struct by encoding/json, unchecked.
func BenchmarkEncodingJSON(b *testing.B) {
	value := benchEvent()
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct {
			ID, TenantID, Timestamp, TraceID, SpanID, ConversationID, Application, Domain, UserID, UserRole string
			QueryContext, Metadata                                                                          json.RawMessage
			Messages                                                                                        []struct{ Role, Content string }
			Response, Provider, Model, Status                                                               string
			PromptTokens, ResponseTokens, LatencyMS                                                         int32
			EstimatedCostUSD                                                                                float64
		}
		if err := json.Unmarshal(value, &v); err != nil {
			b.Fatal(err)
		}
	}
}
