// Package webhook hands tickets to any HTTP receiver: the second implementation of sinks.Tracker,
// for trackers that have no sink of their own.
//
// Each ticket is one POST of its JSON (sinks.Ticket). Headers: Evenhand-Delivery is the ticket's id,
// the same for every attempt, by which the receiver drops repetitions; Evenhand-Event is its action;
// Evenhand-Signature is "t=SECONDS,v1=HEX" with HEX = HMAC-SHA256(secret, SECONDS + "." + body). A receiver
// checks the signature and refuses old times. 2xx and 409 mean taken; the answer may be JSON with the
// fields id, key and url, at most 64 KiB.
//
// Addresses are checked when they are dialled, after names were resolved: loopback, private, link-local
// and other special networks are refused unless the operator allows them. Redirects are not followed,
// proxies are not used. Errors: KindOverloaded for 429 and 503 with Retry-After; KindInvalid for other
// 4xx; KindUnavailable for the rest, wrong addresses and keys included. The receiver's words are not quoted.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Name is the tracker's, as rows carry it.
const Name = "webhook"

// Headers of a request.
const (
	HeaderDelivery  = "Evenhand-Delivery"
	HeaderEvent     = "Evenhand-Event"
	HeaderSignature = "Evenhand-Signature"
)

// Tracker posts tickets to one URL. It is safe for concurrent use.
type Tracker struct{ *Client }

var _ sinks.Tracker = (*Tracker)(nil)

// New checks the configuration; it connects with the first ticket.
func New(c Config) (*Tracker, error) {
	client, err := NewClient(c)
	if err != nil {
		return nil, err
	}
	return &Tracker{client}, nil
}

// Name implements [sinks.Tracker].
func (t *Tracker) Name() string { return Name }

// Send implements [sinks.Tracker].
func (t *Tracker) Send(ctx context.Context, k *sinks.Ticket) (sinks.Receipt, error) {
	body, err := json.Marshal(k)
	if err != nil {
		return sinks.Receipt{}, fault(audit.KindInvalid, err)
	}
	answer, err := t.Post(ctx, k.ID, string(k.Action), body)
	if err != nil {
		return sinks.Receipt{}, err
	}
	return receipt(answer), nil
}

// class tells what to do about a status.
func class(status int, h http.Header) error {
	err := fmt.Errorf("HTTP %d", status)
	switch {
	case status >= 200 && status < 300, status == http.StatusConflict:
		return nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		if s, e := strconv.Atoi(h.Get("Retry-After")); e == nil && s > 0 {
			err = &sinks.Later{After: time.Duration(min(s, 7200)) * time.Second, Err: err}
		}
		return fault(audit.KindOverloaded, err)
	case status >= 500, status < 400, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusRequestTimeout:
		return fault(audit.KindUnavailable, err)
	}
	return fault(audit.KindInvalid, err)
}

// receipt reads what the receiver calls the thing; an answer of another form names nothing.
func receipt(text []byte) (r sinks.Receipt) {
	var a struct{ ID, Key, URL string }
	if json.Unmarshal(text, &a) != nil {
		return r
	}
	const most = 500
	for _, s := range []*string{&a.ID, &a.Key, &a.URL} {
		if len(*s) > most {
			*s = ""
		}
	}
	return sinks.Receipt{RemoteID: a.ID, Key: a.Key, URL: a.URL}
}

func fault(kind audit.Kind, err error) error { return audit.E("sinks/webhook", kind, err) }
