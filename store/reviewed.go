package store

import "cmp"

// Of each reviewer the newest review counts; one that was withdrawn is none, so that what another reviewer
// said before shows again. Of several reviewers' the newest with a decision holds: who is unsure, or leaves a
// note alone, overturns nobody, and shows only where nobody decided. The view current_reviews says the same.

// byReviewer sums up rows of reviews by key and reviewer: what each said last (said), when (at), and when
// any of it was written.
func (q *query) byReviewer() *query {
	const newest = keyColumns + ", reviewer, argMax(toString(decision), (reviewed_at, review_id)) AS said, max((reviewed_at, review_id)) AS at, max(written_at) AS written"
	return &query{table: "(" + q.sql(newest, "GROUP BY "+keyColumns+", reviewer") + ")", args: q.args}
}

// Over the rows of byReviewer, by key.
const (
	// newestReview is audit_current's review: confirmed, dismissed, or '' when nobody decided.
	newestReview = "argMaxIf(said, at, said IN ('confirmed', 'dismissed'))"
	// humanReviewed is audit_current's human_reviewed.
	humanReviewed = "toUInt8(countIf(said != 'withdrawn') > 0)"
	// reviewSaid is both as one text, '' without a review.
	reviewSaid = "if(" + humanReviewed + " = 0, '', concat('1', " + newestReview + "))"
)

// reviewShown is reviewSaid as a row of audit_current says it.
const reviewShown = "if(human_reviewed = 0 AND review = '', '', concat(toString(human_reviewed), toString(review)))"

// Holding is the review that holds among all of an interaction, the newest first; nil when none does.
func Holding(reviews []Review) (holds *Review) {
	seen := map[string]bool{}
	for i := range reviews {
		r := &reviews[i]
		if seen[r.Reviewer] {
			continue
		}
		seen[r.Reviewer] = true
		switch r.Decision {
		case "confirmed", "dismissed":
			return r
		case "unsure":
			holds = cmp.Or(holds, r)
		}
	}
	return holds
}

// Effective tells whether bias holds after reviews: detected and not dismissed, or confirmed.
func (it *Item) Effective() bool {
	return it.BiasDetected && it.Review != "dismissed" || it.Review == "confirmed"
}
