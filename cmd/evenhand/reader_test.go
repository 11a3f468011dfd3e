package main

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/store"
)

// The SQL of the documentation makes the account that the program expects.
func TestReaderOfTheDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(b)
	for _, table := range store.TenantTables {
		for _, line := range []string{"GRANT SELECT ON evenhand." + table + " TO evenhand_api;\n", "ON evenhand." + table + " USING " + chconn.TenantPolicy + " TO evenhand_api;\n"} {
			if !strings.Contains(docs, line) {
				t.Errorf("docs/operations.md lacks %s", line)
			}
		}
	}
	for _, table := range store.CommonTables {
		if !strings.Contains(docs, "GRANT SELECT ON evenhand."+table+" TO evenhand_api;\n") {
			t.Errorf("docs/operations.md does not grant %s", table)
		}
	}
	if n := strings.Count(docs, " TO evenhand_api;\n"); n != 2*len(store.TenantTables)+len(store.CommonTables) {
		t.Errorf("%d lines for %d tables", n, len(store.TenantTables)+len(store.CommonTables))
	}
}

// So does the user file that compose makes.
func TestReaderOfCompose(t *testing.T) {
	b, err := os.ReadFile("../../deploy/compose/keys.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := strings.NewReplacer("/keys/", dir+"/", "/users.d/", dir+"/").Replace(string(b))
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if b, err = os.ReadFile(filepath.Join(dir, "evenhand.xml")); err != nil {
		t.Fatal(err)
	}
	type filter struct {
		XMLName xml.Name
		Filter  string `xml:"filter"`
	}
	var users struct {
		Reader struct {
			Hash   string `xml:"password_sha256_hex"`
			Tables struct {
				Filters []filter `xml:",any"`
			} `xml:"databases>evenhand"`
			Grants []string `xml:"grants>query"`
		} `xml:"users>evenhand_api"`
	}
	if err := xml.Unmarshal(b, &users); err != nil {
		t.Fatal(err)
	}
	var bound []string
	for _, f := range users.Reader.Tables.Filters {
		bound = append(bound, f.XMLName.Local)
		if f.Filter != chconn.TenantPolicy {
			t.Errorf("%s: %s", f.XMLName.Local, f.Filter)
		}
	}
	var granted []string
	for _, table := range slices.Concat(store.TenantTables, store.CommonTables) {
		granted = append(granted, "GRANT SELECT ON evenhand."+table)
	}
	if !slices.Equal(bound, store.TenantTables) || !slices.Equal(users.Reader.Grants, granted) || len(users.Reader.Hash) != 64 {
		t.Errorf("%v, %v", bound, users.Reader.Grants)
	}
}

func TestQuerySettings(t *testing.T) {
	s := defaultSettings()
	s.HTTP.Addr = "127.0.0.1:1"
	s.Query = querySettings{Timeout: time.Hour, MemoryMB: 1}
	err := s.validate()
	for _, want := range []string{"query.timeout: 1h0m0s is not in 1s..5m", "query.memory_mb: 1 is below 64", "query.rows: 0 is below 1000000", "query.result_mb: 0 is below 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	s = defaultSettings()
	s.ClickHouse.ReaderUsername, s.ClickHouse.ReaderPassword = "evenhand_api", "secret"
	if c := s.reader(); c.Username != "evenhand_api" || c.Password != "secret" || c.Database != "evenhand" {
		t.Errorf("%v", c)
	}
}
