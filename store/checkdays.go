package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// factsOf are the columns that audit_current repeats from interactions.
var factsOf = []string{"event_ts", "sort_ts", "broker_ts", "time_assumed", "time_suspect", "trace_id", "app", "domain", "provider",
	"model", "sensitivity_score", "status", "without_content", "truncated"}

// verdictOf are the columns that audit_current makes of the current verdicts, each with its expression
// over them: detected is their or, types their union, the confidence that of the strongest. The view
// llm_interaction_audit merges in the same way.
var verdictOf = []mergedColumn{
	{"analysis_status", statusOrder + "[max(indexOf(" + statusOrder + ", status))]"},
	{"bias_detected", "max(v.bias_detected)"},
	{"flagged", "max(v.flagged)"},
	{"unsafe", "max(v.unsafe)"},
	{"gated", "max(v.gated)"},
	{"bias_types", "arraySort(groupUniqArrayArray(CAST(v.bias_types AS Array(String))))"},
	{"kinds", "arraySort(groupUniqArrayArray(CAST(arrayFilter((k, side) -> side = 'output', v.findings.kind, v.findings.side) AS Array(String))))"},
	{"max_severity", "max(v.max_severity)"},
	{"n_findings", "toUInt16(least(sum(length(v.findings.kind)), 65535))"},
	{"confidence", "argMax(v.confidence, (v.max_severity, v.confidence, v.analyzer))"},
	{"bias_sum", "maxIf(v.bias_sum, v.analyzer = 'hot')"},
	{"safety_sum", "maxIf(v.safety_sum, v.analyzer = 'hot')"},
	{"threshold", "maxIf(v.threshold, v.analyzer = 'hot')"},
	{"toxicity", "max(v.scores.value[indexOf(v.scores.name, 'toxicity')])"},
	{"pii", "max(v.scores.value[indexOf(v.scores.name, 'pii')])"},
	{"hallucination", "max(v.scores.value[indexOf(v.scores.name, 'hallucination')])"},
}

type mergedColumn struct{ column, merged string }

// flat is the column in audit_current; arrays get the type of the merged ones, so that hashes agree.
func (c mergedColumn) flat() string {
	if strings.Contains(c.merged, "Array(String)") {
		return "CAST(" + c.column + " AS Array(String))"
	}
	return c.column
}

const statusOrder = "['', 'done', 'skipped', 'partial', 'pending', 'failed', 'abandoned']"

// checkDays compares facts, verdicts and the read model, a day at a time so that memory stays bounded.
func (s *Store) checkDays(ctx context.Context, r *Report) error {
	const op = "store: check days"
	var days []string
	sql := fmt.Sprintf("SELECT DISTINCT toString(event_day) AS d FROM (SELECT event_day FROM %[1]s.interactions UNION ALL SELECT event_day FROM %[1]s.audit_current UNION ALL SELECT event_day FROM %[1]s.verdicts) ORDER BY d", s.db)
	err := s.each(ctx, op, sql, nil, func(rows driver.Rows) error {
		var d string
		if err := rows.Scan(&d); err != nil {
			return err
		}
		days = append(days, d)
		return nil
	})
	if err != nil {
		return err
	}
	var newest time.Time
	if err := s.one(ctx, op, s.from("ingest_batches").sql("max(written_at)", ""), nil, &newest); err != nil {
		return err
	}
	for _, d := range days {
		if err := s.checkDay(ctx, r, d, newest.Add(-grace)); err != nil {
			return err
		}
	}
	return nil
}

