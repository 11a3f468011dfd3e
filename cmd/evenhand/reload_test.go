package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/rules"
)

// ownPack is a pack of one rule that finds a word; a rule that does not match its sentences is a fault.
func ownPack(version, word, sentence string) string {
	return fmt.Sprintf(`pack: charter.age.own.en
title: Our own words
version: %q
language: en
ground: age
rules:
  - id: age.own.word
    description: Finds a made-up word.
    rationale: A test.
    source: Ourselves.
    severity: MEDIUM
    patterns: ['\b%s\b']
    match: [%q, "A %s."]
    no_match: [Nothing., Nor here.]
`, version, word, sentence, word)
}

// Signals and looks at the files reload the rules; faults leave them as they are, and are named without texts.
func TestRulesAreReloaded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "own.yaml")
	s := rulesSettings{Dir: dir}
	build := func() (*detectors.Analyzer, error) {
		own, err := s.load(nil)
		if err != nil {
			return nil, err
		}
		d, err := bias.New(own)
		if err != nil {
			return nil, err
		}
		return detectors.NewAnalyzer(detectors.DefaultPolicy(), d)
	}
	save := func(text string) { t.Helper(); write(t, file, text) }
	save(ownPack("2026.11.1", "gleeb", "This gleeb is old."))
	first, err := build()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	outcomes := make(chan string, 1)
	var noted []string
	var storeIs error
	r := &reloader{
		rules: s, build: build, current: detectors.NewCurrent(first), loaded: s.files(), marks: rules.Marks(os.DirFS(dir)), log: slog.New(slog.NewTextHandler(&log, nil)),
		note: func(_ context.Context, a *detectors.Analyzer) error {
			if storeIs == nil {
				noted = append(noted, a.RuleSet())
			}
			return storeIs
		},
		count: func(outcome string) { outcomes <- outcome },
	}
	hup, looks := make(chan os.Signal), make(chan time.Time)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.follow(ctx, hup, looks); close(ended) }()
	// look looks at the files so often, and gives the outcome of the reload that the last one begins. A look
	// is over when the next one is taken.
	look := func(times int) string {
		for range times {
			looks <- time.Time{}
		}
		return <-outcomes
	}
	found := func(response string) (rules []string) {
		v := r.current.Analyze(t.Context(), &audit.Interaction{ID: audit.ID{1}, Tenant: "t", Domain: audit.General, Response: response})
		for _, f := range v.Findings {
			rules = append(rules, f.RuleVersion)
		}
		return rules
	}
	expect := func(what, got, want, version string) {
		t.Helper()
		if has := fmt.Sprint(found("A gleeb and a florn.")); got != want || has != "["+version+"]" {
			t.Errorf("%s: %s %s, want %s [%s]\n%s", what, got, has, want, version, &log)
		}
	}

	looks <- time.Time{}
	looks <- time.Time{} // nothing changed, nothing is done
	save(ownPack("2026.11.22", "florn", "This florn is old."))
	expect("changed", look(2), reloadSwapped, "2026.11.22")
	hup <- syscall.SIGHUP
	expect("nothing new", <-outcomes, reloadUnchanged, "2026.11.22")

	save(ownPack("2026.11.333", "gleeb", "Secret sentence."))
	expect("a sentence that does not match", look(2), reloadRefused, "2026.11.22")
	save("pack: [broken")
	expect("no YAML", look(2), reloadRefused, "2026.11.22")
	if said := log.String(); !strings.Contains(said, "where=charter.age.own.en rule=age.own.word field=match[0]") || !strings.Contains(said, "where=own.yaml") || strings.Contains(said, "Secret") || strings.Contains(said, "gleeb") {
		t.Errorf("the log does not say what is wrong, or more: %s", said)
	}

	save(ownPack("2026.11.22", "florn", "This florn is new."))
	expect("the same version", look(2), reloadSwapped, "2026.11.22")
	if said := log.String(); strings.Count(said, "its version did not") != 1 || !strings.Contains(said, "pack=charter.age.own.en version=2026.11.22") {
		t.Errorf("the log does not say that a version stayed: %s", said)
	}
	if err := os.Rename(file, filepath.Join(dir, "own.yml")); err != nil {
		t.Fatal(err)
	}
	expect("a name that is not read", look(2), reloadRefused, "2026.11.22")
	if said := log.String(); !strings.Contains(said, `where=own.yml rule="" field="" problem="is not read: packs are files *.yaml"`) {
		t.Errorf("the log does not say what is not read: %s", said)
	}
	if err := os.Remove(filepath.Join(dir, "own.yml")); err != nil {
		t.Fatal(err)
	}

	storeIs = errors.New("away")
	save(ownPack("2026.11.4", "gleeb", "This gleeb is old."))
	expect("no store", look(2), reloadFailed, "2026.11.22")
	expect("still none", look(1), reloadFailed, "2026.11.22")
	storeIs = nil
	expect("it is back", look(1), reloadSwapped, "2026.11.4")
	cancel()
	<-ended
	if len(noted) != 3 || noted[2] != r.current.Analyzer().RuleSet() {
		t.Errorf("noted %v", noted)
	}
}

