package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/store"
)

const mostReviews = 100

var errNotTried = audit.E("graph: reviews", audit.KindOverloaded, errors.New("the request's time was over before this one; send it again"))

// reviews adds one review after the other: of two about one interaction the later shall hold.
func (r *Resolver) reviews(ctx context.Context, inputs []*generated.BiasReviewInput) ([]*generated.ReviewResult, error) {
	if n := len(inputs); n > mostReviews {
		return nil, invalid("inputs", "%d at once are more than %d", n, mostReviews)
	}
	out := make([]*generated.ReviewResult, len(inputs))
	var items []store.Item // of those that are stored, so that all are read together
	var stored []*generated.ReviewResult
	until := lastStart(ctx)
	for i, in := range inputs {
		out[i] = &generated.ReviewResult{ID: in.ID}
		it, err := r.oneOf(ctx, until, in)
		if err != nil {
			out[i].Error = r.refusal(ctx, fmt.Sprintf("recordBiasReviews[%d]", i), err)
			continue
		}
		items, stored = append(items, *it), append(stored, out[i])
	}
	for i, a := range r.Audits(ctx, items) {
		stored[i].Interaction = a
	}
	return out, nil
}

// lastStart is when the last of several reviews may begin: of a request's time a fifth is left for what is asked of the results. Zero is any time.
func lastStart(ctx context.Context) time.Time {
	end, bounded := ctx.Deadline()
	if !bounded {
		return time.Time{}
	}
	return end.Add(-time.Until(end) / 5)
}

// oneOf adds one of several reviews while there is time.
func (r *Resolver) oneOf(ctx context.Context, until time.Time, in *generated.BiasReviewInput) (*store.Item, error) {
	if !until.IsZero() && time.Now().After(until) || ctx.Err() != nil {
		return nil, errNotTried
	}
	return r.review(ctx, in.ID, *in.Input, in.ResultID)
}

// review adds a review.
func (r *Resolver) review(ctx context.Context, id string, input generated.RecordBiasReviewInput, resultID *string) (*store.Item, error) {
	of, err := eventID(id)
	if err != nil {
		return nil, err
	}
	said, err := review(input)
	if err != nil {
		return nil, err
	}
	if said.Of, err = contentOf(resultID); err != nil {
		return nil, err
	}
	return r.Facts.Review(ctx, auth.From(ctx), of, said)
}

// refusal is an error as a part of an answer; what is no fault of the caller is logged, as Presenter does.
func (r *Resolver) refusal(ctx context.Context, path string, err error) *generated.ReviewError {
	code, text := coded(err)
	logFault(ctx, r.Log, code, text, path, err)
	return &generated.ReviewError{Code: string(code), Message: text}
}