// checkDay lays the three tables of one day over each other by key, as hashes: a fact and a flat row
// cancel out (xor) when their columns agree, so equality needs no join.
func (s *Store) checkDay(ctx context.Context, r *Report, d string, settled time.Time) error {
	const op = "store: check days"
	const key = "sipHash128(tenant_id, event_id, content_digest) AS k, event_id AS id"
	const badKey = "(event_day != toDate(event_ts) OR event_day != toDate(sort_ts) OR sort_ts != if(time_assumed = 1, toDateTime64(event_day, 3, 'UTC'), event_ts)) AS bad"
	hashOfFacts := "cityHash64(" + strings.Join(factsOf, ", ") + ") AS hf"
	var flatColumns, merged []string
	for _, c := range verdictOf {
		flatColumns, merged = append(flatColumns, c.flat()), append(merged, c.merged)
	}
	marked, args := tiled(r)

	facts := s.from("interactions").current().and("event_day = toDate(?)", d)
	flat := s.from("audit_current").current().and("event_day = toDate(?)", d)
	verdicts := s.from("current_verdicts AS v").and("event_day = toDate(?)", d)
	inner := strings.Join([]string{
		facts.sql(key+", 1 AS src, "+marked+" AS judged, "+hashOfFacts+", toUInt64(0) AS hv, "+badKey, ""),
		flat.sql(key+", 2 AS src, toUInt8(written_at < now64(3) - INTERVAL 5 SECOND) AS judged, "+hashOfFacts+
			", cityHash64("+strings.Join(flatColumns, ", ")+") AS hv, "+badKey, ""),
		verdicts.sql(key+", 3 AS src, toUInt8(max(v.written_at) < "+instant+") AS judged, toUInt64(0) AS hf, cityHash64("+
			strings.Join(merged, ", ")+") AS hv, toUInt8(countIf(analyzer = 'hot') != 1) AS bad", "GROUP BY tenant_id, event_id, content_digest"),
	}, " UNION ALL ")
	args = append(append(args, facts.args...), flat.args...)
	args = append(append(args, settled.UnixMilli()), verdicts.args...)
	grouped := `SELECT any(id) AS id, countIf(src = 1) AS i, countIf(src = 2) AS a, countIf(src = 3 AND bad = 0) AS v, maxIf(judged, src = 1) AS i_judged,
		maxIf(judged, src = 2) AS a_judged, maxIf(judged, src = 3) AS v_judged, groupBitXorIf(hf, src < 3) AS xf, groupBitXorIf(hv, src > 1) AS xv, maxIf(bad, src < 3) AS bad_key
		FROM (` + inner + `) GROUP BY k`
	conditions := []struct {
		code FaultCode
		cond string
	}{
		{FaultVerdictMissing, "i = 1 AND i_judged = 1 AND v = 0"},
		{FaultCurrentMissing, "i = 1 AND i_judged = 1 AND a = 0"},
		{FaultCurrentOrphan, "i = 0 AND a > 0 AND a_judged = 1"},
		{FaultVerdictOrphan, "i = 0 AND a = 0 AND v = 1 AND v_judged = 1"},
		{FaultCurrentUnequal, "i = 1 AND a = 1 AND (xf != 0 OR v = 1 AND xv != 0) OR a > 1"},
		{FaultKeyWrong, "bad_key = 1"},
	}
	columns := []string{"countIf(v = 1)"}
	for _, c := range conditions {
		columns = append(columns, "countIf("+c.cond+")", "groupArrayIf(10)(id, "+c.cond+")")
	}
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM (" + grouped + ") SETTINGS max_bytes_before_external_group_by = 500000000"
	counts, examples := make([]uint64, len(conditions)), make([][]uuid.UUID, len(conditions))
	var n uint64
	dest := []any{&n}
	for i := range conditions {
		dest = append(dest, &counts[i], &examples[i])
	}
	if err := s.one(ctx, op, sql, args, dest...); err != nil {
		return err
	}
	r.Verdicts += n
	for i, c := range conditions {
		if counts[i] == 0 {
			continue
		}
		f := Fault{Code: c.code, Count: counts[i], Day: d}
		for _, id := range examples[i] {
			f.Events = append(f.Events, id.String())
		}
		if c.code == FaultCurrentUnequal {
			var err error
			if f.Columns, err = s.unequal(ctx, d, f.Events); err != nil {
				return err
			}
		}
		r.fault(f)
	}
	return nil
}

// tiled is the condition that a marker covers a row.
func tiled(r *Report) (string, []any) {
	conds, args := []string{"0"}, []any{}
	for _, p := range r.Partitions {
		conds = append(conds, "topic = ? AND epoch = ? AND partition = ? AND offset BETWEEN ? AND ?")
		args = append(args, p.Topic, p.Epoch, p.Partition, p.Lo, p.Hi)
	}
	return "toUInt8(" + strings.Join(conds, " OR ") + ")", args
}

// unequal names the columns in which the flat rows of some events differ from the facts.
func (s *Store) unequal(ctx context.Context, d string, events []string) ([]string, error) {
	var ids []string
	for _, id := range events {
		ids = append(ids, "toUUID('"+id+"')")
	}
	in := "event_id IN (" + strings.Join(ids, ", ") + ")"
	rows := func(table string) *query {
		return s.from(table).current().and("event_day = toDate(?)", d).and(in)
	}
	flat, facts := rows("audit_current"), rows("interactions")
	verdicts := s.from("current_verdicts AS v").and("event_day = toDate(?)", d).and(in)
	var merged, differ []string
	for _, c := range verdictOf {
		merged = append(merged, c.merged+" AS m_"+c.column)
		differ = append(differ, fmt.Sprintf("if(a.%[1]s != v.m_%[1]s, ['%[1]s'], [])", c.column))
	}
	for _, c := range factsOf {
		differ = append(differ, fmt.Sprintf("if(a.%[1]s != i.%[1]s, ['%[1]s'], [])", c))
	}
	using := "tenant_id, event_id, content_digest"
	sql := "SELECT arraySort(groupUniqArrayArray(arrayConcat(" + strings.Join(differ, ", ") + "))) FROM (" + flat.sql("*", "") + ") AS a INNER JOIN (" +
		facts.sql("*", "") + ") AS i USING (" + using + ") INNER JOIN (" + verdicts.sql(using+", "+strings.Join(merged, ", "), "GROUP BY "+using) + ") AS v USING (" + using + ")"
	args := append(append(append([]any{}, flat.args...), facts.args...), verdicts.args...)
	var columns []string
	return columns, s.one(ctx, "store: check days", sql, args, &columns)
}
