package layers

import (
	"slices"
	"strings"
	"testing"
)

// Who may speak to ClickHouse, and why; a prefix of the path below the module. Everybody else asks package
// store, whose reads of tenants bind the tenant. What answers callers (graph, guard, gateway, web, ingest) never does.
var speaksClickHouse = map[string]string{
	"store":             "the read side, the only builder of tenants' queries; and the migrations",
	"internal/chconn":   "opens connections",
	"internal/embedded": "the engine and its tests' connections",
	"sinks/clickhouse":  "writes the batches",
	"internal/jobs":     "the journal of runs",
	"internal/arbiter":  "the projection of decisions",
	"internal/breaches": "rows of breaches, written and read by jobs",
	"alarm":             "a job over all tenants",
	"remediation":       "the outbox, a job over all tenants",
	"repair":            "a job over all tenants",
	"retry":             "a job over all tenants",
	"rollup":            "a job over all tenants",
	"retention":         "a job over all tenants",
	"facts":             "appends people's facts",
	"auth":              "the table of API keys, which is read before a tenant is known",
	"dashboards":        "tests of the boards' SQL",
	"cmd/evenhand":      "opens connections and hands them on",
	"bench":             "a program of its own",
	"tools/crash":       "another",
}

// Never these, not even below a prefix that may.
var neverClickHouse = []string{"graph", "guard", "gateway", "web", "ingest", "auth/http", "auth/doors"}

func TestWhoSpeaksClickHouse(t *testing.T) {
	for _, p := range load(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if !slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, "github.com/ClickHouse/") }) {
			continue
		}
		under := func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
		may := false
		for prefix := range speaksClickHouse {
			may = may || under(prefix)
		}
		if !may || slices.ContainsFunc(neverClickHouse, under) {
			t.Errorf("%s speaks to ClickHouse by itself; ask package store, or give it a line with its reason in clickhouse_test.go", path)
		}
	}
}
