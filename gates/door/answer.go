package door

import (
	"errors"
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/internal/reply"
)

// fault is an answer that is no success.
type fault = reply.Fault

// bad is a 400 that names a field, "" for the body.
func bad(field, message string) *fault {
	return reply.NewFault(http.StatusBadRequest, reply.BadRequest, "the request is at fault: see details", []map[string]string{{"field": field, "code": "bad_value", "message": message}})
}

// refused is a refusal of package auth, as its middleware answers it.
func refused(d *auth.Denied) *fault {
	return reply.NewFault(d.Status, d.Code(), d.Say, map[string]any{"reason": d.Reason})
}

// failed turns an error into an answer. The words of faults of the caller name fields and bounds only.
func failed(err error) *fault {
	switch {
	case errors.Is(err, gates.ErrUnknown):
		return reply.NewFault(http.StatusNotFound, reply.NotFound, "there is no such gate", nil)
	case gates.Refusal(err):
		return reply.NewFault(http.StatusForbidden, reply.Forbidden, rootOf(err).Error(), nil)
	}
	switch audit.KindOf(err) {
	case audit.KindInvalid:
		return bad("", rootOf(err).Error())
	case audit.KindOverloaded:
		return reply.NewFault(http.StatusTooManyRequests, reply.Overloaded, "too much is under way; try again after the time in Retry-After", nil)
	case audit.KindUnavailable:
		return reply.NewFault(http.StatusServiceUnavailable, reply.Unavailable, "a service behind this door does not answer; try again after the time in Retry-After", nil)
	}
	return reply.NewFault(http.StatusInternalServerError, reply.Internal, "internal error", nil)
}

// rootOf is the error without the operation that failed.
func rootOf(err error) error {
	var e *audit.Error
	for errors.As(err, &e) {
		err = e.Err
	}
	return err
}
