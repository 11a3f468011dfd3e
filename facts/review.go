package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// What a review may decide.
const (
	Confirmed = "confirmed"
	Dismissed = "dismissed"
	Unsure    = "unsure"
	Withdrawn = "withdrawn" // taken back; said by HumanReviewed alone
)

// Review is what a person says (RecordBiasReviewInput).
type Review struct {
	Of            audit.ID // which of several contents of the id, see beginOf; zero where there is one
	HumanReviewed bool     // false takes the person's review back
	Tag           Patch[Tag]
	Notes         Patch[string]
}

// Tag is humanBiasTag.
type Tag struct {
	Decision string // confirmed, dismissed or unsure; "" for tags alone: the person's last one, unsure without one
	Tags     []string
}

const (
	maxTags  = 32
	maxNotes = 10_000 // characters of a note
)

// timeOf is when an analyzer spoke last, zero when it did not.
func timeOf(s *store.Said) time.Time {
	if s == nil {
		return time.Time{}
	}
	return s.Time
}

// Review adds a person's review. Of each person the newest counts, and of several people's the newest with a
// decision holds, as [store.Holding] says; one that is taken back lets another's show again.
func (w *Writer) Review(ctx context.Context, by *auth.Principal, id audit.ID, r Review) (*store.Item, error) {
	t, it, r, err := w.beginReview(ctx, by, id, r)
	if err != nil {
		return nil, err
	}
	var one *reviewed
	_, err = w.saying.alone(callerKey{it.Key(), by.Subject}, func() (none said, err error) {
		if one, err = w.reviewed(ctx, t, by, it, r); err != nil {
			return none, err
		}
		return none, w.store(ctx, one)
	})
	w.counted(kindReview, err)
	if err != nil {
		return nil, err
	}
	now := w.show(ctx, kindReview, t, it, one.add).item
	if one.row != nil {
		w.publishOpinions(ctx, kindReview, []*store.Item{now}, []audit.ID{one.row.ID})
	}
	return now, nil
}

// Reviews is Review of n interactions, of which next gives each, or the error that stands in its place; of two reviews of
// one the later holds. They are stored together, and what follows, which costs most, is done once for all of them.
func (w *Writer) Reviews(ctx context.Context, by *auth.Principal, n int, next func(int) (audit.ID, Review, error)) ([]*store.Item, []error) {
	items, errs := make([]*store.Item, n), make([]error, n)
	all := make([]*reviewed, n) // nil where there is an error
	caller := callerKey{}
	if by != nil {
		caller = callerKey{Key: store.Key{Tenant: by.Tenant}, subject: by.Subject}
	}
	_, _ = w.sitting.alone(caller, func() (none said, err error) { // a button that is pressed twice
		var waiting []int
		write := func() {
			var rs []*reviewed
			for _, i := range waiting {
				rs = append(rs, all[i])
			}
			err := w.store(ctx, rs...)
			for _, i := range waiting {
				if w.counted(kindReview, err); err != nil {
					all[i], errs[i] = nil, err
				}
			}
			waiting = nil
		}
		for i := range n {
			id, r, err := next(i)
			if err != nil {
				errs[i] = err
				continue
			}
			t, it, r, err := w.beginReview(ctx, by, id, r)
			if err != nil {
				errs[i] = err
				continue
			}
			if slices.ContainsFunc(waiting, func(i int) bool { return all[i].it.Key() == it.Key() }) { // it goes on from that
				write()
			}
			if all[i], errs[i] = w.reviewed(ctx, t, by, it, r); errs[i] != nil {
				w.counted(kindReview, errs[i])
				continue
			}
			waiting = append(waiting, i)
		}
		write()
		return none, nil
	})
	var of []*reviewed
	for _, one := range all {
		if one != nil {
			of = append(of, one)
		}
	}
	if len(of) == 0 {
		return items, errs
	}
	var told []*store.Item
	var ids []audit.ID
	shown := w.showAll(ctx, w.Store.WithTenant(by.Tenant), of)
	for i, one := range all {
		if one == nil {
			continue
		}
		if items[i], shown = shown[0], shown[1:]; one.row != nil {
			told, ids = append(told, items[i]), append(ids, one.row.ID)
		}
	}
	w.publishOpinions(ctx, kindReview, told, ids)
	return items, errs
}

// reviewed is an interaction with what a person says of it.
type reviewed struct {
	it  *store.Item        // as it was before
	row *clickhouse.Review // nil where there is nothing to store
	add func(*store.Item)  // has an item say it
}

// beginReview finds what is reviewed and checks what is said of it.
func (w *Writer) beginReview(ctx context.Context, by *auth.Principal, id audit.ID, r Review) (t *store.Tenant, it *store.Item, out Review, err error) {
	const op = "facts: review"
	defer func() {
		if err != nil {
			w.counted(kindReview, err)
		}
	}()
	if t, it, err = w.beginOf(ctx, op, by, id, r.Of); err != nil {
		return nil, nil, r, err
	}
	if r, err = w.reviewChecked(ctx, op, r); err == nil && r.Notes.value() && *r.Notes.Value != "" {
		err = w.textsKept(ctx, it, "reviewNotes")
	}
	return t, it, r, err
}

