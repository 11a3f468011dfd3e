package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// factsOf are the columns that audit_current repeats from interactions.
var factsOf = []string{"event_ts", "sort_ts", "broker_ts", "time_assumed", "time_suspect", "trace_id", "app", "domain", "provider",
	"model", "sensitivity_score", "status", "without_content", "truncated", "cost_micro_usd"}

// placeOf are the columns that say which delivery a row is; equal but for ties (see checkTies).
var placeOf = []string{"topic", "partition", "offset"}

// verdictOf are the columns that audit_current makes of the current verdicts, each with its expression
// over them: detected is their or, types their union, the confidence that of the strongest, those that found bias first. The view
// llm_interaction_audit merges in the same way.
var verdictOf = []mergedColumn{
	{"analysis_status", statusOrder + "[max(indexOf(" + statusOrder + ", status))]"},
	{"rule_set", "maxIf(v.rule_set, v.analyzer = 'hot')"},
	{"bias_detected", "max(v.bias_detected)"},
	{"flagged", "max(v.flagged)"},
	{"unsafe", "max(v.unsafe)"},
	{"gated", "max(v.gated)"},
	{"bias_types", "arraySort(groupUniqArrayArray(CAST(v.bias_types AS Array(String))))"},
	{"kinds", "arraySort(groupUniqArrayArray(CAST(arrayFilter((k, side) -> side = 'output', v.findings.kind, v.findings.side) AS Array(String))))"},
	{"severities", "arrayMap(s -> toUInt8(s - 1), maxMap(CAST(arrayFilter((k, side) -> side = 'output', v.findings.kind, v.findings.side) AS Array(String)), " +
		"arrayMap(s -> toUInt8(s + 1), arrayFilter((s, side) -> side = 'output', v.findings.severity, v.findings.side))).2)"}, // one more, for zeros would be left out
	{"max_severity", "max(v.max_severity)"},
	{"n_findings", "toUInt16(least(sum(length(v.findings.kind)), 65535))"},
	{"confidence", "argMax(v.confidence, (v.bias_detected, v.max_severity, v.confidence, v.analyzer))"},
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
	if strings.HasPrefix(c.merged, "arraySort(groupUniqArrayArray(CAST(") {
		return "CAST(" + c.column + " AS Array(String))"
	}
	return c.column
}

const statusOrder = "['', 'done', 'skipped', 'partial', 'pending', 'failed', 'abandoned']"

// chunkRows bounds how many interactions one query lays over each other; it bounds memory.
const chunkRows = 500_000

// chunk is what one query looks at: some days, or one of several parts of a large day.
type chunk struct {
	from, to    string
	part, parts uint64
	also        string // a condition more, "" for none
}

// bind restricts a query to the chunk.
func (c chunk) bind(q *query) *query {
	c.share(q.and("event_day >= toDate(?)", c.from).and("event_day <= toDate(?)", c.to))
	if c.also != "" {
		q.and(c.also)
	}
	return q
}

// share restricts a query to the ids of the chunk's part, where the day has several.
func (c chunk) share(q *query) *query {
	if c.parts > 1 {
		q.and(c.ids())
	}
	return q
}

// ids are the part's: a range of the primary key, so that of a large day no more is read than the part. The store orders UUIDs by their
// second half (https://clickhouse.com/docs/sql-reference/data-types/uuid), which begins with the variant's two bits and then is random or a hash in
// all versions but 1; ids of another variant go to the first or the last part.
func (c chunk) ids() string {
	const variant, each = uint64(1) << 63, uint64(1) << 62
	from := func(part uint64) string {
		half := variant + part*(each/c.parts)
		return fmt.Sprintf("toUUID('00000000-0000-0000-%04x-%012x')", half>>48, half&(1<<48-1))
	}
	switch c.part {
	case 0:
		return "event_id < " + from(1)
	case c.parts - 1:
		return "event_id >= " + from(c.part)
	}
	return "event_id >= " + from(c.part) + " AND event_id < " + from(c.part+1)
}

