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
	said, err := w.review(ctx, by, id, r)
	if err != nil {
		return nil, err
	}
	now := w.show(ctx, kindReview, w.Store.WithTenant(by.Tenant), said.it, said.add)
	if !said.id.IsZero() {
		w.publishOpinions(ctx, kindReview, []*store.Item{now.item}, []audit.ID{said.id})
	}
	return now.item, nil
}

// Reviews is Review of n interactions, one after the other, for of two reviews of one the later shall hold: next gives
// each, or the error that stands in its place. What follows a review costs most, and is done once for all of them.
func (w *Writer) Reviews(ctx context.Context, by *auth.Principal, n int, next func(int) (audit.ID, Review, error)) ([]*store.Item, []error) {
	items, errs := make([]*store.Item, n), make([]error, n)
	var said []*reviewed
	var at []int // where in items
	for i := range n {
		id, r, err := next(i)
		if err != nil {
			errs[i] = err
			continue
		}
		one, err := w.review(ctx, by, id, r)
		if err != nil {
			errs[i] = err
			continue
		}
		said, at = append(said, one), append(at, i)
	}
	if len(said) == 0 {
		return items, errs
	}
	var told []*store.Item
	var ids []audit.ID
	for i, now := range w.showAll(ctx, w.Store.WithTenant(by.Tenant), said) {
		if items[at[i]] = now; !said[i].id.IsZero() {
			told, ids = append(told, now), append(ids, said[i].id)
		}
	}
	w.publishOpinions(ctx, kindReview, told, ids)
	return items, errs
}

// reviewed is an interaction with a review that is stored.
type reviewed struct {
	it  *store.Item       // as it was before
	id  audit.ID          // of the review; zero where there was nothing to store
	add func(*store.Item) // has an item say it
}

// review stores a review.
func (w *Writer) review(ctx context.Context, by *auth.Principal, id audit.ID, r Review) (out *reviewed, err error) {
	const op = "facts: review"
	defer func() { w.counted(kindReview, err) }()
	t, it, err := w.beginOf(ctx, op, by, id, r.Of)
	if err != nil {
		return nil, err
	}
	if r, err = w.reviewChecked(ctx, op, r); err != nil {
		return nil, err
	}
	if r.Notes.value() && *r.Notes.Value != "" {
		if err := w.textsKept(ctx, it, "reviewNotes"); err != nil {
			return nil, err
		}
	}
	var f clickhouse.Fact
	var tag Tag
	var before store.Reviewed
	_, err = w.saying.alone(callerKey{it.Key(), by.Subject}, func() (none said, err error) {
		if before, err = t.Reviewed(ctx, it, by.Subject); err != nil {
			return none, err
		}
		var notes string
		if tag, notes = r.over(before); nothing(before, tag) || twice(before, tag, notes, w.Now()) {
			return none, nil
		}
		f = fact(by, it, w.now(before.At)) // after everybody's, for the newest of all shows
		f.Texts = []clickhouse.FactText{{Kind: clickhouse.KindReviewNote, Text: notes}}
		return none, stored(ctx, func(ctx context.Context) error { return w.Rows.Review(ctx, f, tag.Decision, tag.Tags) })
	})
	if err != nil {
		return nil, err
	}
	return &reviewed{it: it, id: f.ID, add: func(it *store.Item) {
		it.HumanReviewed, it.Review = tag.Decision != Withdrawn || before.Others != nil, tag.Decision
		if tag.Decision != Confirmed && tag.Decision != Dismissed { // another's holds
			if it.Review = ""; before.Others != nil && before.Others.Decision != Unsure {
				it.Review = before.Others.Decision
			}
		}
	}}, nil
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
