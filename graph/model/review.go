package model

import (
	"context"
	"time"

	"github.com/evenhand/evenhand/store"
)

// Decision is what a review says, in the words of the store.
type Decision string

// The decisions.
const (
	Confirmed Decision = "confirmed"
	Dismissed Decision = "dismissed"
	Unsure    Decision = "unsure"
	Withdrawn Decision = "withdrawn"
)

// Review is what a person said at some time.
type Review struct {
	store.Review
	of *Audit
}

func (r *Review) ID() string         { return r.Review.ID.String() }
func (r *Review) Decision() Decision { return Decision(r.Review.Decision) }
func (r *Review) Tags() []string     { return list(r.Review.Tags) }
func (r *Review) At() time.Time      { return r.Review.At }

// Notes are null when there are none, or when they are dropped or masked.
func (r *Review) Notes(ctx context.Context) (*string, error) {
	t, err := r.of.texts(ctx)
	return ptr(t.Notes[r.Review.ID]), err
}

// Reviews is the history of reviews.
func (a *Audit) Reviews(ctx context.Context) ([]*Review, error) {
	all, err := about(ctx, a, (*Page).reviews)
	out := make([]*Review, 0, len(all))
	for _, r := range all {
		out = append(out, &Review{r, a})
	}
	return out, err
}

// Feedback is whether a flag helped somebody.
type Feedback struct {
	store.Feedback
	of *Audit // nil: it was just given, and its note comes with it
}

// Given is feedback that the caller has just given.
func Given(f *store.Feedback) *Feedback { return &Feedback{Feedback: *f} }

func (f *Feedback) ID() string { return f.Feedback.ID.String() }

// Note is null when there is none, or when it is dropped or masked.
func (f *Feedback) Note(ctx context.Context) (*string, error) {
	if f.of == nil {
		return ptr(f.Feedback.Note), nil
	}
	t, err := f.of.texts(ctx)
	return ptr(t.Notes[f.Feedback.ID]), err
}

// Feedback is all that was given.
func (a *Audit) Feedback(ctx context.Context) ([]*Feedback, error) {
	all, err := about(ctx, a, (*Page).feedback)
	out := make([]*Feedback, 0, len(all))
	for _, f := range all {
		out = append(out, &Feedback{f, a})
	}
	return out, err
}

// holding is the review that holds, nil when there is none. An interaction that nobody reviewed is not looked up.
func (a *Audit) holding(ctx context.Context) (*store.Review, error) {
	if !a.Item.HumanReviewed {
		return nil, nil //nolint:nilnil // none
	}
	all, err := about(ctx, a, (*Page).reviews)
	return store.Holding(all), err
}

// tag is humanBiasTag.
type tag struct {
	Decision string   `json:"decision"`
	Tags     []string `json:"tags"`
}

// HumanBiasTag is that of the review that holds.
func (a *Audit) HumanBiasTag(ctx context.Context) (any, error) {
	r, err := a.holding(ctx)
	if r == nil {
		return nil, err
	}
	return tag{r.Decision, list(r.Tags)}, err
}

// ReviewNotes are those of the review that holds.
func (a *Audit) ReviewNotes(ctx context.Context) (*string, error) {
	r, err := a.holding(ctx)
	if r == nil || err != nil {
		return nil, err
	}
	t, err := a.texts(ctx)
	return ptr(t.Notes[r.ID]), err
}

// EffectiveBias is what holds after reviews.
func (a *Audit) EffectiveBias() bool { return a.Item.Effective() }
