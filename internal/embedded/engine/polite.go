package engine

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// drainTimeout is how long a closed connection waits for the engine to have said all. It is far above what an engine takes that is only
// slow, on a machine that is busy with other work say; one that hangs is ended long before, and its connections with it.
const drainTimeout = 10 * time.Minute

// polite is a connection to the engine's own port that is never cut: libchdb ends its process when a write of its
// sign-in fails. Close tells the engine that nothing more comes, which ends what it does for the connection, and
// what it still says is read and dropped behind the caller's back.
type polite struct {
	*net.TCPConn
	reading sync.Mutex // held by the one who reads
	closed  atomic.Bool
}

func (p *polite) Read(b []byte) (int, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.closed.Load() {
		return 0, net.ErrClosed
	}
	return p.TCPConn.Read(b)
}

// Close never waits; a Read under way ends at once.
func (p *polite) Close() error {
	if p.closed.Swap(true) {
		return net.ErrClosed
	}
	_ = p.CloseWrite()
	_ = p.SetReadDeadline(time.Unix(1, 0))
	go func() {
		p.reading.Lock()
		defer p.reading.Unlock()
		hearOut(p.TCPConn)
	}()
	return nil
}

// hearOut drops what the engine still says over a connection, and closes it.
func hearOut(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(drainTimeout))
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}
