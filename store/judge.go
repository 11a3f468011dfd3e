package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// What package judge/lane asks of the store.

// Judgement is a stored verdict of the judge with its words.
type Judgement struct {
	audit.Verdict
	Words string // JSON, never ""
}

// judgementsSince bounds how far back an equal text is looked for, in event days.
const judgementsSince = 90

// SameInput gives the judge's newest verdict on an equal input by one rule set (model and prompt), whichever model the server took for it
// ("… as NAME"), nil when there is none or its words are dropped. Other tenants' are not looked at.
func (t *Tenant) SameInput(ctx context.Context, ruleSet string, input [32]byte, now time.Time) (*Judgement, error) {
	const op = "store: same input"
	q := t.from("verdicts").current().and("analyzer = 'judge' AND status = 'done' AND reason = ''").and("(rule_set = ? OR startsWith(rule_set, ?))", ruleSet, ruleSet+" as ").
		and("input_digest = toFixedString(unhex(?), 32)", hex.EncodeToString(input[:])).and("event_day >= toDate(?) - ?", day(now), judgementsSince)
	var out *Judgement
	var it Item
	err := t.each(ctx, op, q.sql(verdictColumns+", event_day, event_id", "ORDER BY analysis_ts DESC, result_id DESC LIMIT 1"), q.args, func(rows driver.Rows) error {
		var row struct {
			verdictRow
			Day     time.Time `ch:"event_day"`
			EventID uuid.UUID `ch:"event_id"`
		}
		if err := rows.ScanStruct(&row); err != nil {
			return err
		}
		out, it = &Judgement{Verdict: row.verdict()}, Item{Tenant: t.tenant, Time: row.Day.UTC(), EventID: audit.ID(row.EventID)}
		return nil
	})
	if err != nil || out == nil {
		return nil, err
	}
	texts, err := t.factTexts(ctx, &it, out.ResultID)
	if out.Words = texts["judge_verdict"]; err != nil || out.Words == "" {
		return nil, err
	}
	return out, nil
}

// JudgeWords gives the words of a verdict of the judge, "" once they are dropped.
func (t *Tenant) JudgeWords(ctx context.Context, it *Item, result audit.ID) (string, error) {
	texts, err := t.factTexts(ctx, it, result)
	return texts["judge_verdict"], err
}

// Unjudged is an interaction without any verdict of the judge.
type Unjudged struct {
	Key
	Domain         audit.Domain
	WithoutContent bool
	Status         audit.Status // of all analysis
	Detected       bool
	BiasSum        audit.Score
	Threshold      audit.Score
}

// Unjudged hands over the interactions whose row of the read model was written in a range of the store's time, of all
// tenants, and on which the judge never said anything, not even that it failed.
func (s *Store) Unjudged(ctx context.Context, w Written, each func(Unjudged) error) error {
	const op = "store: unjudged"
	written := s.from("audit_current").and(w.sql())
	had := s.from("verdicts").and("analyzer = 'judge'").and("(tenant_id, event_day, event_id) IN (" + written.sql("tenant_id, event_day, event_id", "") + ")")
	// The newest of what was written in the range, not FINAL, which would read the whole table: a row written since is handed over with its own range.
	q := s.from("audit_current").and(w.sql()).and("(" + keyColumns + ") NOT IN (" + had.sql(keyColumns, "") + ")")
	return s.each(ctx, op, q.sql(keyColumns+", domain, without_content, analysis_status, bias_detected, bias_sum, threshold", "ORDER BY version DESC LIMIT 1 BY "+keyColumns), nil, func(rows driver.Rows) error {
		var u Unjudged
		var id uuid.UUID
		var dig, domain, status string
		var without, detected uint8
		var sum, threshold int64
		if err := rows.Scan(&u.Tenant, &u.Day, &id, &dig, &domain, &without, &status, &detected, &sum, &threshold); err != nil {
			return err
		}
		u.Day, u.ID, u.Digest = u.Day.UTC(), audit.ID(id), digest(dig)
		u.Domain, u.WithoutContent, u.Status, u.Detected = audit.Domain(domain), without == 1, audit.Status(status), detected == 1
		u.BiasSum, u.Threshold = audit.Score(sum), audit.Score(threshold)
		return each(u)
	})
}

