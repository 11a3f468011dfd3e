package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// mislabelled tells whether an answer is a stream of events though its Content-Type names something else, as some providers
// and proxies have it: clients who asked for a stream read it whatever the name. Nothing of the answer is lost.
func mislabelled(res *http.Response) bool {
	r := bufio.NewReader(res.Body)
	res.Body = struct {
		io.Reader
		io.Closer
	}{r, res.Body}
	for n := 1; ; n++ { // a byte more each time: who is asked for more than there is would wait
		head, err := r.Peek(n)
		head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), "\r\n")
		begun := bytes.HasPrefix([]byte("\ufeff"), head) // nothing yet, or a byte order mark that is not whole
		for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
			if strings.HasPrefix(string(head), field) {
				return true
			}
			begun = begun || strings.HasPrefix(field, string(head))
		}
		if err != nil || !begun {
			return false
		}
	}
}

// event is one event of a stream. raw is what came, its blank line included; data is "" for comments.
type event struct {
	raw, data []byte
}

var errTooLarge = errors.New("the response has more bytes than gateway.response_bytes")

// events reads a stream of server-sent events. Lines end in \n, \r\n or \r, as the HTML standard has it.
type events struct {
	r    *bufio.Reader
	max  int  // bytes of one event
	bare bool // a line ended in \r alone: of the next one nobody waits whether a \n follows
}

func newEvents(r io.Reader, most int64) *events {
	return &events{r: bufio.NewReaderSize(r, 16<<10), max: int(most)}
}

// line reads to the end of a line, as [bufio.Reader.ReadSlice] does to a byte.
func (e *events) line() ([]byte, error) {
	for seen := 0; ; {
		if _, err := e.r.Peek(seen + 1); err != nil {
			return e.take(e.r.Buffered()), err
		}
		b, _ := e.r.Peek(e.r.Buffered())
		at := bytes.IndexAny(b[seen:], "\r\n")
		if at < 0 {
			seen = len(b)
			continue
		}
		at += seen
		if b[at] == '\n' || e.bare && at+1 == len(b) {
			return e.take(at + 1), nil
		}
		after, err := e.r.Peek(at + 2)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return e.take(at), err
		case err == nil && after[at+1] == '\n':
			return e.take(at + 2), nil
		}
		e.bare = true
		return e.take(at + 1), nil
	}
}

// take gives the next n bytes, which are there.
func (e *events) take(n int) []byte {
	b, _ := e.r.Peek(n)
	_, _ = e.r.Discard(n)
	return b
}

// next gives the next event; io.EOF after the last, which may lack its blank line if it is whole.
func (e *events) next() (ev event, err error) {
	said, from := false, 0
	for {
		line, err := e.line()
		ev.raw = append(ev.raw, line...)
		switch {
		case len(ev.raw) > e.max:
			return event{}, errTooLarge
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (said || len(ev.raw) > from):
			ev.field(bytes.TrimRight(ev.raw[from:], "\r\n"))
			if len(ev.data) > 0 && !ev.done() && !gjson.ValidBytes(ev.data) {
				ev.data, ev.raw = nil, bytes.TrimRight(ev.raw, "\r\n")
				return ev, nil
			}
			ev.raw = append(bytes.TrimRight(ev.raw, "\r\n"), "\n\n"...)
			return ev, nil
		case err != nil:
			return event{}, err
		}
		text := bytes.TrimRight(ev.raw[from:], "\r\n")
		from = len(ev.raw)
		if len(text) > 0 {
			said = true
			ev.field(text)
		} else if said {
			return ev, nil
		}
	}
}

// field takes the data of a line; of several lines they are joined.
func (ev *event) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(bytes.TrimPrefix(name, []byte("\ufeff"))) != "data" {
		return
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	if ev.data != nil {
		ev.data = append(append(ev.data[:len(ev.data):len(ev.data)], '\n'), value...)
		return
	}
	ev.data = append([]byte{}, value...) // raw may move while it grows
}

// replace puts other data into the event; the rest of it stays.
func (ev *event) replace(data []byte) {
	if bytes.Contains(ev.data, []byte("\n")) { // of several lines
		ev.raw = sse("", data)
	} else {
		ev.raw = bytes.Replace(ev.raw, ev.data, data, 1)
	}
	ev.data = data
}

// cut tells whether the stream ended in it, so that it has no blank line; clients pass it over.
func (ev *event) cut() bool {
	return !bytes.HasSuffix(ev.raw, []byte("\n")) && !bytes.HasSuffix(ev.raw, []byte("\r"))
}

func (ev *event) done() bool { return string(bytes.TrimSpace(ev.data)) == "[DONE]" }
