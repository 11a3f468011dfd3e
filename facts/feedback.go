package facts

import (
	"context"
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// Feedback is whether the flag helped (RecordFeedbackInput).
type Feedback struct {
	Helped *bool // nil: not known
	Note   string
}

// Feedback adds an answer of the caller; of each person the newest counts.
func (w *Writer) Feedback(ctx context.Context, by *auth.Principal, id audit.ID, f Feedback) (out *store.Feedback, err error) {
	const op = "facts: feedback"
	defer func() { w.counted(kindFeedback, err) }()
	t, it, err := w.begin(ctx, op, by, id)
	if err != nil {
		return nil, err
	}
	err = words("note", f.Note, 0, maxNotes)
	if f.Helped == nil && f.Note == "" {
		err = errors.New("input: says nothing; give helped or note")
	}
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if f.Note != "" {
		if err := w.textsKept(ctx, it, "note"); err != nil {
			return nil, err
		}
	}
	var told []audit.ID // none of an answer that was given a moment ago
	_, err = w.saying.alone(callerKey{it.Key(), by.Subject}, func() (none said, err error) {
		before, err := t.Answered(ctx, it, by.Subject)
		if err != nil {
			return none, err
		}
		var last time.Time
		if before != nil {
			if last = before.At; w.Now().Sub(last) < pressing && f.same(before) {
				out = before
				return none, nil
			}
		}
		row := fact(by, it, w.now(last))
		row.Texts = []clickhouse.FactText{{Kind: clickhouse.KindFeedbackNote, Text: f.Note}}
		if err := stored(ctx, func(ctx context.Context) error { return w.Rows.Feedback(ctx, row, f.Helped) }); err != nil {
			return none, err
		}
		told = []audit.ID{row.ID}
		out = &store.Feedback{ID: row.ID, By: row.By, Helped: f.Helped, Note: f.Note, At: row.At}
		return none, nil
	})
	if err != nil {
		return nil, err
	}
	w.publishOpinions(ctx, kindFeedback, []*store.Item{it}, told)
	return out, nil
}

// same tells whether an answer says what another said.
func (f Feedback) same(as *store.Feedback) bool {
	return f.Note == as.Note && (f.Helped == nil) == (as.Helped == nil) && (f.Helped == nil || *f.Helped == *as.Helped)
}
