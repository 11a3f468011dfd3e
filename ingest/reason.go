package ingest

import (
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// Codes of faults. A rejected message carries the code of its first fault as its reason.
const (
	BadJSON        = "bad_json"        // not one JSON value as RFC 8259 has it
	InvalidUTF8    = "invalid_utf8"    // bytes that are not UTF-8
	TooDeep        = "too_deep"        // nested deeper than the limit
	TooLarge       = "too_large"       // the message passes the limit
	DuplicateKey   = "duplicate_key"   // one name twice in an object, at any depth
	UnknownField   = "unknown_field"   // a top-level name that the event does not have
	WrongType      = "wrong_type"      // a string where a number is wanted, and the like
	BadValue       = "bad_value"       // the right type, but not a value that the field takes
	AliasConflict  = "alias_conflict"  // a field and its alias say different things
	MissingField   = "missing_field"   // something that must be there is not
	EventTime      = "event_time"      // before 2020 or later than the day after the broker's
	TenantMissing  = "tenant_missing"  // neither header nor payload nor default names a tenant
	NoInteraction  = "no_interaction"  // a message of another format that tells of no call of a model
	TenantMismatch = "tenant_mismatch" // header and payload name different tenants
)

// Fault is one thing wrong with an event. It names the field and what the field wants and holds
// nothing of the event's values.
type Fault struct {
	Field   string `json:"field"` // "messages[2].role", "header evenhand-tenant"; "" for the whole message
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f Fault) String() string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

const (
	maxFaults = 50   // kept of one event
	maxDetail = 1024 // bytes of Rejected.Detail
	maxName   = 64   // bytes of a name that may be a mistyped one
)

// detail joins faults for Rejected.Detail, bounded.
func detail(faults []Fault) string {
	const more = "; and more"
	var b strings.Builder
	for i, f := range faults {
		s := f.String()
		if b.Len()+len(s)+2+len(more) > maxDetail {
			if i == 0 {
				return audit.Clip(s, maxDetail)
			}
			b.WriteString(more)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s)
	}
	return b.String()
}
