package ingest

import (
	"bytes"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"
)

// field is one top-level name of the native event.
type field uint8

const (
	fSchemaVersion field = iota
	fID
	fTenant
	fTimestamp
	fTraceID
	fSpanID
	fTraceparent
	fConversation
	fApplication
	fDomain
	fDecision
	fUserID
	fUserEmail
	fUserRole
	fQueryContext
	fMessages
	fPrompt
	fResponse
	fSanitizedPrompt
	fProvider
	fModel
	fPromptTokens
	fResponseTokens
	fLatency
	fCost
	fRedaction
	fSensitivity
	fPII
	fProprietary
	fCustomerData
	fStatus
	fErrorMessage
	fRetrieved
	fTemplate
	fGroups
	fMetadata
	fLLMResponse // the four names of seed 003's service and type
	fOriginalQuery
	fLLMModel
	fLLMProvider
	fieldCount
)

// names holds the fields as senders write them.
var names = [fieldCount]string{
	fSchemaVersion: "schema_version", fID: "id", fTenant: "tenant_id", fTimestamp: "timestamp",
	fTraceID: "trace_id", fSpanID: "span_id", fTraceparent: "traceparent",
	fConversation: "conversation_id", fApplication: "application", fDomain: "domain", fDecision: "decision_id",
	fUserID: "user_id", fUserEmail: "user_email", fUserRole: "user_role", fQueryContext: "query_context",
	fMessages: "messages", fPrompt: "prompt", fResponse: "response", fSanitizedPrompt: "sanitized_prompt",
	fProvider: "provider", fModel: "model", fPromptTokens: "prompt_tokens", fResponseTokens: "response_tokens",
	fLatency: "latency_ms", fCost: "estimated_cost_usd", fRedaction: "redaction_summary",
	fSensitivity: "sensitivity_score", fPII: "contained_pii", fProprietary: "contained_proprietary",
	fCustomerData: "contained_customer_data", fStatus: "status", fErrorMessage: "error_message",
	fRetrieved: "retrieved_context", fTemplate: "template", fGroups: "group_attributes", fMetadata: "metadata",
	fLLMResponse: "llm_response", fOriginalQuery: "original_query", fLLMModel: "llm_model", fLLMProvider: "llm_provider",
}

// byName finds a field; a map of string keys is asked without an allocation for byte slices.
var byName = func() map[string]field {
	m := make(map[string]field, fieldCount)
	for f, name := range names {
		m[name] = field(f)
	}
	return m
}()

// Largest values taken.
const (
	maxID       = 256  // code points of an id or a domain
	maxWord     = 1024 // code points of a name: model, application, user
	maxInt32    = math.MaxInt32
	maxCostUSD  = 1e6
	microPerUSD = 1e6
)

// present gives a field's value unless it is absent or null.
func (st *state) present(f field) *fastjson.Value {
	v := st.values[f]
	if v == nil || v.Type() == fastjson.TypeNull {
		return nil
	}
	return v
}

// absent tells whether a field is missing, null or the empty string.
func (st *state) absent(f field) bool {
	v := st.present(f)
	return v == nil || v.Type() == fastjson.TypeString && len(v.GetStringBytes()) == 0
}

// raw gives a string field inside the parser's memory; nil when absent or of a wrong type.
func (st *state) raw(f field) []byte {
	v := st.present(f)
	if v == nil {
		return nil
	}
	s, err := v.StringBytes()
	if err != nil {
		st.fault(names[f], WrongType, "wants a string")
		return nil
	}
	return s
}

// text gives a string field of any length.
func (st *state) text(f field) string { return string(st.raw(f)) }

// word gives a short string field: at most limit code points.
func (st *state) word(f field, limit int) string {
	s := st.raw(f)
	if len(s) > limit && utf8.RuneCount(s) > limit {
		st.fault(names[f], BadValue, "wants at most "+strconv.Itoa(limit)+" characters")
		return ""
	}
	return string(s)
}

// json gives a field's canonical JSON; want refuses other types with its message.
func (st *state) json(f field, want fastjson.Type, message string) string {
	v := st.present(f)
	if v == nil {
		return ""
	}
	if v.Type() != want {
		st.fault(names[f], WrongType, message)
		return ""
	}
	return st.canonicalText(v, names[f])
}

