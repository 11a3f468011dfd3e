package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

// SpoolOptions say where events are kept until they are taken. Start from DefaultSpool.
type SpoolOptions struct {
	// Dir is a folder for this process alone; it is made. It holds texts: keep it as you keep them.
	Dir string
	// Bytes is the most it may hold; what finds no room waits in memory and is then refused. Default 256 MiB.
	Bytes int64
	// SegmentBytes is about where a file ends. Files go once all in them is taken, so after a kill as much may be sent
	// again, under the same ids. Default 1 MiB.
	SegmentBytes int64
}

// DefaultSpool gives the defaults in a folder.
func DefaultSpool(dir string) *SpoolOptions {
	return &SpoolOptions{Dir: dir, Bytes: 256 << 20, SegmentBytes: 1 << 20}
}

func (o *SpoolOptions) validate(event int) error {
	switch {
	case o.Dir == "":
		return errors.New("Spool.Dir: is empty")
	case o.SegmentBytes < 1 || o.Bytes < o.SegmentBytes+int64(event)+64:
		return fmt.Errorf("Spool.Bytes: wants room for SegmentBytes and one event, %d at least", o.SegmentBytes+int64(event)+64)
	}
	return nil
}

// spool keeps events in files, oldest first, until they are taken. Written is not synced: what was appended survives the
// end of the process in any way, not that of the machine.
type spool struct {
	o    SpoolOptions
	send func(context.Context, []Encoded) error
	e    *Emitter
	held *os.File // the lock

	mu     sync.Mutex
	full   []segment // closed files, oldest first
	active *os.File  // nil while nothing was appended
	open   segment   // what active is
	next   int       // number of the next file
	total  int64     // bytes of all
	closed bool

	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

type segment struct {
	path  string
	bytes int64
}

const (
	suffix = ".evh"
	aside  = ".damaged" // behind suffix: what could not be read, kept for people
)

var (
	errSpoolUsed = errors.New("the spool is in use by another process")
	errSpoolFull = errors.New("the spool is full")
)

// openSpool takes a folder over and begins to send what lies in it.
func openSpool(o SpoolOptions, send func(context.Context, []Encoded) error, e *Emitter) (*spool, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	held, err := os.OpenFile(filepath.Join(o.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	s := &spool{o: o, send: send, e: e, held: held, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err = lock(held); err != nil {
		err = errSpoolUsed
	} else {
		err = s.find()
	}
	if err != nil {
		_ = held.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.run(ctx)
	return s, nil
}

// find lists the files of an earlier process. Nothing is ever appended to them: their ends may be torn.
func (s *spool) find() error {
	files, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		var n int
		if name, ok := strings.CutSuffix(f.Name(), suffix); !ok {
			continue
		} else if _, err := fmt.Sscanf(name, "%d", &n); err != nil {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return err
		}
		s.full = append(s.full, segment{filepath.Join(s.o.Dir, f.Name()), info.Size()})
		s.total, s.next = s.total+info.Size(), max(s.next, n+1)
	}
	slices.SortFunc(s.full, func(a, b segment) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.path, b.path))
	})
	return nil
}

// append writes events behind all others; the emitter's queue calls it. While there is no room, or the disk fails, it
// waits: what has no room behind it is refused by the queue.
func (s *spool) append(ctx context.Context, es []Encoded) error {
	for fails := 0; len(es) > 0; {
		n, err := s.put(es)
		if err == nil {
			es, fails = es[n:], 0
			continue
		}
		if fails++; fails == 1 {
			s.e.o.Logger.Warn("audit events wait for the spool", "kind", string(audit.KindOf(err)), "events", len(es))
		}
		if !wait.For(ctx, wait.Backoff(50*time.Millisecond, fails)) {
			return audit.E("client: spool", audit.KindUnavailable, ctx.Err())
		}
	}
	return nil
}

// put writes the first events, about as many as a file holds, and tells how many.
func (s *spool) put(es []Encoded) (n int, err error) {
	const op = "client: spool"
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	for n < len(es) && int64(len(b)) < s.o.SegmentBytes {
		b = appendRecord(b, es[n])
		n++
	}
	if s.total+int64(len(b)+len(magic)) > s.o.Bytes {
		return 0, audit.E(op, audit.KindOverloaded, errSpoolFull)
	}
	if err := s.write(b); err != nil {
		return 0, audit.E(op, audit.KindUnavailable, err)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return n, nil
}

// write appends to the open file. After a failure that file is closed: its end may be torn.
func (s *spool) write(b []byte) error {
	if s.active == nil {
		s.open = segment{path: filepath.Join(s.o.Dir, fmt.Sprintf("%012d%s", s.next, suffix))}
		f, err := os.OpenFile(s.open.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		s.active, s.next = f, s.next+1
		b = append([]byte(magic), b...)
	}
	n, err := s.active.Write(b)
	s.open.bytes, s.total = s.open.bytes+int64(n), s.total+int64(n)
	if err != nil || s.open.bytes >= s.o.SegmentBytes {
		s.roll()
	}
	return err
}

// roll closes the open file.
func (s *spool) roll() {
	_ = s.active.Close() // what was written is read again
	s.full, s.active = append(s.full, s.open), nil
}

// oldest gives the file to send; the open one when there is no other.
func (s *spool) oldest() (seg segment, ok, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.full) == 0 && s.active != nil {
		s.roll()
	}
	if len(s.full) == 0 {
		return seg, false, s.closed
	}
	return s.full[0], true, s.closed
}

// run sends file after file until it is closed and nothing is left, or ctx ends.
func (s *spool) run(ctx context.Context) {
	defer close(s.done)
	for {
		seg, ok, closed := s.oldest()
		switch {
		case ok:
			if !s.ship(ctx, seg) {
				return
			}
		case closed:
			return
		default:
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// ship sends a file and removes it; false when ctx ended first. What is damaged is set aside behind what can be read.
func (s *spool) ship(ctx context.Context, seg segment) bool {
	b, err := os.ReadFile(seg.path)
	for fails := 1; err != nil && !errors.Is(err, fs.ErrNotExist); fails++ {
		if !wait.For(ctx, wait.Backoff(100*time.Millisecond, fails)) {
			return false
		}
		b, err = os.ReadFile(seg.path)
	}
	es, bad := readSegment(b)
	for part := range slices.Chunk(es, 500) {
		if !s.deliver(ctx, part) {
			return false
		}
	}
	if errors.Is(bad, errDamaged) && len(b) > 0 {
		s.e.o.Logger.Error("a part of the spool is damaged and set aside", "file", filepath.Base(seg.path))
		_ = os.Rename(seg.path, seg.path+aside)
	} else {
		_ = os.Remove(seg.path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full, s.total = s.full[1:], s.total-seg.bytes
	return true
}

// deliver sends events, however long that takes; false when ctx ended first.
func (s *spool) deliver(ctx context.Context, es []Encoded) bool {
	for fails := 1; ; fails++ {
		err := s.send(ctx, es)
		switch {
		case err == nil:
			s.e.sent.Add(uint64(len(es)))
			return true
		case ctx.Err() != nil:
			return false
		case audit.KindOf(err) == audit.KindInvalid && len(es) > 1:
			for i := range es {
				if !s.deliver(ctx, es[i:i+1]) {
					return false
				}
			}
			return true
		case audit.KindOf(err) == audit.KindInvalid:
			s.e.drop(DroppedRefused, 1)
			return true
		}
		if !wait.For(ctx, wait.Backoff(100*time.Millisecond, fails)) {
			return false
		}
	}
}

func (s *spool) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// close sends what is there until ctx ends; the rest stays for the next process.
func (s *spool) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		s.stop()
		<-s.done
	}
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active != nil {
		s.roll()
	}
	return s.held.Close()
}
