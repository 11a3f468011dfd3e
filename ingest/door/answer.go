package door

import (
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
)

// Codes of faults that only these doors have.
const (
	CodeBadEvents      = "BAD_EVENTS"
	CodeAnalysisFailed = "BIAS_ANALYSIS_FAILED"
)

// fault is an answer that is no success.
type fault = reply.Fault

// badRequest is a 400 that names the fields.
func badRequest(faults ...ingest.Fault) *fault {
	return reply.NewFault(http.StatusBadRequest, reply.BadRequest, "the request is at fault: see details", faults)
}

// refused turns an error of package auth into an answer; details name the reason for machines.
func refused(err error) *fault {
	d := auth.DeniedBy(err)
	return reply.NewFault(d.Status, d.Code(), d.Say, map[string]any{"reason": d.Reason})
}

// notServed turns a classed error of a dependency into an answer; its text stays inside.
func notServed(err error, details any) *fault {
	switch audit.KindOf(err) {
	case audit.KindOverloaded:
		return reply.NewFault(http.StatusTooManyRequests, reply.Overloaded, "too much is under way or the log is full; try again after the time in Retry-After", details)
	case audit.KindUnavailable:
		return reply.NewFault(http.StatusServiceUnavailable, reply.Unavailable, "a service behind this door does not answer; try again after the time in Retry-After", details)
	case audit.KindInvalid:
		return reply.NewFault(http.StatusRequestEntityTooLarge, reply.TooLarge, "the broker takes no message of this size", details)
	}
	return reply.NewFault(http.StatusInternalServerError, reply.Internal, "internal error", details)
}

// faulter is a ResponseWriter that words faults itself, where a protocol says how.
type faulter interface{ fault(f *fault) }

func fail(w http.ResponseWriter, f *fault) {
	if own, ok := w.(faulter); ok {
		reply.Again(w.Header(), f.Status)
		own.fault(f)
		return
	}
	reply.Fail(w, f)
}
