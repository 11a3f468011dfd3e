package store

import (
	"context"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Opinions gives the messages of evenhand.feedback for all reviews and feedback that were stored in a range
// of the store's time, oldest first. Those of interactions that are deleted are left out.
func (s *Store) Opinions(ctx context.Context, w Written) ([]audit.Opinion, error) {
	return s.opinions(ctx, w.sql())
}

// OpinionsOf gives the messages of the reviews and feedback of some ids, oldest first; keys are of the interactions
// that they are on, of one tenant.
func (s *Store) OpinionsOf(ctx context.Context, keys []Key, ids []audit.ID) ([]audit.Opinion, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	said := new(query).events(keys).and(anyID("fact_id", ids))
	return s.opinions(ctx, strings.Join(said.where, " AND "), said.args...)
}

// opinions reads facts by a condition on them, in which fact_id is their own id.
func (s *Store) opinions(ctx context.Context, cond string, args ...any) (out []audit.Opinion, err error) {
	said := func(columns string) string {
		r := s.from("reviews").current().and(cond).sql(columns+", review_id AS fact_id, 'review' AS opinion, toString(decision) AS decision, CAST(tags AS Array(String)) AS tags, CAST(NULL AS Nullable(Bool)) AS helped, reviewed_at AS at", "")
		f := s.from("feedback").current().and(cond).sql(columns+", feedback_id AS fact_id, 'feedback' AS opinion, '' AS decision, CAST([] AS Array(String)) AS tags, helped, given_at AS at", "")
		return r + " UNION ALL " + f
	}
	events := "(" + keyColumns + ") IN (SELECT " + keyColumns + " FROM (" + said(keyColumns) + "))"
	both := slices.Concat(args, args)
	i := s.from("interactions").current().and(events, both...)
	v := s.from("current_verdicts").and(events, both...)
	const fired = "arraySort(groupUniqArrayArray(arrayZip(CAST(findings.kind AS Array(String)), findings.rule, findings.rule_version, findings.side)))"
	sql := "SELECT o.fact_id, o.opinion, o.tenant_id, o.event_id, o.decision, o.tags, o.helped, o.at, i.trace_id, toString(i.domain), v.rules, v.fired.1, v.fired.2, v.fired.3, v.fired.4" +
		" FROM (" + said(keyColumns) + ") AS o INNER JOIN (" + i.sql(keyColumns+", trace_id, domain", "") + ") AS i USING (" + keyColumns + ")" +
		" LEFT JOIN (" + v.sql(keyColumns+", maxIf(rule_set, analyzer = 'hot') AS rules, "+fired+" AS fired", "GROUP BY "+keyColumns) + ") AS v USING (" + keyColumns + ")" +
		" ORDER BY o.at, o.fact_id"
	err = s.each(ctx, "store: opinions", sql, slices.Concat(both, i.args, v.args), func(rows driver.Rows) error {
		o := audit.Opinion{Findings: []audit.OpinionFinding{}}
		var id, event uuid.UUID
		var domain string
		var kinds, rules, versions, sides []string
		if err := rows.Scan(&id, &o.Kind, &o.Tenant, &event, &o.Decision, &o.Tags, &o.Helped, &o.Time, &o.TraceID, &domain, &o.RuleSet, &kinds, &rules, &versions, &sides); err != nil {
			return err
		}
		o.ID, o.Interaction, o.Domain, o.Time = audit.ID(id), audit.ID(event), audit.Domain(domain), o.Time.UTC()
		for n := range kinds {
			o.Findings = append(o.Findings, audit.OpinionFinding{Kind: kinds[n], Rule: rules[n], RuleVersion: versions[n], Side: audit.Side(sides[n])})
		}
		out = append(out, o)
		return nil
	})
	return out, err
}