// JudgeDue says which verdicts of the judge that did not come about are due for another attempt.
type JudgeDue struct {
	// Written is the range of the store's time in which the attempt is due: each is due once.
	Written
	// First is how long after the first failure the next attempt is due; each later one waits four times as long
	// as the one before, at most Most. What was skipped is due when the next day begins, UTC.
	First, Most time.Duration
	// Days back from the range's end are looked at, by event day.
	Days int
}

// Unanswered hands over interactions whose newest verdict of the judge failed or was skipped and is due, of all tenants,
// with the number of their verdicts so far.
func (s *Store) Unanswered(ctx context.Context, d JudgeDue, each func(k Key, attempts int) error) error {
	const op = "store: unanswered"
	open := s.from("verdicts").and("analyzer = 'judge' AND status IN ('failed', 'skipped')").and(fmt.Sprintf("event_day >= toDate(?) - %d", d.Days), day(d.To))
	q := s.from("verdicts").current().and("analyzer = 'judge'").and("("+keyColumns+") IN ("+open.sql(keyColumns, "")+")", open.args...)
	next := fmt.Sprintf("if(state = 'skipped', toUnixTimestamp(toStartOfDay(ts, 'UTC') + INTERVAL 1 DAY) * 1000, toUnixTimestamp64Milli(ts) + toInt64(least(%d * pow(4, greatest(failed, 1) - 1), %d)))",
		d.First.Milliseconds(), d.Most.Milliseconds())
	sql := "SELECT " + keyColumns + ", n FROM (" +
		q.sql(keyColumns+", count() AS n, countIf(status = 'failed') AS failed, argMax(status, (analysis_ts, result_id)) AS state, max(written_at) AS ts", "GROUP BY "+keyColumns+" HAVING state IN ('failed', 'skipped')") +
		fmt.Sprintf(") WHERE %[1]s > %[2]d AND %[1]s <= %[3]d", next, max(0, d.From.UnixMilli()), d.To.UnixMilli())
	return s.each(ctx, op, sql, q.args, func(rows driver.Rows) error {
		var k Key
		var id uuid.UUID
		var dig string
		var n uint64
		if err := rows.Scan(&k.Tenant, &k.Day, &id, &dig, &n); err != nil {
			return err
		}
		k.Day, k.ID, k.Digest = k.Day.UTC(), audit.ID(id), digest(dig)
		return each(k, int(n))
	})
}

// JudgeCoverage counts interactions by the judge's newest word on them. What was chosen and is not answered yet is not among them.
type JudgeCoverage struct {
	Judged    uint64  `json:"judged"`
	Failed    uint64  `json:"failed"`    // to be asked again
	Skipped   uint64  `json:"skipped"`   // for want of budget, to be asked again
	Abandoned uint64  `json:"abandoned"` // given up
	Calls     uint64  `json:"calls"`
	CostUSD   float64 `json:"cost_usd"` // as far as prices are known
}

// Judged gives the coverage of the judge over the event days of a window; an open window is the last seven days.
func (f *Figures) Judged(ctx context.Context, w Window) (c JudgeCoverage, err error) {
	w = w.resolved(time.Now())
	q := f.from("verdicts").current().and("analyzer = 'judge'").and("event_day >= toDate(?)", day(w.From)).and("event_day <= toDate(?)", day(w.To))
	of := inside(q, "argMax(status, (analysis_ts, result_id)) AS state, sum(calls) AS asked, sum(cost_micro_usd) AS cost", "GROUP BY "+keyColumns)
	sql := of.sql("countIf(state = 'done'), countIf(state = 'failed'), countIf(state = 'skipped'), countIf(state = 'abandoned'), toUInt64(sum(asked)), sum(cost) / 1e6", "")
	return c, f.one(ctx, "store: judged", sql, of.args, &c.Judged, &c.Failed, &c.Skipped, &c.Abandoned, &c.Calls, &c.CostUSD)
}
