package file_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/file"
	"github.com/evenhand/evenhand/sinks/sinktest"
)

func open(t *testing.T, path string) *file.Store {
	t.Helper()
	s, err := file.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContract(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinks.Store { return open(t, filepath.Join(t.TempDir(), "store.ndjson")) })
}

// A file that was cut anywhere holds every batch before the cut, and goes on.
func TestACutFileHoldsWhatWasWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.ndjson")
	s := open(t, path)
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for i := range int64(3) {
		p, err := s.Prepare(&sinks.Batch{Markers: []sinks.Marker{{Topic: "t", Lo: i, Hi: i, Rows: 1, First: sinks.Edge{Offset: i, Time: at}, Last: sinks.Edge{Offset: i, Time: at}}}})
		if err == nil {
			err = p.Send(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		cut := filepath.Join(t.TempDir(), "cut")
		if err := os.WriteFile(cut, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := file.Open(cut)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		ms, _, _ := s.Markers(t.Context(), "t", 0, 0)
		if want := bytes.Count(whole[:n], []byte("\n")); len(ms) != want {
			t.Fatalf("cut at %d: %d markers, want %d", n, len(ms), want)
		}
		_ = s.Close()
	}
}

func TestOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.ndjson")
	open(t, path)
	if _, err := file.Open(path); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("a second owner: %v", err)
	}
	strange := filepath.Join(t.TempDir(), "strange")
	if err := os.WriteFile(strange, []byte("somebody's words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Open(strange); audit.KindOf(err) != audit.KindInvalid || bytes.Contains([]byte(err.Error()), []byte("words")) {
		t.Errorf("a strange file: %v", err)
	}
}
