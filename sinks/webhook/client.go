package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/evenhand/evenhand/audit"
)

// Client posts signed bodies to one URL. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
	now  func() time.Time
}

// NewClient checks the configuration; it connects with the first request.
func NewClient(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, audit.E("sinks/webhook: new", audit.KindInvalid, err)
	}
	v4, v6, err := c.allowed()
	if err != nil {
		return nil, audit.E("sinks/webhook: new", audit.KindInvalid, err)
	}
	rules := []ssrf.Option{ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...)}
	if strings.HasPrefix(strings.ToLower(c.URL), "http:") { // in the clear to allowed networks only
		rules = append(rules, ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("0.0.0.0/0")), ssrf.WithDeniedV6Prefixes(netip.MustParsePrefix("::/0")))
	}
	dial := &net.Dialer{Timeout: c.Timeout, Control: ssrf.New(rules...).Safe}
	return &Client{cfg: c, now: time.Now, http: &http.Client{
		Timeout: c.Timeout,
		Transport: &http.Transport{
			DialContext: dial.DialContext, TLSHandshakeTimeout: c.Timeout, ResponseHeaderTimeout: c.Timeout,
			MaxResponseHeaderBytes: 16 << 10, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// Post sends JSON, signed for the time at which it leaves, and gives the start of the answer. delivery is the
// same for every attempt. Errors are as the package says.
func (c *Client) Post(ctx context.Context, delivery audit.ID, event string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fault(audit.KindInternal, errors.New("the request cannot be built"))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "evenhand")
	req.Header.Set(HeaderDelivery, delivery.String())
	req.Header.Set(HeaderEvent, event)
	req.Header.Set(HeaderSignature, Sign(c.cfg.Secret, c.now(), body))
	res, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, fault(audit.KindUnavailable, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fault(audit.KindUnavailable, err)
	}
	return text, class(res.StatusCode, res.Header)
}
