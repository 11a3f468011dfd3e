package store

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Cursor is the place of an interaction in a list. It stays valid while rows come in before it, and
// holds in its own list only: the same tenant, filter and order. It keeps the window of the first page.
type Cursor struct {
	SortTS  time.Time
	EventID audit.ID
	Digest  [32]byte
	Value   int64 // of what the list is sorted by; 0 in lists by time

	list listID
}

// listID is what a list was asked for.
type listID struct {
	sort     Sort
	filter   uint64 // hash of tenant and filter
	from, to int64  // the window, in milliseconds
}

func (l listID) window() Window {
	return Window{From: time.UnixMilli(l.from).UTC(), To: time.UnixMilli(l.to).UTC()}
}

var (
	errCursor       = errors.New("cursor: not one that this service gave out")
	errCursorSort   = errors.New("cursor: it belongs to a list in another order")
	errCursorFilter = errors.New("cursor: it belongs to a list with another filter")
)

// sortKeys gives each order its number in cursors: add at the end only.
var sortKeys = []SortKey{ByTime, ByBiasScore, ByConfidence, BySeverity, ByFindingsCount, BySafety, ByToxicity, ByPII, ByHallucination}

const (
	cursorVersion = 1
	cursorSize    = 90
)

// String is the opaque form for clients.
func (c Cursor) String() string {
	order := byte(2 * max(0, slices.Index(sortKeys, c.list.sort.By)))
	if c.list.sort.Ascending {
		order++
	}
	b := append(make([]byte, 0, cursorSize), cursorVersion, order)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Value))
	b = binary.BigEndian.AppendUint64(b, uint64(c.SortTS.UnixMilli()))
	b = append(append(b, c.EventID[:]...), c.Digest[:]...)
	b = binary.BigEndian.AppendUint64(b, c.list.filter)
	b = binary.BigEndian.AppendUint64(b, uint64(c.list.from))
	b = binary.BigEndian.AppendUint64(b, uint64(c.list.to))
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads the opaque form.
func ParseCursor(s string) (c Cursor, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != cursorSize || b[0] != cursorVersion || int(b[1]/2) >= len(sortKeys) {
		return c, audit.E("store: cursor", audit.KindInvalid, errCursor)
	}
	c.list.sort = Sort{By: sortKeys[b[1]/2], Ascending: b[1]%2 == 1}
	c.Value = int64(binary.BigEndian.Uint64(b[2:]))
	c.SortTS = time.UnixMilli(int64(binary.BigEndian.Uint64(b[10:]))).UTC()
	copy(c.EventID[:], b[18:34])
	copy(c.Digest[:], b[34:66])
	c.list.filter, c.list.from, c.list.to = binary.BigEndian.Uint64(b[66:]), int64(binary.BigEndian.Uint64(b[74:])), int64(binary.BigEndian.Uint64(b[82:]))
	if !c.sound() {
		return Cursor{}, audit.E("store: cursor", audit.KindInvalid, errCursor)
	}
	return c, nil
}

// sound tells whether the times are such as the store can hold.
func (c *Cursor) sound() bool {
	for _, ms := range []int64{c.SortTS.UnixMilli(), c.list.from, c.list.to} {
		if ms < 0 || ms > latest {
			return false
		}
	}
	return true
}

// latest is the end of ClickHouse's Date, in milliseconds.
var latest = time.Date(2149, 6, 6, 0, 0, 0, 0, time.UTC).UnixMilli()

// hash tells filters, and tenants, apart; an open window is part of it as such.
func (f Filter) hash(tenant string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %d %d %q %q %q %q %q %q %q %q %q %q", tenant, f.From.UnixMilli(), f.To.UnixMilli(), f.UserID, f.Provider, f.Model, f.Sensitivity, f.Domain, f.App, f.BiasType, f.Kind, f.TraceID, f.EventID)
	told := func(b *bool) {
		if b == nil {
			fmt.Fprint(h, "?")
		} else {
			fmt.Fprint(h, *b)
		}
	}
	for _, b := range []*bool{f.BiasDetected, f.Flagged, f.HumanReviewed, f.Unsafe, f.Gated, f.Effective} {
		told(b)
	}
	fmt.Fprintf(h, "%d %d %d %q %q %q", f.MinSeverity, f.MinBiasScore, f.MinConfidence, f.AnalysisStatus, f.Status, f.Action)
	if f.Decision != "" || f.Differ != nil || f.ReviewedBy != "" || f.NotReviewedBy != "" { // cursors of before have none of them
		fmt.Fprintf(h, "%q %q %q", f.Decision, f.ReviewedBy, f.NotReviewedBy)
		told(f.Differ)
	}
	return h.Sum64()
}

// after adds what lies behind the cursor in an order. UUIDs compare as ClickHouse sorts them, by
// their low half, on both sides; the cursor never compares them in Go.
func (q *query) after(c Cursor, s Sort) *query {
	if s.By == ByTime {
		beyond := "<"
		if s.Ascending {
			beyond = ">"
		}
		q.and("event_day "+beyond+"= toDate(?)", day(c.SortTS)).and("sort_ts "+beyond+"= "+instant, c.SortTS.UnixMilli())
	}
	cond, args := beyond(c, s)
	return q.and(cond, args...)
}

// upTo adds what does not lie behind the cursor.
func (q *query) upTo(c Cursor, s Sort) *query {
	cond, args := beyond(c, s)
	return q.and("NOT "+cond, args...)
}

// beyond is the condition that a row lies behind the cursor.
func beyond(c Cursor, s Sort) (string, []any) {
	const key = "(sort_ts, event_id, content_digest)"
	const place = "(" + instant + ", toUUID(?), toFixedString(unhex(?), 32))"
	args := []any{c.SortTS.UnixMilli(), c.EventID.String(), hex.EncodeToString(c.Digest[:])}
	column, op := s.column(), "<"
	if s.Ascending {
		op = ">"
	}
	if s.By == ByTime {
		return "(" + key + " " + op + " " + place + ")", args
	}
	return "(" + column + " " + op + " ? OR " + column + " = ? AND " + key + " < " + place + ")", append([]any{c.Value, c.Value}, args...)
}
