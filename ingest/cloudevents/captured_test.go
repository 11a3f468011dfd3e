package cloudevents_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

// The records that a Python producer wrote, each interaction once in binary and once in structured mode, are seven interactions.
func TestCloudEventsCaptured(t *testing.T) {
	type line struct {
		Mode, Key, Value string
		Headers          map[string]string
	}
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	decoder := ingest.NewDecoder(ingest.Options{})
	ids := map[audit.ID]*audit.Interaction{}
	for _, l := range detectortest.Rows[line](t, detectortest.Shared(t, "data", "events", "cloudevents-python-2.2.0-kafka.jsonl")) {
		rec := sources.Record{Key: []byte(l.Key), Value: []byte(l.Value), Time: noon}
		for k, v := range l.Headers {
			rec.Headers = append(rec.Headers, audit.Header{Key: k, Value: []byte(v)})
		}
		in, rej := decoder.Decode(rec, audit.Origin{BrokerTime: noon})
		if rej != nil {
			t.Fatal(l.Mode, rej.Detail)
		}
		var e struct{ Data map[string]string }
		if _ = json.Unmarshal(rec.Value, &e); e.Data == nil {
			_ = json.Unmarshal(rec.Value, &e.Data)
		}
		d := e.Data
		if in.ID != audit.DeriveID(d["tenant_id"], d["id"]) || in.GivenID != d["id"] || in.Tenant != d["tenant_id"] || string(in.Domain) != d["domain"] || in.Model != d["model"] ||
			in.Provider != d["provider"] || in.UserID != d["user_id"] || in.TraceID != d["trace_id"] || in.SpanID != "b7ad6b7169203331" || in.Query != d["prompt"] || in.Response != d["response"] ||
			in.Prompt != d["system"]+"\n\n"+d["prompt"] || in.Application != "/apps/hiring-bot" || in.Conversation != "chat/"+d["id"] || in.TimeAssumed ||
			in.Time.Format("2006-01-02T15:04") != "2026-11-21T09:00" {
			t.Errorf("%s %s: %+v", l.Mode, d["id"], in)
		}
		if first := ids[in.ID]; first != nil && !reflect.DeepEqual(first, in) {
			t.Errorf("%s: two modes, two interactions:\n%+v\n%+v", d["id"], first, in)
		}
		ids[in.ID] = in
	}
	if len(ids) != 7 {
		t.Errorf("%d interactions", len(ids))
	}
}
