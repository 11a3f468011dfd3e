package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/store"
)

// refuse writes a rejected message as the sink does; without text its text was dropped.
func (f *fixture) refuse(part int32, offset int64, at time.Time, tenant, reason, text string) {
	r := store.Rejected{Topic: "llm.interactions", Partition: part, Offset: offset, Time: at}
	id := uuid.UUID(r.Origin().EventID())
	f.insert("rejected", row{"topic": r.Topic, "partition": part, "offset": offset, "version": uint64(1), "broker_ts": at, "tenant_id": tenant,
		"event_day": at, "event_id": id, "reason": reason, "detail": "detail", "value_bytes": uint32(len(text))})
	if text != "" {
		f.insert("interaction_texts", row{"tenant_id": tenant, "event_day": at, "event_id": id, "kind": "rejected", "source_id": make([]byte, 32), "version": uint64(1), "text": text})
	}
}

func TestRejected(t *testing.T) {
	f := newFixture(t)
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	f.refuse(0, 1, noon, "acme", "bad_json", text(map[string]any{"key": "k", "value": "<v>", "headers": []any{map[string]any{"key": "h", "value": []byte{0, 255}}}}))
	f.refuse(0, 2, noon.Add(time.Second), "", "tenant_missing", text(map[string]any{"key": "", "value_base64": []byte{1, 255}}))
	f.refuse(1, 1, noon.Add(2*time.Second), "acme", "tenant_missing", "")
	f.refuse(1, 1, noon.Add(2*time.Second), "acme", "tenant_missing", "") // written again
	places := func(rs []store.Rejected, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var s []string
		for _, r := range rs {
			s = append(s, fmt.Sprintf("%d/%d", r.Partition, r.Offset))
		}
		return strings.Join(s, " ")
	}
	for _, tc := range []struct {
		name   string
		filter store.RejectedFilter
		want   string // newest first
	}{
		{"all", store.RejectedFilter{}, "1/1 0/2 0/1"},
		{"reasons", store.RejectedFilter{Reasons: []string{"bad_json", "nope"}}, "0/1"},
		{"tenant", store.RejectedFilter{Tenant: "acme"}, "1/1 0/1"},
		{"since", store.RejectedFilter{Since: noon.Add(time.Second)}, "1/1 0/2"},
		{"until", store.RejectedFilter{Until: noon.Add(time.Second)}, "0/1"},
		{"places", store.RejectedFilter{Places: []store.RejectedPlace{{"llm.interactions", 0, 2}, {"llm.interactions", 1, 1}, {"other", 0, 1}}}, "1/1 0/2"},
	} {
		if got := places(f.Rejected(f.Context(), tc.filter, 10)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	all, err := f.RejectedAfter(f.Context(), store.RejectedFilter{}, nil, 10)
	if got := places(all, err); got != "0/1 0/2 1/1" {
		t.Errorf("in the log's order: %s", got)
	}
	if got := places(f.RejectedAfter(f.Context(), store.RejectedFilter{}, &all[0], 1)); got != "0/2" {
		t.Errorf("after the first: %s", got)
	}
	counts, err := f.RejectedCounts(f.Context(), store.RejectedFilter{})
	if err != nil || len(counts) != 2 || counts[0].Reason != "tenant_missing" || counts[0].Count != 2 || !counts[0].First.Equal(noon.Add(time.Second)) || !counts[0].Last.Equal(noon.Add(2*time.Second)) {
		t.Errorf("%v %+v", err, counts)
	}
	ms, err := f.RejectedMessages(f.Context(), all)
	if err != nil || len(ms) != 3 || ms[2] != nil {
		t.Fatalf("%v %v", err, ms)
	}
	if m := ms[0]; string(m.Key) != "k" || string(m.Value) != "<v>" || len(m.Header) != 1 || m.Header[0].Key != "h" || string(m.Header[0].Value) != "\x00\xff" || m.Origin.Offset != 1 || !m.Origin.BrokerTime.Equal(noon) {
		t.Errorf("%+v", m)
	}
	if m := ms[1]; m.Key != nil || string(m.Value) != "\x01\xff" {
		t.Errorf("%+v", m)
	}
	f.refuse(2, 1, noon, "acme", "bad_json", "no JSON of ours")
	if _, err := f.RejectedMessages(f.Context(), []store.Rejected{{Topic: "llm.interactions", Partition: 2, Offset: 1, Time: noon, Tenant: "acme"}}); err != nil {
		t.Error(err) // another event id: not found
	}
	broken, err := f.Rejected(f.Context(), store.RejectedFilter{Places: []store.RejectedPlace{{"llm.interactions", 2, 1}}}, 1)
	if err != nil || len(broken) != 1 {
		t.Fatal(err, broken)
	}
	if _, err := f.RejectedMessages(f.Context(), broken); err == nil || strings.Contains(err.Error(), "no JSON of ours") {
		t.Errorf("%v", err)
	}
}
