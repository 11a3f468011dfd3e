package engine

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// guard is the native port that others see. The engine's own port stays private, because libchdb
// ends the whole process when a connection there fails to sign in (wrong password, unknown database),
// does not speak the protocol, or breaks while the engine answers the hello. The guard reads the client's
// hello, refuses it as a server would or passes it on, and from then on only copies. It also stays at its port while the engine moves.
type guard struct {
	listener  net.Listener
	passwords map[User]string
	dial      func(context.Context, string) (net.Conn, error)

	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	running sync.WaitGroup
}

const (
	helloTimeout = 10 * time.Second
	helloLimit   = 16 << 10 // bytes; a hello has about a hundred
)

// databases are what a client may name when it signs in; they always exist.
var databases = []string{"", Database, TenantDatabase, "default", "system"}

// newGuard takes over the listener; close ends it.
func newGuard(l net.Listener, passwords map[User]string, dial func(context.Context, string) (net.Conn, error)) *guard {
	g := &guard{listener: l, passwords: passwords, dial: dial}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.running.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case err == nil:
				g.running.Go(func() { g.serve(conn) })
			case errors.Is(err, net.ErrClosed):
				return
			default: // out of file descriptors
				sleep(g.ctx, 100*time.Millisecond)
			}
		}
	})
	return g
}

// close ends the listener and every connection and waits for them.
func (g *guard) close() {
	g.cancel()
	_ = g.listener.Close()
	g.running.Wait()
}

func (g *guard) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(g.ctx, func() { _ = client.Close() })()

	_ = client.SetReadDeadline(time.Now().Add(helloTimeout))
	var sent bytes.Buffer // all that was read of the client so far
	h, err := readHello(bufio.NewReader(io.TeeReader(io.LimitReader(client, helloLimit), &sent)))
	if err != nil {
		return
	}
	if r := g.check(h); r != nil {
		_, _ = client.Write(r.packet())
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(g.ctx, helloTimeout)
	server, err := g.dial(ctx, "")
	cancel()
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(g.ctx, func() { _ = server.Close() })()
	if _, err := server.Write(sent.Bytes()); err != nil {
		return
	}
	g.running.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
}

// check tells why the engine would refuse the client, nil when it would not.
func (g *guard) check(h hello) *refusal {
	password, known := g.passwords[User(h.user)]
	if !known || subtle.ConstantTimeCompare([]byte(password), []byte(h.password)) != 1 {
		return &refusal{516, fmt.Sprintf("%s: Authentication failed: password is incorrect, or there is no user with such name.", h.user)}
	}
	if !slices.Contains(databases, h.database) {
		return &refusal{81, fmt.Sprintf("Database %s does not exist or is not open to sign in to; use %s", h.database, Database)}
	}
	return nil
}

// hello is the first packet of a client of the native protocol.
type hello struct{ database, user, password string }

var errNotHello = errors.New("not a hello of the native protocol")

func readHello(r *bufio.Reader) (h hello, err error) {
	if kind, err := binary.ReadUvarint(r); err != nil || kind != 0 {
		return h, errNotHello
	}
	if _, err = readString(r); err != nil { // the client's name
		return h, err
	}
	for range 3 { // its version, major and minor, and the revision of the protocol
		if _, err = binary.ReadUvarint(r); err != nil {
			return h, errNotHello
		}
	}
	for _, field := range []*string{&h.database, &h.user, &h.password} {
		if *field, err = readString(r); err != nil {
			return h, err
		}
	}
	return h, nil
}

func readString(r *bufio.Reader) (string, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil || n > helloLimit {
		return "", errNotHello
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", errNotHello
	}
	return string(b), nil
}

// refusal is an exception of the server.
type refusal struct {
	code    int32
	message string
}

func (r *refusal) packet() []byte {
	b := []byte{2} // exception
	b = binary.LittleEndian.AppendUint32(b, uint32(r.code))
	for _, s := range []string{"DB::Exception", "DB::Exception: " + r.message, ""} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return append(b, 0) // no exception nested in it
}
