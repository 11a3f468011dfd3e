package llm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Later says when it is worth asking again; it stands in the chain of an error of audit.KindUnavailable.
type Later struct {
	After time.Duration
	Err   error
}

func (l *Later) Error() string { return l.Err.Error() }

// Unwrap gives the cause.
func (l *Later) Unwrap() error { return l.Err }

// ErrTooLong says that request and answer do not fit the model's context.
var ErrTooLong = errors.New("the text is too long for the model")

// fault is an attempt that failed.
type fault struct {
	kind   audit.Kind
	reason string        // for metrics: limited, server, network, timeout, answer, refused, cancelled, open
	retry  bool          // the same attempt may succeed
	after  time.Duration // what the server asks to wait, -1 when it does not say
	spent  bool          // the server may have worked, and want money for it
	alive  bool          // the server is there: no doubt of it
	said   *refused      // what the server said, nil when it did not
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// refused is an answer with a status other than 200. Of the server's words only what is known is kept: the rest may
// repeat the text.
type refused struct {
	status int
	code   string // of codes, else ""
	about  about  // which parts of the request it names
	class  string // of types, else ""
	plain  bool   // it says nothing that can be read
	again  *bool  // x-should-retry
	after  time.Duration
}

func (r *refused) Error() string {
	if r.code != "" {
		return fmt.Sprintf("HTTP %d (%s)", r.status, r.code)
	}
	return fmt.Sprintf("HTTP %d", r.status)
}

// Codes that are told to operators and acted on.
const (
	codeQuota  = "insufficient_quota"
	codeLength = "context_length_exceeded"
	codeFilter = "content_filter"
)

var codes = []string{codeQuota, codeLength, codeFilter, "content_policy_violation", "invalid_api_key", "model_not_found", "rate_limit_exceeded",
	"unsupported_parameter", "unsupported_value", "DeploymentNotFound", "ContextWindowExceededError"}

// types are classes of refusals that are told to operators.
var types = []string{"invalid_request_error", "authentication_error", "permission_error", "permission_denied_error", "not_found_error", "BadRequestError", "NotFoundError", "AuthenticationError"}

// Advice says what to look at where a server refused a question, "" for other errors. It holds none of the server's free words.
func Advice(err error) string {
	var r *refused
	if !errors.As(err, &r) || r.fault().kind != audit.KindInvalid {
		return ""
	}
	look := "does the model take what it is asked for: judge.model, judge.max_tokens, judge.max_chars? The server's own log says more"
	switch {
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		look = "is the key good for this server and model: judge.api_key, judge.key_header?"
	case r.status == http.StatusNotFound, r.code == "model_not_found", r.code == "DeploymentNotFound":
		look = "is there such a model at that address: judge.model, judge.base_url, judge.api_version?"
	case errors.Is(r.fault().err, ErrTooLong):
		look = "shorter windows fit: judge.max_chars, judge.max_tokens"
	}
	if r.class != "" {
		return "the server calls it " + r.class + "; " + look
	}
	return look
}

var (
	errTimeout  = errors.New("no answer within the timeout")
	errRedirect = errors.New("the address redirects elsewhere; set judge.base_url to where it leads")
	errTooLarge = fmt.Errorf("an answer above %d bytes", maxAnswer)
	errForm     = errors.New("an answer of an unexpected form; is judge.base_url an OpenAI-compatible server?")
	errOpen     = errors.New("the circuit is open: the server failed too often in a row")
)

// faultOf classes an error of an attempt made under ctx, whose own timeout has errTimeout as its cause.
func faultOf(ctx context.Context, err error) *fault {
	var f *fault
	var no *refused
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	unavailable := func(reason string, err error) *fault {
		return &fault{kind: audit.KindUnavailable, reason: reason, retry: true, spent: true, after: -1, err: err}
	}
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &no):
		return no.fault()
	case errors.Is(err, errRedirect):
		return &fault{kind: audit.KindInvalid, reason: "refused", alive: true, after: -1, err: errRedirect}
	case errors.Is(err, errTooLarge): // it would be again, and cost as much
		f = unavailable("answer", errTooLarge)
		f.retry = false
		return f
	case errors.Is(context.Cause(ctx), errTimeout):
		return unavailable("timeout", errTimeout)
	case ctx.Err() != nil:
		f = unavailable("cancelled", ctx.Err())
		f.retry = false
		return f
	case errors.As(err, &cert):
		return &fault{kind: audit.KindInvalid, reason: "network", after: -1, err: errors.New("the server's certificate is not trusted")}
	case errors.As(err, &op) && op.Op == "dial":
		where := "the server"
		if op.Addr != nil {
			where += " at " + op.Addr.String()
		}
		f = unavailable("network", fmt.Errorf("%s cannot be reached: %w", where, op.Err))
		f.spent = false
		return f
	case errors.Is(err, errForm):
		return unavailable("answer", errForm)
	}
	return unavailable("network", errors.New("the connection broke before the answer was whole"))
}

// fault tells what to do about a status.
func (r *refused) fault() *fault {
	f := &fault{kind: audit.KindUnavailable, reason: "server", retry: true, after: r.after, said: r, err: r}
	switch {
	case r.status == http.StatusTooManyRequests:
		f.reason, f.retry = "limited", r.code != codeQuota
	case r.status >= 500 && r.status != http.StatusNotImplemented, r.status == http.StatusRequestTimeout, r.status == http.StatusConflict, r.status == http.StatusTooEarly:
	default:
		f.kind, f.reason, f.retry, f.alive = audit.KindInvalid, "refused", false, true
		if slices.Contains([]string{codeLength, "ContextWindowExceededError"}, r.code) {
			f.err = fmt.Errorf("%w: %w", ErrTooLong, r)
		}
	}
	if r.again != nil && f.kind == audit.KindUnavailable {
		f.retry = *r.again
	}
	return f
}

// filtered tells whether the provider would not show the text to its model.
func (r *refused) filtered() bool {
	return r.status == http.StatusBadRequest && (r.code == codeFilter || r.code == "content_policy_violation")
}