func TestOwnRulesAreHeldToTheShippedOnes(t *testing.T) {
	dir := t.TempDir()
	clash := strings.ReplaceAll(ownPack("2026.11.1", "gleeb", "This gleeb is old."), "charter.age.own.en", "gate.builtin.en")
	write(t, filepath.Join(dir, "a.yaml"), clash)
	shipped, err := shippedPacks()
	if err != nil {
		t.Fatal(err)
	}
	_, err = (rulesSettings{Dir: dir}).load(shipped)
	if err == nil || !strings.Contains(err.Error(), "rules.dir: gate.builtin.en:gate.builtin.en:id") || !strings.Contains(err.Error(), "evenhand rules lint --dir "+dir) {
		t.Error(err)
	}
	for _, args := range [][]string{
		{"run", "--roles", "analyzer", "--http", "127.0.0.1:0", "--set", "rules.dir=" + dir},
		{"run", "--roles", "analyzer", "--http", "127.0.0.1:0", "--set", "rules.dir=" + filepath.Join(dir, "none")},
		{"config", "--set", "rules.poll=1ms"},
	} {
		command(t, "", args...).says(t, 2, "", "rules.")
	}
}

// analyzerWithOwnRules starts a process that finds gleeb by the pack in a file, and looks at the file again on SIGHUP.
func analyzerWithOwnRules(t *testing.T) (file string, cmd *exec.Cmd, stderr io.ReadCloser) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "own.yaml")
	write(t, file, ownPack("2026.11.1", "gleeb", "This gleeb is old."))
	cmd = exec.Command(os.Args[0], "run", "--roles", "analyzer", "--http", "127.0.0.1:0", "--set", "rules.dir="+dir, "--set", "rules.poll=0", "--set", "tenant.default=t")
	cmd.Env = environment(t)
	var err error
	if stderr, err = cmd.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return file, cmd, stderr
}

// A process takes a changed pack in on SIGHUP while it serves, and survives a broken one.
func TestAProcessReloadsItsRules(t *testing.T) {
	file, cmd, stderr := analyzerWithOwnRules(t)
	lines := bufio.NewScanner(stderr)
	await := func(what string) string {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return lines.Text()
			}
		}
		t.Fatalf("it never said %q", what)
		return ""
	}
	base := "http://" + regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(await("evenhand is running"))
	finds := func(want bool) {
		t.Helper()
		res, err := http.Post(base+"/analyze-bias", "application/json", strings.NewReader(`{"llm_response":"A florn."}`))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, _ := io.ReadAll(res.Body)
		if got := bytes.Contains(body, []byte(`"bias_detected":true`)); got != want {
			t.Errorf("found: %t, want %t: %s", got, want, body)
		}
	}
	finds(false)
	for _, step := range []struct {
		pack, says, outcome string
	}{
		{ownPack("2026.11.2", "florn", "This florn is old."), "rules reloaded", "swapped"},
		{ownPack("2026.11.3", "gleeb", "No such word."), "the rules stay as they are", "refused"},
	} {
		write(t, file, step.pack)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		await(step.says)
		finds(true)
		eventually(t, "the metric of "+step.outcome, func() error { // it is counted once it is logged
			if _, metrics := get(t, base+"/metrics"); !strings.Contains(metrics, `evenhand_rules_reload_total{outcome="`+step.outcome+`"} 1`) {
				return errors.New("not counted")
			}
			return nil
		})
	}
}

// A server whose log has lost its reader goes on.
func TestAProcessOutlivesTheReaderOfItsLog(t *testing.T) {
	file, cmd, stderr := analyzerWithOwnRules(t)
	base := ""
	for lines := bufio.NewScanner(stderr); base == "" && lines.Scan(); {
		if strings.Contains(lines.Text(), "evenhand is running") {
			base = "http://" + regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(lines.Text())
		}
	}
	if err := stderr.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, file, ownPack("2026.11.2", "florn", "This florn is old."))
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what it would log", func() error {
		if _, metrics := get(t, base+"/metrics"); !strings.Contains(metrics, `evenhand_rules_reload_total{outcome="swapped"} 1`) {
			return errors.New("not counted")
		}
		return nil
	})
	if code, _ := get(t, base+"/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d", code)
	}
}

// The log of a refused pack says the line and the key, and no sentence.
func TestFaultsThatAreTold(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"id: own\npositive: [Secret]\n":                 "line 2: field positive not found in type rules.Pack",
		"id: own\nSecret sentence of hers: 1\n":         "line 2",
		"id: own\nrules: Secret sentence of hers\n":     "line 2: cannot unmarshal !!str into []*rules.Rule",
		"id: own\nrules:\n  - Secret: \"sentence\n":     "yaml: line 3",
		"id: own\nrules:\n- id: a\n  Secret: *anchor\n": "",
	} {
		write(t, filepath.Join(dir, "own.yaml"), text)
		_, err := rulesSettings{Dir: dir}.load(nil)
		if err == nil {
			t.Errorf("%q is no fault", text)
			continue
		}
		if said := err.Error(); !strings.Contains(said, "own.yaml: "+want) && want != "" || strings.Contains(said, "sentence") || strings.Contains(said, "anchor") {
			t.Errorf("%q: %s", text, said)
		}
	}
}
