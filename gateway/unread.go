package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/evenhand/evenhand/ingest"
)

// unreadable says what makes the answer one that cannot be judged, and what mends it.
func (x *exchange) unreadable() string {
	if x.unread == "" {
		return "the response cannot be read: it is not as " + x.kind.path() + " answers"
	}
	return "the response cannot be read: " + x.unread
}

// lasting tells whether it would not be read either if the provider were asked again: it is too long, or compressed.
func (x *exchange) lasting() bool { return x.unread != "" && x.answer.failed == "" }

// packed says that an answer is compressed, which no request of ours asks for; "" for one that is not.
func packed(h http.Header) string {
	e := strings.ToLower(h.Get("Content-Encoding"))
	if e == "" || e == "identity" {
		return ""
	}
	return "it has Content-Encoding " + ingest.Shown(e) + ", which was not asked for; the provider, or a proxy before it, must answer without"
}

// long says that an answer is longer than what is judged.
func (g *Gateway) long() string {
	return fmt.Sprintf("it has more than gateway.response_bytes (%d); raise that", g.cfg.ResponseBytes)
}

// garbled says what is wrong with an answer in one piece that is no JSON.
func garbled(body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(new(json.RawMessage)); errors.Is(err, io.ErrUnexpectedEOF) {
		return "its JSON breaks off; see what ended it at the provider, or at a proxy before it"
	}
	return "it is no JSON; does the upstream's base_url lead to its API?"
}
