package linear

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// answer is what the API sends: data, or errors, or both.
type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors []apiError      `json:"errors"`
}

// apiError is one error of an answer. Its type is one of the SDK's words: "invalid input",
// "ratelimited", "authentication error", "internal error", …
type apiError struct {
	Message    string `json:"message"`
	Extensions struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"userPresentableMessage"`
	} `json:"extensions"`
}

// said is the error in the API's words.
func (e *apiError) said() string {
	s := e.Message
	if m := e.Extensions.Message; m != "" && m != s {
		s += ": " + m
	}
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

var (
	// errConflict says that our id is taken: what was to be made is there.
	errConflict = errors.New("it exists already")
	// errNotFound says that something which the request names is not there.
	errNotFound = errors.New("not found")
)

// decode reads an answer into data. now is needed for the header that tells an instant.
func decode(status int, header http.Header, body []byte, now time.Time, data any) error {
	var a answer
	err := json.Unmarshal(body, &a)
	switch {
	case err != nil: // a proxy's page, or half an answer
		return byStatus(status, header, now, fmt.Errorf("HTTP %d without a GraphQL answer", status))
	case len(a.Errors) > 0:
		return class(&a.Errors[0], status, header, now)
	case status != http.StatusOK:
		return byStatus(status, header, now, fmt.Errorf("HTTP %d", status))
	case len(a.Data) == 0 || string(a.Data) == "null":
		return fault(audit.KindUnavailable, errors.New("an answer without data"))
	}
	if err := json.Unmarshal(a.Data, data); err != nil {
		return fault(audit.KindUnavailable, errors.New("data of an unexpected form"))
	}
	return nil
}

// class tells what to do about an error of the API: by its type and code, then by the HTTP status. An
// error about the key or the account is no fault of what was sent: it waits until somebody mends it.
func class(e *apiError, status int, header http.Header, now time.Time) error {
	err := errors.New(e.said())
	typ, code := strings.ToLower(e.Extensions.Type), strings.ToUpper(e.Extensions.Code)
	switch {
	case typ == "ratelimited" || code == "RATELIMITED" || status == http.StatusTooManyRequests:
		return fault(audit.KindOverloaded, later(err, header, now))
	case typ == "lock timeout", typ == "internal error", typ == "network error", typ == "authentication error", typ == "forbidden",
		typ == "feature not accessible", typ == "usage limit exceeded", code == "INTERNAL_SERVER_ERROR", code == "AUTHENTICATION_ERROR":
		return fault(audit.KindUnavailable, err)
	case strings.HasPrefix(e.Message, "conflict on insert"):
		return fault(audit.KindInvalid, fmt.Errorf("%w: %w", errConflict, err))
	case strings.HasPrefix(e.Message, "Entity not found"):
		return fault(audit.KindInvalid, fmt.Errorf("%w: %w", errNotFound, err))
	}
	if status == http.StatusOK || status == http.StatusBadRequest {
		return fault(audit.KindInvalid, err)
	}
	return byStatus(status, header, now, err)
}

// byStatus classes an answer that says nothing itself.
func byStatus(status int, header http.Header, now time.Time, err error) error {
	switch {
	case status == http.StatusTooManyRequests:
		return fault(audit.KindOverloaded, later(err, header, now))
	case status >= 500, status < 400, status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusNotFound, status == http.StatusRequestTimeout, status == http.StatusProxyAuthRequired:
		return fault(audit.KindUnavailable, err) // away, or the wrong address or key: no fault of what was sent
	}
	return fault(audit.KindInvalid, err)
}

func fault(kind audit.Kind, err error) error { return audit.E("sinks/linear", kind, err) }

// longestWait bounds what an answer may ask us to wait.
const longestWait = 2 * time.Hour

// later adds when to come back: Retry-After, else when the emptiest budget is full again.
func later(err error, header http.Header, now time.Time) error {
	if s, e := strconv.ParseFloat(header.Get("Retry-After"), 64); e == nil && s >= 0 {
		return &sinks.Later{After: min(time.Duration(min(s, longestWait.Seconds())*float64(time.Second)), longestWait), Err: err}
	}
	after := time.Duration(0)
	for _, b := range budgetsOf(header) {
		if b.remaining <= 0 {
			after = max(after, b.reset.Sub(now))
		}
	}
	if after <= 0 {
		return err
	}
	return &sinks.Later{After: min(after, longestWait), Err: err}
}
