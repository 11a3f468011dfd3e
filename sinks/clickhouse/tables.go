package clickhouse

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

type record = audit.Record

// key adds the columns that every table of an interaction begins with.
func key(t *table, rs []record) {
	add(t, "tenant_id", rs, func(r *record) string { return r.Interaction.Tenant })
	add(t, "event_day", rs, func(r *record) time.Time { return r.Interaction.Day() })
	add(t, "event_id", rs, func(r *record) uuid.UUID { return uuid.UUID(r.Interaction.ID) })
	add(t, "content_digest", rs, func(r *record) []byte { return r.Interaction.Digest[:] })
}

// place adds where the message stood in the log.
func place(t *table, rs []record) {
	add(t, "topic", rs, func(r *record) string { return r.Origin.Topic })
	add(t, "partition", rs, func(r *record) int32 { return int32(r.Origin.Partition) })
	add(t, "offset", rs, func(r *record) int64 { return r.Origin.Offset })
	add(t, "broker_ts", rs, func(r *record) int64 { return r.Origin.BrokerTime.UnixMilli() })
}

func interactionsTable(rs []record) *table {
	t := &table{name: "interactions"}
	key(t, rs)
	place(t, rs)
	add(t, "epoch", rs, func(r *record) int32 { return r.Origin.Epoch })
	add(t, "version", rs, func(r *record) uint64 { return r.Origin.Version() })
	add(t, "given_id", rs, func(r *record) string { return r.Interaction.GivenID })
	add(t, "id_assumed", rs, func(r *record) uint8 { return flag(r.Interaction.IDAssumed) })
	add(t, "event_ts", rs, func(r *record) int64 { return r.Interaction.Time.UnixMilli() })
	add(t, "sort_ts", rs, func(r *record) int64 { return r.Interaction.SortTime().UnixMilli() })
	add(t, "time_assumed", rs, func(r *record) uint8 { return flag(r.Interaction.TimeAssumed) })
	add(t, "time_suspect", rs, func(r *record) uint8 { return flag(r.Interaction.TimeSuspect) })
	add(t, "trace_id", rs, func(r *record) string { return r.Interaction.TraceID })
	add(t, "span_id", rs, func(r *record) string { return r.Interaction.SpanID })
	add(t, "conversation", rs, func(r *record) string { return r.Interaction.Conversation })
	add(t, "decision_id", rs, func(r *record) string { return r.Interaction.DecisionID })
	add(t, "app", rs, func(r *record) string { return r.Interaction.Application })
	add(t, "domain", rs, func(r *record) string { return string(r.Interaction.Domain) })
	add(t, "domain_given", rs, func(r *record) string { return r.Interaction.DomainGiven })
	add(t, "provider", rs, func(r *record) string { return r.Interaction.Provider })
	add(t, "model", rs, func(r *record) string { return r.Interaction.Model })
	add(t, "template_id", rs, func(r *record) string { return r.Interaction.TemplateID })
	add(t, "template_version", rs, func(r *record) string { return r.Interaction.TemplateVersion })
	add(t, "prompt_tokens", rs, func(r *record) int32 { return r.Interaction.PromptTokens })
	add(t, "response_tokens", rs, func(r *record) int32 { return r.Interaction.ResponseTokens })
	add(t, "latency_ms", rs, func(r *record) int32 { return r.Interaction.LatencyMS })
	add(t, "cost_micro_usd", rs, func(r *record) int64 { return r.Interaction.CostMicroUSD })
	add(t, "sensitivity_score", rs, func(r *record) string { return r.SensitivityScore() })
	add(t, "contained_pii", rs, func(r *record) int8 { return int8(r.ContainedPII()) })
	add(t, "contained_proprietary", rs, func(r *record) int8 { return int8(r.Interaction.ContainedProprietary) })
	add(t, "contained_customer_data", rs, func(r *record) int8 { return int8(r.Interaction.ContainedCustomerData) })
	add(t, "status", rs, func(r *record) string { return r.Interaction.Status })
	add(t, "incomplete", rs, func(r *record) uint8 { return flag(r.Interaction.Incomplete) })
	add(t, "without_content", rs, func(r *record) uint8 { return flag(r.Interaction.WithoutContent) })
	add(t, "prompt_chars", rs, func(r *record) uint32 { return r.Interaction.PromptChars })
	add(t, "response_chars", rs, func(r *record) uint32 { return r.Interaction.ResponseChars })
	add(t, "truncated", rs, func(r *record) uint8 { return flag(r.Interaction.Truncated) })
	return t
}

