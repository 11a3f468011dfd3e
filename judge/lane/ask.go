package lane

import (
	"context"
	"errors"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/store"
)

// Ask judges a stored interaction at once, whatever was said about it before, and stores, shows and publishes the
// verdict. Words are the judge's JSON, "" when none came about. store.ErrNotFound when the tenant has no such
// interaction; an error of audit.KindUnavailable when the model does not answer.
func (l *Lane) Ask(ctx context.Context, tenant string, id audit.ID) (v *audit.Verdict, words string, err error) {
	t := l.Store.WithTenant(tenant)
	it, r, _, err := next(ctx, t, id)
	if err != nil {
		return nil, "", err
	}
	if err := l.answer(ctx, r, 1); err != nil {
		return nil, "", err
	}
	l.flush(ctx)
	after, err := t.Verdicts(ctx, []*store.Item{it})
	if err != nil {
		return nil, "", err
	}
	for _, x := range after[it.Key()] {
		if x.ResultID == r.ResultID() {
			words, err = t.JudgeWords(ctx, it, x.ResultID)
			return &x.Verdict, words, err
		}
	}
	return nil, "", store.ErrNotFound // it has no response
}

// next makes the request that a person's wish is, and gives what the judge said before, newest first. Its attempt follows
// the stored ones, so all who ask while one is under way ask for the same verdict.
func next(ctx context.Context, t *store.Tenant, id audit.ID) (it *store.Item, r judge.Request, prior []store.StoredVerdict, err error) {
	if it, err = t.Find(ctx, id); err != nil {
		return nil, r, nil, err
	}
	all, err := t.Verdicts(ctx, []*store.Item{it})
	if err != nil {
		return nil, r, nil, err
	}
	for _, v := range all[it.Key()] {
		if v.Analyzer == audit.JudgeAnalyzer {
			prior = append(prior, v)
		}
	}
	return it, judge.Request{Tenant: it.Tenant, Day: it.Key().Day, ID: id, Digest: it.Digest, Attempt: len(prior) + 1, Why: judge.Asked}, prior, nil
}

// Wish is what became of a wish for a verdict.
type Wish string

// The outcomes of Request.
const (
	Requested      Wish = "requested"        // the brokers have the request
	AlreadyJudged  Wish = "already_judged"   // by the same model and prompt
	NothingToJudge Wish = "nothing_to_judge" // there is no response, or its texts are dropped
)

var errTooOften = errors.New("the judge was asked about it too often")

// Request asks for the judge's verdict on a stored interaction and does not wait for it. result is the id of the verdict that
// will answer, or that has: what was judged under version (model and prompt) is judged anew with again alone. Whoever asks
// while a request is under way brings about no second verdict. store.ErrNotFound when the tenant has no such interaction; an error of
// audit.KindUnavailable when the brokers do not take the request.
func (a *Asker) Request(ctx context.Context, t *store.Tenant, id audit.ID, version string, again bool) (w Wish, result audit.ID, err error) {
	it, r, prior, err := next(ctx, t, id)
	if err != nil {
		return "", result, err
	}
	for _, v := range prior {
		if v.Status == audit.Done && under(version, v.RuleSet) && !again {
			return AlreadyJudged, v.ResultID, nil
		}
	}
	if r.Attempt > judge.MaxAttempt {
		return "", result, audit.E("judge/lane: request", audit.KindOverloaded, errTooOften)
	}
	texts, err := t.Texts(ctx, []*store.Item{it})
	if err != nil {
		return "", result, err
	}
	if texts[it.Key()].Interaction.Response == "" {
		return NothingToJudge, result, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return Requested, r.ResultID(), a.Send(ctx, r)
}
