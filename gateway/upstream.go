package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// upstream is a provider that can be called.
type upstream struct {
	Upstream
	key    string // held here; "" for the caller's
	client *http.Client
}

func newUpstream(u Upstream) (*upstream, error) {
	key, err := u.heldKey()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: u.ConnectTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: u.ConnectTimeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // what is judged need not be unpacked, and no small body can become a large one
	}
	return &upstream{u, key, &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// pick gives the upstream of a model and the prefix that named it; nil when there is none.
func (g *Gateway) pick(model string) (up *upstream, prefix string) {
	up = g.first
	for _, u := range g.ups {
		for _, p := range u.Models {
			if strings.HasPrefix(model, p) && (len(p) > len(prefix) || prefix == "" && up == g.first) {
				up, prefix = u, p
			}
		}
	}
	return up, prefix
}

// Request headers that pass to every provider; prefixes end in '-'.
var passes = []string{"Accept", "Content-Type", "User-Agent", "Idempotency-Key", "Tracestate", "Openai-", "X-Stainless-"}

// request makes the provider's request of a caller's: its query passes, its key where none is held here.
func (u *upstream) request(ctx context.Context, method, path string, body []byte, of *http.Request, c caller) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(u.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = of.URL.RawQuery
	from := of.Header
	allowed := func(name, in string) bool {
		in = http.CanonicalHeaderKey(in)
		return name == in || strings.HasSuffix(in, "-") && strings.HasPrefix(name, in)
	}
	for name, values := range from {
		is := func(in string) bool { return allowed(name, in) }
		if slices.ContainsFunc(passes, is) || slices.ContainsFunc(u.Headers, is) && name != "Authorization" && !strings.HasPrefix(name, "X-Evenhand-") {
			r.Header[name] = slices.Clone(values)
		}
	}
	// A provider may close an idle connection just then: the transport asks again on another where no byte of an answer came, of requests that
	// have this header only. An empty one is not sent. It would ask on every idle connection: a provider that works a while and then closes
	// would be asked, and paid, for each.
	if _, theirs := r.Header["Idempotency-Key"]; !theirs {
		r.Header["Idempotency-Key"] = nil
	}
	r.GetBody = onceMore(r.GetBody)
	switch {
	case u.key != "" && u.KeyHeader == "Authorization":
		r.Header.Set("Authorization", "Bearer "+u.key)
	case u.key != "":
		r.Header.Set(u.KeyHeader, u.key)
	case c.theirs:
		for _, v := range from.Values(u.KeyHeader) {
			if !c.ours(v) {
				r.Header.Add(u.KeyHeader, v)
			}
		}
	}
	return r, nil
}

// stale is how soon a connection that was closed before shows it.
const stale = time.Second

var errClosed = errors.New("the provider closed the connection without an answer")

// onceMore gives a request's body a second time, and that soon after the first.
func onceMore(body func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	sent, again := time.Now(), false
	return func() (io.ReadCloser, error) {
		if again || time.Since(sent) > stale {
			return nil, errClosed
		}
		again = true
		return body()
	}
}

// ask sends a request; late ends it where it wants a stream that has not begun within FirstByte. An answer in one piece begins when it is
// ready, which models that think long take minutes for: Timeout alone bounds that.
func (u *upstream) ask(r *http.Request, streams bool, late context.CancelCauseFunc) (*http.Response, error) {
	if streams {
		patience := time.AfterFunc(u.FirstByte, func() { late(errFirstByte) })
		defer patience.Stop()
	}
	return u.client.Do(r)
}

// Why a call to a provider was ended. Callers are told the first two, which name the setting that bounds it.
var (
	errTimeout   = errors.New("the provider did not answer within timeout of its upstream; raise that in gateway.upstreams")
	errFirstByte = errors.New("the provider did not begin its stream within first_byte of its upstream; raise that in gateway.upstreams")
	errStopping  = errors.New("the gateway is being stopped")
)

// gone is for callers who went away: nobody reads it, and metrics count it under the status that nginx gave it.
var gone = &fault{status: 499, kind: kindRequest, code: "evenhand_caller_gone", say: "the caller went away"}

// stopped is for calls that a process which ends does not wait for.
var stopped = &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: "evenhand_stopping", say: "the gateway is being stopped; ask again", after: time.Second}

// unreached tells as a fault why no answer came.
func unreached(ctx context.Context, err error) *fault {
	late := func(say string) *fault {
		return &fault{status: http.StatusGatewayTimeout, kind: kindUpstream, code: "evenhand_upstream_timeout", say: say}
	}
	var slow net.Error
	switch why := context.Cause(ctx); {
	case errors.Is(why, errTimeout), errors.Is(why, errFirstByte):
		return late(why.Error())
	case ctx.Err() == nil && errors.As(err, &slow) && slow.Timeout():
		return late("the provider cannot be reached in time (connect_timeout of its upstream in gateway.upstreams)")
	case errors.Is(why, errStopping):
		return stopped
	case ctx.Err() != nil:
		return gone
	}
	return &fault{status: http.StatusBadGateway, kind: kindUpstream, code: "evenhand_upstream_unreachable", say: "the provider cannot be reached"}
}

// unreached tells that, too, and logs why, with the provider's address; what callers are told names neither.
func (g *Gateway) unreached(ctx context.Context, up *upstream, err error) *fault {
	f := unreached(ctx, err)
	if f == gone || f == stopped {
		return f
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the address, which may hold more than a host
	}
	mend := "gateway.base_url or gateway.upstreams: the address, and whether it can be reached from here"
	if f.status == http.StatusGatewayTimeout {
		mend = "gateway.upstreams: connect_timeout, first_byte (of streams), timeout; gateway.base_url has the defaults"
	}
	g.Logger.Warn(f.say, "upstream", up.Name, "code", f.code, "error", err.Error(), "mend", mend)
	return f
}

// Response headers that are between two neighbours, or would speak for this host.
var stays = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Content-Length", "Set-Cookie", "Alt-Svc", "Strict-Transport-Security", "Location", "Refresh", "Www-Authenticate"}

// copyHeader passes the provider's headers on.
func copyHeader(to, from http.Header) {
	var next []string // what the provider says is for its neighbour alone
	for name := range strings.SplitSeq(strings.Join(from["Connection"], ","), ",") {
		next = append(next, http.CanonicalHeaderKey(strings.TrimSpace(name)))
	}
	for name, values := range from {
		if slices.Contains(stays, name) || slices.Contains(next, name) || strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, "X-Evenhand-") {
			continue
		}
		to[name] = slices.Clone(values)
	}
}

// modelPath is where a provider tells of one model, and of all for "". Names may have slashes; ok is false for one
// that would lead elsewhere.
func modelPath(model string) (path string, ok bool) {
	if model == "" {
		return "/models", true
	}
	for part := range strings.SplitSeq(model, "/") {
		if part == "" || part == "." || part == ".." {
			return "", false
		}
		path += "/" + url.PathEscape(part)
	}
	return "/models" + path, true
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
