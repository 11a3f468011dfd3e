package store

import (
	"context"
	"fmt"
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
	Limit int     // 0 is DefaultLimit; more than MaxLimit is an error
	After *Cursor // nil starts at the newest
}

// Result is a page of a list, newest first.
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
	IDConflict     bool
	Origin         audit.Origin
}

// Cursor is the item's place.
func (it *Item) Cursor() Cursor { return Cursor{it.SortTime, it.EventID, it.Digest} }

// candidatesFor is how many keys are looked at in one step for n more rows: what is asked for and some,
// since few keys have versions of which the filter tells one from another.
func candidatesFor(n int) int { return n + n/5 + 10 }

// inSmallSteps lets the engine stop soon behind the last key, where it would else read ahead: a
// page needs a few granules of each part. The ids of a user's events lie everywhere: no index helps.
const inSmallSteps = " SETTINGS max_block_size = 8192, read_in_order_use_buffering = 0, use_index_for_in_with_subqueries = 0"

const newestFirst = "ORDER BY tenant_id DESC, event_day DESC, sort_ts DESC, event_id DESC, content_digest DESC LIMIT "

// List gives a page of the tenant's interactions, newest first.
//
// Reading everything under FINAL costs the whole window. Instead it takes the newest keys of which
// any version passes the filter, without FINAL and in key order, then reads those keys under FINAL
// with the same filter; what passes is what FINAL over everything would give, because the winning
// version is one of the versions. When old versions made the page short it goes on behind the last key.
func (t *Tenant) List(ctx context.Context, f Filter, p Page) (*Result, error) {
	const op = "store: list"
	if err := f.validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	limit := p.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 0 || limit > MaxLimit {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("limit: %d is not in 1..%d", limit, MaxLimit))
	}
	f.Window = f.Window.resolved(time.Now())
	res := &Result{Window: f.Window}
	for at := p.After; ; {
		keys, full, err := t.candidates(ctx, f, at, candidatesFor(limit-len(res.Items)))
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			return res, nil
		}
		items, err := t.current(ctx, f, keys, limit-len(res.Items))
		if err != nil {
			return nil, err
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

// candidates gives the next keys in order, at most n; full tells that there may be more behind them.
func (t *Tenant) candidates(ctx context.Context, f Filter, at *Cursor, n int) (keys []Cursor, full bool, err error) {
	q := f.byUser(t.scope, f.apply(t.from("audit_current")))
	if at != nil {
		q.after(*at)
	}
	rows, err := t.keys(ctx, "store: list", q, newestFirst+fmt.Sprint(n)+inSmallSteps, &keys)
	return keys, rows == n, err
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

// literal is the key as a tuple of plain literals: ClickHouse reads hundreds of those as one constant,
// where calls such as toUUID would cost more than the rest of the query.
func (c Cursor) literal() string {
	var digest strings.Builder
	for _, b := range c.Digest {
		fmt.Fprintf(&digest, `\x%02x`, b)
	}
	return fmt.Sprintf("('%s', '%s', '%s', '%s')", day(c.SortTS), c.SortTS.UTC().Format("2006-01-02 15:04:05.000"), c.EventID, &digest)
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

// current reads the winning versions of keys that pass the filter.
func (t *Tenant) current(ctx context.Context, f Filter, keys []Cursor, limit int) ([]Item, error) {
	q := f.apply(t.from("audit_current").current())
	// All versions of a key share it, so FINAL may come after this; the filter must not be tested before.
	q.prewhere = among(keys)
	return t.items(ctx, "store: list", q, newestFirst+fmt.Sprint(limit))
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
		HumanReviewed: r.HumanReviewed == 1, IDConflict: r.IDConflict == 1,
		Origin: audit.Origin{Topic: r.Topic, Partition: int(r.Partition), Offset: r.Offset, BrokerTime: r.BrokerTS},
	}
}

func digest(s string) (d [32]byte) {
	copy(d[:], s)
	return d
}
