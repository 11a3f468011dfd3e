package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/evenhand/evenhand/audit"
)

// forward asks the provider and passes its answer on.
func (x *exchange) forward(ctx context.Context) *fault {
	bound, release := x.g.bound(ctx)
	defer release()
	asking, cancel := context.WithTimeoutCause(bound, x.up.Timeout, errTimeout)
	defer cancel()
	asking, late := context.WithCancelCause(asking)
	defer late(nil)
	r, err := x.up.request(asking, http.MethodPost, x.kind.path(), x.req.body, x.r, x.caller)
	if err != nil {
		return &fault{status: http.StatusInternalServerError, kind: kindServer, code: "evenhand_internal", say: "internal error"}
	}
	r.Header.Set("Traceparent", x.parent)
	r.Header.Set("X-Request-Id", x.requestID)
	x.sentAt = x.g.Now()
	res, err := x.up.ask(r, x.req.stream, late)
	x.told()
	if err != nil {
		x.failure = "the provider gave no answer"
		return x.g.unreached(asking, x.up, err)
	}
	defer func() { _ = res.Body.Close() }()
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		x.failure = "the provider redirects"
		return &fault{status: http.StatusBadGateway, kind: kindUpstream, code: "evenhand_upstream_redirect", final: true, say: fmt.Sprintf("the provider answers %d: redirects are not followed; mend the upstream's base_url", res.StatusCode)}
	case res.StatusCode >= 400:
		return x.failed(asking, res)
	case media == "text/event-stream" || x.req.stream && mislabelled(res):
		return x.stream(ctx, asking, res)
	}
	return x.whole(ctx, asking, res)
}

// told notes how long the provider took until now.
func (x *exchange) told() { x.asked = x.g.Now().Sub(x.sentAt) }

// failed passes an error of the provider on as it is.
func (x *exchange) failed(asking context.Context, res *http.Response) *fault {
	const shown = 64 << 10
	head, err := io.ReadAll(io.LimitReader(res.Body, shown))
	x.told()
	if err != nil && asking.Err() != nil { // else status and headers, by which clients repeat, are there though the words are not whole
		x.failure = "the provider's answer broke off"
		return broken(asking, err)
	}
	x.status, x.failure = "error", cmp.Or(errorWords(gjson.ParseBytes(head)), "HTTP "+strconv.Itoa(res.StatusCode))
	if x.committed { // while a person was waited for
		return &fault{status: res.StatusCode, kind: kindUpstream, code: "evenhand_upstream_error", say: x.failure}
	}
	copyHeader(x.w.Header(), res.Header)
	x.describe(x.w.Header())
	x.commit(res.StatusCode)
	_, _ = x.w.Write(head)
	_, _ = io.Copy(x.w, res.Body)
	return nil
}

// whole judges an answer in one piece and passes it on, with our report where it is not simply allowed.
func (x *exchange) whole(ctx, asking context.Context, res *http.Response) *fault {
	body, err := io.ReadAll(io.LimitReader(res.Body, x.g.cfg.ResponseBytes+1))
	x.told()
	if err != nil {
		x.failure = "the provider's answer broke off"
		return broken(asking, err)
	}
	switch x.unread = packed(res.Header); {
	case x.unread != "":
	case int64(len(body)) > x.g.cfg.ResponseBytes:
		x.unread = x.g.long()
	case !gjson.ValidBytes(body):
		x.unread = garbled(body)
		x.answer.failed = x.unreadable()
	default:
		if x.kind.whole(&x.answer, gjson.ParseBytes(body)); x.answer.opaque && x.answer.choices == nil && x.answer.failed == "" {
			x.answer.failed = x.unreadable()
		}
	}
	x.answer.opaque = x.answer.opaque || x.unread != ""
	x.status, x.failure = "success", x.answer.failed
	if x.failure != "" {
		x.status = "error"
	}
	if best := x.mend(ctx, take{body, res.Header, x.answer}, nil); x.replays != nil {
		body, res.Header = best.body, best.header
	}
	if f := x.settle(ctx, audit.Output, x.alive(nil)); f != nil {
		return f
	}
	body, f := x.maskAnswer(ctx, body)
	if f != nil {
		return f
	}
	if late := x.replays != nil && x.committed; (x.marks() || late) && !x.answer.opaque {
		if with, err := sjson.SetRawBytes(body, "evenhand", encode(x.report())); err == nil {
			body = with
		}
	}
	x.ends()
	if x.committed {
		return x.asStream(res.StatusCode, body)
	}
	h := x.w.Header()
	copyHeader(h, res.Header)
	x.describe(h)
	rest := io.Reader(res.Body)
	if int64(len(body)) <= x.g.cfg.ResponseBytes {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		rest = http.NoBody
	}
	x.commit(res.StatusCode)
	_, _ = x.w.Write(body)
	_, _ = io.Copy(x.w, rest)
	return nil
}

// marks tells whether the answer itself carries our report; what is allowed stays as it came.
func (x *exchange) marks() bool { return x.action != "" && x.action != "allow" }

// broken tells as a fault why an answer that had begun did not end.
func broken(ctx context.Context, err error) *fault {
	if ctx.Err() != nil {
		return unreached(ctx, err)
	}
	if errors.Is(err, errTooLarge) {
		return &fault{status: http.StatusBadGateway, kind: kindUpstream, code: "evenhand_upstream_too_large", final: true, say: err.Error()}
	}
	return &fault{status: http.StatusBadGateway, kind: kindUpstream, code: "evenhand_upstream_broken", say: "the provider's answer broke off"}
}
