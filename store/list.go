package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Limits of a page.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Page asks for a part of a list.
type Page struct {
	Limit  int     // 0 is DefaultLimit; more than MaxLimit is an error
	After  *Cursor // nil starts at the first
	Offset int     // rows to skip, 0..MaxOffset; not together with After
	Sort   Sort
}

// MaxOffset is how many rows a page may skip; who needs more follows cursors.
const MaxOffset = 10_000

// Sort orders a list; the zero value is by time, newest first. Among equals the newest comes first, in
// both directions. The bias score counts as the sum that it is cut from.
type Sort struct {
	By        SortKey
	Ascending bool
}

// SortKey is what a list is ordered by.
type SortKey string

// The sort keys.
const (
	ByTime          SortKey = ""
	ByBiasScore     SortKey = "bias_score"
	ByConfidence    SortKey = "confidence"
	BySeverity      SortKey = "severity"
	ByFindingsCount SortKey = "findings"
	BySafety        SortKey = "safety"
	ByToxicity      SortKey = "toxicity"
	ByPII           SortKey = "pii"
	ByHallucination SortKey = "hallucination"
)

// Result is a page of a list.
type Result struct {
	Items  []Item
	Next   *Cursor // nil when the window is exhausted
	Window Window  // what was looked at
}

// Item is an interaction in a list: the flat read model. It holds no text.
type Item struct {
	EventID        audit.ID
	Digest         [32]byte
	Tenant         string
	Time           time.Time
	SortTime       time.Time
	TimeAssumed    bool
	TimeSuspect    bool
	TraceID        string
	App            string
	Domain         audit.Domain
	Provider       string
	Model          string
	Sensitivity    string
	Status         string // of the LLM call
	AnalysisStatus audit.Status
	WithoutContent bool
	Truncated      bool
	BiasDetected   bool
	Flagged        bool
	Unsafe         bool
	Gated          bool
	BiasTypes      []string
	Kinds          []string
	MaxSeverity    uint8 // level, 0 none … 4 CRITICAL
	NFindings      uint16
	Confidence     audit.Score
	BiasSum        audit.Score
	SafetySum      audit.Score
	Toxicity       audit.Score
	PII            audit.Score
	Hallucination  audit.Score
	Threshold      audit.Score
	Action         audit.Action
	Mitigation     string
	HumanReviewed  bool
	Review         string // confirmed or dismissed; "" when nobody did, or is unsure
	IDConflict     bool
	Origin         audit.Origin

	list listID // that it was read in
}

// Cursor is the item's place in the list that it was read in.
func (it *Item) Cursor() Cursor {
	return Cursor{SortTS: it.SortTime.UTC(), EventID: it.EventID, Digest: it.Digest, Value: it.value(it.list.sort.By), list: it.list}
}

// candidatesFor is how many keys are looked at in one step for n more rows: what is asked for and some,
// since few keys have versions of which the filter tells one from another.
func candidatesFor(n int) int { return n + n/5 + 10 }

// inSmallSteps lets the engine stop soon behind the last key, where it would else read ahead: a
// page needs a few granules of each part.
const inSmallSteps = " SETTINGS max_block_size = 8192, read_in_order_use_buffering = 0"

// list is one list that is being read.
type list struct {
	t    *Tenant
	f    Filter // its window resolved
	sort Sort
	id   listID
}

