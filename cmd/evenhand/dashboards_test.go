package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/dashboards/grafanatest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestDashboardsPush(t *testing.T) {
	g := grafanatest.NewServer(t)
	dir := t.TempDir()
	token, store := filepath.Join(dir, "token"), filepath.Join(dir, "store")
	write(t, token, grafanatest.Token+"\n")
	write(t, store, "a-secret-of-the-store\n")
	push := []string{"dashboards", "push", "--url", g.URL, "--token-file", token, "--store", "ch.example:9440", "--store-tls", "--store-password-file", store}

	r := command(t, "", append(push, "--dry-run")...)
	r.says(t, 0, "would be created", "")
	if len(g.Dashboards)+len(g.Folders)+len(g.Sources) != 0 {
		t.Error("a dry run wrote")
	}
	r = command(t, "", push...)
	r.says(t, 0, g.URL+"/d/evenhand-bias-rates", "")
	if strings.Count(r.out, " created ") != 8 || len(g.Dashboards) != 6 || g.Sources["evenhand"] == nil {
		t.Errorf("%s", r.out)
	}
	r = command(t, "", append(push, "--json")...)
	var said struct {
		DryRun bool `json:"dry_run"`
		Steps  []struct{ What, UID, Did string }
	}
	if err := json.Unmarshal([]byte(r.out), &said); err != nil || len(said.Steps) != 8 || said.Steps[2].Did != "unchanged" {
		t.Errorf("%v %s", err, r.out)
	}

	t.Setenv("GRAFANA_PASSWORD", grafanatest.Password)
	command(t, "", "dashboards", "push", "--url", g.URL, "--user", "admin").says(t, 0, "unchanged", "")
	t.Setenv("GRAFANA_TOKEN", grafanatest.Token)
	command(t, "", "dashboards", "push", "--url", g.URL).says(t, 0, "unchanged", "")
	t.Setenv("GRAFANA_TOKEN", "wrong-token")
	r = command(t, "", "dashboards", "push", "--url", g.URL)
	r.says(t, 1, "", "status 401 (Invalid API key): Grafana does not know these credentials")
	if strings.Contains(r.err+r.out, "wrong-token") {
		t.Error("a token is shown")
	}
}

// The data source can be the store of a running 'up'.
func TestDashboardsPushFromUp(t *testing.T) {
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: filepath.Join(dir, "store")})
	g := grafanatest.NewServer(t)
	command(t, "", "dashboards", "push", "--url", g.URL, "--token", grafanatest.Token, "--from-up", "--data-dir", dir).says(t, 0, "data source", "")
	at := e.Endpoint(engine.Grafana)
	shown, _ := g.Sources["evenhand"]["jsonData"].(map[string]any)
	secrets, _ := g.Sources["evenhand"]["secureJsonData"].(map[string]any)
	if fmt.Sprintf("%v:%v", shown["host"], shown["port"]) != at.Native || shown["username"] != "grafana" || shown["protocol"] != "native" || secrets["password"] != at.Password {
		t.Errorf("%v is not %v", shown, at)
	}
}

func TestDashboardsPushNamesFaults(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, "\n")
	at := "dashboards push --url http://127.0.0.1:1 "
	for args, want := range map[string]string{
		"dashboards push":                                            "missing flags: --url=URL",
		at + "--token-file " + empty:                                 "--token-file: " + empty + " is empty",
		at + "--token t --store x":                                   "--store-password-file: is not given",
		at + "--token t --from-up --store x:1":                       "--from-up, --store: give one of them",
		at + "--token t --store x --store-password-file " + token(t): `--store: "x" is not host:port`,
	} {
		command(t, "", strings.Fields(args)...).says(t, 2, "", want)
	}
	command(t, "", strings.Fields(at)...).says(t, 1, "", "give a token, or a name with its password")
	command(t, "", strings.Fields(at+"--token t --from-up")...).says(t, 2, "", "no engine runs over")
}

func token(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, "a-token")
	return path
}

func TestDashboardsWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "grafana")
	command(t, "", "dashboards", "write", dir).says(t, 0, "provisioning/alerting/evenhand.yaml\n", "")
	for _, name := range []string{"json/bias-rates.json", "provisioning/datasources/evenhand.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
