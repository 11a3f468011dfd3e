package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Key is the item's key in the tables of facts.
func (it *Item) Key() Key {
	y, m, d := it.Time.UTC().Date()
	return Key{Tenant: it.Tenant, Day: time.Date(y, m, d, 0, 0, 0, 0, time.UTC), ID: it.EventID, Digest: it.Digest}
}

// ResultID is that of our first verdict on the item's content: it tells contents of one id apart.
func (it *Item) ResultID() audit.ID { return audit.HotResultID(it.Tenant, it.EventID, it.Digest) }

// Texts are the personal and free texts of an interaction.
type Texts struct {
	State TextState
	// Interaction has the text fields alone: prompt, messages, query, response, context, user, error, …
	Interaction audit.Interaction
	// Notes of reviews and feedback, by its id; Outside are the JSON reports and mitigations of outside analyzers, by result.
	Notes   map[audit.ID]string
	Outside map[audit.ID]Outside
	// Judge are the words of the judge's verdicts, the JSON of seed 004, by result.
	Judge map[audit.ID]string
}

// Outside is what an outside analyzer sent beside its verdict: canonical JSON, "" where it sent none.
type Outside struct {
	Report     string
	Mitigation string
}

// StoredVerdict is a verdict of an interaction; of each analyzer the newest is current.
type StoredVerdict struct {
	audit.Verdict
	Version string // analyzer_version: of a retry, or who sent it
	Current bool
}

// Review is what a person said about an interaction.
type Review struct {
	ID       audit.ID
	Reviewer string
	Decision string // confirmed, dismissed, unsure, or withdrawn
	Tags     []string
	At       time.Time
}

// Feedback tells whether a flag helped a decision.
type Feedback struct {
	ID     audit.ID
	By     string
	Helped *bool
	Note   string // of one that is just given; of others see Texts
	At     time.Time
}

// The following read more about items of a list, in one statement a table however many they are, MaxLimit
// at most. Items of another tenant are as unknown as those that do not exist.

// Facts reads the interactions.
func (t *Tenant) Facts(ctx context.Context, items []*Item) (map[Key]audit.Interaction, error) {
	const op = "store: facts"
	of := map[Key]audit.Interaction{}
	q, wanted, err := t.about(op, "interactions", items)
	if q == nil {
		return of, err
	}
	return of, t.facts(ctx, op, q, func(it *Item, in audit.Interaction) {
		if k := it.Key(); wanted[k] {
			of[k] = in
		}
	})
}

// facts reads interactions. Of the item it gives what the facts tell: its key and place, and whether it came without content.
func (s scope) facts(ctx context.Context, op string, q *query, keep func(it *Item, in audit.Interaction)) error {
	return s.each(ctx, op, q.sql("sort_ts, "+factColumns, ""), q.args, func(r driver.Rows) error {
		var row struct {
			SortTS time.Time `ch:"sort_ts"`
			factRow
		}
		if err := r.ScanStruct(&row); err != nil {
			return err
		}
		in := row.interaction()
		keep(&Item{EventID: in.ID, Digest: in.Digest, Tenant: in.Tenant, Time: in.Time, SortTime: row.SortTS, WithoutContent: in.WithoutContent}, in)
		return nil
	})
}

// current reads what audit_current holds of items, in order of delivery.
func (s scope) current(ctx context.Context, op string, items []*Item) ([]Item, error) {
	keys := make([]Cursor, 0, len(items))
	for _, it := range items {
		keys = append(keys, it.Cursor())
	}
	q := s.from("audit_current").current()
	q.prewhere = among(keys)
	return s.items(ctx, op, q, byDelivery)
}

// byDelivery sorts rows of audit_current.
const byDelivery = "ORDER BY broker_ts, topic, partition, offset"

// textKinds are the kinds of an interaction's own texts, which the hot path writes and whose source is its content; laterKinds are those
// of facts, whose source is the fact.
const (
	textKinds = "'prompt', 'messages', 'query', 'response', 'response_json', 'context', 'sanitized_prompt', 'redaction_summary', " +
		"'retrieved_context', 'group_attributes', 'metadata', 'error', 'user'"
	laterKinds = "'review_note', 'feedback_note', 'outside_report', 'outside_mitigation', 'judge_verdict'"
)