// List gives a page of the tenant's interactions.
//
// Reading everything under FINAL costs the whole window. Instead it takes the next rows, of any version
// that passes the filter, without FINAL and in order, then reads their keys under FINAL with the same
// filter; what passes, and lies between the first and the last of those rows, is what FINAL over everything
// would give, because the winning version is one of the versions. When old versions made the page short it
// goes on behind the last row. Rows that get another value while pages are turned move in the order.
func (t *Tenant) List(ctx context.Context, f Filter, p Page) (*Result, error) {
	const op = "store: list"
	limit, err := pageLimit(p.Limit)
	if err == nil {
		err = errors.Join(f.validate(), p.validate())
	}
	l := &list{t: t, f: f, sort: p.Sort, id: listID{sort: p.Sort, filter: f.hash(t.tenant)}}
	if err == nil && p.After != nil {
		err = l.goOn(p.After)
	}
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if p.After == nil {
		l.f.Window = f.resolved(time.Now())
		l.id.from, l.id.to = l.f.From.UnixMilli(), l.f.To.UnixMilli()
	}
	res := &Result{Window: l.f.Window}
	at, err := p.After, nil
	if p.Offset > 0 {
		var more bool
		if at, more, err = l.skip(ctx, p.Offset); err != nil || !more {
			return res, err
		}
	}
	for {
		keys, full, err := l.candidates(ctx, at, candidatesFor(limit-len(res.Items)))
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			return res, nil
		}
		q := l.current(keys, at, full)
		items, err := t.items(ctx, op, q, l.sort.order(limit-len(res.Items)))
		if err != nil {
			return nil, err
		}
		for i := range items {
			items[i].list = l.id
		}
		res.Items = append(res.Items, items...)
		if len(res.Items) == limit {
			next := res.Items[limit-1].Cursor()
			res.Next = &next
			return res, nil
		}
		if !full {
			return res, nil
		}
		at = &keys[len(keys)-1]
	}
}

func (p Page) validate() error {
	var errs []error
	if !slices.Contains(sortKeys, p.Sort.By) {
		errs = append(errs, fmt.Errorf("sort: %q is not one of the keys", p.Sort.By))
	}
	if p.Offset < 0 || p.Offset > MaxOffset {
		errs = append(errs, fmt.Errorf("offset: %d is not in 0..%d; follow cursors to go further", p.Offset, MaxOffset))
	}
	if p.Offset != 0 && p.After != nil {
		errs = append(errs, errors.New("offset: does not go with a cursor"))
	}
	return errors.Join(errs...)
}

// goOn takes up the list that the cursor belongs to.
func (l *list) goOn(c *Cursor) error {
	if c.list.sort != l.id.sort {
		return errCursorSort
	}
	if c.list.filter != l.id.filter {
		return errCursorFilter
	}
	if !c.sound() {
		return errCursor
	}
	l.id = c.list
	l.f.Window = c.list.window()
	return nil
}

// atOnce is how many rows are skipped in one step.
const atOnce = 2000

// skip goes over n rows and gives the place of the last one; more tells that there may be more behind it.
func (l *list) skip(ctx context.Context, n int) (at *Cursor, more bool, err error) {
	for {
		keys, full, err := l.candidates(ctx, at, candidatesFor(min(n, atOnce)))
		if err != nil || len(keys) == 0 {
			return nil, false, err
		}
		found, err := l.places(ctx, l.current(keys, at, full), n)
		if err != nil {
			return nil, false, err
		}
		if n -= len(found); n == 0 {
			return &found[len(found)-1], true, nil
		}
		if !full {
			return nil, false, nil
		}
		at = &keys[len(keys)-1]
	}
}

// pageLimit is how many rows a page has.
func pageLimit(n int) (int, error) {
	if n == 0 {
		return DefaultLimit, nil
	}
	if n < 0 || n > MaxLimit {
		return 0, fmt.Errorf("limit: %d is not in 1..%d", n, MaxLimit)
	}
	return n, nil
}

// candidates gives the keys of the next rows in order, at most n rows; full tells that there may be more
// behind them. The last key is the last row's place.
func (l *list) candidates(ctx context.Context, at *Cursor, n int) (keys []Cursor, full bool, err error) {
	if l.sort.By != ByTime {
		return l.candidatesByValue(ctx, at, n)
	}
	if l.byPlace() {
		return l.placesOfUser(ctx, at, n)
	}
	if l.f.UserID != "" {
		return l.candidatesOfUser(ctx, at, n)
	}
	q := l.f.byKey(l.t.scope, l.f.apply(l.t.from("audit_current")))
	if at != nil {
		q.after(*at, l.sort)
	}
	rows, err := l.t.keys(ctx, "store: list", q, l.sort.order(n)+inSmallSteps, &keys)
	return keys, rows == n, err
}

