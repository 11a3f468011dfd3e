package clickhouse

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Kinds of text in interaction_texts.
const (
	KindPrompt       = "prompt"
	KindMessages     = "messages"
	KindQuery        = "query"
	KindResponse     = "response"
	KindResponseJSON = "response_json"
	KindUser         = "user" // JSON {id, email, role}
	KindSanitized    = "sanitized_prompt"
	KindRedaction    = "redaction_summary" // JSON
	KindRejected     = "rejected"

	// Of later facts; the source is the fact's id.
	KindReport       = "outside_report"     // JSON object
	KindMitigation   = "outside_mitigation" // JSON object
	KindReviewNote   = "review_note"
	KindRevealReason = "reveal_reason"
	KindFeedbackNote = "feedback_note"
	KindGate         = "gate"          // JSON GateTexts
	KindGateNote     = "gate_note"     // the source is the proposal that it comes with
	KindJudge        = "judge_verdict" // JSON object, seed 004's
)

// text is one row of interaction_texts.
type text struct {
	tenant  string
	day     time.Time
	event   uuid.UUID
	kind    string
	source  []byte
	version uint64
	text    string
}

// textList is the texts of a batch: those of its records, of which the i-th has the rows before ends[i], then those of
// what was rejected.
type textList struct {
	rows []text
	ends []int
}

func textsOf(b *sinks.Batch) (l textList) {
	rows := make([]text, 0, 3*len(b.Records)+len(b.Rejected))
	l.ends = make([]int, len(b.Records))
	for i := range b.Records {
		rows = appendTexts(rows, &b.Records[i])
		l.ends[i] = len(rows)
	}
	for i := range b.Rejected {
		r := &b.Rejected[i]
		rows = append(rows, text{
			tenant: r.Tenant, day: brokerDay(r), event: uuid.UUID(r.Origin.EventID()), kind: KindRejected,
			source: make([]byte, 32), version: r.Origin.Version(), text: rejectedText(r),
		})
	}
	l.rows = rows
	return l
}

func textRows(rows []text, c Classes) *table {
	t := &table{name: "interaction_texts", manyPartitions: true}
	add(t, "tenant_id", rows, func(r *text) string { return r.tenant })
	add(t, "retention_class", rows, func(r *text) string { return c.Class(r.tenant, r.day) })
	add(t, "event_day", rows, func(r *text) time.Time { return r.day })
	add(t, "event_id", rows, func(r *text) uuid.UUID { return r.event })
	add(t, "kind", rows, func(r *text) string { return r.kind })
	add(t, "source_id", rows, func(r *text) []byte { return r.source })
	add(t, "version", rows, func(r *text) uint64 { return r.version })
	add(t, "text", rows, func(r *text) string { return r.text })
	return t
}

// appendTexts lists the texts of one interaction; empty ones have no row.
func appendTexts(rows []text, r *audit.Record) []text {
	in := r.Interaction
	base := text{tenant: in.Tenant, day: in.Day(), event: uuid.UUID(in.ID), source: in.Digest[:], version: r.Origin.Version()}
	put := func(kind, s string) {
		if s != "" {
			row := base
			row.kind, row.text = kind, s
			rows = append(rows, row)
		}
	}
	put(KindPrompt, in.Stored(in.Prompt))
	put(KindMessages, in.Messages)
	if in.Query != in.Stored(in.Prompt) {
		put(KindQuery, in.Query)
	}
	put(KindResponse, in.Stored(in.Response))
	put(KindResponseJSON, in.ResponseJSON)
	put("context", in.QueryContext)
	put(KindSanitized, in.Stored(r.SanitizedPrompt()))
	put(KindRedaction, r.RedactionSummary())
	put("retrieved_context", in.RetrievedContext)
	put("group_attributes", in.GroupAttributes)
	put("metadata", in.Metadata)
	put("error", in.ErrorMessage)
	if in.UserID != "" || in.UserEmail != "" || in.UserRole != "" {
		put(KindUser, userJSON(in))
	}
	return rows
}

func userJSON(in *audit.Interaction) string {
	b, _ := json.Marshal(struct { // three strings: cannot fail
		ID    string `json:"id"`
		Email string `json:"email"`
		Role  string `json:"role"`
	}{in.UserID, in.UserEmail, in.UserRole})
	return string(b)
}

func brokerDay(r *audit.Rejected) time.Time { return r.Origin.BrokerTime.Truncate(24 * time.Hour) }

// rejectedText keeps the whole message: JSON {key, value, headers}, bytes that are no UTF-8 in base64
// under key_base64 and value_base64.
func rejectedText(r *audit.Rejected) string {
	m := map[string]any{}
	put := func(name string, b []byte) {
		if utf8.Valid(b) {
			m[name] = string(b)
		} else {
			m[name+"_base64"] = b
		}
	}
	put("key", r.Key)
	put("value", r.Value)
	if len(r.Header) > 0 {
		hs := make([]map[string]any, len(r.Header))
		for i, h := range r.Header {
			hs[i] = map[string]any{"key": h.Key, "value": h.Value}
		}
		m["headers"] = hs
	}
	b, _ := json.Marshal(m) // strings and byte slices: cannot fail
	return string(b)
}

func rejectedTable(rs []audit.Rejected) *table {
	t := &table{name: "rejected"}
	type rej = audit.Rejected
	add(t, "topic", rs, func(r *rej) string { return r.Origin.Topic })
	add(t, "epoch", rs, func(r *rej) int32 { return r.Origin.Epoch })
	add(t, "partition", rs, func(r *rej) int32 { return int32(r.Origin.Partition) })
	add(t, "offset", rs, func(r *rej) int64 { return r.Origin.Offset })
	add(t, "version", rs, func(r *rej) uint64 { return r.Origin.Version() })
	add(t, "broker_ts", rs, func(r *rej) int64 { return r.Origin.BrokerTime.UnixMilli() })
	add(t, "tenant_id", rs, func(r *rej) string { return r.Tenant })
	add(t, "event_day", rs, brokerDay)
	add(t, "event_id", rs, func(r *rej) uuid.UUID { return uuid.UUID(r.Origin.EventID()) })
	add(t, "reason", rs, func(r *rej) string { return r.Reason })
	add(t, "detail", rs, func(r *rej) string { return r.Detail })
	add(t, "value_bytes", rs, func(r *rej) uint32 { return uint32(len(r.Value)) })
	return t
}
