package dashboards

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/dashboards/grafanatest"
)

var clickhouse = &Source{Host: "clickhouse.example", Port: 9440, TLS: true, Database: "evenhand", User: "grafana", Password: "a-secret-of-the-store"}

func did(steps []Step) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.What+" "+s.UID+" "+s.Did)
	}
	return strings.Join(out, "\n")
}

const everything = `folder evenhand X
data source evenhand X
dashboard evenhand-bias-rates X
dashboard evenhand-doors X
dashboard evenhand-judge X
dashboard evenhand-pipeline X
dashboard evenhand-remediation X
dashboard evenhand-safety X`

func TestPush(t *testing.T) {
	g := grafanatest.NewServer(t)
	to := Target{URL: g.URL, Token: grafanatest.Token}
	o := Options{Folder: "Evenhand", Source: clickhouse, Message: "test", DryRun: true}
	push := func(want string) {
		t.Helper()
		steps, err := Push(t.Context(), to, o)
		if err != nil || did(steps) != want {
			t.Fatalf("%v\n%s\nwant\n%s", err, did(steps), want)
		}
	}
	push(strings.ReplaceAll(everything, "X", Created))
	if slices.ContainsFunc(g.Calls, func(c string) bool { return !strings.HasPrefix(c, "GET ") }) || len(g.Dashboards) != 0 {
		t.Fatalf("a dry run wrote: %v", g.Calls)
	}
	o.DryRun = false
	push(strings.ReplaceAll(everything, "X", Created))
	if g.Folders["evenhand"] != "Evenhand" || len(g.Dashboards) != 6 || g.InFolder["evenhand-safety"] != "evenhand" {
		t.Errorf("%v %v", g.Folders, g.InFolder)
	}
	json, _ := g.Sources["evenhand"]["jsonData"].(map[string]any)
	secrets, _ := g.Sources["evenhand"]["secureJsonData"].(map[string]any)
	if json["host"] != "clickhouse.example" || json["port"] != 9440.0 || json["protocol"] != "native" || json["secure"] != true || json["username"] != "grafana" || secrets["password"] != clickhouse.Password {
		t.Errorf("data source %v %v", json, secrets)
	}
	push(strings.NewReplacer("folder evenhand X", "folder evenhand unchanged", "data source evenhand X", "data source evenhand updated", "X", Unchanged).Replace(everything))

	// A person's changes: the board is brought back, the title of folder and data source stays.
	g.Dashboards["evenhand-safety"]["title"] = "mine"
	g.Folders["evenhand"] = "Fairness"
	g.Sources["evenhand"]["name"], g.Sources["evenhand"]["isDefault"] = "Audit", true
	push(strings.NewReplacer("folder evenhand X", "folder evenhand unchanged", "data source evenhand X", "data source evenhand updated",
		"safety X", "safety updated", "X", Unchanged).Replace(everything))
	if g.Dashboards["evenhand-safety"]["title"] == "mine" || g.Folders["evenhand"] != "Fairness" || g.Sources["evenhand"]["name"] != "Audit" || g.Sources["evenhand"]["isDefault"] != true {
		t.Error("a person's choice was lost, or a board was not brought back")
	}

	g.Sources["evenhand"]["readOnly"] = true
	to = Target{URL: g.URL + "/", User: "admin", Password: grafanatest.Password}
	push(strings.NewReplacer("folder evenhand X", "folder evenhand unchanged", "data source evenhand X", "data source evenhand left", "X", Unchanged).Replace(everything))
}

// Another push makes the folder between our look and our making.
func TestPushMeetsAnother(t *testing.T) {
	g := grafanatest.NewServer(t)
	g.Folders["evenhand"] = "Evenhand"
	g.Fail["GET /api/folders/evenhand"] = []string{`404 {"message":"folder not found","status":"not-found"}`}
	if steps, err := Push(t.Context(), Target{URL: g.URL, Token: grafanatest.Token}, Options{Folder: "Evenhand"}); err != nil || len(steps) != 7 {
		t.Errorf("%v %v", steps, err)
	}
}

