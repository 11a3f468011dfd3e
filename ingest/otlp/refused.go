package otlp

import (
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// Why a span or a record is refused.
const (
	wantIDs  = "a trace id of 16 bytes and a span id of 8 are wanted, not all zero"
	tooLarge = "the texts of a call have more than 800 KiB"
)

// refused counts what of a payload is refused, and keeps the first reason.
type refused struct {
	n   int64
	why string
}

func (r *refused) add(why string) {
	if r.n++; r.n == 1 {
		r.why = why
	}
}

func (r *refused) err() error {
	if r.n == 0 {
		return nil
	}
	return audit.E("otlp", audit.KindInvalid, &call.Partial{Refused: r.n, Why: r.why})
}
