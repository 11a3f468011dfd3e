// Package model holds the Go side of GraphQL types that are more than their fields: interactions and
// breaches, which come in pages.
//
// A [Page] is rows that were read together. When one of them is asked for more than its row holds, the page
// reads that for all of them, one statement a table; what nobody asks for is not read. What a caller may
// not see is taken out where texts are read, in [Page.texts], and nowhere else.
package model

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/evenhand/evenhand/audit"
)

// load is something that is read once, when it is first asked for.
type load[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (l *load[T]) get(read func() (T, error)) (T, error) {
	l.once.Do(func() {
		if l.value, l.err = read(); l.err != nil {
			l.err = &Shared{err: l.err}
		}
	})
	return l.value, l.err
}

// Shared is an error that every field that needed what could not be read answers with.
type Shared struct {
	err  error
	told atomic.Bool
}

func (s *Shared) Error() string { return s.err.Error() }

// Unwrap gives the cause.
func (s *Shared) Unwrap() error { return s.err }

// First is true once, so that one cause is logged once.
func (s *Shared) First() bool { return !s.told.Swap(true) }

// MarshalDateTime writes an instant as RFC 3339 in UTC with milliseconds.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))) // gqlgen buffers
	})
}

// UnmarshalDateTime reads RFC 3339.
func UnmarshalDateTime(v any) (time.Time, error) {
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errDateTime
	}
	return t.UTC(), nil
}

var errDateTime = audit.E("graph", audit.KindInvalid, errors.New(`want an instant in RFC 3339, such as "2026-11-22T09:30:00Z"`))

// ptr gives nil for the zero value.
func ptr[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// number is a count as an Int of GraphQL, which has 32 bits.
func number[N uint8 | uint16 | uint32 | uint64](n N) int {
	return int(min(uint64(n), 1<<31-1))
}