// chunks groups consecutive days, given in order with their rows.
func chunks(days []string, rows []uint64) (out []chunk) {
	var held uint64
	for i, d := range days {
		switch last := len(out) - 1; {
		case rows[i] > chunkRows:
			parts := (rows[i] + chunkRows - 1) / chunkRows
			for part := range parts {
				out = append(out, chunk{from: d, to: d, part: part, parts: parts})
			}
			held = chunkRows
		case last >= 0 && held+rows[i] <= chunkRows:
			out[last].to = d
			held += rows[i]
		default:
			out = append(out, chunk{from: d, to: d, parts: 1})
			held = rows[i]
		}
	}
	return out
}

// checkDays compares facts, verdicts and the read model, a chunk at a time so that memory stays bounded.
func (s *Store) checkDays(ctx context.Context, r *Report) error {
	all, err := s.dayChunks(ctx, "store: check days")
	if err != nil {
		return err
	}
	at, err := s.settled(ctx, r)
	if err != nil {
		return err
	}
	for i, c := range all {
		c.also = r.purged.settledMonths(s)
		for _, step := range []func(context.Context, *Report, chunk, settled) error{s.checkChunk, s.checkHot, s.checkOrphans} {
			if err := step(ctx, r, c, at); err != nil {
				return err
			}
		}
		r.tell("days", i+1, len(all))
	}
	return nil
}

// dayChunks divides all event days that have rows.
func (s *Store) dayChunks(ctx context.Context, op string) ([]chunk, error) {
	sql := fmt.Sprintf(`SELECT toString(event_day) AS d, max(n) FROM (SELECT event_day, count() AS n FROM %[1]s.interactions GROUP BY event_day
		UNION ALL SELECT event_day, count() FROM %[1]s.audit_current GROUP BY event_day UNION ALL SELECT event_day, count() FROM %[1]s.verdicts GROUP BY event_day
		UNION ALL SELECT event_day, intDiv(count(), 3) FROM %[1]s.interaction_texts GROUP BY event_day) GROUP BY d ORDER BY d`, s.db)
	days, counts, err := s.rowsByDay(ctx, op, sql)
	return chunks(days, counts), err
}

// rowsByDay reads a query's days and the rows of each.
func (s *Store) rowsByDay(ctx context.Context, op, sql string) (days []string, counts []uint64, err error) {
	err = s.each(ctx, op, sql, nil, func(rows driver.Rows) error {
		var d string
		var n uint64
		if err := rows.Scan(&d, &n); err != nil {
			return err
		}
		days, counts = append(days, d), append(counts, n)
		return nil
	})
	return days, counts, err
}

// deliveryOf gives from the version of a fact what audit_current's version holds below the number of
// facts: time and place of the delivery (see audit.Origin.CurrentVersion).
const deliveryOf = "bitAnd(bitNot(toUInt64(bitShiftRight(bitNot(version), 6) - bitShiftLeft(toUInt64(1577836800000), 14))), toUInt64(18014398509481983))"

