package clients

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("(?s)<!-- tools/clients/(\\S+) -->\n```\\w+\n(.*?\n)```\n")

// What a page shows is what the tests run, word for word, and each script is shown.
func TestPages(t *testing.T) {
	shown := map[string]bool{}
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		quotes := quoted.FindAllStringSubmatch(string(page), -1)
		if n := strings.Count(string(page), "<!-- tools/clients/"); n != len(quotes) {
			t.Errorf("%s: %d of %d quotes are followed by a block of code", path, len(quotes), n)
		}
		for _, q := range quotes {
			file, err := os.ReadFile(q[1])
			if err != nil {
				return err
			}
			if shown[q[1]] = true; q[2] != string(file) {
				t.Errorf("%s: the block is not tools/clients/%s", path, q[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*", "*/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			script := slices.Contains([]string{".py", ".sh", ".yaml", ".mjs", ".js", ".java"}, filepath.Ext(f)) || filepath.Base(f) == "main.go"
			if script && f != "install.sh" && !shown[filepath.ToSlash(f)] {
				t.Errorf("tools/clients/%s is on no page", f)
			}
		}
	}
}
