package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The doctor tries whether the data folder can be written, and leaves nothing behind.
func TestDoctorTriesTheDataFolder(t *testing.T) {
	dir := t.TempDir()
	file, closed := filepath.Join(dir, "file"), filepath.Join(dir, "readonly")
	write(t, file, "")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		filepath.Join(file, "a"): " cannot be written: not a directory; choose another with --data-dir",
		"/proc/evenhand/x":       " cannot be written: ", // root may not either
	}
	if os.Getuid() != 0 {
		bad[closed] = " cannot be written: permission denied; choose another with --data-dir"
	}
	for at, why := range bad {
		if d := dataFolder(at); d.State != "bad" || !strings.HasPrefix(d.Says, at+why) {
			t.Errorf("%s: %+v", at, d)
		}
	}
	for at, says := range map[string]string{dir: "MiB free", filepath.Join(dir, "a", "b"): "MiB free; 'evenhand up' makes it"} {
		if d := dataFolder(at); d.State == "bad" || !strings.HasSuffix(d.Says, says) {
			t.Errorf("%s: %+v", at, d)
		}
	}
	command(t, "", "doctor", "--data-dir", filepath.Join(file, "x")).says(t, 3, "cannot be written: not a directory", "")
	command(t, "", "doctor", "--data-dir", filepath.Join(dir, "new"))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the doctor left something: %v %v", left, err)
	}
}
