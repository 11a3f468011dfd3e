package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxRequest is the largest request in bytes, Kafka's socket.request.max.bytes by default.
const maxRequest = 100 << 20

var errNotKafka = errors.New("not the Kafka protocol")

// framed is a client's connection that ends at the first bytes that begin no request: kfake believes any length, so a
// browser's "GET " had it allocate 1.2 GB, and panics over a request that the protocol does not have.
//
// A request is its size in bytes (int32), its key and its version (int16 each), and what belongs to those
// (https://kafka.apache.org/protocol#protocol_messages).
type framed struct {
	net.Conn
	refused func(error) // told once why the connection ends
	head    [8]byte     // size, key and version of the request that is read
	held    []byte      // what of head was not asked for yet
	left    int         // bytes of the request behind its head
}

func (f *framed) Read(p []byte) (int, error) {
	if len(f.held) == 0 && f.left == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	if len(f.held) > 0 {
		n := copy(p, f.held)
		f.held = f.held[n:]
		return n, nil
	}
	n, err := f.Conn.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// next reads the head of the next request.
func (f *framed) next() error {
	if _, err := io.ReadFull(f.Conn, f.head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(f.head[:])
	key, version := int16(binary.BigEndian.Uint16(f.head[4:])), int16(binary.BigEndian.Uint16(f.head[6:]))
	if size < 8 || size > maxRequest || key < 0 || key > kmsg.MaxKey || version < 0 {
		err := fmt.Errorf("%w: %s", errNotKafka, f.stranger(size, key, version))
		f.refused(err)
		return err
	}
	f.held, f.left = f.head[:], int(size)-4
	return nil
}

// stranger says what begins with such a head.
func (f *framed) stranger(size uint32, key, version int16) string {
	switch begin := string(f.head[:4]); {
	case slices.Contains([]string{"GET ", "POST", "PUT ", "HEAD"}, begin):
		return "an HTTP request; the HTTP doors are at http.addr"
	case strings.HasPrefix(begin, "\x16\x03"):
		return "a TLS handshake; the embedded broker speaks plain text on loopback"
	case size < 8 || size > maxRequest:
		return fmt.Sprintf("a request of %d bytes, not of 8 to %d", size, maxRequest)
	}
	return fmt.Sprintf("a request of key %d, version %d", key, version)
}
