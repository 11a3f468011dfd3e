package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// product is a running `evenhand up`; where it asks everybody for a credential, with a key of tenant acme.
type product struct {
	bin, dir    string
	HTTP, Kafka string
	key         string        // "" where nobody is asked
	log         *bytes.Buffer // read when it has ended
}

const (
	asking = "auth: {mode: required}"
	open   = "auth: {mode: auto}\ntenant: {default: acme}" // on loopback
)

const settings = `
%s
gateway:
  enabled: true
  upstreams: [{name: openai, base_url: %s, models: [gpt-]}]
  guard: {bias_action: block}
`

func start(t *testing.T, access, modelURL string) *product {
	t.Helper()
	p := &product{bin: filepath.Join(t.TempDir(), "evenhand"), dir: t.TempDir(), log: &bytes.Buffer{}}
	build := exec.Command("go", "build", "-o", p.bin, "../../cmd/evenhand")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := filepath.Join(t.TempDir(), "evenhand.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, settings, access, modelURL), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.bin, "up", "--data-dir", p.dir, "--http", "127.0.0.1:0", "--config", config)
	cmd.Stdout, cmd.Stderr, cmd.Env = p.log, p.log, environment()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-done
		if t.Failed() {
			t.Logf("evenhand up:\n%s", p.log)
		}
	})
	eventually(t, "evenhand up", func() error {
		select {
		case <-done:
			t.Fatal("evenhand up ended")
		default:
		}
		b, err := os.ReadFile(filepath.Join(p.dir, "running.json"))
		if err != nil {
			return err
		}
		return json.Unmarshal(b, p)
	})
	if access == open {
		return p
	}
	var made struct{ Key string }
	if err := json.Unmarshal(p.command(t, "keys", "create", "--tenant", "acme", "--name", "clients", "--scope", "ingest,guard", "--json"), &made); err != nil {
		t.Fatal(err)
	}
	p.key = made.Key
	return p
}

// command runs one of the product's commands and gives what it prints.
func (p *product) command(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(p.bin, append(args, "--data-dir", p.dir)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, environment()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", args[0], err, &out, &errs)
	}
	return out.Bytes()
}

// quiet is nil when no part of a call waits for another: what is to come has come.
func (p *product) quiet() error {
	res, err := http.Get(p.HTTP + "/metrics")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err == nil && !bytes.Contains(b, []byte("\nevenhand_call_groups_open 0\n")) {
		return errors.New("calls are open")
	}
	return err
}

// row is one interaction as the store has it.
type row struct {
	App, Tenant, Domain, Provider, Model, Status, Trace, User string
	Prompt, Response                                          string
	PromptTokens, ResponseTokens                              int
	Flagged                                                   bool
	ID                                                        string // of the event; only shown
}

// rows are all interactions that are analysed; what a prompt was told as, text or messages, is one column.
func (p *product) rows(t *testing.T) (all []row) {
	t.Helper()
	out := p.command(t, "sql", "--json", `
SELECT app AS App, tenant_id AS Tenant, domain AS Domain, provider AS Provider, model AS Model, status AS Status, trace_id AS Trace, user AS User,
    prompt AS Prompt, response AS Response, prompt_tokens AS PromptTokens, response_tokens AS ResponseTokens, toBool(flagged) AS Flagged, toString(event_id) AS ID
FROM (SELECT * FROM interactions FINAL) AS i
INNER JOIN (SELECT event_id, content_digest, flagged FROM audit_current FINAL WHERE analysis_status = 'done') AS a USING event_id, content_digest
LEFT JOIN (SELECT event_id, source_id AS content_digest, anyIf(text, kind IN ('prompt', 'messages')) AS prompt, anyIf(text, kind = 'response') AS response
    FROM interaction_texts FINAL GROUP BY event_id, source_id) AS x USING event_id, content_digest
LEFT JOIN (SELECT event_id, any(user_id) AS user FROM interaction_users FINAL GROUP BY event_id) AS u USING event_id`)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var r row
		if err := d.Decode(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all = append(all, r)
	}
}

func environment() (env []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "EVENHAND_") {
			env = append(env, kv)
		}
	}
	return env
}

// eventually asks until try gives nil; the limit is generous because test machines are busy.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.After(6 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}
