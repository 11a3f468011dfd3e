package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mount puts a file system of so many bytes in the folder's place, where this account may.
func mount(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no mounts here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fill leaves about so many bytes free in the folder; remove the file to have them back.
func fill(t *testing.T, dir string, leave int64) (file string) {
	t.Helper()
	free, err := diskFree(dir)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "filler")
	write(t, file, strings.Repeat("x", int(free-leave)))
	return file
}

// Each folder is looked at where it lies, and one that is full, read-only or without inodes is found before a write fails.
func TestFoldersWithoutRoom(t *testing.T) {
	var s settings
	s.DataDir = t.TempDir()
	if all := mounts(s.folders()); len(all) != 1 || all[0].name != "data" {
		t.Errorf("one file system: %v", all)
	}
	mount(t, brokerDir(s), "96m,nr_inodes=100")
	mount(t, engineDir(s), "96m")
	all := mounts(s.folders())
	if len(all) != 3 {
		t.Fatalf("three file systems: %v", all)
	}
	check := roomCheck(s.folders())
	if err := check.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	broker, store := all[1], all[2]
	for _, tc := range []struct {
		what         string
		folder       folder
		spoil, mend  func()
		ready, state string
		says         []string
	}{
		{what: "little room", folder: store, spoil: func() { fill(t, store.path, 10<<20) },
			ready: "the store folder has 10 MiB free, which is below the 64 MiB that writing needs", state: "bad",
			says: []string{store.path + ", 10 MiB free: broker and store cannot write below 64 MiB", "Free space on its file system", "retention.*"}},
		{what: "no room", folder: broker, spoil: func() { fill(t, broker.path, 0) },
			ready: "the broker folder has 0 MiB free", state: "bad",
			says: []string{broker.path + " cannot be written: no space left on device; Free space on its file system", "broker.cap_mb"}},
		{what: "no inodes", folder: broker, spoil: func() {
			for n := range 100 {
				_ = os.WriteFile(filepath.Join(broker.path, "inode"+strings.Repeat("x", n)), nil, 0o600)
			}
		}, mend: func() {
			names, _ := filepath.Glob(filepath.Join(broker.path, "inode*"))
			for _, n := range names {
				_ = os.Remove(n)
			}
		}, ready: "the broker folder cannot be written: no space left on device", state: "bad", says: []string{"cannot be written: no space left on device; Free space"}},
		{what: "read-only", folder: store, spoil: func() { remount(t, store.path, syscall.MS_RDONLY) }, mend: func() { remount(t, store.path, 0) },
			ready: "the store folder cannot be written: read-only file system", state: "bad", says: []string{"cannot be written: read-only file system; choose another"}},
		{what: "soon full", folder: store, spoil: func() {}, state: "warn", says: []string{store.path + ", ", " MiB free. Below 2048 MiB it is soon full. Free space on its file system"}},
	} {
		tc.spoil()
		err := check.Run(t.Context())
		if tc.ready == "" && err != nil || tc.ready != "" && (err == nil || !strings.Contains(err.Error(), tc.ready)) {
			t.Errorf("%s: ready says %v, want %s", tc.what, err, tc.ready)
		}
		d := tc.folder.diagnose()
		for _, want := range tc.says {
			if d.State != tc.state || !strings.Contains(d.Says, want) {
				t.Errorf("%s: %+v, want %s and %s", tc.what, d, tc.state, want)
			}
		}
		_ = os.Remove(filepath.Join(tc.folder.path, "filler"))
		if tc.mend != nil {
			tc.mend()
		}
		if err := check.Run(t.Context()); err != nil {
			t.Errorf("%s: after the mend: %v", tc.what, err)
		}
		if left, _ := filepath.Glob(filepath.Join(tc.folder.path, ".evenhand*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", tc.what, left)
		}
	}
}

func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
		t.Fatal(err)
	}
}

// A full disk below the log alone makes 'up' not ready at once, shows in the metrics and in doctor, and is over as soon as there is room.
func TestUpOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	mount(t, filepath.Join(dir, "broker"), "300m")
	u := startUp(t, dir, "--set", "classifier.encoder=off")
	if code, body := get(t, u.HTTP+"/readyz"); code != 200 || !strings.Contains(body, `"disk":{"status":"ok"`) {
		t.Errorf("%d %s", code, body)
	}
	filler := fill(t, filepath.Join(dir, "broker"), 512<<10)
	if code, body := get(t, u.HTTP+"/readyz"); code != 503 || !strings.Contains(body, "the broker folder has 0 MiB free") {
		t.Errorf("full: %d %s", code, body)
	}
	for _, want := range []string{`evenhand_disk_free_bytes{folder="broker"} `, `evenhand_disk_free_bytes{folder="store"} `, `evenhand_ready{check="disk"} 0`, `evenhand_ready{check="store"} 1`, "evenhand_broker_log_bytes ", "evenhand_broker_cap_bytes "} {
		if _, body := get(t, u.HTTP+"/metrics"); !strings.Contains(body, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if r := command(t, "", "doctor", "--data-dir", dir); r.code != 3 || !strings.Contains(r.out, "bad   broker folder") || !strings.Contains(r.out, "bad   ready              not ready: 503") {
		t.Errorf("doctor: %d\n%s", r.code, r.out)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, u.HTTP+"/readyz"); code != 200 {
		t.Errorf("with room again: %d %s", code, body)
	}
}
