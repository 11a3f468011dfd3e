package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

// Server says where a running Evenhand is and who calls.
type Server struct {
	URL    string // "http://127.0.0.1:8787"; https for another machine
	Key    string // API key, token or static key; "" shows none
	Tenant string // where the key is bound to none; "" names none
	// Client makes the requests; nil is one of our own, which follows no redirects.
	Client *http.Client
}

// door posts to the doors of a server.
type door struct {
	base, key, tenant string
	client            *http.Client
	own               *http.Transport // nil where the client is the application's
}

func (s Server) door() (*door, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("Server.URL: wants an address such as http://127.0.0.1:8787")
	}
	d := &door{base: strings.TrimRight(s.URL, "/"), key: s.Key, tenant: s.Tenant, client: s.Client}
	if d.client == nil {
		d.own = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true}
		d.client = &http.Client{Transport: d.own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return d, nil
}

func (d *door) close() {
	if d.own != nil {
		d.own.CloseIdleConnections()
	}
}

// maxAnswer is read of an answer at most.
const maxAnswer = 32 << 20

// post sends a body and gives the answer's, with an error of its class for any status but want.
func (d *door) post(ctx context.Context, path, contentType string, body []byte, want int) (answer []byte, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, audit.E("client: "+path, audit.KindInvalid, err)
	}
	req.Header.Set("Content-Type", contentType)
	if d.key != "" {
		req.Header.Set("Authorization", "Bearer "+d.key)
	}
	if d.tenant != "" {
		req.Header.Set("X-Evenhand-Tenant", d.tenant)
	}
	res, err := d.client.Do(req)
	if err != nil {
		return nil, 0, audit.E("client: "+path, audit.KindUnavailable, err)
	}
	defer res.Body.Close() //nolint:errcheck // it is read
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode != want {
		return nil, retryAfter(res.Header.Get("Retry-After"), time.Now()), audit.E("client: "+path, kindOf(res.StatusCode, answer), fmt.Errorf("the answer is %s", res.Status))
	}
	return answer, 0, audit.E("client: "+path, audit.KindUnavailable, err)
}

// kindOf classes an answer by what the caller does next. A wrong address or credential may be mended while events
// wait, so only what is wrong with the request itself is invalid: a 403 only where it names events.
func kindOf(status int, answer []byte) audit.Kind {
	switch status {
	case http.StatusForbidden:
		if bytes.Contains(answer, []byte(`"errors"`)) {
			return audit.KindInvalid
		}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return audit.KindInvalid
	case http.StatusTooManyRequests:
		return audit.KindOverloaded
	}
	return audit.KindUnavailable
}

// longestRetryAfter bounds what a server may ask for.
const longestRetryAfter = 5 * time.Minute

// retryAfter reads the header of that name: seconds, or a date. 0 is none.
func retryAfter(s string, now time.Time) time.Duration {
	d := time.Duration(0)
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		d = time.Duration(n) * time.Second
	} else if t, err := http.ParseTime(s); err == nil {
		d = t.Sub(now)
	}
	return min(max(d, 0), longestRetryAfter)
}

// HTTP sends events to POST /v1/interactions.
type HTTP struct{ door *door }

// NewHTTP makes a destination of a server.
func NewHTTP(s Server) (*HTTP, error) {
	d, err := s.door()
	if err != nil {
		return nil, audit.E("client: new HTTP", audit.KindInvalid, err)
	}
	return &HTTP{d}, nil
}

const (
	maxBody     = 4 << 20 // bytes of a request; the door takes 16 MiB
	sendTimeout = 30 * time.Second
)

// Send posts events, in requests of bounded size. Where the server names a time to wait, it waits.
func (h *HTTP) Send(ctx context.Context, es []Encoded) error {
	for len(es) > 0 {
		var body []byte
		n := 0
		for ; n < len(es) && (n == 0 || len(body)+len(es[n].JSON) < maxBody); n++ {
			body = append(append(body, es[n].JSON...), '\n')
		}
		if err := h.send(ctx, body); err != nil {
			return err
		}
		es = es[n:]
	}
	return nil
}

func (h *HTTP) send(ctx context.Context, body []byte) error {
	short, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, after, err := h.door.post(short, "/v1/interactions", "application/x-ndjson", body, http.StatusAccepted)
	if err != nil && after > 0 && audit.KindOf(err) != audit.KindInvalid {
		wait.For(ctx, after)
	}
	return err
}

// Close closes idle connections.
func (h *HTTP) Close() error {
	h.door.close()
	return nil
}
