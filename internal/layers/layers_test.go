package layers

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/evenhand/evenhand/"

type pkg struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
	Deps            []string
}

func load(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var ps []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

// Each tree (a prefix of the path below the module) may import, of ours, only what stands here.
var allowed = map[string][]string{
	"audit":           {},
	"sources":         {"audit", "internal/failpoint", "internal/kafkaconn", "internal/embedded", "internal/wait"},
	"sinks":           {"audit", "internal/failpoint", "internal/kafkaconn", "internal/chconn", "internal/seal", "internal/wait"},
	"detectors":       {"audit", "internal/secret"},
	"pipeline":        {"audit", "internal/failpoint", "internal/priority", "sources", "sinks"},
	"auth":            {"audit", "internal/chconn", "internal/keyfile", "internal/secret", "internal/wait", "internal/reply"},
	"ingest":          {"audit", "auth", "sources", "schemas", "internal/secret", "internal/toolcall"},
	"ingest/door":     {"audit", "auth", "guard", "ingest", "sources", "schemas", "internal/secret", "internal/reply"},
	"store":           {"audit", "schemas", "internal/chconn", "internal/seal"},
	"repair":          {"audit", "store", "internal/chconn"},
	"retry":           {"audit", "store", "sinks"},
	"rollup":          {"audit", "store", "internal/chconn"},
	"alarm":           {"audit", "store", "internal/arbiter", "internal/breaches", "internal/chconn"},
	"facts":           {"audit", "auth", "store", "sinks", "schemas", "internal/chconn", "internal/kafkaconn"},
	"graph":           {"audit", "auth", "facts", "gates", "store", "ingest", "schemas", "internal/reply"},
	"remediation":     {"audit", "store", "sinks", "internal/arbiter", "internal/breaches", "internal/bus", "internal/chconn", "internal/kafkaconn", "internal/wait"},
	"retention":       {"audit", "store", "internal/chconn", "internal/seal"},
	"join":            {"audit", "ingest", "sources", "internal/failpoint", "internal/kafkaconn", "internal/wait"},
	"guard":           {"audit", "detectors", "ingest", "internal/wait"},
	"gateway":         {"audit", "auth", "detectors/pii", "gates", "guard", "ingest", "internal/places", "internal/secret", "internal/wait", "judge/replay", "internal/reply", "internal/toolcall"},
	"gates":           {"audit", "auth", "guard", "store", "schemas", "internal/arbiter", "internal/chconn", "internal/kafkaconn", "internal/secret", "internal/wait", "internal/reply"},
	"judge":           {"audit", "detectors", "facts", "ingest", "schemas", "sinks", "store", "internal/bus", "internal/kafkaconn", "internal/llm", "internal/places", "internal/wait"},
	"client":          {"audit", "detectors", "guard", "internal/kafkaconn", "internal/toolcall", "internal/wait"}, // what applications link
	"schemas":         {},
	"dashboards":      {"audit"},
	"internal/chconn": {"audit"},
	"internal/config": {"internal/secret"},
	"internal/reply":  {},
	"internal/secret": {},
	"internal/jobs":   {"audit", "sources", "internal/chconn", "internal/wait"},

	"internal/failpoint": {},
	"internal/keyfile":   {},
	"internal/seal":      {"internal/keyfile"},
	"internal/places":    {},
	"internal/priority":  {},
	"internal/toolcall":  {},
	"internal/wait":      {},

	"internal/obs": {"audit", "pipeline", "sinks"},

	"internal/kafkaconn": {"audit", "internal/secret", "internal/wait"},
	"internal/breaches":  {"audit", "internal/arbiter", "internal/chconn"},
	"internal/arbiter":   {"audit", "sources", "internal/kafkaconn", "internal/chconn", "internal/wait"},
	"internal/embedded":  {"audit", "internal/chconn", "internal/kafkaconn"},
	"internal/bus":       {"audit", "sources", "internal/kafkaconn", "internal/wait"},
	"internal/layers":    {},
	"internal/llm":       {"audit", "internal/places", "internal/secret", "internal/wait"},

	"bench": {"alarm", "audit", "dashboards", "store", "rollup", "schemas", "internal"}, // a program of its own

	"bench/scan": {"detectors/scan"}, // another

	"tools/crash":   {"audit", "ingest", "internal", "sources", "store"}, // another
	"tools/history": {},
	"tools/clients": {}, // tests alone

	"examples": {"audit", "client"}, // programs of their own
}

// seams are the packages that pipeline may import of trees with implementations; failpoint is names
// and an empty function, priority a call.
var seams = []string{"audit", "sources", "sinks", "internal/failpoint", "internal/priority"}

func tree(path string) string {
	best := ""
	for t := range allowed {
		if (path == t || strings.HasPrefix(path, t+"/")) && len(t) > len(best) {
			best = t
		}
	}
	return best
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range load(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(path, "cmd/") {
			continue // wires everything
		}
		from := tree(path)
		if from == "" {
			t.Errorf("%s: belongs to no tree; give it a line in layers_test.go", path)
			continue
		}
	imports:
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours || tree(to) == from {
				continue
			}
			for _, ok := range allowed[from] {
				if to == ok || strings.HasPrefix(to, ok+"/") {
					continue imports
				}
			}
			t.Errorf("%s imports %s: %s may import only %v", path, to, from, allowed[from])
		}
	}
}

func TestPipelineImportsSeamsOnly(t *testing.T) {
	for _, p := range load(t) {
		if p.ImportPath != module+"pipeline" {
			continue
		}
		for _, dep := range p.Deps {
			to, ours := strings.CutPrefix(dep, module)
			if ours && !slices.Contains(seams, to) {
				t.Errorf("pipeline reaches %s: it may reach only the seams %v", to, seams)
			}
		}
	}
}

func TestAuditIsStandardLibraryOnly(t *testing.T) {
	for _, p := range load(t) {
		if p.ImportPath != module+"audit" {
			continue
		}
		for _, dep := range p.Deps {
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") {
				t.Errorf("audit reaches %s", dep)
			}
		}
	}
}

func TestOnePackageCommentEach(t *testing.T) {
	for _, p := range load(t) {
		n := 0
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s has %d package comments, wants 1", strings.TrimPrefix(p.ImportPath, module), n)
		}
	}
}

// Only main ends the process; libraries return errors.
func TestOnlyMainExits(t *testing.T) {
	for _, p := range load(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		for _, f := range p.GoFiles {
			b, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(string(b), "// Code generated ") {
				continue // gqlgen's switches panic on what cannot be
			}
			for _, bad := range []string{"os.Exit(", "log.Fatal", "\tpanic("} {
				// The engine's child is a process of its own, whose end is its answer.
				if strings.Contains(string(b), bad) && f != "main.go" && path != "internal/embedded/engine" && path != "internal/embedded/enginetest" {
					t.Errorf("%s/%s uses %s", path, f, strings.TrimSpace(bad))
				}
			}
		}
	}
}
