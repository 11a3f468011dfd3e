package audit

import (
	"context"
	"errors"
)

// Kind classes an error by what the caller does next.
type Kind string

// The four kinds. Anything unclassed is KindInternal.
const (
	KindInternal    Kind = "internal"    // unknown or a bug: count it, retry with back-off
	KindInvalid     Kind = "invalid"     // the data is at fault: never retry, dead-letter it
	KindUnavailable Kind = "unavailable" // a dependency is down: retry with back-off
	KindOverloaded  Kind = "overloaded"  // we are behind: tell the sender to slow down (429)
)

// Error carries the operation that failed ("sinks/clickhouse: append") and its Kind.
// It never holds prompt or response text: errors reach logs that outlive retention.
type Error struct {
	Op   string
	Kind Kind
	Err  error
}

// E wraps err with an operation and a kind; a nil err stays nil.
func E(op string, kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Kind: kind, Err: err}
}

func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf tells what to do about err: the kind of the outermost [Error] in its chain, unavailable
// for an ended context, internal for everything else.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return KindUnavailable
	}
	return KindInternal
}
