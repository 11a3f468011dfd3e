package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/obs"
)

type upCmd struct {
	DataDir string `help:"Folder of the broker's and the store's data." placeholder:"DIR"`
	HTTP    string `help:"Where the doors listen; port 0 takes a free one." name:"http" placeholder:"HOST:PORT"`
}

func (upCmd) Help() string {
	return `Examples:
  evenhand up
  evenhand up --data-dir ./data --http 127.0.0.1:9090
  evenhand up --set detect.bias_action=block`
}

// running is what a process tells the commands that look for it; it lies in the data folder.
type running struct {
	PID     int       `json:"pid"`
	HTTP    string    `json:"http"`
	Kafka   string    `json:"kafka"`
	Started time.Time `json:"started"`
}

func runningFile(dataDir string) string { return filepath.Join(dataDir, "running.json") }

// Run starts everything embedded and serves until a signal.
func (cmd *upCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	began := time.Now()
	outliveLogs()
	d := defaultSettings()
	d.Tenant.Default = "default"
	if cmd.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+cmd.DataDir)
	}
	if cmd.HTTP != "" {
		c.Set = append(c.Set, "http.addr="+cmd.HTTP)
	}
	s, err := c.loadWhole(d, allRoles, true)
	if err != nil {
		return err
	}
	if len(s.Kafka.TenantTopics) > 0 {
		return &settingsError{errors.New("kafka.tenant_topics: is for an outside Kafka, whose ACLs say who may write to a topic; the embedded broker has none, so leave it unset")}
	}
	log, err := obs.NewLogger(std.err, s.Log)
	if err != nil {
		return &settingsError{err}
	}
	if err := os.MkdirAll(s.DataDir, 0o700); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	st, err := start(ctx, s, allRoles, true, log)
	if err != nil {
		return inUse(s.DataDir, err)
	}
	defer st.close(context.WithoutCancel(ctx))
	me := running{PID: os.Getpid(), HTTP: "http://" + st.listener.Addr().String(), Kafka: st.broker.Addr(), Started: time.Now().UTC()}
	held, err := writeRunning(s.DataDir, me)
	if err != nil {
		return err
	}
	defer func() { _, _ = os.Remove(runningFile(s.DataDir)), held.Close() }()
	s.announce(std.out, &me, time.Since(began), st.engine.Endpoint(engine.Reader).Native, st.engine.Endpoint(engine.Grafana).HTTP)
	return st.serve(ctx)
}

// announce says where everything is. Folders are whole paths: a relative one holds in the terminal of 'up' only.
func (s settings) announce(out io.Writer, me *running, took time.Duration, native, http string) {
	given := s.DataDir
	if abs, err := filepath.Abs(s.DataDir); err == nil {
		s.DataDir = abs
	}
	fmt.Fprintf(out, `Evenhand is up (%.1f s).
  HTTP        %s   (GraphQL: /graphql)
  Apps        OTEL_EXPORTER_OTLP_ENDPOINT=%s, LANGFUSE_BASE_URL=%s, LiteLLM: /v1/litellm,
              in line: POST /v1/guard%s
  Kafka       %s   (topic llm.interactions; this machine only)
  ClickHouse  %s   (database evenhand; try: evenhand sql "SELECT count() FROM interactions FINAL")
  Grafana     user grafana, password in %s, ClickHouse over HTTP at %s
              (add the dashboards: evenhand dashboards push --url http://127.0.0.1:3000 --token-file FILE --from-up)
  Access      %s
  Data        %s
%sSend something:  evenhand emit examples/interactions.jsonl     Look:  evenhand rates     Stop: Ctrl-C
`, took.Seconds(), me.HTTP, me.HTTP, me.HTTP, s.gatewayHint(me.HTTP), me.Kafka, native,
		filepath.Join(engineDir(s), string(engine.Grafana)+".password"), http, s.access(), s.DataDir, elsewhere(given))
}

// elsewhere says how the other commands find a data folder that is not the usual one.
func elsewhere(dir string) string {
	if dir == defaultDataDir() {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return "In other terminals first: export EVENHAND_DATA_DIR='" + strings.ReplaceAll(dir, "'", `'\''`) + "'\n"
}

// gatewayHint says how OpenAI's clients come through the gateway.
func (s settings) gatewayHint(url string) string {
	if !s.Gateway.Enabled {
		return ", or the gateway for OpenAI's clients (gateway.enabled, gateway.base_url)"
	}
	return ", or OPENAI_BASE_URL=" + url + "/v1 for OpenAI's clients"
}

// writeRunning tells where r is found as long as the file it gives is held open: its lock ends with the process however that
// ends, while a process id may be another's then.
func writeRunning(dir string, r running) (held *os.File, err error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	tmp := runningFile(dir) + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(tmp, runningFile(dir))
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	return f, nil
}

// findRunning reads what a running 'up' on this data folder left; ok is false when none is running.
func findRunning(dir string) (r running, ok bool) {
	f, err := os.Open(runningFile(dir))
	if err != nil {
		return running{}, false
	}
	defer func() { _ = f.Close() }()
	if json.NewDecoder(f).Decode(&r) != nil {
		return running{}, false
	}
	return r, errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