// byPlace tells that the user's events are the list, in whatever versions: no other filter tells those apart, so
// that nothing but their places is needed to read what holds.
func (l *list) byPlace() bool {
	return l.sort.By == ByTime && l.f.UserID != "" && l.f == Filter{Window: l.f.Window, UserID: l.f.UserID}
}

// mostPlaces bounds one step of candidatesOfUser: their literals must fit into a query, see max_query_size.
const mostPlaces = 10_000

// candidatesOfUser is candidates by time among the events of a user, which a table of their own lists. It
// looks the first of those up by audit_current's key, and goes on with more of them where other filters left
// too few. Of an id that came with several contents, those of another time than the first are left out.
func (l *list) candidatesOfUser(ctx context.Context, at *Cursor, n int) (keys []Cursor, full bool, err error) {
	rows := 0
	from := at
	for step := min(4*n, mostPlaces); ; step = min(4*step, mostPlaces) {
		places, more, err := l.placesOfUser(ctx, from, step)
		if err != nil || len(places) == 0 {
			return keys, false, err
		}
		q := l.f.byReviews(l.t.scope, l.f.apply(l.t.from("audit_current")).and(atPlaces(places)))
		if at != nil {
			q.after(*at, l.sort)
		}
		found, err := l.t.keys(ctx, "store: list", q, l.sort.order(n-rows)+inSmallSteps, &keys)
		rows += found
		if err != nil || rows == n || !more {
			return keys, rows == n, err
		}
		from = &places[len(places)-1]
	}
}

// placesOfUser gives time and id of the user's next n events in the list's order, from at on; full tells that
// there may be more. As a key each has the digest that comes last, so that it lies behind all contents of its id.
func (l *list) placesOfUser(ctx context.Context, at *Cursor, n int) (places []Cursor, full bool, err error) {
	beyond, direction, last := "<", "DESC", [32]byte{}
	if l.sort.Ascending {
		beyond, direction, last = ">", "ASC", [32]byte(bytes.Repeat([]byte{0xff}, 32))
	}
	if at != nil && at.Digest != last {
		beyond += "=" // its id may have other contents
	}
	for _, w := range l.spans(at) {
		q := l.f.named(l.t.scope, l.t.from("interaction_users").and("user_id = ?", l.f.UserID)).near(l.f.Window)
		q.and("event_day >= toDate(?)", day(w.From)).and("event_day <= toDate(?)", day(w.To)) // a partition each
		q.and("sort_ts >= "+instant, w.From.UnixMilli()).and("sort_ts < "+instant, w.To.UnixMilli())
		if at != nil {
			q.and("(sort_ts, event_id) "+beyond+" ("+instant+", toUUID(?))", at.SortTS.UnixMilli(), at.EventID.String())
		}
		rest := fmt.Sprint("ORDER BY sort_ts ", direction, ", event_id ", direction, " LIMIT ", n-len(places))
		err := l.t.each(ctx, "store: list", q.sql("sort_ts, event_id", rest), q.args, func(r driver.Rows) error {
			c := Cursor{Digest: last}
			var id uuid.UUID
			if err := r.Scan(&c.SortTS, &id); err != nil {
				return err
			}
			c.EventID = audit.ID(id)
			places = append(places, c)
			return nil
		})
		if err != nil || len(places) == n {
			return places, true, err
		}
	}
	return places, false, nil
}

// firstSpan is what a list of places looks at before the rest: each day is a partition of its own, and the
// next days hold most pages. A window of seven days, with what lies ahead, is read at once.
const firstSpan = 10 * 24 * time.Hour

