package obs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// judgeMetrics are the figures of the judge's slow lane.
type judgeMetrics struct {
	asked   *prometheus.CounterVec // reason
	lost    prometheus.Counter
	answers *prometheus.CounterVec   // why, outcome, reason
	took    *prometheus.HistogramVec // outcome
	calls   prometheus.Counter
	tokens  *prometheus.CounterVec // side
	cost    prometheus.Counter
	odd     *prometheus.CounterVec // what
	against *prometheus.CounterVec // rules, judge
	replays *prometheus.CounterVec // round, outcome
}

func newJudgeMetrics(r *prometheus.Registry) (j judgeMetrics) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "evenhand_" + name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	j.asked = counter("judge_requests_total", "Verdicts of the judge that were asked for, by reason: grey, domain, sample, asked, again.", "reason")
	j.lost = counter("judge_requests_lost_total", "Requests that the brokers did not take; the job judge_sweep makes them again.").WithLabelValues()
	j.answers = counter("judge_answers_total", "Requests to the judge that were handled, by why they were made (grey, domain, sample, asked, again), outcome (done, cached, repeated, skipped, failed, abandoned, gone, waiting, error, poison) and the reason of a verdict that did not come about.", "why", "outcome", "reason")
	j.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "evenhand_judge_seconds", Help: "Time of a request to the judge, all votes together, by outcome.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 13)}, []string{"outcome"})
	r.MustRegister(j.took)
	j.calls = counter("judge_calls_total", "Calls of the model for verdicts of the judge.").WithLabelValues()
	j.tokens = counter("judge_tokens_total", "Tokens of these calls, by side: input, output.", "side")
	j.cost = counter("judge_cost_usd_total", "What they cost, where judge.price_input and judge.price_output are set.").WithLabelValues()
	j.odd = counter("judge_odd_total", "What was odd about answers: unverified_quote, repaired (no verdict at first), injection, leaked, split (votes differed), unshown (shown later).", "what")
	j.against = counter("judge_against_rules_total", "Verdicts of the judge beside those of the rules: whether each found bias.", "rules", "judge")
	j.replays = counter("replays_total", "Replays that were stored: calls made again because their response did not pass, by round and outcome (passed, review, failed, unchecked).", "round", "outcome")
	why, bools := []string{"grey", "domain", "sample", "asked", "again"}, []string{"true", "false"}
	known(j.asked, why)
	known(j.answers, why, []string{"done", "cached", "repeated", "gone", "waiting", "error"}, []string{""})
	known(j.tokens, []string{"input", "output"})
	known(j.odd, []string{"unverified_quote", "repaired", "injection", "leaked", "split", "unshown"})
	known(j.against, bools, bools)
	for round := range mostRounds {
		known(j.replays, []string{strconv.Itoa(round + 1)}, replayOutcomes)
	}
	return j
}

// mostRounds is how often a call is made again at most.
const mostRounds = 10

var replayOutcomes = []string{"passed", "review", "failed", "unchecked"}

// replayed counts an interaction that is a replay, by the id that package judge/replay gives it:
// "replay/ORIGINAL/RUN/ROUND/OUTCOME". Others may call theirs so too: what is no round or outcome is none.
func (j *judgeMetrics) replayed(givenID string) {
	rest, ok := strings.CutPrefix(givenID, "replay/")
	if !ok { // nearly all
		return
	}
	id := strings.Split(rest, "/")
	if len(id) != 4 || !slices.Contains(replayOutcomes, id[3]) {
		return
	}
	if n, err := strconv.Atoi(id[2]); err == nil && n >= 1 && n <= mostRounds {
		j.replays.WithLabelValues(strconv.Itoa(n), id[3]).Inc()
	}
}

// FollowJudge shows how long the oldest request that is not answered has waited, looked up at each scrape. Call it once.
func (m *Metrics) FollowJudge(oldest func() time.Time) {
	m.gauge("judge_oldest_waiting_seconds", "Age of the oldest request to the judge that this process has read and not answered; 0 when there is none.", nil, func() int64 {
		came := oldest()
		if came.IsZero() {
			return 0
		}
		return int64(max(0, time.Since(came)).Seconds())
	})
}

// JudgeAsked counts requests by their reason.
func (m *Metrics) JudgeAsked(why string, n int) { m.judge.asked.WithLabelValues(why).Add(float64(n)) }

// JudgeLost counts requests that the brokers did not take.
func (m *Metrics) JudgeLost(n int) { m.judge.lost.Add(float64(n)) }

// Judged counts a request that was handled.
func (m *Metrics) Judged(why, outcome, reason string, took time.Duration) {
	m.judge.answers.WithLabelValues(why, outcome, reason).Inc()
	m.judge.took.WithLabelValues(outcome).Observe(took.Seconds())
}

// JudgeSpent counts what an answer took.
func (m *Metrics) JudgeSpent(calls, tokensIn, tokensOut int, usd float64) {
	m.judge.calls.Add(float64(calls))
	m.judge.tokens.WithLabelValues("input").Add(float64(tokensIn))
	m.judge.tokens.WithLabelValues("output").Add(float64(tokensOut))
	m.judge.cost.Add(usd)
}

// JudgeOdd counts what was odd about answers.
func (m *Metrics) JudgeOdd(what string, n int) { m.judge.odd.WithLabelValues(what).Add(float64(n)) }

// JudgeAgainst counts a verdict of the judge beside the rules'.
func (m *Metrics) JudgeAgainst(rules, judge bool) {
	m.judge.against.WithLabelValues(strconv.FormatBool(rules), strconv.FormatBool(judge)).Inc()
}
