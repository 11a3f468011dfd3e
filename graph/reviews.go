package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/store"
)

const mostReviews = 100

var errNotTried = audit.E("graph: reviews", audit.KindOverloaded, errors.New("the request's time was over before this one; send it again"))

// reviews adds one review after the other while there is time.
func (r *Resolver) reviews(ctx context.Context, inputs []*generated.BiasReviewInput) ([]*generated.ReviewResult, error) {
	if n := len(inputs); n > mostReviews {
		return nil, invalid("inputs", "%d at once are more than %d", n, mostReviews)
	}
	until := lastStart(ctx)
	items, errs := r.Facts.Reviews(ctx, auth.From(ctx), len(inputs), func(i int) (audit.ID, facts.Review, error) {
		if !until.IsZero() && time.Now().After(until) || ctx.Err() != nil {
			return audit.ID{}, facts.Review{}, errNotTried
		}
		return reviewOf(inputs[i].ID, *inputs[i].Input, inputs[i].ResultID)
	})
	out := make([]*generated.ReviewResult, len(inputs))
	var now []store.Item // of those that are stored, so that all are read together
	var stored []*generated.ReviewResult
	for i, in := range inputs {
		out[i] = &generated.ReviewResult{ID: in.ID}
		if errs[i] != nil {
			out[i].Error = r.refusal(ctx, fmt.Sprintf("recordBiasReviews[%d]", i), errs[i])
			continue
		}
		now, stored = append(now, *items[i]), append(stored, out[i])
	}
	for i, a := range r.Audits(ctx, now) {
		stored[i].Interaction = a
	}
	return out, nil
}

// lastStart is when the last of several reviews may begin: of a request's time half is left for what follows them and is asked of the results. Zero is any time.
func lastStart(ctx context.Context) time.Time {
	end, bounded := ctx.Deadline()
	if !bounded {
		return time.Time{}
	}
	return end.Add(-time.Until(end) / 2)
}

// review adds a review.
func (r *Resolver) review(ctx context.Context, id string, input generated.RecordBiasReviewInput, resultID *string) (*store.Item, error) {
	of, said, err := reviewOf(id, input, resultID)
	if err != nil {
		return nil, err
	}
	return r.Facts.Review(ctx, auth.From(ctx), of, said)
}

// reviewOf reads a review and what it is of.
func reviewOf(id string, input generated.RecordBiasReviewInput, resultID *string) (of audit.ID, said facts.Review, err error) {
	if of, err = eventID(id); err != nil {
		return of, said, err
	}
	if said, err = review(input); err != nil {
		return of, said, err
	}
	said.Of, err = contentOf(resultID)
	return of, said, err
}

// refusal is an error as a part of an answer; what is no fault of the caller is logged, as Presenter does.
func (r *Resolver) refusal(ctx context.Context, path string, err error) *generated.ReviewError {
	code, text := coded(err)
	logFault(ctx, r.Log, code, text, path, err)
	return &generated.ReviewError{Code: string(code), Message: text}
}
