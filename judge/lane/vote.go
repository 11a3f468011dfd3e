package lane

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/sinks/clickhouse"
)

// vote asks until more than half of n agree on whether there is bias, and gives the surest answer of the majority with
// what all of them took. With an error the result tells that alone.
func (l *Lane) vote(ctx context.Context, in compliance.Input, n int) (*compliance.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	var best [2]*compliance.Result
	var count [2]int
	var sum compliance.Result
	for {
		res, err := l.evaluate(ctx, in)
		if res != nil {
			sum.Calls, sum.Unverified, sum.CostUSD, sum.Duration = sum.Calls+res.Calls, sum.Unverified+res.Unverified, sum.CostUSD+res.CostUSD, sum.Duration+res.Duration
			sum.Usage.Input, sum.Usage.Output = sum.Usage.Input+res.Usage.Input, sum.Usage.Output+res.Usage.Output
			sum.Repaired, sum.Injection, sum.Leaked = sum.Repaired || res.Repaired, sum.Injection || res.Injection, sum.Leaked+res.Leaked
		}
		if err != nil {
			l.told(&sum) // what was spent is spent, for the votes before, too
			return &sum, err
		}
		side := 0
		if res.Detected {
			side = 1
		}
		count[side]++
		if best[side] == nil || res.Confidence > best[side].Confidence {
			best[side] = res
		}
		if 2*count[side] <= n {
			continue
		}
		if count[1-side] > 0 {
			l.Observer.JudgeOdd("split", 1)
		}
		out := *best[side]
		out.Calls, out.Unverified, out.CostUSD, out.Duration, out.Usage, out.Repaired = sum.Calls, sum.Unverified, sum.CostUSD, sum.Duration, sum.Usage, sum.Repaired
		out.Injection, out.Leaked = sum.Injection, sum.Leaked // one witness is enough for a person to look
		return &out, nil
	}
}

// panicked is a panic of the evaluator; what it said may quote the text.
type panicked struct{}

func (panicked) Error() string { return "the evaluator panicked" }

// evaluate asks once. With an error the result, if there is one, has no verdict and says what was spent.
func (l *Lane) evaluate(ctx context.Context, in compliance.Input) (res *compliance.Result, err error) {
	defer func() {
		if recover() != nil {
			res, err = nil, &unanswered{audit.E("judge/lane: evaluate", audit.KindInternal, panicked{}), false}
		}
	}()
	if res, err = l.Evaluator.Evaluate(ctx, in); err == nil && (res == nil || res.Verdict == nil) {
		err = audit.E("judge/lane: evaluate", audit.KindInternal, errNoVerdict)
	}
	if errors.Is(err, compliance.ErrAnswer) && res.Mistrust() {
		return res, nil // who undoes the judge by addressing it is looked at by a person
	}
	if err != nil {
		return res, &unanswered{err, errors.Is(ctx.Err(), context.DeadlineExceeded)}
	}
	return res, nil
}

// fill puts a result into a verdict and its row.
func fill(v *audit.Verdict, j *clickhouse.Judging, res *compliance.Result) error {
	words, err := json.Marshal(res.Verdict)
	if err != nil {
		return audit.E("judge/lane: encode verdict", audit.KindInternal, errors.New("the verdict is no JSON"))
	}
	row := res.Row(v.ResultID)
	row.Source, row.RuleSet, row.Time, row.Duration = v.Source, v.RuleSet, v.Time, res.Duration
	if res.Injection {
		row.Mitigation = audit.StrongerMitigation(row.Mitigation, audit.MitigationReview)
	}
	if res.Model != "" && v.RuleSet != res.PromptVersion+"/"+res.Model {
		row.RuleSet += as + res.Model
	}
	*v = *row
	j.Words = string(words)
	return nil
}

// as stands in a row's rule set before the model that the server says it asked, where that is another than the one that was named: aliases
// and deployments change behind their names.
const as = " as "

// under tells whether a verdict was given under a version, whichever model the server took for it.
func under(version, ruleSet string) bool {
	return ruleSet == version || strings.HasPrefix(ruleSet, version+as)
}

// spend adds what a result took.
func spend(j *clickhouse.Judging, res *compliance.Result) {
	if res != nil {
		j.Calls, j.Tokens[0], j.Tokens[1], j.Cost = j.Calls+res.Calls, j.Tokens[0]+res.Usage.Input, j.Tokens[1]+res.Usage.Output, j.Cost+int64(math.Round(res.CostUSD*1e6))
	}
}

// told tells the observer what an answer took and what was odd about it.
func (l *Lane) told(res *compliance.Result) {
	if res == nil {
		return
	}
	l.Observer.JudgeSpent(res.Calls, res.Usage.Input, res.Usage.Output, res.CostUSD)
	for what, n := range map[string]int{"unverified_quote": res.Unverified, "repaired": count(res.Repaired), "injection": count(res.Injection), "leaked": res.Leaked} {
		if n > 0 {
			l.Observer.JudgeOdd(what, n)
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

const (
	// patience is how often a request is delivered before it is asked whether the text or the model is at fault.
	patience = 2
	// probeEvery is how long the answer to that holds.
	probeEvery = 5 * time.Second
	// harmless is judged to see whether the model answers at all.
	harmless = "The meeting starts at nine."
)

// errAsleep says that a question of ours failed so lately that there is no use in sending a text.
var errAsleep = audit.E("judge/lane: judge", audit.KindUnavailable, errors.New("the model did not answer a moment ago"))

// unanswered is an error of the evaluator, as opposed to the store's.
type unanswered struct {
	error
	late bool // it took longer than it may
}

func (u *unanswered) Unwrap() error { return u.error }

func (u *unanswered) reason() string {
	switch {
	case errors.Is(u.error, llm.ErrBudget):
		return reasonBudget
	case errors.Is(u.error, panicked{}):
		return reasonPanic
	case u.late:
		return reasonTimeout
	}
	switch audit.KindOf(u.error) {
	case audit.KindInvalid:
		if errors.Is(u.error, compliance.ErrAnswer) && !errors.Is(u.error, compliance.ErrRefused) {
			return reasonUnreadable
		}
		return reasonRefused
	case audit.KindInternal:
		return reasonUnreadable
	}
	return reasonAway
}

// passes tells whether the request is to wait: the model answers nobody at the moment.
func (l *Lane) passes(ctx context.Context, u *unanswered, tenant string, delivery int) bool {
	switch u.reason() {
	case reasonBudget, reasonPanic, reasonUnreadable:
		return false
	case reasonAway:
		if delivery <= patience {
			return true
		}
	}
	return !l.alive(ctx, tenant)
}

// alive tells whether the model answers a harmless text. Requests that wait for it wait for one question.
func (l *Lane) alive(ctx context.Context, tenant string) bool {
	l.probe.mu.Lock()
	defer l.probe.mu.Unlock()
	if last := l.probe.lately(l.Now()); last != nil {
		return last.ok
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	_, err := l.Evaluator.Evaluate(ctx, compliance.Input{Tenant: tenant, Text: harmless})
	now := &probed{l.Now(), err == nil || errors.Is(err, llm.ErrBudget)}
	l.probe.last.Store(now)
	if !now.ok {
		l.Logger.Error("the judge's model does not answer; requests wait", "error", err.Error())
	}
	return now.ok
}
