package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// The doctor compares what topics take with what is wanted: what keeps a process from starting is bad.
func TestDoctorComparesTopics(t *testing.T) {
	for _, test := range []struct{ topic, state, says string }{
		{kafkaconn.AuditStream, "warn", `1 topics
topic bias.audit.stream: max.message.bytes is "60000", wanted "1048588": kafka-configs --alter --entity-type topics --entity-name bias.audit.stream --add-config max.message.bytes=1048588
1 of 10 topics exist; 'evenhand topics' creates the others`},
		{kafkaconn.Interactions, "bad", `topic llm.interactions: max.message.bytes is "60000", wanted "1048588": kafka-configs`},
		{"", "ok", "10 topics"},
	} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s := defaultSettings()
		s.Kafka.Brokers = c.ListenAddrs()
		topics := s.topics()
		for _, want := range topics {
			if want.Name == test.topic {
				want.Config["max.message.bytes"] = "60000"
				topics = []kafkaconn.Topic{want}
			}
		}
		if _, err := kafkaconn.Ensure(t.Context(), s.kafka(), topics, 1); err != nil {
			t.Fatal(err)
		}
		if d := topicsState(t.Context(), s.kafka(), s); d.State != test.state || !strings.Contains(d.Says, test.says) {
			t.Errorf("%s: %+v", test.topic, d)
		}
	}
}

// The doctor tries whether the data folder can be written, and leaves nothing behind.
func TestDoctorTriesTheDataFolder(t *testing.T) {
	dir := t.TempDir()
	file, closed := filepath.Join(dir, "file"), filepath.Join(dir, "readonly")
	write(t, file, "")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		filepath.Join(file, "a"): " cannot be written: not a directory; choose another with --data-dir",
		"/proc/evenhand/x":       " cannot be written: ", // root may not either
	}
	if os.Getuid() != 0 {
		bad[closed] = " cannot be written: permission denied; choose another with --data-dir"
	}
	for at, why := range bad {
		if d := (folder{"data", at}).diagnose(); d.State != "bad" || !strings.HasPrefix(d.Says, at+why) {
			t.Errorf("%s: %+v", at, d)
		}
	}
	for at, says := range map[string]string{dir: "MiB free", filepath.Join(dir, "a", "b"): "MiB free; 'evenhand up' makes it"} {
		if d := (folder{"data", at}).diagnose(); d.State == "bad" || !strings.HasSuffix(strings.Split(d.Says, ". Below ")[0], says) { // of a disk that is soon full it says more
			t.Errorf("%s: %+v", at, d)
		}
	}
	command(t, "", "doctor", "--data-dir", filepath.Join(file, "x")).says(t, 3, "cannot be written: not a directory", "")
	command(t, "", "doctor", "--data-dir", filepath.Join(dir, "new"))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the doctor left something: %v %v", left, err)
	}
}

// The doctor asks the judge's server for its models: a key that is refused and a model that is not there fail every text later.
func TestDoctorAsksTheJudgesServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer good-key" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"code":"invalid_api_key"}}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"gpt-4o-mini"}]}`)
	}))
	defer s.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tc := range []struct{ url, key, model, want string }{
		{s.URL, "good-key", "gpt-4o-mini", `ok +judge +gpt-4o-mini is asked`},
		{s.URL, "old-key", "gpt-4o-mini", `bad +judge +llm: HTTP 401 \(invalid_api_key\): .*judge.api_key`},
		{s.URL, "good-key", "gpt-4o-mimi", `warn +judge .*its server lists no such model: judge.model`},
		{gone.URL, "good-key", "gpt-4o-mini", `warn +judge .*its server does not answer now: llm: `},
	} {
		r := command(t, "", "doctor", "--data-dir", t.TempDir(), "--set", "judge.base_url="+tc.url+"/v1", "--set", "judge.api_key="+tc.key, "--set", "judge.model="+tc.model)
		if !regexp.MustCompile(tc.want).MatchString(r.out) {
			t.Errorf("%s\nwant %s", r.out, tc.want)
		}
	}
}

// The doctor names jobs that do not succeed: they fail in silence otherwise.
func TestDoctorNamesJobsThatFail(t *testing.T) {
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	rows := jobs.NewRows(enginetest.Conn(t, cfg), cfg.Database)
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	for i, e := range []jobs.Entry{{Job: jobRollup, Status: jobs.Failed}, {Job: jobRollup, Status: jobs.Done}, {Job: jobRetention, Status: jobs.Done}, {Job: jobRetention, Status: jobs.TimedOut}} {
		e.ID, e.Trigger, e.Slot, e.Started, e.Finished = audit.NewID(at), jobs.Scheduled, at, at, at.Add(time.Duration(i)*time.Minute)
		if err := rows.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	want := diagnosis{"warn", "jobs", "the last run did not succeed of retention (timeout at " + at.Add(3*time.Minute).Format(time.RFC3339) + "); 'evenhand jobs list' says why"}
	if got := lastRuns(t.Context(), cfg); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	cfg = enginetest.Shared(t).Endpoint(engine.Writer).Config() // by the port that others see
	cfg.Password = "wrong"
	if got := lastRuns(t.Context(), cfg); got.State != "bad" {
		t.Errorf("%+v", got)
	}
}

// What is wrong with the settings of Kafka is said by every command that asks it, once.
func TestSettingsOfKafkaAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"topics --list --set kafka.brokers=127.0.0.1:1 --set kafka.sasl_user=u": "kafka.sasl_mechanism: is empty but a user or password is set",
		"topics --set kafka.brokers=PLAINTEXT://127.0.0.1:1":                    "leave out the listener's name",
		"config --set kafka.compression=brotli":                                 "kafka.compression:",
	} {
		r := command(t, "", append(strings.Fields(args), "--set", "data_dir="+dir)...)
		if r.code != 2 || strings.Count(r.err, want) != 1 {
			t.Errorf("%s: status %d, %s", args, r.code, r.err)
		}
	}
}
