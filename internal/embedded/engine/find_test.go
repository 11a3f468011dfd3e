package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	cached := filepath.Join(dir, "cache", "evenhand", "engine", engine.Version, "libchdb.so")
	elsewhere := filepath.Join(dir, "elsewhere.so")
	for _, path := range []string{cached, elsewhere} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(dir, "missing.so")
	for _, tc := range []struct {
		name, explicit, env, cache, want, fault string
	}{
		{name: "cache", cache: filepath.Join(dir, "cache"), want: cached},
		{name: "environment before cache", env: elsewhere, cache: filepath.Join(dir, "cache"), want: elsewhere},
		{name: "explicit before environment", explicit: elsewhere, env: missing, want: elsewhere},
		{name: "nowhere", cache: filepath.Join(dir, "empty"), fault: "libchdb.so is not there; run: make engine"},
		{name: "environment wrong", env: missing, fault: engine.LibraryEnv + ": " + missing + " is not there; unset it and run: make engine"},
		{name: "explicit wrong", explicit: missing, env: elsewhere, fault: "engine.lib: " + missing + " is not there; unset it and run: make engine"},
		{name: "environment by way of the settings", explicit: missing, env: missing, fault: engine.LibraryEnv + ": " + missing + " is not there"},
		{name: "a folder", explicit: dir, fault: "engine.lib: " + dir + " is not a file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(engine.LibraryEnv, tc.env)
			t.Setenv("XDG_CACHE_HOME", tc.cache)
			got, err := engine.Find(tc.explicit)
			if tc.fault == "" {
				if err != nil || got != tc.want {
					t.Errorf("got %q, %v; want %q", got, err, tc.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.fault) || audit.KindOf(err) != audit.KindInvalid {
				t.Errorf("got %v, want %q", err, tc.fault)
			}
			if _, err := engine.Start(t.Context(), engine.Options{Dir: t.TempDir(), Lib: tc.explicit}); err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("Start: got %v, want %q", err, tc.fault)
			}
		})
	}
}
