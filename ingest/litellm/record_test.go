package litellm_test

import (
	"encoding/json"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/sources"
)

// A StandardLoggingPayload in the log is an interaction, one that failed too.
func TestLiteLLMRecords(t *testing.T) {
	var all []json.RawMessage
	if err := json.Unmarshal(captured(t, "litellm-proxy-1.106.2-generic_api.json"), &all); err != nil {
		t.Fatal(err)
	}
	decoder := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"})
	statuses := map[string]int{}
	for _, value := range all {
		var p struct {
			CallID string `json:"litellm_call_id"`
		}
		_ = json.Unmarshal(value, &p)
		for _, tenant := range []string{"", "gateway"} {
			rec := sources.Record{Value: value, Time: noon}
			if tenant != "" {
				rec.Headers = []audit.Header{{Key: ingest.HeaderTenant, Value: []byte(tenant)}}
			}
			in, rej := decoder.Decode(rec, audit.Origin{BrokerTime: noon})
			if rej != nil {
				t.Fatal(rej.Detail)
			}
			if in.ID != call.ID(in.Tenant, p.CallID, p.CallID) || tenant != "" && in.Tenant != tenant || in.Query == "" || (in.Response == "") != (in.Status == "blocked") {
				t.Errorf("%+v", in)
			}
			statuses[in.Status]++
		}
	}
	if statuses["blocked"] != 4 || statuses["success"] != 10 {
		t.Errorf("%v", statuses)
	}
}