func verdictsTable(rs []record) *table {
	t := &table{name: "verdicts"}
	key(t, rs)
	add(t, "analyzer", rs, func(r *record) string { return r.Verdict.Analyzer })
	add(t, "analyzer_version", rs, func(r *record) string { return attempt(r.Verdict) }) // real versions are columns: the key must not depend on them
	add(t, "result_id", rs, func(r *record) uuid.UUID { return uuid.UUID(r.Verdict.ResultID) })
	add(t, "version", rs, func(r *record) uint64 { return r.Origin.Version() })
	add(t, "rule_set", rs, func(r *record) string { return r.Verdict.RuleSet })
	add(t, "status", rs, func(r *record) string { return string(r.Verdict.Status) })
	add(t, "reason", rs, func(r *record) string { return r.Verdict.Reason })
	add(t, "failed_by", rs, func(r *record) []string { return r.Verdict.FailedBy })
	judged(t, rs)
	add(t, "analysis_ts", rs, func(r *record) int64 { return r.Verdict.Time.UnixMilli() })
	add(t, "duration_us", rs, func(r *record) uint32 { return uint32(r.Verdict.Duration.Microseconds()) })

	finding(t, rs, "kind", func(f *audit.Finding) string { return f.Kind })
	finding(t, rs, "rule", func(f *audit.Finding) string { return f.Rule })
	finding(t, rs, "rule_version", func(f *audit.Finding) string { return f.RuleVersion })
	finding(t, rs, "ground", func(f *audit.Finding) string { return string(f.Ground) })
	finding(t, rs, "severity", func(f *audit.Finding) uint8 { return f.Severity.Level() })
	finding(t, rs, "score", func(f *audit.Finding) int64 { return int64(f.Score) })
	finding(t, rs, "confidence", func(f *audit.Finding) int32 { return int32(f.Confidence) })
	finding(t, rs, "side", func(f *audit.Finding) string { return string(f.Side) })
	finding(t, rs, "start", func(f *audit.Finding) uint32 { return f.Span.Start })
	finding(t, rs, "end", func(f *audit.Finding) uint32 { return f.Span.End })
	finding(t, rs, "abusive", func(f *audit.Finding) uint8 { return flag(f.Abusive) })
	finding(t, rs, "entity", func(f *audit.Finding) string { return f.Entity })
	add(t, "scores.name", rs, func(r *record) []string {
		return each(r.Verdict.Scores, func(s *audit.NamedScore) string { return s.Name })
	})
	add(t, "scores.value", rs, func(r *record) []int64 {
		return each(r.Verdict.Scores, func(s *audit.NamedScore) int64 { return int64(s.Value) })
	})
	return t
}

// finding adds one column of the Nested findings.
func finding[T any](t *table, rs []record, name string, f func(*audit.Finding) T) {
	add(t, "findings."+name, rs, func(r *record) []T { return each(r.Verdict.Findings, f) })
}

func each[E, T any](es []E, f func(*E) T) []T {
	if len(es) == 0 {
		return nil
	}
	out := make([]T, len(es))
	for i := range es {
		out[i] = f(&es[i])
	}
	return out
}

// judged adds the verdict's columns that verdicts and audit_current share.
func judged(t *table, rs []record) {
	add(t, "bias_detected", rs, func(r *record) uint8 { return flag(r.Verdict.Detected) })
	add(t, "flagged", rs, func(r *record) uint8 { return flag(r.Verdict.Flagged) })
	add(t, "unsafe", rs, func(r *record) uint8 { return flag(r.Verdict.Unsafe) })
	add(t, "gated", rs, func(r *record) uint8 { return flag(r.Verdict.Gated) })
	add(t, "bias_types", rs, func(r *record) []string { return r.Verdict.BiasTypes })
	add(t, "max_severity", rs, func(r *record) uint8 { return r.Verdict.MaxSeverity })
	add(t, "confidence", rs, func(r *record) int32 { return int32(r.Verdict.Confidence) })
	add(t, "bias_sum", rs, func(r *record) int64 { return int64(r.Verdict.BiasSum) })
	add(t, "safety_sum", rs, func(r *record) int64 { return int64(r.Verdict.SafetySum) })
	add(t, "threshold", rs, func(r *record) int64 { return int64(r.Verdict.Threshold) })
	add(t, "action", rs, func(r *record) string { return string(r.Verdict.Action) })
	add(t, "mitigation", rs, func(r *record) string { return r.Verdict.Mitigation })
}

