package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A package whose tests no suite runs is tested by nobody.
func TestEveryTestIsInASuite(t *testing.T) {
	const root = "../.."
	script, err := os.ReadFile(filepath.Join(root, "tools/test.sh"))
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for _, pattern := range regexp.MustCompile(`\./[\w./]+`).FindAllString(string(script), -1) {
		run[strings.TrimPrefix(pattern, "./")] = true
	}
	suite := func(dir string) bool {
		if run[dir] {
			return true
		}
		for ; dir != "."; dir = filepath.Dir(dir) {
			if run[dir+"/..."] {
				return true
			}
		}
		return false
	}
	if !suite("audit") || suite("nowhere") {
		t.Fatal("the suites are not read")
	}
	for _, p := range load(t) {
		dir := strings.TrimPrefix(p.ImportPath, module)
		if tests, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go")); err != nil || len(tests) > 0 && !suite(dir) {
			t.Errorf("%s: tools/test.sh runs its tests in no suite (%v)", dir, err)
		}
	}
}
