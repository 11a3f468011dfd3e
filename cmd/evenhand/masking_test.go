package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/sources"
)

// Whatever way an event came by, it is kept without the address that it holds.
func TestMaskingBeforeTheStore(t *testing.T) {
	s := defaultSettings()
	s.PII.Mask, s.Tenant.Default = maskStore, "default"
	keep, err := newMasking(s)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "jane.roe@example.com"
	p := call.Part{Group: "g", Key: "k", Messages: []call.Message{call.Text("user", "Mail "+secret)}, Answers: []call.Message{call.Text("assistant", "To "+secret), call.Text("assistant", "Or "+secret)},
		Metadata: map[string]any{"asked_by": secret}}
	folded, err := p.Event("")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{
		`{"prompt":"Mail ` + secret + `","response":"Done: ` + secret + `"}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"Mail ` + secret + `"}]}],"response":{"to":["` + secret + `"]},"query_context":{"a":{"b":"` + secret + `"}}}`,
		`{"llm_response":"` + secret + `","original_query":"` + secret + `","error_message":"` + secret + `","retrieved_context":[{"text":"` + secret + `"}]}`,
		string(folded),
	} {
		in, rej := ingest.NewDecoder(s.decoder()).Decode(sources.Record{Value: []byte(value), Time: now}, audit.Origin{BrokerTime: now})
		if rej != nil {
			t.Fatal(rej.Detail)
		}
		got := keep(context.Background(), audit.Record{Interaction: in}).Interaction
		all := strings.Join([]string{got.Prompt, got.Query, got.Messages, got.Response, got.ResponseJSON, got.QueryContext, got.Metadata, got.RetrievedContext, got.ErrorMessage}, "\n")
		if strings.Contains(all, secret) || strings.Contains(all, "EMAIL_2") || !strings.Contains(all, "[EMAIL_1]") || got.Digest != in.Digest {
			t.Errorf("%s", all)
		}
	}
	for mask, want := range map[string]bool{maskOff: false, maskJudge: true, maskStore: true} { // what leaves to a judge
		s.PII.Mask = mask
		m, err := newMasker(s)
		if err != nil || (m != nil) != want || s.PII.validate() != nil {
			t.Fatal(mask, m, err)
		}
		if m == nil {
			continue
		}
		if out, err := m.Texts(t.Context(), "Mail "+secret); err != nil || out[0].Text != "Mail [EMAIL_1]" {
			t.Error(mask, out, err)
		}
		if keep, err := newMasking(s); err != nil || (keep != nil) != (mask == maskStore) {
			t.Error(mask, err)
		}
	}
	for mask, enabled := range map[string]bool{"always": true, maskStore: false} {
		s.PII.Mask, s.PII.Enabled = mask, enabled
		if s.PII.validate() == nil {
			t.Errorf("pii.mask %s with pii.enabled %v is taken", mask, enabled)
		}
	}
}
