package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/store"
)

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

// cardInLog is any part of the card below: its first four digits by themselves, since a port may begin with them.
var cardInLog = regexp.MustCompile(`(?:^|\D)4111(?:\D|$)|1111\D?1111`)

// One system, every door: what goes in over Kafka and HTTP comes out as verdicts, stream messages,
// rates and rows of the specification's table.
func TestInteractionsInVerdictsOut(t *testing.T) {
	u := startUp(t, t.TempDir())
	for _, args := range []string{"rates --json", "dlq list --json", "keys list --json"} { // of nothing: empty lists
		if out := must(t, "", append(strings.Fields(args), "--data-dir", u.dir)...); strings.Contains(out, "null") || !strings.Contains(out, "[]") {
			t.Errorf("%s\n%s", args, out)
		}
	}
	file := filepath.Join(t.TempDir(), "in.jsonl")
	id := audit.DeriveID("e2e").String()
	write(t, file, fmt.Sprintf(`{"id":%q,"tenant_id":"acme","domain":"hr","trace_id":%q,"user_id":"u-1","prompt":"Who should lead?","response":"Women are too emotional to lead.","provider":"openai","model":"gpt-4o"}
{"tenant_id":"acme","domain":"general","prompt":"hello","response":"She is a female engineer."}
{"tenant_id":"borealis","prompt":"card?","response":"The card is 4111 1111 1111 1111."}
`, id, trace))
	must(t, "", "emit", file, "--data-dir", u.dir, "--quiet")

	code, body := u.post("/v1/interactions", "application/x-ndjson", `{"tenant_id":"acme","prompt":"a","response":"b"}`+"\n"+`{"tenant_id":"acme","prompt":"c","response":"d"}`)
	var accepted struct {
		Accepted int      `json:"accepted"`
		IDs      []string `json:"ids"`
	}
	if code != http.StatusAccepted || json.Unmarshal([]byte(body), &accepted) != nil || accepted.Accepted != 2 || len(accepted.IDs) != 2 {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := u.post("/v1/interactions", "application/x-ndjson", "{\"tenant_id\":\"acme\",\"response\":\"x\"}\n{\"tenant_id\":\"acme\",\"respose\":\"x\"}\nnonsense\n"); code != http.StatusBadRequest ||
		!strings.Contains(body, `"line":2`) || !strings.Contains(body, `"line":3`) || !strings.Contains(body, "respose") {
		t.Errorf("bad lines must be named: %d %s", code, body)
	}
	u.arrived(5)

	t.Run("record", func(t *testing.T) {
		out := must(t, "", "sql", "--data-dir", u.dir, "--json", "SELECT * FROM llm_interaction_audit WHERE id = '"+id+"'")
		var row map[string]any
		if err := json.Unmarshal([]byte(out), &row); err != nil {
			t.Fatal(err, out)
		}
		for column, want := range map[string]any{"tenant_id": "acme", "user_id": "u-1", "original_query": "Who should lead?", "llm_provider": "openai", "llm_model": "gpt-4o", "bias_detected": true, "human_reviewed": false, "status": "success", "trace_id": trace} {
			if row[column] != want {
				t.Errorf("%s = %v, want %v", column, row[column], want)
			}
		}
		if types, _ := row["bias_type"].([]any); !slices.Contains(types, any("charter.sex")) {
			t.Errorf("bias_type %v", row["bias_type"])
		}
		if report, _ := row["bias_report_summary"].(string); !strings.Contains(report, "Women are too emotional") {
			t.Errorf("the report has no evidence: %v", row["bias_report_summary"])
		}
	})
	t.Run("stream", func(t *testing.T) {
		var found bool
		for _, m := range readTopic(t, u.Kafka, kafkaconn.AuditStream) {
			var ev map[string]any
			if err := json.Unmarshal(m.Value, &ev); err != nil {
				t.Fatal(err)
			}
			var names []string
			for n := range ev {
				names = append(names, n)
			}
			slices.Sort(names)
			if got, want := strings.Join(names, " "), "audit_id bias_confidence_score bias_detected bias_score bias_type tenant_id timestamp trace_id"; got != want {
				t.Errorf("names %s", got)
			}
			if ev["audit_id"] == id {
				found = true
				if ev["trace_id"] != trace || ev["bias_detected"] != true || string(m.Key) != id {
					t.Errorf("%s", m.Value)
				}
			}
		}
		if !found {
			t.Error("no stream message for the record")
		}
	})
	t.Run("rates", func(t *testing.T) {
		out := must(t, "", "rates", "--data-dir", u.dir)
		if !strings.Contains(out, "WILSON") || !strings.Contains(out, "Women are too emotional") {
			t.Errorf("%s", out)
		}
		var figures struct {
			At       time.Time          `json:"at"`
			Tenant   *string            `json:"tenant"`
			RuleSets []store.RuleSetUse `json:"rule_sets"`
			Deleted  []string           `json:"deleted_months"`
		}
		if r := evenhand(t, "", "rates", "--data-dir", u.dir, "--json"); r.code != 0 || r.err != "" || json.Unmarshal([]byte(r.out), &figures) != nil ||
			figures.At.IsZero() || figures.Tenant == nil || *figures.Tenant != "" || len(figures.RuleSets) != 1 || figures.RuleSets[0].N == 0 || figures.Deleted == nil {
			t.Errorf("%+v", r)
		}
		for _, empty := range [][]string{{"--tenant", "typo-tenant"}, {"--last", "1ms"}} {
			r := evenhand(t, "", append([]string{"rates", "--json", "--data-dir", u.dir}, empty...)...)
			if r.code != 0 || !strings.HasPrefix(r.err, "no interactions") || json.Unmarshal([]byte(r.out), &figures) != nil || len(figures.RuleSets) != 0 {
				t.Errorf("%v: %+v", empty, r)
			}
		}
	})
	t.Run("doors", func(t *testing.T) {
		code, body := u.post("/analyze-bias", "application/json", `{"llm_response":"Women are too emotional to lead.","original_query":"q","query_context":{"domain":"hr"},"user_id":"u","tenant_id":"acme","llm_model":"m"}`)
		if code != http.StatusOK || !strings.Contains(body, `"bias_detected":true`) || !strings.Contains(body, "charter.sex") {
			t.Errorf("%d %s", code, body)
		}
		code, body = u.post("/v1/evaluate", "application/json", `{"output":"the chairman","custom_terms":["chairman"]}`)
		if code != http.StatusOK || !strings.Contains(body, `"score":0.85`) || !strings.Contains(body, `"pass":false`) {
			t.Errorf("%d %s", code, body)
		}
		code, body = u.post("/v1/evaluate", "application/json", `{"output":"x","mode":"fast","categories":["taste"]}`)
		if code != http.StatusBadRequest || !strings.Contains(body, `"field":"mode","code":"bad_value"`) || !strings.Contains(body, `"field":"categories[0]","code":"bad_value"`) || strings.Contains(body, "terms: config") {
			t.Errorf("%d %s", code, body)
		}
		for path, want := range map[string]string{"/readyz": `"status":"ready"`, "/healthz": `"ok"`, "/metrics": `evenhand_encoder_answers_total{encoder="en",how="read"}`, "/openapi.json": "/analyze-bias"} {
			if code, body := get(t, u.HTTP+path); code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: %d %.300s", path, code, body)
			}
		}
		must(t, "", "ready", "--data-dir", u.dir)
	})
	t.Run("doctor", func(t *testing.T) {
		r := evenhand(t, "", "doctor", "--data-dir", u.dir)
		if r.code != 0 || !strings.Contains(r.out, "the account api sees the tenant that a query names, and nothing without") || !strings.Contains(r.out, "ok    ready ") || !strings.Contains(r.out, "ok    jobs ") {
			t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
		}
	})
	t.Run("what is wrong with a query", func(t *testing.T) {
		for q, want := range map[string]string{
			"SELECT * FROM nosuch": "ClickHouse code 60: Unknown table expression identifier 'nosuch'",
			"SELECT cuont()":       "Function with name `cuont` does not exist. In scope SELECT cuont(). Maybe you meant: ['",
		} {
			evenhand(t, "", "sql", "--data-dir", u.dir, q).says(t, 1, "", want)
		}
	})
	t.Run("read only", func(t *testing.T) {
		for _, q := range []string{"DROP TABLE interactions", "INSERT INTO rejected (topic) VALUES ('x')", "SELECT * FROM file('/etc/passwd', 'LineAsString')", "SELECT file('/etc/passwd')", "SELECT file('/proc/self/cwd/evenhand.password')", "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')"} {
			if r := evenhand(t, "", "sql", "--data-dir", u.dir, q); r.code == 0 {
				t.Errorf("%s was allowed: %s", q, r.out)
			}
		}
	})
	u.checked()
	if log := u.log.String(); strings.Contains(log, "emotional") || cardInLog.MatchString(log) {
		t.Errorf("people's words in the log:\n%s", log)
	}
}

