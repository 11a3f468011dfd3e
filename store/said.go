package store

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// What was said about an interaction, as package facts goes on from it.

// Said is the newest verdict of an outside analyzer.
type Said struct {
	audit.Verdict
	Fields  []string // what it gave a value: detected, types, scores, confidence, mitigation, report
	Outside Outside  // "" once the texts are dropped
}

// Said reads what an outside analyzer said last, nil when it said nothing yet.
func (t *Tenant) Said(ctx context.Context, it *Item, analyzer string) (*Said, error) {
	const op = "store: said"
	var out *Said
	q := t.fact("verdicts", it).and("analyzer = ?", analyzer)
	err := t.each(ctx, op, q.sql(verdictColumns+", said", "ORDER BY analysis_ts DESC, result_id DESC LIMIT 1"), q.args, func(rows driver.Rows) error {
		var row struct {
			verdictRow
			Said []string `ch:"said"`
		}
		if err := rows.ScanStruct(&row); err != nil {
			return err
		}
		out = &Said{Verdict: row.verdict(), Fields: row.Said}
		return nil
	})
	if err != nil || out == nil {
		return nil, err
	}
	texts, err := t.factTexts(ctx, it, out.ResultID)
	out.Outside = Outside{Report: texts["outside_report"], Mitigation: texts["outside_mitigation"]}
	return out, err
}

// Reviewed is what is known of the reviews of an interaction when one more is added.
type Reviewed struct {
	Last   *Review   // the reviewer's newest, nil when there is none
	Notes  string    // of it
	At     time.Time // of anybody's newest, zero without one
	Others *Review   // what holds of the others' reviews, nil when none does
}

// Reviewed reads a reviewer's newest review, what holds of the others', and when anybody reviewed last.
func (t *Tenant) Reviewed(ctx context.Context, it *Item, reviewer string) (out Reviewed, err error) {
	var others []Review
	q := t.fact("reviews", it)
	err = t.each(ctx, "store: reviewed", q.sql("review_id, reviewer, toString(decision), CAST(tags AS Array(String)), reviewed_at", "ORDER BY reviewed_at DESC, review_id DESC LIMIT 1 BY reviewer"), q.args, func(rows driver.Rows) error {
		var r Review
		var id uuid.UUID
		if err := rows.Scan(&id, &r.Reviewer, &r.Decision, &r.Tags, &r.At); err != nil {
			return err
		}
		if r.ID, r.At = audit.ID(id), r.At.UTC(); r.At.After(out.At) {
			out.At = r.At
		}
		if r.Reviewer == reviewer {
			out.Last = &r
		} else {
			others = append(others, r)
		}
		return nil
	})
	out.Others = Holding(others)
	if err != nil || out.Last == nil {
		return out, err
	}
	texts, err := t.factTexts(ctx, it, out.Last.ID)
	out.Notes = texts["review_note"]
	return out, err
}

// Answered is what a person last answered, with its note; nil when it did not.
func (t *Tenant) Answered(ctx context.Context, it *Item, subject string) (out *Feedback, err error) {
	q := t.fact("feedback", it).and("subject = ?", subject)
	err = t.each(ctx, "store: feedback", q.sql("feedback_id, helped, given_at", "ORDER BY given_at DESC, feedback_id DESC LIMIT 1"), q.args, func(rows driver.Rows) error {
		var id uuid.UUID
		out = &Feedback{By: subject}
		err := rows.Scan(&id, &out.Helped, &out.At)
		out.ID, out.At = audit.ID(id), out.At.UTC()
		return err
	})
	if err != nil || out == nil {
		return nil, err
	}
	texts, err := t.factTexts(ctx, it, out.ID)
	out.Note = texts["feedback_note"]
	return out, err
}

// Reveals counts how often a caller asked to see texts since a time and was not refused.
func (t *Tenant) Reveals(ctx context.Context, subject string, since time.Time) (n uint64, err error) {
	q := t.from("reveals").current().and("subject = ?", subject).and("revealed_at > "+instant, since.UnixMilli()).and("granted = 1")
	return n, t.one(ctx, "store: reveals", q.sql("count()", ""), q.args, &n)
}

// fact binds the rows of one interaction and content in a table of facts.
func (s scope) fact(table string, it *Item) *query {
	return s.key(table, it).and("content_digest = toFixedString(unhex(?), 32)", hex.EncodeToString(it.Digest[:]))
}

// factTexts reads the texts of a fact by kind.
func (s scope) factTexts(ctx context.Context, it *Item, id audit.ID) (map[string]string, error) {
	out := map[string]string{}
	q := s.key("interaction_texts", it).and("source_id = toFixedString(unhex(?), 32)", hex.EncodeToString(id[:]))
	return out, s.each(ctx, "store: texts of a fact", q.sql("toString(kind), text", ""), q.args, func(rows driver.Rows) error {
		var kind, text string
		err := rows.Scan(&kind, &text)
		out[kind] = text
		return err
	})
}
