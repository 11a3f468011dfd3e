package store

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Filter says which interactions a list shows. Zero fields do not restrict, but for the window:
// without a start it is the last seven days.
type Filter struct {
	Window
	UserID        string
	Provider      string
	Model         string
	Sensitivity   string // low, medium, high
	Domain        audit.Domain
	App           string
	BiasType      string // taxonomy key of a bias finding
	Kind          string // taxonomy key of any finding
	TraceID       string // 32 lower-case hexadecimal digits
	EventID       audit.ID
	BiasDetected  *bool
	Flagged       *bool
	HumanReviewed *bool
}

var errTraceID = errors.New("trace_id: want 32 lower-case hexadecimal digits, not all zero")

func (f Filter) validate() error {
	var errs []error
	if f.TraceID != "" && !audit.ValidTraceID(f.TraceID) {
		errs = append(errs, errTraceID)
	}
	if !f.From.IsZero() && !f.To.IsZero() && f.To.Before(f.From) {
		errs = append(errs, errors.New("end of the time range lies before its start"))
	}
	return errors.Join(errs...)
}

// apply adds the conditions to a query over audit_current of one tenant.
func (f Filter) apply(q *query) *query {
	q.within(f.Window)
	for _, c := range []struct{ column, value string }{
		{"provider", f.Provider}, {"model", f.Model}, {"sensitivity_score", f.Sensitivity},
		{"domain", string(f.Domain)}, {"app", f.App}, {"trace_id", f.TraceID},
	} {
		if c.value != "" {
			q.and(c.column+" = ?", c.value)
		}
	}
	for _, c := range []struct {
		column string
		value  *bool
	}{{"bias_detected", f.BiasDetected}, {"flagged", f.Flagged}, {"human_reviewed", f.HumanReviewed}} {
		if c.value != nil {
			q.and(c.column+" = ?", audit.TristateOf(*c.value))
		}
	}
	if f.BiasType != "" {
		q.and("has(bias_types, ?)", f.BiasType)
	}
	if f.Kind != "" {
		q.and("has(kinds, ?)", f.Kind)
	}
	if !f.EventID.IsZero() {
		q.and("event_id = toUUID(?)", f.EventID.String())
	}
	return q
}

// byUser restricts candidates to the events of a user. Who took part is a matter of the event and not
// of the version, so the winning versions of those need no second look.
func (f Filter) byUser(s scope, q *query) *query {
	if f.UserID != "" {
		users := s.from("interaction_users").and("user_id = ?", f.UserID).
			and("event_day >= toDate(?)", day(f.From)).and("event_day <= toDate(?)", day(f.To))
		q.and("event_id IN ("+users.sql("event_id", "")+")", users.args...)
	}
	return q
}

// Cursor is the place of an interaction in a list. It stays valid while rows come in before it.
type Cursor struct {
	SortTS  time.Time
	EventID audit.ID
	Digest  [32]byte
}

var errCursor = errors.New("cursor: not one that this service gave out")

// String is the opaque form for clients.
func (c Cursor) String() string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 56), uint64(c.SortTS.UnixMilli()))
	b = append(append(b, c.EventID[:]...), c.Digest[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads the opaque form.
func ParseCursor(s string) (c Cursor, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 56 {
		return c, audit.E("store: cursor", audit.KindInvalid, errCursor)
	}
	c.SortTS = time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC()
	copy(c.EventID[:], b[8:24])
	copy(c.Digest[:], b[24:])
	return c, nil
}

// after adds what lies behind the cursor, newest first. UUIDs compare as ClickHouse sorts them, by
// their low half, on both sides; the cursor never compares them in Go.
func (q *query) after(c Cursor) *query {
	at := c.SortTS.UnixMilli()
	q.and("event_day <= toDate(?)", day(c.SortTS)).and("sort_ts <= "+instant, at)
	return q.and("(sort_ts, event_id, content_digest) < ("+instant+", toUUID(?), toFixedString(unhex(?), 32))",
		at, c.EventID.String(), hex.EncodeToString(c.Digest[:]))
}