// checkChunk lays the tables over each other by key, as hashes: a fact and a flat row cancel
// out (xor) when their columns agree, so equality needs no join. Later facts (retries, outside verdicts,
// reviews) are stored before they are shown: those of the last hours wait for the repair.
func (s *Store) checkChunk(ctx context.Context, r *Report, c chunk, at settled) error {
	const op = "store: check days"
	const key = "event_day AS d, sipHash128(tenant_id, event_id, content_digest) AS k, event_id AS id"
	const badKey = "(event_day != toDate(event_ts) OR event_day != toDate(sort_ts) OR sort_ts != if(time_assumed = 1, toDateTime64(event_day, 3, 'UTC'), event_ts)) AS bad"
	hashOfFacts := "cityHash64(" + strings.Join(factsOf, ", ") + ") AS hf, cityHash64(" + strings.Join(placeOf, ", ") + ") AS hp"
	var flatColumns, merged []string
	for _, c := range verdictOf {
		flatColumns, merged = append(flatColumns, c.flat()), append(merged, c.merged)
	}
	marked, args := tiled(r)

	facts, flat, verdicts, reviews := c.bind(s.from("interactions").current()), c.bind(s.from("audit_current").current()), c.bind(s.from("current_verdicts AS v")), c.bind(s.from("reviews").current()).byReviewer()
	inner := strings.Join([]string{
		facts.sql(key+", 1 AS src, "+marked+" AS judged, "+hashOfFacts+", "+deliveryOf+" AS delivery, toUInt64(0) AS hv, "+badKey+", '' AS review, toUInt8(0) AS fresh", ""),
		flat.sql(key+", 2 AS src, toUInt8(written_at < "+instant+") AS judged, "+hashOfFacts+
			", bitAnd(version, toUInt64(18014398509481983)) AS delivery, cityHash64("+strings.Join(flatColumns, ", ")+") AS hv, "+badKey+", "+reviewShown+", toUInt8(0)", ""),
		verdicts.sql(key+", 3 AS src, toUInt8(max(v.written_at) < "+instant+") AS judged, toUInt64(0) AS hf, toUInt64(0) AS hp, toUInt64(0) AS delivery, cityHash64("+
			strings.Join(merged, ", ")+") AS hv, toUInt8(countIf(analyzer = 'hot') != 1) AS bad, '', toUInt8(maxIf(v.written_at, v.analyzer_version != '') >= "+instant+")", "GROUP BY "+keyColumns),
		reviews.sql(key+", 4 AS src, toUInt8(0) AS judged, toUInt64(0) AS hf, toUInt64(0) AS hp, toUInt64(0) AS delivery, toUInt64(0) AS hv, toUInt8(0) AS bad, "+reviewSaid+
			", toUInt8(max(written) >= "+instant+")", "GROUP BY "+keyColumns),
	}, " UNION ALL ")
	args = append(append(append(args, facts.args...), at.current.UnixMilli()), flat.args...)
	args = append(append(args, at.written.UnixMilli(), at.later.UnixMilli()), verdicts.args...)
	args = append(append(args, at.later.UnixMilli()), reviews.args...)
	grouped := `SELECT d, any(id) AS id, countIf(src = 1) AS i, countIf(src = 2) AS a, countIf(src = 3 AND bad = 0) AS v, maxIf(judged, src = 1) AS i_judged,
		maxIf(judged, src = 2) AS a_judged, maxIf(judged, src = 3) AS v_judged, groupBitXorIf(hf, src < 3) AS xf, groupBitXorIf(hp, src < 3) AS xp,
		groupBitXorIf(delivery, src < 3) AS xd, groupBitXorIf(hv, src IN (2, 3)) AS xv, maxIf(bad, src < 3) AS bad_key,
		maxIf(review, src = 2) != maxIf(review, src = 4) AS xr, max(fresh) AS waits
		FROM (` + inner + `) GROUP BY d, k`
	conditions := []struct {
		code FaultCode
		cond string
	}{
		{FaultVerdictMissing, "i = 1 AND i_judged = 1 AND v = 0"},
		{FaultCurrentMissing, "i = 1 AND i_judged = 1 AND a = 0"},
		{FaultCurrentOrphan, "i = 0 AND a > 0 AND a_judged = 1"},
		{FaultVerdictOrphan, "i = 0 AND a = 0 AND v = 1 AND v_judged = 1"},
		{FaultCurrentUnequal, "i = 1 AND a = 1 AND (xf != 0 OR xd != 0 OR waits = 0 AND (v = 1 AND xv != 0 OR xr)) OR a > 1"},
		{FaultKeyWrong, "bad_key = 1"},
	}
	columns := []string{"toString(d)", "countIf(v = 1)", "groupUniqArrayIf(" + fmt.Sprint(mostTies) + ")(id, i = 1 AND a = 1 AND xp != 0 AND xd = 0)"}
	for _, c := range conditions {
		columns = append(columns, "countIf("+c.cond+")", "groupArrayIf(10)(id, "+c.cond+")")
	}
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM (" + grouped + ") GROUP BY d ORDER BY d SETTINGS " + spill
	type found struct {
		count    uint64
		examples []uuid.UUID
	}
	type dayFound struct {
		day   string
		ties  []uuid.UUID
		found []found
	}
	var all []dayFound
	err := s.each(ctx, op, sql, args, func(rows driver.Rows) error {
		x := dayFound{found: make([]found, len(conditions))}
		var verdicts uint64
		dest := []any{&x.day, &verdicts, &x.ties}
		for i := range x.found {
			dest = append(dest, &x.found[i].count, &x.found[i].examples)
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		r.Verdicts += verdicts
		all = append(all, x)
		return nil
	})
	if err != nil {
		return err
	}
	for _, x := range all {
		for i, c := range conditions {
			if x.found[i].count == 0 {
				continue
			}
			f := Fault{Code: c.code, Count: x.found[i].count, Day: x.day}
			f.Events = texts(x.found[i].examples)
			if c.code == FaultCurrentUnequal {
				if f.Columns, err = s.unequal(ctx, x.day, x.found[i].examples); err != nil {
					return err
				}
			}
			r.fault(f)
		}
		if err := s.checkTies(ctx, r, x.day, x.ties); err != nil {
			return err
		}
	}
	return nil
}

// mostTies bounds how many ties of a day and chunk are looked at; one is rare (see checkTies).
const mostTies = 1000

// checkTies looks at rows whose versions agree but whose places do not. Of two deliveries of one
// millisecond whose 14 bits of the place agree either may stand in audit_current: that is no fault.
// A place that does not give the row's version is one.
func (s *Store) checkTies(ctx context.Context, r *Report, d string, ties []uuid.UUID) error {
	if len(ties) == 0 {
		return nil
	}
	f := Fault{Code: FaultCurrentUnequal, Day: d, Columns: placeOf}
	q := s.from("audit_current").current().and("event_day = toDate(?)", d).and(anyOf(ties))
	err := s.each(ctx, "store: check days", q.sql("toString(event_id), version, broker_ts, "+strings.Join(placeOf, ", "), ""), q.args, func(rows driver.Rows) error {
		var id string
		var version uint64
		var o audit.Origin
		var partition int32
		if err := rows.Scan(&id, &version, &o.BrokerTime, &o.Topic, &partition, &o.Offset); err != nil {
			return err
		}
		o.Partition = int(partition)
		if facts := int(version >> 54); o.CurrentVersion(facts) != version {
			f.Count++
			f.Events = append(f.Events, id)
		}
		return nil
	})
	if f.Count > 0 {
		f.Events = f.Events[:min(len(f.Events), 10)]
		r.fault(f)
	}
	return err
}

func anyOf(events []uuid.UUID) string {
	var ids []string
	for _, id := range events {
		ids = append(ids, "toUUID('"+id.String()+"')")
	}
	return "event_id IN (" + strings.Join(ids, ", ") + ")"
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
func (s *Store) unequal(ctx context.Context, d string, events []uuid.UUID) ([]string, error) {
	in := anyOf(events)
	rows := func(table string) *query {
		return s.from(table).current().and("event_day = toDate(?)", d).and(in)
	}
	flat, facts := rows("audit_current"), rows("interactions")
	verdicts := s.from("current_verdicts AS v").and("event_day = toDate(?)", d).and(in)
	reviews := rows("reviews").byReviewer()
	var merged []string
	differ := []string{"if(a.review != r.m_review, ['review'], [])", "if(a.human_reviewed != r.m_reviewed, ['human_reviewed'], [])", "if(bitAnd(a.version, toUInt64(18014398509481983)) != " + strings.Replace(deliveryOf, "version", "i.version", 1) + ", ['version'], [])"}
	for _, c := range verdictOf {
		merged = append(merged, c.merged+" AS m_"+c.column)
		differ = append(differ, fmt.Sprintf("if(a.%[1]s != v.m_%[1]s, ['%[1]s'], [])", c.column))
	}
	for _, c := range slices.Concat(factsOf, placeOf) {
		differ = append(differ, fmt.Sprintf("if(a.%[1]s != i.%[1]s, ['%[1]s'], [])", c))
	}
	using := "tenant_id, event_id, content_digest"
	sql := "SELECT arraySort(groupUniqArrayArray(arrayConcat(" + strings.Join(differ, ", ") + "))) FROM (" + flat.sql("*", "") + ") AS a INNER JOIN (" +
		facts.sql("*", "") + ") AS i USING (" + using + ") INNER JOIN (" + verdicts.sql(using+", "+strings.Join(merged, ", "), "GROUP BY "+using) + ") AS v USING (" + using + ")" +
		" LEFT JOIN (" + reviews.sql(using+", "+newestReview+" AS m_review, "+humanReviewed+" AS m_reviewed", "GROUP BY "+using) + ") AS r USING (" + using + ")"
	args := slices.Concat(flat.args, facts.args, verdicts.args, reviews.args)
	var columns []string
	return columns, s.one(ctx, "store: check days", sql, args, &columns)
}
