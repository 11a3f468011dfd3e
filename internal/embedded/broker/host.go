package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

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

// logBridge hands kfake's complaints to our log; it holds names, offsets and errors, no content.
type logBridge struct{ log *slog.Logger }

func (l logBridge) Logf(level kfake.LogLevel, format string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		l.log.Error("embedded broker", "detail", fmt.Sprintf(format, args...))
	case kfake.LogLevelWarn:
		l.log.Warn("embedded broker", "detail", fmt.Sprintf(format, args...))
	}
}
