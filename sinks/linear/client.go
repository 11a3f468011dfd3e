package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// maxAnswer bounds an answer, in bytes; ours have some hundred.
const maxAnswer = 1 << 20

// client sends operations.
type client struct {
	http     *http.Client
	endpoint string
	auth     string
	timeout  time.Duration
	pace     pacer
}

func newClient(c Config) *client {
	auth := c.APIKey
	if !strings.HasPrefix(auth, "lin_api_") {
		auth = "Bearer " + auth // an OAuth token; personal keys go as they are
	}
	return &client{
		http: &http.Client{
			Transport:     newTransport(c.Timeout),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
		},
		endpoint: c.Endpoint, auth: auth, timeout: c.Timeout,
	}
}

// do runs an operation and reads its data into out. Errors are classed.
func (c *client) do(ctx context.Context, name string, variables map[string]any, out any) error {
	if err := c.pace.turn(ctx); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"query": operation(name), "variables": variables})
	if err != nil {
		return fault(audit.KindInvalid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return fault(audit.KindInternal, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", c.auth)
	req.Header.Set("User-Agent", "evenhand")
	res, err := c.http.Do(req)
	if err != nil {
		return network(name, err)
	}
	defer func() { _ = res.Body.Close() }()
	c.pace.told(res.Header)
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return network(name, err)
	case len(text) > maxAnswer:
		return fault(audit.KindUnavailable, fmt.Errorf("%s: an answer above %d bytes", name, maxAnswer))
	}
	return decode(res.StatusCode, res.Header, text, time.Now(), out)
}

// network classes what happened on the way; the address is known and the key must not be told.
func network(name string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fault(audit.KindUnavailable, fmt.Errorf("%s: %w", name, err))
}