// Texts reads the texts; items whose texts are dropped are there with their state.
func (t *Tenant) Texts(ctx context.Context, items []*Item) (map[Key]Texts, error) {
	const op = "store: texts"
	of := map[Key]Texts{}
	q, wanted, err := t.about(op, "interaction_texts", items)
	if q == nil {
		return of, err
	}
	type event struct {
		day time.Time
		id  audit.ID
	}
	contents := map[event][]Key{} // of one id on one day there may be several
	for k := range wanted {
		e := event{k.Day, k.ID}
		contents[e], of[k] = append(contents[e], k), Texts{State: TextDropped}
	}
	for _, it := range items {
		if x, ok := of[it.Key()]; ok && it.WithoutContent {
			x.State = TextPresent // nothing was ever there to drop
			of[it.Key()] = x
		}
	}
	q.and("kind IN (" + textKinds + ", " + laterKinds + ")")
	err = t.each(ctx, op, q.sql("event_day, event_id, kind, source_id, text", ""), q.args, func(r driver.Rows) error {
		var day time.Time
		var id uuid.UUID
		var kind, source, text string
		if err := r.Scan(&day, &id, &kind, &source, &text); err != nil {
			return err
		}
		for _, k := range contents[event{day.UTC(), audit.ID(id)}] {
			x := of[k]
			switch fact := sourceID(source); kind {
			case "review_note", "feedback_note":
				keep(&x.Notes, fact, text)
			case "judge_verdict":
				keep(&x.Judge, fact, text)
			case "outside_report":
				o := x.Outside[fact]
				o.Report = text
				keep(&x.Outside, fact, o)
			case "outside_mitigation":
				o := x.Outside[fact]
				o.Mitigation = text
				keep(&x.Outside, fact, o)
			default:
				if digest(source) != k.Digest {
					continue
				}
				x.State = TextPresent
				if err := setText(&x.Interaction, kind, text); err != nil {
					return err
				}
			}
			of[k] = x
		}
		return nil
	})
	for k, x := range of {
		queryOf(&x.Interaction)
		of[k] = x
	}
	return of, err
}

// sourceID is the id of a fact in source_id: its first 16 bytes.
func sourceID(s string) (id audit.ID) {
	copy(id[:], s)
	return id
}

// keep makes the map where there is none yet.
func keep[V any](m *map[audit.ID]V, id audit.ID, v V) {
	if *m == nil {
		*m = map[audit.ID]V{}
	}
	(*m)[id] = v
}

// Verdicts reads every verdict, newest first.
func (t *Tenant) Verdicts(ctx context.Context, items []*Item) (map[Key][]StoredVerdict, error) {
	const op = "store: verdicts"
	of := map[Key][]StoredVerdict{}
	q, wanted, err := t.about(op, "verdicts", items)
	if q == nil {
		return of, err
	}
	return of, t.each(ctx, op, q.sql("event_day, event_id, analyzer_version, "+verdictColumns, "ORDER BY analysis_ts DESC, result_id DESC"), q.args, func(r driver.Rows) error {
		var row struct {
			Day     time.Time `ch:"event_day"`
			EventID uuid.UUID `ch:"event_id"`
			Version string    `ch:"analyzer_version"`
			verdictRow
		}
		if err := r.ScanStruct(&row); err != nil {
			return err
		}
		k := Key{t.tenant, row.Day.UTC(), audit.ID(row.EventID), digest(row.ContentDigest)}
		if !wanted[k] {
			return nil
		}
		newer := slices.ContainsFunc(of[k], func(v StoredVerdict) bool { return v.Current && v.Analyzer == row.Analyzer })
		v := row.verdict()
		of[k] = append(of[k], StoredVerdict{Verdict: v, Version: row.Version, Current: !newer && says(&v)})
		return nil
	})
}

// says tells whether a verdict may be current, as the view current_verdicts has it: one of the judge that did not come
// about says nothing.
func says(v *audit.Verdict) bool {
	return v.Analyzer != audit.JudgeAnalyzer || v.Status != audit.Failed && v.Status != audit.Skipped && v.Status != audit.Abandoned
}