func TestPushTellsWhatIsWrong(t *testing.T) {
	const save = "POST /api/dashboards/db"
	for _, tc := range []struct {
		name, call, answer string
		kind               audit.Kind
		want               string
	}{
		{"401", "GET /api/folders/evenhand", `401 {"message":"Invalid API key"}`, audit.KindInvalid, "dashboards: push: folder evenhand: status 401 (Invalid API key): Grafana does not know these credentials; make a token under Administration, Service accounts"},
		{"403", "POST /api/datasources", `403 {"message":"You'll need additional permissions"}`, audit.KindInvalid, "data source evenhand: status 403 (You'll need additional permissions): these credentials may not do that; the service account needs the role Editor, and Admin for data sources"},
		{"404", save, `404 {"message":"Not found"}`, audit.KindInvalid, "dashboard evenhand-bias-rates: status 404: there is no such call at this address; is it Grafana's own, with its path if it has one?"},
		{"412", save, `412 {"message":"The dashboard belongs to plugin X","status":"plugin-dashboard"}`, audit.KindInvalid, "dashboard evenhand-bias-rates: status 412 (The dashboard belongs to plugin X): something else of this name or a newer version is there already"},
		{"400", save, `400 {"message":"Cannot save provisioned dashboard"}`, audit.KindInvalid, "dashboard evenhand-bias-rates: status 400 (Cannot save provisioned dashboard)"},
		{"500", save, `500 {"message":"Internal Server Error","traceID":"1"}`, audit.KindUnavailable, "dashboard evenhand-bias-rates: status 500 (Internal Server Error)"},
		{"503 of a proxy", "GET /api/health", `503 <html>down</html>`, audit.KindUnavailable, "health: status 503"},
		{"429", save, `429 {"message":"slow down"}`, audit.KindUnavailable, "status 429 (slow down)"},
		{"not Grafana", "GET /api/health", `200 <html>hello</html>`, audit.KindInvalid, "health: what answers there is not Grafana"},
		{"redirect", "GET /api/health", `302 x`, audit.KindInvalid, "redirects (status 302): give the address that it leads to"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := grafanatest.NewServer(t)
			g.Fail[tc.call] = []string{tc.answer}
			_, err := Push(t.Context(), Target{URL: g.URL, Token: grafanatest.Token}, Options{Folder: "Evenhand", Source: clickhouse})
			if err == nil || !strings.Contains(err.Error(), tc.want) || audit.KindOf(err) != tc.kind {
				t.Errorf("%v (%s), want %q (%s)", err, audit.KindOf(err), tc.want, tc.kind)
			}
			if err != nil && (strings.Contains(err.Error(), grafanatest.Token) || strings.Contains(err.Error(), clickhouse.Password)) {
				t.Error("the error holds a secret")
			}
		})
	}
	t.Run("wrong password", func(t *testing.T) {
		g := grafanatest.NewServer(t)
		_, err := Push(t.Context(), Target{URL: g.URL, User: "admin", Password: "wrong-password"}, Options{})
		if err == nil || !strings.Contains(err.Error(), "status 401") || strings.Contains(err.Error(), "wrong-password") {
			t.Error(err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		g := httptest.NewServer(http.NotFoundHandler())
		g.Close()
		_, err := Push(t.Context(), Target{URL: g.URL, User: "admin", Password: "a-password"}, Options{})
		if audit.KindOf(err) != audit.KindUnavailable || strings.Contains(err.Error(), "a-password") {
			t.Error(err)
		}
	})
}

func TestPushRefusesBadTargets(t *testing.T) {
	for want, to := range map[string]Target{
		"is not like http":         {URL: "127.0.0.1:3000", Token: "t"},
		"holds a name or password": {URL: "http://admin:secret-one@127.0.0.1:3000", Token: "t"},
		"give a token, or a name":  {URL: "http://127.0.0.1:3000"},
		"and not both":             {URL: "http://127.0.0.1:3000", Token: "t", User: "u"},
	} {
		if _, err := Push(t.Context(), to, Options{}); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-one") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	t.Setenv("GF_LOG", "1")
	if _, err := Push(t.Context(), Target{URL: "http://127.0.0.1:3000", Token: "t"}, Options{}); err == nil || !strings.Contains(err.Error(), "GF_LOG") {
		t.Error(err)
	}
}

// A Grafana that takes the call and never answers is given up, by the context or the time limit.
func TestPushEnds(t *testing.T) {
	hold := make(chan struct{})
	g := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer g.Close()
	defer close(hold)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Push(ctx, Target{URL: g.URL, Token: "t"}, Options{}); !errors.Is(err, context.Canceled) || audit.KindOf(err) != audit.KindUnavailable {
		t.Error(err)
	}
	if _, err := Push(t.Context(), Target{URL: g.URL, Token: "t", Timeout: 20 * time.Millisecond}, Options{}); audit.KindOf(err) != audit.KindUnavailable {
		t.Error(err)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	written, err := Write(dir)
	if err != nil || len(written) != 10 {
		t.Fatalf("%v %v", written, err)
	}
	for _, name := range written {
		got, err := os.ReadFile(filepath.Join(dir, name))
		want, werr := os.ReadFile(name)
		if err != nil || werr != nil || string(got) != string(want) {
			t.Errorf("%s: %v %v", name, err, werr)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(file); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
}
