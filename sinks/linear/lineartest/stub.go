// Package lineartest runs a stand-in for Linear: a GraphQL server that holds every request to Linear's
// published schema, keeps issues in memory, sends signed webhooks and fails on demand.
//
// It is a Node program that lies beside the repository, with the schema (see CONTRIBUTING.md on
// EVENHAND_SHARED). Without it, or without npm, tests are skipped; with CI=true they fail.
package lineartest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Key is the API key that the stub takes, Team the key of one of its teams.
const (
	Key  = "lin_api_test"
	Team = "BIAS"
)

// Stub is a running stand-in.
type Stub struct {
	URL string // of the API
	Dir string // of the stub's code, installed

	base string
}

// Start installs the stub in a folder of the test's own and runs it on a free port until the test ends.
func Start(t testing.TB) *Stub {
	t.Helper()
	return Serve(t, Install(t))
}

// Install copies the stub and fetches what it needs; it gives the folder.
func Install(t testing.TB) string {
	t.Helper()
	from := Shared(t, "tools", "linear-stub")
	if _, err := exec.LookPath("npm"); err != nil {
		absent(t, "npm is missing: the test needs a stand-in for Linear, which is a Node program")
	}
	dir := t.TempDir()
	for _, name := range []string{"server.mjs", "package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--omit=dev", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}

// Serve runs an installed stub.
func Serve(t testing.TB, dir string) *Stub {
	t.Helper()
	schema := Shared(t, "data", "linear", "schema.graphql")
	node := exec.Command("node", "server.mjs")
	node.Dir = dir
	node.Env = append(os.Environ(), "PORT=0", "LINEAR_SCHEMA="+schema, "LINEAR_STUB_KEYS="+Key)
	var trouble bytes.Buffer
	node.Stderr = &trouble
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	end := sync.OnceFunc(func() {
		_ = node.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = node.Wait()
	})
	_, url, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		end()
		t.Fatalf("the stub said %q: %v\n%s", line, err, trouble.String())
	}
	t.Cleanup(end)
	return &Stub{URL: url, Dir: dir, base: strings.TrimSuffix(url, "/graphql")}
}

// Shared finds a file beside the repository, or skips the test; with CI=true it fails.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	root := os.Getenv("EVENHAND_SHARED")
	if root == "" {
		dir, err := filepath.Abs(".")
		for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
		}
		root = filepath.Join(filepath.Dir(dir), "shared")
	}
	full := filepath.Join(append([]string{root}, path...)...)
	if _, err := os.Stat(full); err != nil {
		absent(t, filepath.Join(path...)+" is not there: EVENHAND_SHARED names its folder")
	}
	return full
}

func absent(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// State is what the stub holds.
type State struct {
	Teams       []struct{ ID, Key string }
	Labels      []struct{ ID, Name string }
	Issues      []Issue
	Comments    []Comment
	Attachments []Attachment
	Requests    []Request
	Deliveries  []Delivery
}

// Issue is an issue in the stub.
type Issue struct {
	ID, Identifier, Title, Description, DueDate, State, URL string
	Priority                                                int
	Labels                                                  []string
	CreatedAt                                               time.Time
}

// Comment is a comment in the stub.
type Comment struct {
	ID, Body, IssueID string
	CreatedAt         time.Time
}

// Attachment is a link in the stub.
type Attachment struct {
	ID, URL, Title, Subtitle string
	Issue                    string
	Metadata                 map[string]any
}

// Request is a request that the stub saw.
type Request struct {
	Root   []string
	Status any // a number, or what became of it
	Fault  string
	Error  string
}

// Delivery is a webhook that the stub sent.
type Delivery struct {
	ID, Event, Action string
	Status            int
	Error             string
}

// State reads everything; it waits for webhooks under way.
func (s *Stub) State(t testing.TB) State {
	t.Helper()
	var out State
	if err := s.call(t.Context(), http.MethodGet, "/_state", nil, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Fault says how requests fail; see the stub's README for the modes.
type Fault struct {
	Mode       string `json:"mode"`
	Times      int    `json:"times,omitempty"`
	Skip       int    `json:"skip,omitempty"`
	Match      string `json:"match,omitempty"` // root field; "" any
	RetryAfter int    `json:"retryAfter,omitempty"`
	DelayMS    int    `json:"delayMs,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Fail makes the next requests fail.
func (s *Stub) Fail(t testing.TB, f Fault) {
	t.Helper()
	s.post(t, "/_fail", f, nil)
}

// Move does what a person does who moves an issue to a state of a type.
func (s *Stub) Move(t testing.TB, issue, stateType string) {
	t.Helper()
	s.post(t, "/_move", map[string]any{"issue": issue, "stateType": stateType}, nil)
}

// Deliver sends one webhook made by hand.
func (s *Stub) Deliver(t testing.TB, how map[string]any) (d Delivery) {
	t.Helper()
	s.post(t, "/_webhook", how, &d)
	return d
}

// Hook subscribes an address to what happens to issues.
func (s *Stub) Hook(t testing.TB, url, secret string) {
	t.Helper()
	s.Mutate(t, `mutation($input: WebhookCreateInput!) { webhookCreate(input: $input) { success } }`,
		map[string]any{"input": map[string]any{"url": url, "secret": secret, "resourceTypes": []string{"Issue", "Comment"}, "allPublicTeams": true}})
}

// Mutate runs an operation of the test's own.
func (s *Stub) Mutate(t testing.TB, query string, variables map[string]any) {
	t.Helper()
	var out struct{ Errors []any }
	s.post(t, "/graphql", map[string]any{"query": query, "variables": variables}, &out)
	if len(out.Errors) > 0 {
		t.Fatalf("%v", out.Errors)
	}
}

// Reset brings the stub back to its start.
func (s *Stub) Reset(t testing.TB) {
	t.Helper()
	s.post(t, "/_reset", struct{}{}, nil)
}

func (s *Stub) post(t testing.TB, path string, in, out any) {
	t.Helper()
	if err := s.call(t.Context(), http.MethodPost, path, in, out); err != nil {
		t.Fatal(err)
	}
}

func (s *Stub) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", Key)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	err = errors.Join(err, res.Body.Close())
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	return err
}