func currentTable(rs []record) *table {
	t := &table{name: "audit_current"}
	key(t, rs)
	place(t, rs)
	judged(t, rs)
	add(t, "version", rs, func(r *record) uint64 { return r.Origin.CurrentVersion(1) })
	add(t, "sort_ts", rs, func(r *record) int64 { return r.Interaction.SortTime().UnixMilli() })
	add(t, "event_ts", rs, func(r *record) int64 { return r.Interaction.Time.UnixMilli() })
	add(t, "time_assumed", rs, func(r *record) uint8 { return flag(r.Interaction.TimeAssumed) })
	add(t, "time_suspect", rs, func(r *record) uint8 { return flag(r.Interaction.TimeSuspect) })
	add(t, "trace_id", rs, func(r *record) string { return r.Interaction.TraceID })
	add(t, "app", rs, func(r *record) string { return r.Interaction.Application })
	add(t, "domain", rs, func(r *record) string { return string(r.Interaction.Domain) })
	add(t, "provider", rs, func(r *record) string { return r.Interaction.Provider })
	add(t, "model", rs, func(r *record) string { return r.Interaction.Model })
	add(t, "sensitivity_score", rs, func(r *record) string { return r.SensitivityScore() })
	add(t, "status", rs, func(r *record) string { return r.Interaction.Status })
	add(t, "without_content", rs, func(r *record) uint8 { return flag(r.Interaction.WithoutContent) })
	add(t, "truncated", rs, func(r *record) uint8 { return flag(r.Interaction.Truncated) })
	add(t, "analysis_status", rs, func(r *record) string { return string(r.Verdict.Status) })
	add(t, "rule_set", rs, func(r *record) string { return r.Verdict.RuleSet })
	add(t, "kinds", rs, func(r *record) []string { kinds, _ := outputKinds(r.Verdict); return kinds })
	add(t, "severities", rs, func(r *record) []uint8 { _, severities := outputKinds(r.Verdict); return severities })
	add(t, "cost_micro_usd", rs, func(r *record) int64 { return r.Interaction.CostMicroUSD })
	add(t, "n_findings", rs, func(r *record) uint16 { return uint16(min(len(r.Verdict.Findings), 1<<16-1)) })
	for _, name := range []string{audit.ScoreToxicity, audit.ScorePII, audit.ScoreHallucination} {
		add(t, name, rs, func(r *record) int64 { return int64(r.Verdict.Score(name)) })
	}
	add(t, "human_reviewed", rs, func(*record) uint8 { return 0 }) // a review is a later fact
	add(t, "review", rs, func(*record) string { return "" })
	add(t, "id_conflict", rs, func(*record) uint8 { return 0 }) // found by repair, not on the hot path
	return t
}

// outputKinds lists the distinct kinds found in the response, sorted, and the strongest severity of each.
func outputKinds(v *audit.Verdict) (kinds []string, severities []uint8) {
	for i := range v.Findings {
		f := &v.Findings[i]
		if f.Side != audit.Output {
			continue
		}
		if kinds == nil {
			kinds, severities = make([]string, 0, len(v.Findings)), make([]uint8, 0, len(v.Findings))
		}
		at, known := slices.BinarySearch(kinds, f.Kind)
		if !known {
			kinds, severities = slices.Insert(kinds, at, f.Kind), slices.Insert(severities, at, 0)
		}
		severities[at] = max(severities[at], f.Severity.Level())
	}
	return kinds, severities
}

func usersTable(rs []record, c Classes) *table {
	t := &table{name: "interaction_users", manyPartitions: true}
	var with []record
	for _, r := range rs {
		if r.Interaction.UserID != "" {
			with = append(with, r)
		}
	}
	add(t, "tenant_id", with, func(r *record) string { return r.Interaction.Tenant })
	add(t, "retention_class", with, func(r *record) string { return c.Class(r.Interaction.Tenant, r.Interaction.Day()) })
	add(t, "user_id", with, func(r *record) string { return r.Interaction.UserID })
	add(t, "event_day", with, func(r *record) time.Time { return r.Interaction.Day() })
	add(t, "event_id", with, func(r *record) uuid.UUID { return uuid.UUID(r.Interaction.ID) })
	add(t, "sort_ts", with, func(r *record) int64 { return r.Interaction.SortTime().UnixMilli() })
	add(t, "version", with, func(r *record) uint64 { return r.Origin.Version() })
	return t
}

func markersTable(ms []markerRow) *table {
	t := &table{name: markers}
	type m = markerRow
	ms64 := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	add(t, "topic", ms, func(m *m) string { return m.Topic })
	add(t, "epoch", ms, func(m *m) int32 { return m.Epoch })
	add(t, "partition", ms, func(m *m) int32 { return int32(m.Partition) })
	add(t, "lo", ms, func(m *m) int64 { return m.Lo })
	add(t, "hi", ms, func(m *m) int64 { return m.Hi })
	add(t, "generation", ms, func(m *m) int32 { return m.Generation })
	add(t, "version", ms, func(m *m) uint64 { return uint64(max(0, m.Generation)) })
	add(t, "rows", ms, func(m *m) uint32 { return m.Rows })
	add(t, "rejected", ms, func(m *m) uint32 { return m.Rejected })
	add(t, "skipped", ms, func(m *m) uint32 { return m.Skipped })
	add(t, "reason", ms, func(m *m) string { return m.Reason })
	add(t, "first_offset", ms, func(m *m) int64 { return m.First.Offset })
	add(t, "first_ts", ms, func(m *m) int64 { return ms64(m.First.Time) })
	add(t, "first_hash", ms, func(m *m) uint64 { return m.First.Hash })
	add(t, "last_offset", ms, func(m *m) int64 { return m.Last.Offset })
	add(t, "last_ts", ms, func(m *m) int64 { return ms64(m.Last.Time) })
	add(t, "last_hash", ms, func(m *m) uint64 { return m.Last.Hash })
	add(t, "log_end", ms, func(m *m) int64 { return m.End })
	return t
}
