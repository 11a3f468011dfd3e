package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/embedded/engine"
)

const fetchScript = "../../../tools/engine/fetch.sh"

// TestFetch runs the script that `make engine` runs, with stand-ins for the tools that reach out.
func TestFetch(t *testing.T) {
	script, err := os.ReadFile(fetchScript)
	if err != nil {
		t.Fatal(err)
	}
	if want := "version=" + engine.Version + "\n"; !strings.Contains(string(script), want) {
		t.Fatalf("the script fetches another version than %s", engine.Version)
	}
	const pack = "#!/bin/sh\necho junk >chdb-lib.tgz\n"
	for _, tc := range []struct {
		name  string
		tools map[string]string // stand-ins by name; "" takes the tool away
		want  string
	}{
		{"no npm", map[string]string{"npm": ""}, "npm is missing; install Node.js"},
		{"npm fails", map[string]string{"npm": "#!/bin/sh\necho E404 >&2\nexit 1\n"}, "npm could not fetch"},
		{"another package", map[string]string{"npm": pack}, "is not the one this release was tested with"},
		{"full disk", map[string]string{"npm": pack, "df": "#!/bin/sh\necho h\necho fs 100 90 10240 90% /\n"}, "has 10 MB free, 800 MB are needed"},
		{"another machine", map[string]string{"uname": "#!/bin/sh\n[ $1 = -s ] && echo Darwin || echo arm64\n"}, "this is Darwin/arm64; use: docker compose up"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cache := t.TempDir()
			out, err := fetch(t, cache, tc.tools)
			if err == nil || !strings.Contains(out, tc.want) {
				t.Errorf("%v: %q, want a failure with %q", err, out, tc.want)
			}
			left, err := filepath.Glob(filepath.Join(cache, "evenhand/engine", engine.Version, "*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
	t.Run("already there", func(t *testing.T) {
		// The real cache: the tests of this package need it filled.
		cmd := exec.CommandContext(t.Context(), "sh", fetchScript)
		out, err := cmd.CombinedOutput()
		if err != nil || (!strings.Contains(string(out), "is there") && !strings.Contains(string(out), "nothing to fetch")) {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// fetch runs the script with the tools it needs and nothing else in PATH.
func fetch(t *testing.T, cache string, stand map[string]string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for _, tool := range []string{"sh", "uname", "stat", "cat", "mkdir", "df", "awk", "mktemp", "rm", "cut", "sha512sum", "base64", "od", "tr", "tar", "gzip", "mv", "chmod"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for tool, body := range stand {
		_ = os.Remove(filepath.Join(bin, tool))
		if body == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(bin, tool), []byte(body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "sh"), fetchScript)
	cmd.Env = []string{"PATH=" + bin, "HOME=" + cache, "XDG_CACHE_HOME=" + cache}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