// Reviews reads every review, newest first.
func (t *Tenant) Reviews(ctx context.Context, items []*Item) (map[Key][]Review, error) {
	const op = "store: reviews"
	of := map[Key][]Review{}
	q, wanted, err := t.about(op, "reviews", items)
	if q == nil {
		return of, err
	}
	sql := q.sql("event_day, event_id, content_digest, review_id, reviewer, decision, tags, reviewed_at", "ORDER BY reviewed_at DESC, review_id DESC")
	return of, t.each(ctx, op, sql, q.args, func(r driver.Rows) error {
		var day time.Time
		var id, review uuid.UUID
		var content string
		var x Review
		if err := r.Scan(&day, &id, &content, &review, &x.Reviewer, &x.Decision, &x.Tags, &x.At); err != nil {
			return err
		}
		x.ID, x.At = audit.ID(review), x.At.UTC()
		if k := (Key{t.tenant, day.UTC(), audit.ID(id), digest(content)}); wanted[k] {
			of[k] = append(of[k], x)
		}
		return nil
	})
}

// Feedback reads the answers whether flags helped, newest first; of each person the newest counts.
func (t *Tenant) Feedback(ctx context.Context, items []*Item) (map[Key][]Feedback, error) {
	const op = "store: feedback"
	of := map[Key][]Feedback{}
	q, wanted, err := t.about(op, "feedback", items)
	if q == nil {
		return of, err
	}
	sql := q.sql("event_day, event_id, content_digest, feedback_id, subject, helped, given_at", "ORDER BY given_at DESC, feedback_id DESC")
	return of, t.each(ctx, op, sql, q.args, func(r driver.Rows) error {
		var day time.Time
		var id, feedback uuid.UUID
		var content string
		var x Feedback
		if err := r.Scan(&day, &id, &content, &feedback, &x.By, &x.Helped, &x.At); err != nil {
			return err
		}
		x.ID, x.At = audit.ID(feedback), x.At.UTC()
		if k := (Key{t.tenant, day.UTC(), audit.ID(id), digest(content)}); wanted[k] {
			of[k] = append(of[k], x)
		}
		return nil
	})
}

// Items reads interactions by id, each once and in the order of the ids; unknown ones are left out. Where
// several contents came under an id, the first delivered is given. At most MaxLimit may be asked for.
func (t *Tenant) Items(ctx context.Context, ids []audit.ID) ([]Item, error) {
	const op = "store: items"
	if len(ids) == 0 {
		return nil, nil
	}
	if err := few(op, len(ids)); err != nil {
		return nil, err
	}
	found, err := t.byID(ctx, op, ids)
	if err != nil {
		return nil, err
	}
	first := map[audit.ID]*Item{}
	for i := range found {
		if it := &found[i]; first[it.EventID] == nil {
			first[it.EventID] = it
		} else {
			first[it.EventID].IDConflict = true
		}
	}
	var items []Item
	for _, id := range ids {
		if it := first[id]; it != nil {
			items = append(items, *it)
			delete(first, id)
		}
	}
	return items, nil
}

// byID reads all contents that came under ids, in order of delivery.
func (s scope) byID(ctx context.Context, op string, ids []audit.ID) ([]Item, error) {
	// The key of interactions leads from tenant and id to a granule a day, that of audit_current does not.
	keys := s.from("interactions").and(anyID("event_id", ids))
	q := s.from("audit_current").current()
	q.prewhere = "(event_day, sort_ts, event_id, content_digest) IN (" + keys.sql("event_day, sort_ts, event_id, content_digest", "") + ")"
	q.args = append(keys.args, q.args...)
	return s.items(ctx, op, q, byDelivery)
}

// Count counts what passes a filter. It reads the whole window.
func (t *Tenant) Count(ctx context.Context, f Filter) (n uint64, err error) {
	const op = "store: count"
	if err := f.validate(); err != nil {
		return 0, audit.E(op, audit.KindInvalid, err)
	}
	f.Window = f.resolved(time.Now())
	q := f.byKey(t.scope, f.apply(t.from("audit_current").current()))
	return n, t.one(ctx, op, q.sql("count()", ""), q.args, &n)
}

// key binds the rows of one event in a table.
func (s scope) key(table string, it *Item) *query {
	q := s.from(table).current()
	q.prewhere = "event_day = '" + day(it.Time) + "' AND " + anyID("event_id", []audit.ID{it.EventID}) // see about
	return q
}