// spans cuts what is left of the window in two, in the list's order: by the key, so from the first day's start on.
func (l *list) spans(at *Cursor) []Window {
	w := Window{l.f.From.UTC().Truncate(24 * time.Hour), l.f.To}
	switch {
	case at != nil && l.sort.Ascending:
		w.From = at.SortTS
	case at != nil:
		w.To = at.SortTS.Add(time.Millisecond)
	}
	if !l.byPlace() || w.To.Sub(w.From) <= firstSpan {
		return []Window{w}
	}
	if l.sort.Ascending {
		cut := w.From.Add(firstSpan)
		return []Window{{w.From, cut}, {cut, w.To}}
	}
	cut := w.To.Add(-firstSpan)
	return []Window{{cut, w.To}, {w.From, cut}}
}

// atPlaces is the condition on the beginning of audit_current's key.
func atPlaces(places []Cursor) string {
	var in strings.Builder
	for i, c := range places {
		if i > 0 {
			in.WriteString(", ")
		}
		fmt.Fprintf(&in, "('%s', '%s', '%s')", day(c.SortTS), c.SortTS.UTC().Format(clickhouseMillis), c.EventID)
	}
	return "(event_day, sort_ts, event_id) IN (" + in.String() + ")"
}

// keys reads the keys of a query in its order, each once when its versions stand together, and counts
// the rows.
func (s scope) keys(ctx context.Context, op string, q *query, rest string, keys *[]Cursor) (rows int, err error) {
	err = s.each(ctx, op, q.sql("sort_ts, event_id, content_digest", rest), q.args, func(r driver.Rows) error {
		var c Cursor
		var id uuid.UUID
		var key string
		if err := r.Scan(&c.SortTS, &id, &key); err != nil {
			return err
		}
		c.EventID, c.Digest = audit.ID(id), digest(key)
		rows++
		if n := len(*keys); n == 0 || (*keys)[n-1] != c {
			*keys = append(*keys, c)
		}
		return nil
	})
	return rows, err
}

// clickhouseMillis is a DateTime64(3) as a literal.
const clickhouseMillis = "2006-01-02 15:04:05.000"

// literal is the key as a tuple of plain literals: ClickHouse reads hundreds of those as one constant,
// where calls such as toUUID would cost more than the rest of the query.
func (c Cursor) literal() string {
	var digest strings.Builder
	for _, b := range c.Digest {
		fmt.Fprintf(&digest, `\x%02x`, b)
	}
	return fmt.Sprintf("('%s', '%s', '%s', '%s')", day(c.SortTS), c.SortTS.UTC().Format(clickhouseMillis), c.EventID, &digest)
}

// among is the condition on audit_current's key.
func among(keys []Cursor) string {
	var in strings.Builder
	for i, k := range keys {
		if i > 0 {
			in.WriteString(", ")
		}
		in.WriteString(k.literal())
	}
	return "(event_day, sort_ts, event_id, content_digest) IN (" + in.String() + ")"
}

// current asks for the winning versions of keys that pass the filter and stand among the rows that the
// keys were taken from: a version that wins by another value has its place elsewhere.
func (l *list) current(keys []Cursor, at *Cursor, full bool) *query {
	q := l.f.apply(l.t.from("audit_current").current())
	// All versions of a key share it, so FINAL may come after this; the filter must not be tested before.
	if l.byPlace() {
		q.prewhere = atPlaces(keys)
	} else if q.prewhere = among(keys); l.sort.By == ByTime {
		return q
	}
	if at != nil {
		q.after(*at, l.sort)
	}
	if full && l.sort.By != ByTime {
		q.upTo(keys[len(keys)-1], l.sort)
	}
	return q
}

func (s scope) items(ctx context.Context, op string, q *query, rest string) ([]Item, error) {
	var items []Item
	err := s.each(ctx, op, q.sql(itemColumns, rest), q.args, func(r driver.Rows) error {
		var row itemRow
		if err := r.ScanStruct(&row); err != nil {
			return err
		}
		items = append(items, row.item())
		return nil
	})
	return items, err
}

var itemColumns = strings.Join(columnsOf[itemRow](), ", ")

