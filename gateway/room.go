package gateway

import (
	"io"
	"net/http"
	"time"

	"github.com/evenhand/evenhand/internal/places"
)

// room is how many calls there are at once: so many inside, which are served, and as many again outside, which waited for a person.
type room struct{ inside, outside *places.Places }

func newRoom(all int) *room { return &room{places.New(all), places.New(all)} }

// stepOut frees the place of a call that waits for a person, for good: it does no work for a while, and who has been approved is not sent
// away. Where too many are outside it keeps its place.
func (x *exchange) stepOut() {
	if r := x.g.room; x.place == r.inside && r.outside.Enter(x.caller.tenant) {
		r.inside.Leave(x.caller.tenant)
		x.place = r.outside
	}
}

const (
	slowestBody = time.Minute // for the next bytes of a request to come
	wholeBody   = 10 * time.Minute
	slowestRead = time.Minute // for a caller to take the next bytes
	atOnce      = 64 << 10
)

// incoming reads a request, which may come slowly but not stand still, and not for ever: who sends nothing holds a place of others.
type incoming struct {
	body    io.Reader
	control *http.ResponseController
	until   time.Time
}

func newIncoming(w http.ResponseWriter, body io.ReadCloser) *incoming {
	in := &incoming{body, http.NewResponseController(w), time.Now().Add(wholeBody)}
	in.wait()
	return in
}

func (in *incoming) wait() {
	at := time.Now().Add(slowestBody)
	if at.After(in.until) {
		at = in.until
	}
	_ = in.control.SetReadDeadline(at) // where there is a connection
}

func (in *incoming) Read(b []byte) (int, error) {
	n, err := in.body.Read(b)
	if n > 0 && err == nil {
		in.wait()
	}
	return n, err
}

// Close is the server's.
func (in *incoming) Close() error { return nil }

// came ends the waiting: the server reads on, to see the caller leave.
func (in *incoming) came() { _ = in.control.SetReadDeadline(time.Time{}) }

// patient writes to a caller, who may be slow but not stand still.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newPatient(w http.ResponseWriter) *patient {
	return &patient{w, http.NewResponseController(w)}
}

func (p *patient) Write(b []byte) (n int, err error) {
	for first := true; first || len(b) > 0; first = false {
		_ = p.control.SetWriteDeadline(time.Now().Add(slowestRead)) // where there is a connection
		m, err := p.ResponseWriter.Write(b[:min(len(b), atOnce)])
		if n += m; err != nil {
			return n, err
		}
		b = b[m:]
	}
	return n, nil
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) done() { _ = p.control.SetWriteDeadline(time.Time{}) }