// about binds the rows of some items in a table, and gives their keys; no query where there are no items.
func (s scope) about(op, table string, items []*Item) (*query, map[Key]bool, error) {
	if err := few(op, len(items)); err != nil {
		return nil, nil, err
	}
	wanted := map[Key]bool{}
	var days, events []string
	for _, it := range items {
		k := it.Key()
		if k.Tenant != s.tenant || wanted[k] {
			continue
		}
		wanted[k] = true
		d := "'" + day(k.Day) + "'"
		events = append(events, "("+d+", '"+k.ID.String()+"')")
		if !slices.Contains(days, d) {
			days = append(days, d)
		}
	}
	if len(wanted) == 0 {
		return nil, nil, nil
	}
	q := s.from(table).current()
	// Of the key in every table, so it may come before FINAL, and before the texts of whole granules are read.
	q.prewhere = "event_day IN (" + strings.Join(days, ", ") + ") AND (event_day, event_id) IN (" + strings.Join(events, ", ") + ")"
	return q, wanted, nil
}

// few refuses more than one statement should be asked for.
func few(op string, n int) error {
	if n > MaxLimit {
		return audit.E(op, audit.KindInvalid, fmt.Errorf("%d at once are more than %d", n, MaxLimit))
	}
	return nil
}

// anyID is the condition that a column of type UUID is one of some ids.
func anyID(column string, ids []audit.ID) string {
	var in []string
	for _, id := range ids {
		in = append(in, "'"+id.String()+"'")
	}
	return column + " IN (" + strings.Join(in, ", ") + ")"
}

// settling is how long after the time they bear rows may still appear.
const settling = time.Second

// mostFlagged is how many interactions a call gives at most, but for those of one instant.
const mostFlagged = 1000

// FlaggedSince gives flagged interactions whose rows were written after from by the store's clock, oldest
// first, and up to where it looked: the next call's from. About limit of them: those that were written in
// one instant come together, so that none is lost between two calls. Rows appear up to a second after the
// time they bear, so it looks no nearer to now. An interaction that is written anew comes again. Without a
// start, f's window does not restrict; a zero from is now.
func (t *Tenant) FlaggedSince(ctx context.Context, f Filter, from time.Time, limit int) (items []Item, through time.Time, err error) {
	const op = "store: flagged since"
	if limit < 1 || limit > mostFlagged {
		limit = mostFlagged
	}
	if err := f.validate(); err != nil {
		return nil, from, audit.E(op, audit.KindInvalid, err)
	}
	if err := t.one(ctx, op, "SELECT now64(3, 'UTC')", nil, &through); err != nil {
		return nil, from, err
	}
	if through = through.UTC().Add(-settling); from.IsZero() {
		return nil, through, nil
	}
	if from = from.UTC().Truncate(time.Millisecond); !from.Before(through) {
		return nil, from, nil
	}
	f.Flagged = new(true)
	all := f.From.IsZero() && f.To.IsZero()
	if !all {
		f.Window = f.resolved(time.Now())
	}
	bind := func(q *query) *query {
		if q.and("written_at > "+instant, from.UnixMilli()).and("written_at <= "+instant, through.UnixMilli()); all {
			f.conditions(q)
		} else {
			f.apply(q)
		}
		if f.UserID != "" {
			f.amongUsers(t.scope, q)
		}
		return f.byReviews(t.scope, q)
	}
	// As in List: keys of which any version passes, then the versions that hold.
	q := bind(t.from("audit_current"))
	var keys []Cursor
	var last time.Time
	rows := 0
	err = t.each(ctx, op, q.sql("sort_ts, event_id, content_digest, written_at", fmt.Sprintf("ORDER BY written_at LIMIT %d WITH TIES", limit)), q.args, func(r driver.Rows) error {
		var c Cursor
		var id uuid.UUID
		var content string
		if err := r.Scan(&c.SortTS, &id, &content, &last); err != nil {
			return err
		}
		c.EventID, c.Digest = audit.ID(id), digest(content)
		keys, rows = append(keys, c), rows+1
		return nil
	})
	if err != nil || len(keys) == 0 {
		return nil, through, err
	}
	if rows >= limit {
		through = last.UTC()
	}
	for some := range slices.Chunk(keys, 2*MaxLimit) {
		q := bind(t.from("audit_current").current())
		q.prewhere = among(some)
		found, err := t.items(ctx, op, q, "ORDER BY written_at, event_id, content_digest")
		if err != nil {
			return nil, from, err
		}
		items = append(items, found...)
	}
	return items, through, nil
}
