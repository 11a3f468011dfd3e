package broker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// TestMendSnapshots: after a kill in the middle of a write a fitting snapshot is made, which spares
// kfake from holding the whole log in memory, and the half batch is cut off.
func TestMendSnapshots(t *testing.T) {
	dir := t.TempDir()
	p := spawn(t, dir)
	for i := range 3 {
		if err := produce(t, p.conn, kafkaconn.Interactions, numbered(10*i, 10*i+10)...); err != nil {
			t.Fatal(err)
		}
	}
	p.kill()
	part := filepath.Join(dir, "log", "partitions", kafkaconn.Interactions+"-0")
	whole, err := os.ReadFile(filepath.Join(part, "0.dat"))
	if err != nil {
		t.Fatal(err)
	}
	torn := append(whole[:len(whole):len(whole)], whole[:len(whole)/5]...)
	if err := os.WriteFile(filepath.Join(part, "0.dat"), torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := mendSnapshots(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(part, "snapshot.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s snapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	segments, err := listSegments(part)
	if err != nil || !s.fits(segments) || s.HighWatermark != 30 || s.LogStartOffset != 0 || segments[0].Size != int64(len(whole)) {
		t.Fatalf("snapshot %+v for segments %+v (%v), want offsets [0,30) in %d bytes", s, segments, err, len(whole))
	}
	b := start(t, oneOf(dir))
	conn := connTo(b.Addr())
	if err := produce(t, conn, kafkaconn.Interactions, "record 30"); err != nil {
		t.Fatal(err)
	}
	if got := values(t, conn, kafkaconn.Interactions, 0); len(got) != 31 || got[30] != "record 30" {
		t.Fatalf("%d records, want 31", len(got))
	}
}

// TestMendLeavesWhatItCannotHandle: damage before the last segment is kfake's to deal with.
func TestMendLeavesWhatItCannotHandle(t *testing.T) {
	part := filepath.Join(t.TempDir(), "partitions", "t-0")
	if err := os.MkdirAll(part, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"0.dat", "5.dat"} {
		if err := os.WriteFile(filepath.Join(part, name), make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := mendSnapshots(filepath.Dir(filepath.Dir(part))); err == nil {
		t.Fatal("damage in the first of two segments was not told")
	}
	if _, err := os.Stat(filepath.Join(part, "snapshot.json")); err == nil {
		t.Fatal("a snapshot was written over damage")
	}
}
