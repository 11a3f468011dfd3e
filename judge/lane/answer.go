package lane

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// Reasons of verdicts that did not come about.
const (
	reasonBudget     = "budget"       // skipped: the tenant's budget of the day is spent
	reasonNoText     = "text_dropped" // abandoned: nothing is left to judge
	reasonAway       = "unavailable"  // the model answers, but not to this text
	reasonTimeout    = "timeout"
	reasonRefused    = "refused"    // the model's server or the model will not take this text
	reasonUnreadable = "unreadable" // the answer was no verdict
	reasonPanic      = "panic"
)

// matter is an interaction before the judge.
type matter struct {
	req   judge.Request
	t     *store.Tenant
	it    *store.Item // key, time and trace; no more
	in    audit.Interaction
	texts store.TextState
	hot   *audit.Verdict
	prior []store.StoredVerdict // of the judge, newest first
}

// answer answers a request; delivery is how often it came to this process, from 1. An error has it come again.
func (l *Lane) answer(ctx context.Context, r judge.Request, delivery int) (err error) {
	began, why, outcome, reason := time.Now(), "other", "error", ""
	if r.Why.Known() {
		why = string(r.Why)
	}
	defer func() { l.Observer.Judged(why, outcome, reason, time.Since(began)) }()
	c, err := l.read(ctx, r)
	if err != nil {
		return err
	}
	if c == nil || c.texts == store.TextPresent && c.in.Response == "" {
		outcome = "gone"
		return nil
	}
	if v := c.answered(l.Version); v != nil {
		if outcome = "repeated"; v.Status == audit.Done {
			l.show(ctx, c, v)
		}
		return nil
	}
	v, j, err := l.judge(ctx, c)
	cached, stored := j.Calls == 0, false
	l.owed.settle(r.ResultID(), &j)
	defer func() {
		if !stored {
			l.owed.owe(r.ResultID(), j)
		}
	}()
	var u *unanswered
	switch {
	case ctx.Err() != nil: // what was said about a context that has ended is no verdict
		return audit.E("judge/lane: judge", audit.KindUnavailable, ctx.Err())
	case errors.Is(err, errAsleep):
		outcome = "waiting"
		return err
	case errors.As(err, &u) && l.passes(ctx, u, r.Tenant, delivery):
		outcome = "waiting"
		return audit.E("judge/lane: judge", audit.KindUnavailable, u.error)
	case u != nil:
		v = l.without(c, u)
	case err != nil:
		return err
	}
	outcome, reason = string(v.Status), v.Reason
	if v.Status == audit.Done && cached {
		outcome = "cached"
	}
	rec := audit.Record{Verdict: v, Interaction: &audit.Interaction{
		ID: r.ID, Tenant: r.Tenant, Time: c.it.Time, Digest: r.Digest, TraceID: c.in.TraceID, SpanID: c.in.SpanID, Metadata: c.in.Metadata,
	}}
	if err := l.Rows.Judged(ctx, rec, j); err != nil {
		outcome = "error"
		return err
	}
	stored = true
	l.Told(&rec)
	if v.Status != audit.Done {
		return nil // nobody is told: it is not current
	}
	l.Observer.JudgeAgainst(c.hot != nil && c.hot.Detected, v.Detected)
	l.show(ctx, c, v)
	return nil
}

// read reads what a request is about; nil when there is no such interaction.
func (l *Lane) read(ctx context.Context, r judge.Request) (*matter, error) {
	c := &matter{req: r, t: l.Store.WithTenant(r.Tenant), it: &store.Item{EventID: r.ID, Digest: r.Digest, Tenant: r.Tenant, Time: r.Day}}
	of := []*store.Item{c.it}
	facts, err := c.t.Facts(ctx, of)
	if err != nil {
		return nil, err
	}
	var known bool
	if c.in, known = facts[c.it.Key()]; !known {
		return nil, nil
	}
	c.it.Time, c.it.TraceID = c.in.Time, c.in.TraceID
	texts, err := c.t.Texts(ctx, of)
	if err != nil {
		return nil, err
	}
	x := texts[c.it.Key()]
	c.in.Response, c.in.Metadata, c.texts = x.Interaction.Response, x.Interaction.Metadata, x.State
	verdicts, err := c.t.Verdicts(ctx, of)
	for _, v := range verdicts[c.it.Key()] {
		switch {
		case v.Analyzer == audit.JudgeAnalyzer:
			c.prior = append(c.prior, v)
		case v.Analyzer == audit.HotAnalyzer && v.Current:
			c.hot = &v.Verdict
		}
	}
	return c, err
}

