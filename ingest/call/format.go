package call

import (
	"strconv"
	"time"
)

// Payload is what came: the body of a request or the value of a record.
type Payload struct {
	Body        []byte
	ContentType string
	Header      func(name string) string // of the request or the record, "" when it is not there
	Tenant      string                   // of the credential or the header; "" leaves it to the payload
	Received    time.Time
}

// Format decodes what one kind of client sends.
type Format interface {
	// Name is shown to people and in metrics: lower-case letters and digits.
	Name() string
	// Parts gives what a payload tells of calls. A payload that is not of this format, or that breaks off, is
	// an error of audit.KindInvalid that names the place and quotes nothing. It keeps no reference to the body.
	// Of a payload of which only some is at fault the rest is given, beside an error that holds a *Partial.
	Parts(p Payload) ([]Part, error)
}

// Partial says how much of a payload was refused; the parts that stand beside it hold.
type Partial struct {
	Refused int64  // spans or records
	Why     string // of the first, in words; quotes nothing
}

func (p *Partial) Error() string {
	return strconv.FormatInt(p.Refused, 10) + " of the payload refused: " + p.Why
}
