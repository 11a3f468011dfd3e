package door

import (
	"encoding/json"
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
)

// Codes of the answers to faults.
const (
	CodeBadRequest       = "BAD_REQUEST"
	CodeBadEvents        = "BAD_EVENTS"
	CodeUnauthorized     = "UNAUTHORIZED"
	CodeForbidden        = "FORBIDDEN"
	CodeNotFound         = "NOT_FOUND"
	CodeMethodNotAllowed = "METHOD_NOT_ALLOWED"
	CodeTooLarge         = "PAYLOAD_TOO_LARGE"
	CodeUnsupportedMedia = "UNSUPPORTED_MEDIA_TYPE"
	CodeOverloaded       = "OVERLOADED"
	CodeUnavailable      = "UNAVAILABLE"
	CodeInternal         = "INTERNAL"
	CodeAnalysisFailed   = "BIAS_ANALYSIS_FAILED"
)

// fault is an answer that is no success: {"error": {code, message, details}}.
type fault struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"`
}

// badRequest is a 400 that names the fields.
func badRequest(faults ...ingest.Fault) *fault {
	return &fault{http.StatusBadRequest, CodeBadRequest, "the request is at fault: see details", faults}
}

// notServed turns a classed error of a dependency into an answer; its text stays inside.
func notServed(err error, details any) *fault {
	switch audit.KindOf(err) {
	case audit.KindOverloaded:
		return &fault{http.StatusTooManyRequests, CodeOverloaded, "too much is under way or the log is full; try again after the time in Retry-After", details}
	case audit.KindUnavailable:
		return &fault{http.StatusServiceUnavailable, CodeUnavailable, "a service behind this door does not answer; try again after the time in Retry-After", details}
	case audit.KindInvalid:
		return &fault{http.StatusRequestEntityTooLarge, CodeTooLarge, "the broker takes no message of this size", details}
	}
	return &fault{http.StatusInternalServerError, CodeInternal, "internal error", details}
}

func fail(w http.ResponseWriter, f *fault) {
	switch f.status {
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	reply(w, f.status, struct {
		Error *fault `json:"error"`
	}{f})
}

func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // only an answer of another package can be at fault
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}