// itemRow is a row of audit_current as the client scans it.
type itemRow struct {
	TenantID         string    `ch:"tenant_id"`
	SortTS           time.Time `ch:"sort_ts"`
	EventID          uuid.UUID `ch:"event_id"`
	ContentDigest    string    `ch:"content_digest"`
	EventTS          time.Time `ch:"event_ts"`
	BrokerTS         time.Time `ch:"broker_ts"`
	TimeAssumed      uint8     `ch:"time_assumed"`
	TimeSuspect      uint8     `ch:"time_suspect"`
	TraceID          string    `ch:"trace_id"`
	App              string    `ch:"app"`
	Domain           string    `ch:"domain"`
	Provider         string    `ch:"provider"`
	Model            string    `ch:"model"`
	SensitivityScore string    `ch:"sensitivity_score"`
	Status           string    `ch:"status"`
	WithoutContent   uint8     `ch:"without_content"`
	Truncated        uint8     `ch:"truncated"`
	AnalysisStatus   string    `ch:"analysis_status"`
	BiasDetected     uint8     `ch:"bias_detected"`
	Flagged          uint8     `ch:"flagged"`
	Unsafe           uint8     `ch:"unsafe"`
	Gated            uint8     `ch:"gated"`
	BiasTypes        []string  `ch:"bias_types"`
	Kinds            []string  `ch:"kinds"`
	MaxSeverity      uint8     `ch:"max_severity"`
	NFindings        uint16    `ch:"n_findings"`
	Confidence       int32     `ch:"confidence"`
	BiasSum          int64     `ch:"bias_sum"`
	SafetySum        int64     `ch:"safety_sum"`
	Toxicity         int64     `ch:"toxicity"`
	PII              int64     `ch:"pii"`
	Hallucination    int64     `ch:"hallucination"`
	Threshold        int64     `ch:"threshold"`
	Action           string    `ch:"action"`
	Mitigation       string    `ch:"mitigation"`
	HumanReviewed    uint8     `ch:"human_reviewed"`
	Review           string    `ch:"review"`
	IDConflict       uint8     `ch:"id_conflict"`
	Topic            string    `ch:"topic"`
	Partition        int32     `ch:"partition"`
	Offset           int64     `ch:"offset"`
}

func (r *itemRow) item() Item {
	return Item{
		EventID: audit.ID(r.EventID), Digest: digest(r.ContentDigest), Tenant: r.TenantID,
		Time: r.EventTS, SortTime: r.SortTS, TimeAssumed: r.TimeAssumed == 1, TimeSuspect: r.TimeSuspect == 1,
		TraceID: r.TraceID, App: r.App, Domain: audit.Domain(r.Domain), Provider: r.Provider, Model: r.Model,
		Sensitivity: r.SensitivityScore, Status: r.Status, AnalysisStatus: audit.Status(r.AnalysisStatus),
		WithoutContent: r.WithoutContent == 1, Truncated: r.Truncated == 1,
		BiasDetected: r.BiasDetected == 1, Flagged: r.Flagged == 1, Unsafe: r.Unsafe == 1, Gated: r.Gated == 1,
		BiasTypes: r.BiasTypes, Kinds: r.Kinds, MaxSeverity: r.MaxSeverity, NFindings: r.NFindings,
		Confidence: audit.Score(r.Confidence), BiasSum: audit.Score(r.BiasSum), SafetySum: audit.Score(r.SafetySum),
		Toxicity: audit.Score(r.Toxicity), PII: audit.Score(r.PII), Hallucination: audit.Score(r.Hallucination),
		Threshold: audit.Score(r.Threshold), Action: audit.Action(r.Action), Mitigation: r.Mitigation,
		HumanReviewed: r.HumanReviewed == 1, Review: r.Review, IDConflict: r.IDConflict == 1,
		Origin: audit.Origin{Topic: r.Topic, Partition: int(r.Partition), Offset: r.Offset, BrokerTime: r.BrokerTS},
	}
}

func digest(s string) (d [32]byte) {
	copy(d[:], s)
	return d
}
