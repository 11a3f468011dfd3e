package door

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/ingest/call"
)

// joiner is a Joiner that keeps what it took.
type joiner struct {
	mu    sync.Mutex
	parts []call.Part
	err   error
}

func (j *joiner) Parts(_ context.Context, parts []call.Part) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.parts = append(j.parts, parts...)
	}
	return j.err
}

func captured(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(detectortest.Shared(t, "data", "events", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func zipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