func TestUndecodableInputIsKept(t *testing.T) {
	u := startUp(t, t.TempDir())
	bad := map[string]string{
		"bad_json": `{"tenant_id":"acme","response":"secret words"`, "unknown_field": `{"tenant_id":"acme","respose":"secret words"}`,
		"wrong_type": `{"tenant_id":"acme","prompt_tokens":"many","response":"x"}`, "invalid_utf8": "{\"tenant_id\":\"acme\",\"response\":\"\xff\xfe\"}",
		"too_deep":   `{"tenant_id":"acme","response":"x","metadata":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40) + "}",
		"event_time": `{"tenant_id":"acme","response":"x","timestamp":"1970-01-01T00:00:00Z"}`,
	}
	produceRaw(t, u.Kafka, bad)
	produceRaw(t, u.Kafka, map[string]string{"good": `{"tenant_id":"acme","response":"fine"}`})
	u.arrived(1)
	eventually(t, "rejected rows", func() error {
		if n := u.count("SELECT count() AS n FROM rejected FINAL"); n != len(bad) {
			return fmt.Errorf("%d rejected rows", n)
		}
		return nil
	})
	out := must(t, "", "sql", "--data-dir", u.dir, "--json", "SELECT reason, detail FROM rejected FINAL ORDER BY reason")
	for reason := range bad {
		if !strings.Contains(out, `"`+reason+`"`) {
			t.Errorf("no rejection for %s:\n%s", reason, out)
		}
	}
	if strings.Contains(out, "secret words") {
		t.Errorf("a detail holds the message's text:\n%s", out)
	}
	letters := readTopic(t, u.Kafka, kafkaconn.DeadLetters)
	if len(letters) != len(bad) {
		t.Errorf("%d dead letters, want %d", len(letters), len(bad))
	}
	for _, m := range letters {
		if !slices.Contains(values(bad), string(m.Value)) {
			t.Errorf("a dead letter is not the message: %q", m.Value)
		}
	}
	u.checked()
}

// All labelled texts as interactions: each id exactly once, one verdict each, markers without gap.
func TestRealTextsAllArriveOnce(t *testing.T) {
	data := sharedData(t)
	files, err := filepath.Glob(filepath.Join(data, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "all.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	n, domains := 0, []string{"general", "hr", "finance", "healthcare", "education"}
	for _, file := range files {
		lines(t, file, func(line []byte) {
			var row struct{ ID, Text, Source string }
			if err := json.Unmarshal(line, &row); err != nil {
				t.Fatal(err)
			}
			ev, _ := json.Marshal(map[string]any{"id": row.ID, "tenant_id": "t" + fmt.Sprint(n%3), "domain": domains[n%5], "application": row.Source, "response": row.Text, "provider": "test", "model": "m"})
			_, _ = w.Write(append(ev, '\n'))
			n++
		})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if n < 120_000 {
		t.Fatalf("only %d texts", n)
	}
	u := startUp(t, t.TempDir(), "--set", "classifier.encoder=off") // which processors without VNNI read these texts with for ten minutes: delivery is what is tested
	must(t, "", "emit", path, "--data-dir", u.dir, "--quiet", "--batch", "2000")
	u.arrived(n)
	for query, want := range map[string]int{
		"SELECT count() AS n FROM interactions FINAL":                    n,
		"SELECT uniqExact(given_id) AS n FROM interactions":              n,
		"SELECT count() AS n FROM verdicts FINAL WHERE analyzer = 'hot'": n,
		"SELECT uniqExact(event_id) AS n FROM verdicts":                  n,
		"SELECT count() AS n FROM rejected FINAL":                        0,
		"SELECT countIf(status = 'failed') AS n FROM verdicts FINAL":     0,
	} {
		if got := u.count(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	t.Log(u.checked())
}

// kill -9 while events come in, again and again; then nothing is lost and nothing is double.
func TestKillNineLosesNothing(t *testing.T) {
	dir, rounds := t.TempDir(), 4
	var all strings.Builder
	at := time.Now().UTC().Format(time.RFC3339)
	for i := range 4000 { // with a time of their own: without one, what is sent again after midnight is a second row
		fmt.Fprintf(&all, `{"id":"e%d","tenant_id":"acme","timestamp":%q,"prompt":"p","response":"answer %d: she is a good engineer"}`+"\n", i, at, i)
	}
	file := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, file, all.String())
	resume := filepath.Join(t.TempDir(), "resume")
	for range rounds {
		u := startUp(t, dir)
		done := make(chan result, 1)
		go func() {
			done <- evenhand(t, "", "emit", file, "--data-dir", dir, "--resume", resume, "--batch", "50", "--quiet")
		}()
		eventually(t, "some batches", func() error {
			if n := u.count("SELECT count() AS n FROM ingest_batches"); n < 1 {
				return fmt.Errorf("%d batches", n)
			}
			return nil
		})
		u.kill()
		<-done // broken off, or through
	}
	u := startUp(t, dir)
	must(t, "", "emit", file, "--data-dir", dir, "--resume", resume, "--restart", "--quiet") // everything once more: re-deliveries fold
	u.arrived(4000)
	eventually(t, "quiet", func() error {
		if r := evenhand(t, "", "check", "--data-dir", dir); r.code != 0 || !strings.Contains(r.out, "4000 interactions") {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		return nil
	})
	if got := u.count("SELECT count() AS n FROM interactions FINAL"); got != 4000 {
		t.Errorf("%d rows", got)
	}
	t.Log(u.checked())
}

// Events with ids and without times, sent again through every door: one each, with one content. (Not rows: those of
// another day are others.)
func TestSentAgainIsTheSameEvent(t *testing.T) {
	const event = `{"id":"retry-1","tenant_id":"rt","response":"same"}`
	u := startUp(t, t.TempDir())
	for range 2 {
		res, err := http.Post(u.HTTP+"/v1/interactions", "application/json", strings.NewReader(event))
		if err != nil || res.StatusCode != http.StatusAccepted {
			t.Fatal(err, res)
		}
		_ = res.Body.Close()
	}
	file := filepath.Join(t.TempDir(), "rt.jsonl")
	write(t, file, event+"\n"+`{"id":"retry-2","tenant_id":"rt","response":"same"}`+"\n")
	for _, more := range [][]string{nil, {"--restart"}, {"--to", u.HTTP}} {
		must(t, "", append([]string{"emit", file, "--data-dir", u.dir, "--quiet"}, more...)...)
	}
	produceRaw(t, u.Kafka, map[string]string{"": event})
	eventually(t, "nine deliveries", func() error {
		if n := u.count("SELECT sum(rows) AS n FROM ingest_batches FINAL"); n != 9 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	for query, want := range map[string]int{
		"SELECT uniqExact(event_id, content_digest) AS n FROM interactions": 2,
		"SELECT uniqExact(event_id) AS n FROM interactions":                 2,
	} {
		if got := u.count(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

// Two processes on one folder, a port that is taken, a library that is not there: each says what to do.
func TestFaultsOfTheOperator(t *testing.T) {
	u := startUp(t, t.TempDir())
	for _, tc := range []struct {
		name string
		env  []string
		args []string
		want []string
		code int
	}{
		{"folder in use", nil, []string{"up", "--data-dir", u.dir, "--http", "127.0.0.1:0"}, []string{u.dir, fmt.Sprint(u.PID)}, 1},
		{"port taken", nil, []string{"up", "--data-dir", t.TempDir(), "--http", strings.TrimPrefix(u.HTTP, "http://")}, []string{"http.addr", "--http"}, 1},
		{"library missing", []string{"XDG_CACHE_HOME=" + t.TempDir()}, []string{"up", "--data-dir", t.TempDir(), "--http", "127.0.0.1:0"}, []string{"make engine"}, 1},
		{"open door without a key", nil, []string{"up", "--data-dir", t.TempDir(), "--http", "0.0.0.0:0"}, []string{"http.api_key", "EVENHAND_API_KEY"}, 2},
		{"all faults at once", []string{"EVENHAND_KAFKA_BROKER=x"}, []string{"run", "--set", "pipeline.batch_rows=0", "--set", "detect.bias_action=shout"},
			[]string{"EVENHAND_KAFKA_BROKER", "pipeline.batch_rows", "detect.bias_action"}, 2},
		{"unknown role", nil, []string{"run", "--roles", "cook"}, []string{"--roles", "pipeline, api, analyzer"}, 2},
		{"no brokers", nil, []string{"run", "--http", "127.0.0.1:0"}, []string{"kafka.brokers"}, 2},
		{"nothing to send to", nil, []string{"emit", "-"}, []string{"evenhand up", "--to"}, 1},
		{"no store", nil, []string{"rates"}, []string{"evenhand up", "--data-dir", "clickhouse.addr"}, 1},
		{"unknown flag", nil, []string{"up", "--fast"}, []string{"--fast", "--help"}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := evenhandEnv(t, "", tc.env, tc.args...)
			if r.code != tc.code {
				t.Errorf("status %d, want %d\n%s", r.code, tc.code, r.err)
			}
			for _, w := range tc.want {
				if !strings.Contains(r.err, w) {
					t.Errorf("the error does not say %q:\n%s", w, r.err)
				}
			}
		})
	}
}

func TestTheAnalyzerRoleNeedsNoBrokerAndNoStore(t *testing.T) {
	s := defaultSettings()
	s.HTTP.Addr = "127.0.0.1:0"
	st, err := start(t.Context(), s, []string{roleAnalyzer}, false, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer st.close(t.Context())
	go func() { _ = st.server.Serve(st.listener) }()
	base := "http://" + st.listener.Addr().String()
	res, err := http.Post(base+"/analyze-bias", "application/json", strings.NewReader(`{"tenant_id":"acme","llm_response":"Women are too emotional to lead."}`))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(err, res)
	}
	_ = res.Body.Close()
	if code, body := get(t, base+"/readyz"); code != http.StatusOK {
		t.Error(code, body)
	}
	if res, err = http.Post(base+"/v1/interactions", "application/json", strings.NewReader(`{}`)); err != nil || res.StatusCode != http.StatusNotFound {
		t.Error("an analyzer takes no interactions", err, res.StatusCode)
	}
	_ = res.Body.Close()
	_ = st.server.Close()
}

// The broker's folder is lost and begun anew: other records stand under the offsets that the store
// has markers for. Nothing of the new log may be taken for already written.
func TestAReplacedLogIsSeen(t *testing.T) {
	dir := t.TempDir()
	send := func(prefix string, n int) {
		var in strings.Builder
		for i := range n {
			fmt.Fprintf(&in, `{"id":"%s%d","tenant_id":"acme","response":"%s answer %d"}`+"\n", prefix, i, prefix, i)
		}
		must(t, in.String(), "emit", "-", "--data-dir", dir, "--quiet")
	}
	u := startUp(t, dir)
	send("old", 300)
	u.arrived(300)
	u.stop()
	if err := os.RemoveAll(filepath.Join(dir, "broker")); err != nil {
		t.Fatal(err)
	}
	u = startUp(t, dir)
	send("new", 400)
	u.arrived(700)
	u.stop()
	u = startUp(t, dir) // and goes on in the new epoch
	send("last", 50)
	u.arrived(750)
	out := u.checked()
	if got := u.count("SELECT max(epoch) AS n FROM ingest_batches"); got != 1 {
		t.Errorf("epoch %d, want 1\n%s", got, out)
	}
}