// reviewed makes of a review, and of what was said before, what is to be stored.
func (w *Writer) reviewed(ctx context.Context, t *store.Tenant, by *auth.Principal, it *store.Item, r Review) (*reviewed, error) {
	before, err := t.Reviewed(ctx, it, by.Subject)
	if err != nil {
		return nil, err
	}
	tag, notes := r.over(before)
	out := &reviewed{it: it, add: func(it *store.Item) {
		it.HumanReviewed, it.Review = tag.Decision != Withdrawn || before.Others != nil, tag.Decision
		if tag.Decision != Confirmed && tag.Decision != Dismissed { // another's holds
			if it.Review = ""; before.Others != nil && before.Others.Decision != Unsure {
				it.Review = before.Others.Decision
			}
		}
	}}
	if nothing(before, tag) || twice(before, tag, notes, w.Now()) {
		return out, nil
	}
	f := fact(by, it, w.now(before.At)) // after everybody's, for the newest of all shows
	f.Texts = []clickhouse.FactText{{Kind: clickhouse.KindReviewNote, Text: notes}}
	out.row = &clickhouse.Review{Fact: f, Decision: tag.Decision, Tags: tag.Tags}
	return out, nil
}

// store writes the rows of reviews, of those that have one.
func (w *Writer) store(ctx context.Context, rs ...*reviewed) error {
	var rows []clickhouse.Review
	for _, r := range rs {
		if r.row != nil {
			rows = append(rows, *r.row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return stored(ctx, func(ctx context.Context) error { return w.Rows.Reviews(ctx, rows) })
}

// nothing tells whether a person takes back what it never said.
func nothing(before store.Reviewed, tag Tag) bool {
	return before.Last == nil && tag.Decision == Withdrawn
}

// pressing is how long the same review of the same person, with nobody's between, is a button that was pressed twice.
const pressing = 10 * time.Second

// twice tells whether a person says again what it said a moment ago.
func twice(before store.Reviewed, tag Tag, notes string, now time.Time) bool {
	l := before.Last
	return l != nil && l.At.Equal(before.At) && now.Sub(l.At) < pressing && l.Decision == tag.Decision && slices.Equal(l.Tags, tag.Tags) && before.Notes == notes
}

// over is what the person says now, given what it said before.
func (r Review) over(before store.Reviewed) (tag Tag, notes string) {
	if !r.HumanReviewed {
		return Tag{Decision: Withdrawn}, ""
	}
	tag = Tag{Decision: Unsure}
	if l := before.Last; l != nil && l.Decision != Withdrawn { // nothing is left of one that was taken back
		tag, notes = Tag{l.Decision, l.Tags}, before.Notes
	}
	if r.Tag.Given {
		if v := r.Tag.Value; v != nil {
			tag = Tag{cmp.Or(v.Decision, tag.Decision), v.Tags}
		} else {
			tag = Tag{Decision: Unsure}
		}
	}
	if r.Notes.Given {
		notes = ""
		if r.Notes.Value != nil {
			notes = *r.Notes.Value
		}
	}
	return tag, notes
}

func (w *Writer) reviewChecked(ctx context.Context, op string, r Review) (Review, error) {
	var errs []error
	if r.Tag.value() {
		tag := *r.Tag.Value
		if !slices.Contains([]string{"", Confirmed, Dismissed, Unsure}, tag.Decision) {
			errs = append(errs, errors.New("humanBiasTag.decision: is not confirmed, dismissed or unsure"))
		}
		tags, faults, err := w.words.keysOf(ctx, "humanBiasTag.tags", tag.Tags, maxTags)
		if err != nil {
			return r, err
		}
		errs = append(errs, faults...)
		tag.Tags = tags
		r.Tag.Value = &tag
		if !r.HumanReviewed {
			errs = append(errs, errors.New("humanBiasTag: humanReviewed is false, which takes the review back: leave the tag out"))
		}
	}
	if r.Notes.value() {
		errs = append(errs, words("reviewNotes", *r.Notes.Value, 0, maxNotes))
		if !r.HumanReviewed && *r.Notes.Value != "" {
			errs = append(errs, errors.New("reviewNotes: humanReviewed is false, which takes the review back: leave the notes out"))
		}
	}
	return r, audit.E(op, audit.KindInvalid, errors.Join(errs...))
}

// words checks a text of people by its characters.
func words(field, s string, least, most int) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s: is not UTF-8", field)
	}
	if n := utf8.RuneCountInString(s); n < least || n > most {
		if least == 0 {
			return fmt.Errorf("%s: has %d characters; %d at most", field, n, most)
		}
		return fmt.Errorf("%s: has %d characters; want %d to %d", field, n, least, most)
	}
	return nil
}
