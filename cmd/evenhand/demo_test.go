package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/sinks/linear/lineartest"
)

// The demo ends with the table, one breach of the simulated month, and one issue about it.
func TestDemo(t *testing.T) {
	stub := lineartest.Start(t)
	history := filepath.Join(t.TempDir(), "history")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", history, "../../tools/history").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	bin, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../../tools/demo.sh", bin, history)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = environment(t, "KEEP=", "LINEAR_STUB="+strings.TrimSuffix(stub.URL, "/graphql"), "LINEAR_STUB_KEY="+lineartest.Key, "LINEAR_STUB_TEAM="+lineartest.Team)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{`Evenhand is up \(.*\)\.`, `  HTTP        http://127\.0\.0\.1:\d+`, `  Kafka       127\.0\.0\.1:\d+`, `  ClickHouse  127\.0\.0\.1:\d+`} { // as the README shows
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(out.String()) {
			t.Errorf("the demo does not print %s", line)
		}
	}
	for _, want := range []string{"114 interactions audited", "any bias", "Top findings", "OK: every offset is covered once", "open   breached  ticket  meridian  hr      any bias", "sent"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
	if s := stub.State(t); len(s.Issues) != 1 || !strings.HasPrefix(s.Issues[0].Title, "Bias findings in hr: ") {
		t.Errorf("issues %+v", s.Issues)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
