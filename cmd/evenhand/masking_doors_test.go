package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// With pii.mask before_store the same personal data comes by every door, and is found raw in no table of the store and
// not on the stream. The gate that asks a person about it keeps it no more than the interaction does.
func TestMaskedWhateverTheDoor(t *testing.T) {
	const secret = "jane.roe@example.com"
	var asked string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked = string(b)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"gateway: %s"},"finish_reason":"stop"}]}`, secret)
	}))
	defer provider.Close()
	dir := t.TempDir()
	u := startUp(t, dir, "--set", "pii.mask=before_store", "--set", "join.window=1s", "--set", "gates.approvers=true", "--set", "gateway.enabled=true", "--set", "gateway.base_url="+provider.URL+"/v1",
		"--config", gateRules(t, `I (?:will )?mail \S+`))
	const native = `"messages":[{"role":"user","content":"%[1]s: write to ` + secret + `"}],"response":"%[1]s: I will mail ` + secret + `","query_context":{"to":"` + secret + `"},"metadata":{"cc":"` + secret + `"},"error_message":"no ` + secret + `"`
	post := func(path, kind, body string, want int) {
		t.Helper()
		if status, answer := u.post(path, kind, body); status != want {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	message := func(door string) string { return fmt.Sprintf("{"+native+"}", door) }
	post("/v1/interactions", "application/json", message("http"), http.StatusAccepted)
	post("/v1/cloudevents", "application/cloudevents+json", `{"specversion":"1.0","id":"1","source":"/a","type":"t","data":`+message("cloudevents")+`}`, http.StatusAccepted)
	post("/v1/litellm", "application/json", fmt.Sprintf(`{"call_type":"acompletion","litellm_call_id":"c1","endTime":%d,"messages":[{"role":"user","content":"litellm: %s"}],"response":{"choices":[{"message":{"content":"litellm: %[2]s"}}]},"metadata":{"requester_metadata":{"cc":%[2]q}}}`, u.Started.Unix(), secret), http.StatusAccepted)
	for side, text := range map[string]string{"request": "guardrail: write to ", "response": "guardrail: I did not, "} {
		post("/beta/litellm_basic_guardrail_api", "application/json", fmt.Sprintf(`{"input_type":%q,"litellm_call_id":"c2","texts":[%q],"structured_messages":[{"role":"user","content":%[2]q}]}`, side, text+secret), http.StatusOK)
	}
	now := u.Started.UnixNano()
	messages := func(role string) string {
		return fmt.Sprintf(`[{"role":%q,"parts":[{"type":"text","content":"otlp: %s"}]}]`, role, secret)
	}
	attr := func(key, value string) string {
		v, _ := json.Marshal(value)
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%s}}`, key, v)
	}
	post("/v1/traces", "application/json", fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":%q,"spanId":"00f067aa0ba902b7","name":"chat m","startTimeUnixNano":"%d","endTimeUnixNano":"%[2]d","attributes":[%s]}]}]}]}`, trace, now,
		strings.Join([]string{attr("gen_ai.operation.name", "chat"), attr("gen_ai.request.model", "m"), attr("gen_ai.input.messages", messages("user")), attr("gen_ai.output.messages", messages("assistant")), attr("langfuse.trace.metadata.cc", secret)}, ",")), http.StatusOK)
	post("/v1/guard", "application/json", fmt.Sprintf(`{`+native+`,"options":{"hitlGate":true}}`, "guard"), http.StatusOK)
	post("/v1/chat/completions", "application/json", `{"model":"m","messages":[{"role":"user","content":"gateway: `+secret+`"}]}`, http.StatusOK)
	produceRaw(t, u.Kafka, map[string]string{"k": message("kafka")})
	u.arrived(8)
	if !strings.Contains(asked, secret) {
		t.Error("the provider must get the call as it is")
	}
	for _, door := range []string{"http", "cloudevents", "litellm", "guardrail", "otlp", "guard", "gateway", "kafka"} {
		if n := u.count("SELECT uniqExact(event_id) AS n FROM interaction_texts FINAL WHERE kind = 'response' AND text LIKE '" + door + ": %[EMAIL_1]%'"); n != 1 {
			t.Errorf("%s: %d masked responses", door, n)
		}
	}
	if n := u.count("SELECT count() AS n FROM gates FINAL"); n != 1 {
		t.Errorf("%d gates", n)
	}
	var names []string
	for line := range strings.SplitSeq(must(t, "", "sql", "--data-dir", dir, "--json", "SELECT name FROM system.tables WHERE database = currentDatabase() AND NOT startsWith(name, '.')"), "\n") {
		var row struct{ Name string }
		if json.Unmarshal([]byte(line), &row) == nil && row.Name != "" {
			names = append(names, row.Name)
		}
	}
	if len(names) < 25 {
		t.Fatalf("tables %v", names)
	}
	var each []string
	for _, name := range names {
		each = append(each, fmt.Sprintf("SELECT '%s' AS name FROM (SELECT formatRow('JSONEachRow', *) AS r FROM `%[1]s`) WHERE r LIKE '%%jane.roe%%'", name))
	}
	if out := must(t, "", "sql", "--data-dir", dir, "--json", strings.Join(each, " UNION ALL ")); strings.TrimSpace(out) != "" {
		t.Errorf("personal data is in\n%s", out)
	}
	for _, topic := range []string{kafkaconn.AuditStream, kafkaconn.Decisions} {
		for _, m := range readTopic(t, u.Kafka, topic) {
			if strings.Contains(string(m.Key)+string(m.Value)+fmt.Sprint(m.Headers), "jane.roe") {
				t.Errorf("personal data is on %s", topic)
			}
		}
	}
	if n := len(readTopic(t, u.Kafka, kafkaconn.AuditStream)); n < 8 {
		t.Errorf("%d messages on the stream", n)
	}
}

// gateRules is a configuration file with one gate rule.
func gateRules(t *testing.T, pattern string) string {
	t.Helper()
	file := t.TempDir() + "/evenhand.yaml"
	write(t, file, fmt.Sprintf("detect:\n  gate_rules:\n    - {id: own.mail, description: mails, category: communication, pattern: '%s'}\n", pattern))
	return file
}
