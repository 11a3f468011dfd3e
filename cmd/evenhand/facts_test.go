package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/store"
)

// TestFactsOfPeopleAndAnalyzers: what is added to an interaction through a running process is in the record,
// on both topics and proved by check; the taxonomy is kept from the command line.
func TestFactsOfPeopleAndAnalyzers(t *testing.T) {
	s := defaultSettings()
	s.DataDir, s.Tenant.Default, s.HTTP.Addr = t.TempDir(), "acme", "127.0.0.1:0"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, err := start(ctx, s, []string{rolePipeline, roleAPI}, true, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer st.close(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- st.serve(ctx) }()
	runs(t, s.DataDir, running{PID: os.Getpid(), HTTP: "http://" + st.listener.Addr().String(), Kafka: st.broker.Addr(), Started: time.Now()})
	file := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, file, fmt.Sprintf(`{"id":"a","trace_id":%q,"response":"The weather is fine."}`+"\n", trace))
	must(t, "", "emit", file, "--data-dir", s.DataDir, "--quiet")
	tenant := store.New(st.conn, st.chconfig.Database).WithTenant("acme")
	id := audit.DeriveID("acme", "a")
	eventually(t, "the interaction is stored", func() error { _, err := tenant.Find(t.Context(), id); return err })

	var entry entryJSON
	if err := json.Unmarshal([]byte(must(t, "", "taxonomy", "put", "brand.tone", "--severity", "2", "--description", "Not how we speak", "--json", "--data-dir", s.DataDir)), &entry); err != nil || entry.Key != "brand.tone" || entry.ID == 0 {
		t.Errorf("%+v %v", entry, err)
	}
	if out := must(t, "", "taxonomy", "list", "--data-dir", s.DataDir); !strings.Contains(out, "brand.tone") || !strings.Contains(out, "charter.sex") {
		t.Errorf("list\n%s", out)
	}
	if r := evenhand(t, "", "taxonomy", "put", "Brand", "--severity", "9", "--data-dir", s.DataDir); r.code != 2 || !strings.Contains(r.err, "biasKey") || !strings.Contains(r.err, "severityLevel: 9 is not in 1..5") {
		t.Errorf("a faulty key: %+v", r)
	}

	w, err := st.facts()
	if err != nil {
		t.Fatal(err)
	}
	vendor, ann := &auth.Principal{Tenant: "acme", Subject: "key:vendor"}, &auth.Principal{Tenant: "acme", Subject: "ann"}
	it, err := w.UpdateBias(t.Context(), vendor, id, facts.Bias{Types: facts.Of([]string{"brand.tone"}), Report: facts.Of(json.RawMessage(`{"why":"tone"}`))})
	if err != nil || !it.BiasDetected {
		t.Fatalf("%+v %v", it, err)
	}
	if it, err = w.Review(t.Context(), ann, id, facts.Review{HumanReviewed: true, Tag: facts.Of(facts.Tag{Decision: facts.Dismissed}), Notes: facts.Of("house style")}); err != nil || it.Effective() {
		t.Fatalf("%+v %v", it, err)
	}
	if it, err = w.Reveal(t.Context(), ann, id, audit.ID{}, "customer complaint 12"); err != nil || it.EventID != id {
		t.Errorf("%+v %v", it, err)
	}
	found := func(topic string, wants ...string) {
		t.Helper()
		eventually(t, topic, func() error {
			all := ""
			for _, m := range readTopic(t, st.broker.Addr(), topic) {
				all += string(m.Value) + "\n"
			}
			for _, want := range wants {
				if !strings.Contains(all, want) {
					return fmt.Errorf("%q is not in\n%s", want, all)
				}
			}
			return nil
		})
	}
	found(kafkaconn.AuditStream, `"bias_type":["brand.tone"]`, `"trace_id":"`+trace+`"`)
	found(kafkaconn.Feedback, `"decision":"dismissed"`, `"audit_id":"`+id.String()+`"`)
	if out := must(t, "", "check", "--data-dir", s.DataDir, "--json"); !strings.Contains(out, `"faults":[]`) {
		t.Errorf("check %s", out)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
