package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/evenhand/evenhand/internal/obs"
)

// Bytes that a file system of 'up' must have free: below the floor broker and store cannot be relied on to write a
// batch (16 MiB in the log and again in the tables, and the merges after it), below the other it is soon full.
const (
	diskFloor = 64 << 20
	diskTight = 2 << 30
)

// folder is one that 'up' writes to; each may be a mount of its own.
type folder struct{ name, path string }

// folders are all of them.
func (s settings) folders() []folder {
	return []folder{{"data", s.DataDir}, {"broker", brokerDir(s)}, {"store", engineDir(s)}}
}

// mounts are those folders that lie on different file systems, the data folder first.
func mounts(all []folder) (apart []folder) {
	seen := map[uint64]bool{}
	for _, f := range all {
		dev, ok := device(existing(f.path))
		if ok && seen[dev] {
			continue
		}
		seen[dev] = ok
		apart = append(apart, f)
	}
	return apart
}

// existing is the folder, or what is there of it.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func device(path string) (uint64, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Dev), true //nolint:unconvert // the types differ by platform
}

// diskFree is the number of bytes that this account may still write to the folder's file system.
func diskFree(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the types differ by platform
}

// free is diskFree for the metrics; what cannot be looked at has nothing free.
func (f folder) free() int64 {
	free, err := diskFree(f.path)
	if err != nil {
		return 0
	}
	return free
}

// tryWriting writes a block to the folder and leaves nothing behind: what free bytes do not tell is a quota, a file
// system without inodes, and one that has become read-only.
func tryWriting(dir string) error {
	probe, err := os.CreateTemp(dir, ".evenhand-room-*")
	if err != nil {
		return cause(err)
	}
	err = os.Remove(probe.Name()) // first, so that a kill leaves nothing
	_, werr := probe.Write(make([]byte, 4096))
	return cause(errors.Join(err, werr, probe.Close()))
}

// cause leaves out the name of the file that was tried.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// room says why broker and store cannot write to the folder; nil when they can.
func (f folder) room() error {
	free, err := diskFree(f.path)
	switch {
	case err != nil:
		return fmt.Errorf("the %s folder cannot be looked at: %w", f.name, cause(err))
	case free < diskFloor:
		return fmt.Errorf("the %s folder has %d MiB free, which is below the %d MiB that writing needs; 'evenhand doctor' names the mend", f.name, free>>20, diskFloor>>20)
	}
	if err := tryWriting(f.path); err != nil {
		return fmt.Errorf("the %s folder cannot be written: %w; 'evenhand doctor' names the mend", f.name, err)
	}
	return nil
}

// roomCheck fails as soon as one of the folders cannot be written, not when the first write has failed for long.
func roomCheck(all []folder) obs.Check {
	return obs.Check{Name: "disk", Run: func(context.Context) error {
		var errs []error
		for _, f := range mounts(all) {
			errs = append(errs, f.room())
		}
		return errors.Join(errs...)
	}}
}

// diagnose tells whether 'up' can write to the folder, or make it, and whether there is room; it leaves nothing behind.
func (f folder) diagnose() diagnosis {
	what, at := f.name+" folder", existing(f.path)
	free, err := diskFree(at)
	known := err == nil
	if err := tryWriting(at); err != nil {
		mend := "choose another with --data-dir"
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			mend = f.mend()
		}
		return diagnosis{"bad", what, fmt.Sprintf("%s cannot be written: %v; %s", f.path, err, mend)}
	}
	if known && free < diskFloor {
		return diagnosis{"bad", what, fmt.Sprintf("%s, %d MiB free: broker and store cannot write below %d MiB. %s", f.path, free>>20, diskFloor>>20, f.mend())}
	}
	says := f.path
	if known {
		says += fmt.Sprintf(", %d MiB free", free>>20)
	}
	if at != f.path {
		says += "; 'evenhand up' makes it"
	}
	if known && free < diskTight {
		return diagnosis{"warn", what, says + fmt.Sprintf(". Below %d MiB it is soon full. %s", diskTight>>20, f.mend())}
	}
	return diagnosis{"ok", what, says}
}

// mend says how a full folder gets room.
func (f folder) mend() string {
	own := map[string]string{
		"broker": "; the log shrinks by itself once the pipeline has caught up, broker.cap_mb caps it",
		"store":  "; retention.* lets texts and rows go sooner, what lies in its backups/ can be moved away at any time",
	}
	return "Free space on its file system (df " + existing(f.path) + "), or stop evenhand, copy the folder to a larger disk and mount that in its place" + own[f.name]
}
