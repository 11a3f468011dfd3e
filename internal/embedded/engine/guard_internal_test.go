package engine

import (
	"bufio"
	"bytes"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func FuzzReadHello(f *testing.F) {
	f.Add([]byte("\x00\x05hello\x01\x02\xd6\xa8\x03\x08evenhand\x06reader\x06secret rest"))
	f.Add([]byte("\x00\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHello(bufio.NewReader(bytes.NewReader(b)))
		if err == nil && len(h.database)+len(h.user)+len(h.password) > len(b) {
			t.Errorf("more out than in: %q", h)
		}
	})
}

func TestReadHello(t *testing.T) {
	h, err := readHello(bufio.NewReader(bytes.NewReader([]byte("\x00\x05hello\x01\x02\xd6\xa8\x03\x08evenhand\x06reader\x06secret rest"))))
	if want := (hello{"evenhand", "reader", "secret"}); err != nil || h != want {
		t.Errorf("got %v, %v; want %v", h, err, want)
	}
}

// What the engine says at each start is no reason for its end.
func TestHead(t *testing.T) {
	var h head
	for _, s := range []string{"Logging warning to /d/log/engine.log\n", "Logging errors to /d/log/engine.err.log\nCode: 210. DB::NetException: ", "Address already in use\n"} {
		if _, err := h.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.String(); got != "Code: 210. DB::NetException: Address already in use" {
		t.Error(got)
	}
}

// A caller gave up while the engine was slow to let it in: the engine may answer minutes later, and finds nobody gone.
func TestAnswersThatComeLateAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, engines := net.Pipe()
		go hearOut(ours)
		for range 3 {
			time.Sleep(2 * time.Minute)
			if _, err := engines.Write([]byte("welcome")); err != nil {
				t.Fatal(err)
			}
		}
		if err := engines.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
