package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// analysed is the denominator of every rate: interactions that were looked at, in whole or in part.
// What failed, was skipped or waits is never counted as clean.
const analysed = "analysis_status IN ('done', 'partial')"

// DomainRates are the rates of one domain. N is the number of analysed interactions, the same in each.
type DomainRates struct {
	Domain   audit.Domain `json:"domain"`
	N        uint64       `json:"n"`
	Detected Rate         `json:"detected"` // any finding of a bias detector in the response
	Flagged  Rate         `json:"flagged"`  // the domain's threshold was passed
	Kinds    []KindRate   `json:"kinds"`    // kinds that were found, most frequent first
}

// KindRate is how often a kind of bias was found.
type KindRate struct {
	Kind   string       `json:"kind"`             // charter.sex, terms.gender, …
	Ground audit.Ground `json:"ground,omitempty"` // of the charter.* kinds
	Rate
}

// Rates gives the bias rates by domain and kind over a window; an open window is the last seven days.
// An interaction counts once a kind, however many findings of it there are. As in trends, bias that was
// dismissed is not counted, and its interaction stays in N.
func (f *Figures) Rates(ctx context.Context, w Window) ([]DomainRates, error) {
	q := f.from("audit_current").current().within(w.resolved(time.Now())).and(analysed)
	// '#' cannot stand in a taxonomy key, so the three totals ride along as kinds.
	sql := q.sql(`domain, arrayJoin(arrayConcat(['#n'], if(review = 'dismissed', [], arrayConcat(if(bias_detected = 1, ['#detected'], []), if(flagged = 1, ['#flagged'], []), bias_types)))) AS k, count()`,
		"GROUP BY domain, k")
	counts := map[audit.Domain]map[string]uint64{}
	err := f.each(ctx, "store: rates", sql, q.args, func(r driver.Rows) error {
		var domain, kind string
		var n uint64
		if err := r.Scan(&domain, &kind, &n); err != nil {
			return err
		}
		d := audit.Domain(domain)
		if counts[d] == nil {
			counts[d] = map[string]uint64{}
		}
		counts[d][kind] = n
		return nil
	})
	var out []DomainRates
	for d, c := range counts {
		n := c["#n"]
		dr := DomainRates{Domain: d, N: n, Detected: RateOf(c["#detected"], n), Flagged: RateOf(c["#flagged"], n), Kinds: []KindRate{}}
		for kind, k := range c {
			if strings.HasPrefix(kind, "#") {
				continue
			}
			kr := KindRate{Kind: kind, Rate: RateOf(k, n)}
			if g, ok := strings.CutPrefix(kind, "charter."); ok {
				kr.Ground = audit.Ground(g)
			}
			dr.Kinds = append(dr.Kinds, kr)
		}
		slices.SortFunc(dr.Kinds, func(a, b KindRate) int { return cmp.Or(cmp.Compare(b.K, a.K), cmp.Compare(a.Kind, b.Kind)) })
		out = append(out, dr)
	}
	slices.SortFunc(out, func(a, b DomainRates) int { return cmp.Compare(a.Domain, b.Domain) })
	return out, err
}

// TopFinding is a rule by how many interactions it fired in, with one example.
type TopFinding struct {
	Rule         string         `json:"rule"`
	Kind         string         `json:"kind"`
	Severity     audit.Severity `json:"severity"`
	Interactions uint64         `json:"interactions"`
	Findings     uint64         `json:"findings"`
	// The example is the one with the highest score, the newest of those.
	Tenant   string     `json:"tenant"`
	EventID  string     `json:"event_id"`
	Side     audit.Side `json:"side"`
	Span     audit.Span `json:"span"`
	Evidence string     `json:"evidence"` // with personal data masked: [CREDENTIAL], [EMAIL], …; "" once the text is dropped

	id     audit.ID
	day    time.Time
	digest [32]byte
}