// answered gives the verdict that answers the request: its own, or one that the same model and prompt gave before, unless a
// person asks for another.
func (c *matter) answered(version string) *audit.Verdict {
	id := c.req.ResultID()
	if i := slices.IndexFunc(c.prior, func(v store.StoredVerdict) bool { return v.ResultID == id }); i >= 0 {
		return &c.prior[i].Verdict
	}
	if i := slices.IndexFunc(c.prior, func(v store.StoredVerdict) bool { return v.Status == audit.Done && under(version, v.RuleSet) }); i >= 0 && c.req.Why != judge.Asked {
		return &c.prior[i].Verdict
	}
	return nil
}

// blank begins a verdict.
func (l *Lane) blank(c *matter, status audit.Status, reason string) *audit.Verdict {
	at := l.Now().UTC().Truncate(time.Millisecond)
	if len(c.prior) > 0 { // the newest is current: a clock that went back must not leave the old one in its place
		if after := c.prior[0].Time.UTC().Add(time.Millisecond); at.Before(after) {
			at = after
		}
	}
	return &audit.Verdict{
		Analyzer: audit.JudgeAnalyzer, Source: fmt.Sprintf("attempt-%d", c.req.Attempt), ResultID: c.req.ResultID(), RuleSet: l.Version,
		Status: status, Reason: reason, Action: audit.NoAction, Time: at,
	}
}

// judge gives the verdict on an interaction, from an equal text's or from the model. With an error j says what was spent.
func (l *Lane) judge(ctx context.Context, c *matter) (v *audit.Verdict, j clickhouse.Judging, err error) {
	kept, err := l.kept(ctx, c)
	if err != nil {
		return nil, j, err
	}
	if !kept {
		return l.blank(c, audit.Abandoned, reasonNoText), j, nil
	}
	in := compliance.Input{Tenant: c.req.Tenant, Text: c.in.Response, Domain: string(c.in.Domain)}
	j.Input = digest(in)
	v = l.blank(c, audit.Done, "")
	if c.req.Why != judge.Asked {
		same, err := c.t.SameInput(ctx, l.Version, j.Input, l.Now())
		if err != nil {
			return nil, j, err
		}
		if same != nil {
			same.ResultID, same.Source, same.Time, same.Duration = v.ResultID, v.Source, v.Time, 0
			j.Words = same.Words
			return &same.Verdict, j, nil
		}
	}
	votes := 1
	if c.hot != nil && l.Selector.Grey(judge.FactsOf(&c.in, c.hot)) {
		votes = l.cfg.Votes
	}
	if last := l.probe.lately(l.Now()); last != nil && !last.ok {
		return nil, j, errAsleep
	}
	res, err := l.vote(ctx, in, votes)
	spend(&j, res)
	if err != nil {
		j.Input = [32]byte{} // there is no answer to an equal text
		return nil, j, err
	}
	if err := fill(v, &j, res); err != nil {
		return nil, j, err
	}
	l.told(res)
	return v, j, nil
}

// kept tells whether the texts are there and stay for now: words about them must not outlive them.
func (l *Lane) kept(ctx context.Context, c *matter) (bool, error) {
	if c.texts == store.TextDropped {
		return false, nil
	}
	if l.TextsGo == nil {
		return true, nil
	}
	goes, err := l.TextsGo(ctx, c.req.Tenant, c.req.Day)
	return err == nil && l.Now().Before(goes), err
}

// digest is of all that the answer depends on.
func digest(in compliance.Input) (sum [32]byte) {
	h := sha256.New()
	for _, s := range []string{in.Domain, in.Language, in.Text} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	h.Sum(sum[:0])
	return sum
}

// without is the verdict when none came about, for a reason that lies with the text or the budget.
func (l *Lane) without(c *matter, u *unanswered) *audit.Verdict {
	status, reason := audit.Failed, u.reason()
	if reason == reasonBudget {
		return l.blank(c, audit.Skipped, reason)
	}
	failed := 1
	for _, v := range c.prior {
		if v.Status == audit.Failed {
			failed++
		}
	}
	if failed >= l.cfg.Attempts {
		status = audit.Abandoned
	}
	if !l.logged.lately(string(status)+" "+reason, l.Now()) {
		l.Logger.Warn("the judge gave no verdict", "tenant", c.req.Tenant, "interaction_id", c.req.ID.String(), "attempt", c.req.Attempt, "status", string(status), "reason", reason, "error", u.Error())
	}
	return l.blank(c, status, reason)
}

// sayAgain is the time between two lines of the log about the same failure: a model that answers in no form that is read fails for
// each text. The rows and the metrics have all.
const sayAgain = time.Minute

// logged remembers when what was last logged.
type logged struct {
	mu sync.Mutex
	at map[string]time.Time
}

// lately tells whether that was less than sayAgain ago; else it is now.
func (l *logged) lately(what string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.at[what]; ok && now.Sub(last).Abs() < sayAgain { // a clock that was set back hides nothing
		return true
	}
	if l.at == nil {
		l.at = map[string]time.Time{}
	}
	l.at[what] = now
	return false
}

var errNoVerdict = errors.New("the evaluator gave no verdict")
