package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

const diskShare = 5 // the cap is at most one fifth of the free disk

// gated is a listener that accepts nobody before it is open, and nothing but requests of the protocol.
type gated struct {
	net.Listener
	log    *slog.Logger
	open   <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (g *gated) Accept() (net.Conn, error) {
	select {
	case <-g.open:
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		return &framed{Conn: conn, refused: func(err error) {
			g.log.Warn("a client of the broker is hung up on", "client", conn.RemoteAddr().String(), "error", err.Error())
		}}, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

func (g *gated) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// lockDir takes the folder for this process; the lock ends with the process however it ends.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("broker.dir: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("broker.dir: %s is in use by process %s; stop it, or choose another folder", dir, string(holder))
		}
		return nil, fmt.Errorf("broker.dir: lock %s: %w", path, err)
	}
	// The number is for another process's refusal alone: a full disk does not keep the broker down.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	return f, nil
}

// capFor is the cap in force: most, or a fifth of what the log may take at all (what is free and what
// it has already). 0 or less means a fifth of the disk.
func capFor(dir string, most, have int64) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("broker.dir: %s: %w", dir, err)
	}
	share := (int64(st.Bavail)*int64(st.Bsize) + have) / diskShare
	if most <= 0 {
		return share, nil
	}
	return min(most, share), nil
}

// sayAgain is the time between two lines of one complaint.
const sayAgain = time.Minute

// logBridge hands kfake's complaints to our log; it holds names, offsets and errors, no content. What comes again and again is told once
// a minute, with how many were like it: each write to a full disk fails, and the log may lie on that disk.
type logBridge struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	told map[string]*complaint // by format
}

type complaint struct {
	at   time.Time
	more int // since then
}

func (l *logBridge) Logf(level kfake.LogLevel, format string, args ...any) {
	if level != kfake.LogLevelError && level != kfake.LogLevelWarn {
		return
	}
	more, tell := l.tell(format)
	if !tell {
		return
	}
	severity, attrs := slog.LevelWarn, []any{"detail", fmt.Sprintf(format, args...)}
	if level == kfake.LogLevelError {
		severity = slog.LevelError
	}
	if more > 0 {
		attrs = append(attrs, "more_since_the_last", more)
	}
	l.log.Log(context.Background(), severity, "embedded broker", attrs...)
}

// tell says whether it is time to tell of this complaint, and how many were like it since the last line.
func (l *logBridge) tell(format string) (more int, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, at := l.told[format], l.now()
	if c != nil && at.Sub(c.at).Abs() < sayAgain { // a clock that was set back hides nothing
		c.more++
		return 0, false
	}
	if l.told == nil {
		l.told = map[string]*complaint{}
	}
	l.told[format] = &complaint{at: at}
	if c != nil {
		more = c.more
	}
	return more, true
}