// TopFindings gives the rules that fired in the response, by severity and then by the number of
// interactions; rules without one (gates) come last. Bias that was dismissed is left out. limit is 1..100.
func (f *Figures) TopFindings(ctx context.Context, w Window, limit int) ([]TopFinding, error) {
	const op = "store: top findings"
	if limit < 1 || limit > 100 {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("limit: %d is not in 1..100", limit))
	}
	w = w.resolved(time.Now())
	q := f.from("current_verdicts").and("event_day >= toDate(?)", day(w.From)).and("event_day <= toDate(?)", day(w.To)).
		and("notEmpty(findings.kind)")
	// Verdicts know their day only: on the days of the window's edges the read model tells the time.
	for _, edge := range edges(w) {
		in := f.from("audit_current").and("event_day = toDate(?)", edge).within(w)
		q.and("(event_day != toDate(?) OR (tenant_id, event_id) IN ("+in.sql("tenant_id, event_id", "")+"))", append([]any{edge}, in.args...)...)
	}
	columns := `f.2 AS rule, f.1 AS kind, argMax((tenant_id, event_day, event_id, content_digest, f.5, f.6, f.7), (f.4, event_day, event_id)) AS e, max(f.3) AS top,
		uniqExact(tenant_id, event_id, content_digest) AS n, count() AS findings,
		e.1 AS e_tenant, e.2 AS e_day, e.3 AS e_id, e.4 AS e_digest, e.5 AS e_side, e.6 AS e_start, e.7 AS e_end`
	q.table += ` ARRAY JOIN arrayZip(findings.kind, findings.rule, findings.severity, findings.score, findings.side, findings.start, findings.end) AS f`
	in := f.from("audit_current").current().and("event_day >= toDate(?)", day(w.From)).and("event_day <= toDate(?)", day(w.To)).and("review = 'dismissed'")
	q.and("f.5 = 'output'").and("(tenant_id, event_id, content_digest, f.1) NOT IN ("+in.sql("tenant_id, event_id, content_digest, arrayJoin(bias_types)", "")+")", in.args...)
	sql := inside(q, columns, "GROUP BY rule, kind").sql("rule, kind, n, findings, e_tenant, e_day, e_id, e_digest, top, e_side, e_start, e_end",
		fmt.Sprintf("ORDER BY top DESC, n DESC, findings DESC, rule LIMIT %d", limit))
	var top []TopFinding
	err := f.each(ctx, op, sql, q.args, func(r driver.Rows) error {
		var t TopFinding
		var id uuid.UUID
		var level uint8
		var side, dig string
		if err := r.Scan(&t.Rule, &t.Kind, &t.Interactions, &t.Findings, &t.Tenant, &t.day, &id, &dig, &level, &side, &t.Span.Start, &t.Span.End); err != nil {
			return err
		}
		t.id, t.EventID, t.Severity, t.Side, t.digest = audit.ID(id), id.String(), severity(level), audit.Side(side), digest(dig)
		top = append(top, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range top {
		if err := f.evidence(ctx, &top[i]); err != nil {
			return nil, err
		}
	}
	return top, nil
}

// edges are the days that a window covers in part.
func edges(w Window) []string {
	var days []string
	for _, t := range []time.Time{w.From, w.To} {
		if t = t.UTC(); !t.Equal(t.Truncate(24*time.Hour)) && !slices.Contains(days, day(t)) {
			days = append(days, day(t))
		}
	}
	if end := w.To.UTC(); end.Equal(end.Truncate(24 * time.Hour)) {
		days = append(days, day(end)) // the day that begins at an exclusive end holds nothing of the window
	}
	return days
}

// evidence reads what the example's rule found. Figures go into reports: personal data that was found there is masked.
func (f *Figures) evidence(ctx context.Context, t *TopFinding) error {
	kind := "response"
	if t.Side == audit.Input {
		kind = "prompt"
	}
	s := f.of(t.Tenant)
	found, err := s.personal(ctx, t)
	if err != nil {
		return err
	}
	q := s.key("interaction_texts", &Item{EventID: t.id, Time: t.day}).and("kind = ?", kind)
	return s.each(ctx, "store: top findings", q.sql("source_id, text", ""), q.args, func(r driver.Rows) error {
		var source, text string
		if err := r.Scan(&source, &text); err != nil {
			return err
		}
		if digest(source) == t.digest {
			t.Evidence = masked(text, t.Span, found)
		}
		return nil
	})
}

// personalPart is personal data in a text, by what it is: CREDENTIAL, EMAIL, …
type personalPart struct {
	audit.Span
	entity string
}

// personal reads what of an example's evidence is personal data, in order.
func (s scope) personal(ctx context.Context, t *TopFinding) (found []personalPart, err error) {
	q := s.from("current_verdicts").and("event_day = toDate(?)", day(t.day)).and("event_id = toUUID(?)", t.EventID).and("content_digest = toFixedString(unhex(?), 32)", hex.EncodeToString(t.digest[:]))
	q.table += ` ARRAY JOIN arrayZip(findings.kind, findings.entity, findings.side, findings.start, findings.end) AS f`
	q.and("(startsWith(f.1, 'pii.') OR f.1 = 'safety.pii_leakage')").and("f.3 = ?", string(t.Side)).and("f.4 < ?", t.Span.End).and("f.5 > ?", t.Span.Start)
	err = s.each(ctx, "store: top findings", q.sql("f.4, f.5, toString(f.2)", "ORDER BY f.4, f.5 DESC, f.2 DESC"), q.args, func(r driver.Rows) error {
		var p personalPart
		err := r.Scan(&p.Start, &p.End, &p.entity)
		found = append(found, p)
		return err
	})
	return found, err
}

// masked is a span of a text in which [ENTITY] stands for personal data, as masking has it.
func masked(text string, span audit.Span, found []personalPart) string {
	var out strings.Builder
	at := span.Start
	for i, p := range found {
		if i == 0 || p.Start >= at { // else it lies over one that is masked
			out.WriteString(audit.Span{Start: at, End: max(at, p.Start)}.Slice(text))
			out.WriteString("[" + cmp.Or(p.entity, "PERSONAL_DATA") + "]")
		}
		at = max(at, p.End)
	}
	if at < span.End {
		out.WriteString(audit.Span{Start: at, End: span.End}.Slice(text))
	}
	return out.String()
}

// Coverage says how much of what came in was looked at. Analysed, Failed, Pending, Skipped and
// Abandoned sum to Received; Partial is a part of Analysed, WithoutContent cuts across.
type Coverage struct {
	Received       uint64 `json:"received"` // interactions stored
	Analysed       uint64 `json:"analysed"`
	Partial        uint64 `json:"partial"`
	Failed         uint64 `json:"failed"`
	Pending        uint64 `json:"pending"`
	Skipped        uint64 `json:"skipped"`
	Abandoned      uint64 `json:"abandoned"`
	WithoutContent uint64 `json:"without_content"`
	Truncated      uint64 `json:"truncated"`
	// OtherLanguages are those of Analysed whose response is in a language that the detectors have not learnt.
	OtherLanguages uint64 `json:"other_languages"`
	// Dismissed are those of Analysed whose bias a review dismissed: no rate counts it as found.
	Dismissed uint64 `json:"dismissed"`
	// Unfound are those of Analysed whose bias a review confirmed and nothing found: no rate counts it either.
	Unfound uint64 `json:"unfound"`
	// OtherDomains are those of Received whose producer named a domain that has no profile: they were scored as general.
	OtherDomains uint64 `json:"other_domains"`
	// Rejected are dead letters by broker time, without requests to the judge; those without a known tenant count for all tenants only.
	Rejected uint64 `json:"rejected"`
}

// Coverage gives the coverage of a window; an open window is the last seven days.
func (f *Figures) Coverage(ctx context.Context, w Window) (c Coverage, err error) {
	const op = "store: coverage"
	w = w.resolved(time.Now())
	q := f.from("audit_current").current().within(w)
	sql := q.sql(`count(), countIf(`+analysed+`), countIf(analysis_status = 'partial'), countIf(analysis_status = 'failed'),
		countIf(analysis_status = 'pending'), countIf(analysis_status = 'skipped'), countIf(analysis_status = 'abandoned'),
		countIf(without_content = 1), countIf(truncated = 1),
		countIf(`+analysed+` AND bias_detected = 1 AND review = 'dismissed'), countIf(`+analysed+` AND bias_detected = 0 AND review = 'confirmed')`, "")
	if err := f.one(ctx, op, sql, q.args, &c.Received, &c.Analysed, &c.Partial, &c.Failed, &c.Pending, &c.Skipped, &c.Abandoned, &c.WithoutContent, &c.Truncated, &c.Dismissed, &c.Unfound); err != nil {
		return c, err
	}
	in := f.from("verdicts").current().and("analyzer = ?", audit.HotAnalyzer).and("status = 'done'").and("reason = ?", audit.OtherLanguage).
		and("event_day >= toDate(?)", day(w.From)).and("event_day <= toDate(?)", day(w.To))
	q = f.from("audit_current").current().within(w).and("("+keyColumns+") IN ("+in.sql(keyColumns, "")+")", in.args...)
	if err := f.one(ctx, op, q.sql("count()", ""), q.args, &c.OtherLanguages); err != nil {
		return c, err
	}
	q = f.from("interactions").current().within(w).and("domain_given != ''")
	if err := f.one(ctx, op, q.sql("count()", ""), q.args, &c.OtherDomains); err != nil {
		return c, err
	}
	q = f.from("rejected").current().and("topic != 'evenhand.judge'").and("broker_ts >= "+instant, w.From.UnixMilli()).and("broker_ts < "+instant, w.To.UnixMilli())
	return c, f.one(ctx, op, q.sql("count()", ""), q.args, &c.Rejected)
}

// RuleSetUse is how many interactions a rule set judged, from the first to the last by their own time.
type RuleSetUse struct {
	RuleSet string    `json:"rule_set"`
	N       uint64    `json:"n"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// RuleSets gives those that judged what rates count, the oldest first; an open window is the last seven days.
// Rates of several are a mixture.
func (f *Figures) RuleSets(ctx context.Context, w Window) (sets []RuleSetUse, err error) {
	q := f.from("audit_current").current().within(w.resolved(time.Now())).and(analysed)
	err = f.each(ctx, "store: rule sets", q.sql("rule_set, count(), min(event_ts) AS first, max(event_ts)", "GROUP BY rule_set ORDER BY first, rule_set"), q.args, func(r driver.Rows) error {
		var u RuleSetUse
		err := r.Scan(&u.RuleSet, &u.N, &u.First, &u.Last)
		sets = append(sets, u)
		return err
	})
	return sets, err
}
