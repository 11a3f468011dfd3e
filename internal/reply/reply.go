// Package reply writes HTTP answers as all doors have them: JSON that nobody may cache or take for something else, and faults
// in one shape.
package reply

import (
	"encoding/json"
	"net/http"
)

// Codes of faults that several doors have.
const (
	BadRequest       = "BAD_REQUEST"
	Unauthorized     = "UNAUTHORIZED"
	Forbidden        = "FORBIDDEN"
	NotFound         = "NOT_FOUND"
	MethodNotAllowed = "METHOD_NOT_ALLOWED"
	TooLarge         = "PAYLOAD_TOO_LARGE"
	UnsupportedMedia = "UNSUPPORTED_MEDIA_TYPE"
	Overloaded       = "OVERLOADED"
	Unavailable      = "UNAVAILABLE"
	Internal         = "INTERNAL"
)

// Fault is an answer that is no success: {"error": {code, message, details}}. None of its words are of people's texts.
type Fault struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"`
}

// NewFault makes a fault; details are for machines, nil for none.
func NewFault(status int, code, message string, details any) *Fault {
	return &Fault{status, code, message, details}
}

// Fail answers with a fault. 429 and 503 say when to come again, unless the header is set.
func Fail(w http.ResponseWriter, f *Fault) {
	Again(w.Header(), f.Status)
	JSON(w, f.Status, struct {
		Error *Fault `json:"error"`
	}{f})
}

// Again sets Retry-After for the statuses that want it, unless it is set.
func Again(h http.Header, status int) {
	if h.Get("Retry-After") != "" {
		return
	}
	switch status {
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	}
}

// JSON answers with a line of JSON. A value that is none, which only another package can give, is an internal error.
func JSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	Bytes(w, status, "application/json", append(b, '\n'))
}

// Bytes answers with a body of a media type.
func Bytes(w http.ResponseWriter, status int, media string, b []byte) {
	Headers(w.Header(), media)
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// Headers are those of every answer: browsers neither keep it nor guess what it is.
func Headers(h http.Header, media string) {
	h.Set("Content-Type", media)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

// Recorder remembers the status of an answer, for metrics.
type Recorder struct {
	http.ResponseWriter
	status int
}

// Record watches the answer that is written to w.
func Record(w http.ResponseWriter) *Recorder { return &Recorder{ResponseWriter: w} }

// WriteHeader remembers the first status.
func (r *Recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write is with status 200 where nothing was said before.
func (r *Recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Answered tells whether anything was written.
func (r *Recorder) Answered() bool { return r.status != 0 }

// Status is what was answered; 200 while nothing was, since that is what the server will say.
func (r *Recorder) Status() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
