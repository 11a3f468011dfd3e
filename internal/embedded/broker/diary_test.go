package broker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

func TestRing(t *testing.T) {
	day0 := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	d, err := openDiary(filepath.Join(t.TempDir(), "diary.json"))
	if err != nil {
		t.Fatal(err)
	}
	const share = 1000
	for _, tc := range []struct {
		name             string
		after            time.Duration
		start, end, size int64
		want             int64
	}{
		{"young", 0, 0, 100, 500, 0},
		{"six days", 6 * 24 * time.Hour, 0, 150, 500, 0},
		{"eight days: what was there on the first", 8 * 24 * time.Hour, 0, 180, 500, 100},
		{"too many bytes: half of the records", 8*24*time.Hour + time.Minute, 100, 180, 2000, 140},
		{"two weeks", 15 * 24 * time.Hour, 140, 200, 500, 180},
		{"a clock a year ahead: all is old", 380 * 24 * time.Hour, 180, 210, 500, 200},
		{"set right: what it noted is forgotten", 16 * 24 * time.Hour, 200, 220, 500, 200},
		{"and ages anew", 24 * 24 * time.Hour, 200, 230, 500, 220},
	} {
		got := d.ring("t", &kfake.PartitionInfo{Partition: 3, LogStartOffset: tc.start, HighWatermark: tc.end, NumBytes: tc.size}, day0.Add(tc.after), share)
		if got != tc.want {
			t.Errorf("%s: drop up to %d, want %d", tc.name, got, tc.want)
		}
	}
}

// A tick noted by a clock that was ahead counts from when the clock is right again.
func TestTickOfAWrongClock(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	p := &kfake.PartitionInfo{HighWatermark: 7}
	d, err := openDiary(filepath.Join(t.TempDir(), "diary.json"))
	if err != nil {
		t.Fatal(err)
	}
	d.ticked(kafkaconn.Interactions, 0, 5, at.AddDate(1, 0, 0))
	if d.due(kafkaconn.Interactions, p, at) || d.due(kafkaconn.Interactions, p, at.Add(23*time.Hour)) || !d.due(kafkaconn.Interactions, p, at.Add(25*time.Hour)) {
		t.Error("the tick of a year ahead holds")
	}
	d.ticked(kafkaconn.Interactions, 0, 7, at.AddDate(1, 0, 0))
	if d.due(kafkaconn.Interactions, p, at) || d.due(kafkaconn.Interactions, p, at.Add(25*time.Hour)) {
		t.Error("nothing came since the tick, and it is due")
	}
}

func TestDiaryOutlivesRestartAndDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diary.json")
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	p := &kfake.PartitionInfo{HighWatermark: 7}
	d, err := openDiary(path)
	if err != nil || d.due(kafkaconn.Interactions, p, at) {
		t.Fatalf("due at the first look (%v)", err)
	}
	if err := d.save(); err != nil {
		t.Fatal(err)
	}
	d, err = openDiary(path)
	if err != nil || d.due(kafkaconn.Interactions, p, at.Add(23*time.Hour)) || !d.due(kafkaconn.Interactions, p, at.Add(25*time.Hour)) {
		t.Fatalf("the clock did not go on over a restart (%v)", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err = openDiary(path); err == nil || d.due(kafkaconn.Interactions, p, at) {
		t.Fatalf("a damaged diary: %v", err)
	}
	if err := d.save(); err != nil {
		t.Fatal(err)
	}
	if _, err = openDiary(path); err != nil {
		t.Fatal(err)
	}
}