func (st *state) canonicalText(v *fastjson.Value, name string) string {
	st.scratch = st.canonical(st.scratch[:0], v, name)
	return string(st.scratch)
}

// number gives a number field in [0, limit]; ok is false when it is absent or at fault.
func (st *state) number(f field, limit float64) (n float64, ok bool) {
	v := st.present(f)
	if v == nil {
		return 0, false
	}
	if v.Type() != fastjson.TypeNumber {
		st.fault(names[f], WrongType, "wants a number")
		return 0, false
	}
	st.scratch = v.MarshalTo(st.scratch[:0])
	n, err := strconv.ParseFloat(string(st.scratch), 64)
	if err != nil || n < 0 || n > limit {
		st.fault(names[f], BadValue, "wants a number from 0 to "+strconv.FormatFloat(limit, 'f', -1, 64))
		return 0, false
	}
	return n, true
}

// whole gives a whole number as JSON Schema means it (12.0 and 1e3 are whole).
func (st *state) whole(f field) (int32, bool) {
	n, ok := st.number(f, maxInt32)
	if ok && n != math.Trunc(n) {
		st.fault(names[f], BadValue, "wants a whole number")
		return 0, false
	}
	return int32(n), ok
}

// flag gives a boolean field: 1, 0 or -1 when absent.
func (st *state) flag(f field) int8 {
	v := st.present(f)
	if v == nil {
		return -1
	}
	switch v.Type() {
	case fastjson.TypeTrue:
		return 1
	case fastjson.TypeFalse:
		return 0
	}
	st.fault(names[f], WrongType, "wants true or false")
	return -1
}

// timestamp gives the event's time in whole milliseconds, UTC.
func (st *state) timestamp() (t time.Time, given bool) {
	s := st.raw(fTimestamp)
	if len(s) == 0 {
		return time.Time{}, false
	}
	t, ok := instant(s)
	if !ok {
		st.fault(names[fTimestamp], BadValue, wantTime)
	}
	return t, ok
}

const wantTime = "wants an RFC 3339 time such as 2026-11-21T10:43:00Z"

// instant reads an RFC 3339 time in whole milliseconds, UTC; zero for none. Package time takes neither its small letters nor its leap
// seconds, which become the last millisecond before them.
func instant(s []byte) (t time.Time, ok bool) {
	if t.UnmarshalText(s) == nil {
		if lax(s) {
			return time.Time{}, false
		}
		return t.UTC().Truncate(time.Millisecond), true
	}
	const seconds = len("2006-01-02T15:04:")
	switch big := bytes.ToUpper(s); {
	case !bytes.Equal(big, s):
		return instant(big)
	case len(s) > seconds+2 && string(s[seconds:seconds+2]) == "60":
		big[seconds], big[seconds+1] = '5', '9'
		if t, ok = instant(big); ok && t.Hour() == 23 && t.Minute() == 59 {
			return t.Truncate(time.Second).Add(999 * time.Millisecond), true
		}
	}
	return time.Time{}, false
}

// lax tells of a time that package time takes though RFC 3339 does not: an hour of one digit, a comma
// before the fraction, an offset of a day or more.
func lax(s []byte) bool {
	if s[12] == ':' || bytes.IndexByte(s, ',') >= 0 {
		return true
	}
	zone := s[len(s)-6:]
	return s[len(s)-1] != 'Z' && (string(zone[1:3]) > "23" || string(zone[4:]) > "59")
}

// either gives the field that is there of a name and its alias. Both may be there when they are
// equal.
func (st *state) either(name, alias field) field {
	switch {
	case st.values[alias] == nil || st.absent(alias):
		return name
	case st.absent(name):
		return alias
	}
	if st.canonicalText(st.values[name], names[name]) != st.canonicalText(st.values[alias], names[alias]) {
		st.fault(names[alias], AliasConflict, "is another name of "+names[name]+" and differs from it: send one of them")
	}
	return name
}

// KnownField tells whether name is a top-level field of the native event.
func KnownField(name string) bool {
	_, ok := byName[name]
	return ok
}
