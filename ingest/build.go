package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/cloudevents"
	"github.com/evenhand/evenhand/sources"
)

// decode gives the interaction; it means something only while st.faults stays empty.
func (st *state) decode(rec sources.Record, o audit.Origin) *audit.Interaction {
	h := readHeaders(rec.Headers)
	st.headerTenant(h)
	if !st.parseAny(rec, h) {
		return nil
	}
	in := &audit.Interaction{}
	st.setTenant(in, h)
	st.setPlace(in)
	given := st.setIdentity(in, h, o)
	st.setTrace(in, h)
	st.setTexts(in)
	st.setCall(in)
	if len(st.faults) > 0 {
		return nil
	}
	in.Digest = st.digest(in, given)
	st.fill(in)
	st.unpack(in)
	st.cut(in)
	in.Truncated = in.Truncated || h.truncated
	return in
}

type headers struct {
	tenant, eventID, eventTime, traceparent, contentType []byte
	cloudEvent, truncated                                bool
	tenants                                              bool // several that differ
}

// readHeaders takes the first header of each name; of tenants all must be the same.
func readHeaders(hs []audit.Header) (h headers) {
	for i := len(hs) - 1; i >= 0; i-- {
		switch hs[i].Key {
		case HeaderTenant:
			h.tenants = h.tenants || h.tenant != nil && !bytes.Equal(h.tenant, hs[i].Value)
			h.tenant = hs[i].Value
		case HeaderEventID:
			h.eventID = hs[i].Value
		case HeaderEventTime:
			h.eventTime = hs[i].Value
		case HeaderTraceparent:
			h.traceparent = hs[i].Value
		case cloudevents.HeaderVersion:
			h.cloudEvent = true
		case HeaderTruncated:
			h.truncated = true
		default:
			if isContentType(hs[i].Key) {
				h.contentType = hs[i].Value
			}
		}
	}
	return h
}

// headerTenant runs before the payload is read, so that a broken event is still counted for its tenant.
func (st *state) headerTenant(h headers) {
	st.tenant = st.d.boundTenant
	switch t := string(h.tenant); {
	case h.tenants:
		st.fault("header "+HeaderTenant, TenantMismatch, "stands there several times with different tenants")
	case t == "":
	case !ValidTenant(t):
		st.fault("header "+HeaderTenant, BadValue, wantTenant)
	case st.tenant != "" && t != st.tenant:
		st.fault("header "+HeaderTenant, TenantMismatch, "differs from the tenant that the topic is bound to")
	default:
		st.tenant = t
	}
}

func (st *state) setTenant(in *audit.Interaction, h headers) {
	before := len(st.faults)
	payload := st.text(fTenant)
	if payload != "" && !ValidTenant(payload) {
		st.fault(names[fTenant], BadValue, wantTenant)
	}
	switch {
	case len(st.faults) > before || st.tenant == "" && len(h.tenant) > 0: // said already
	case st.tenant != "":
		if payload != "" && payload != st.tenant {
			st.fault(names[fTenant], TenantMismatch, "differs from the tenant of the credential, topic or header")
		}
	case payload != "":
		st.tenant = payload
	case st.d.defaultTenant != "":
		st.tenant = st.d.defaultTenant
	default:
		st.fault(names[fTenant], TenantMissing, "no tenant: send tenant_id or the header X-Evenhand-Tenant (over Kafka "+HeaderTenant+"), or configure tenant.default")
	}
	in.Tenant = st.tenant
}

// setPlace reads where the interaction belongs: application, domain, conversation, people.
func (st *state) setPlace(in *audit.Interaction) {
	in.Conversation = st.word(fConversation, maxWord)
	in.Application = st.word(fApplication, maxWord)
	in.DecisionID = st.word(fDecision, maxWord)
	in.UserID = st.word(fUserID, maxWord)
	in.UserEmail = st.word(fUserEmail, maxWord)
	in.UserRole = st.word(fUserRole, maxWord)
	given, known := st.word(fDomain, maxID), false
	if in.Domain, known = st.d.domainOf(given); !known {
		in.DomainGiven = given
	}
}

// setIdentity sets id and time and gives the time that the event itself carries, zero for none.
func (st *state) setIdentity(in *audit.Interaction, h headers, o audit.Origin) (given time.Time) {
	id, version7 := st.setID(in, h, o)
	at, ok := st.timestamp()
	given = at
	source := names[fTimestamp]
	switch {
	case ok:
	case version7:
		at, _ = id.Time()
		source = names[fID]
	default:
		at = o.BrokerTime.UTC().Truncate(time.Millisecond)
		in.TimeAssumed = true
		if len(h.eventTime) > 0 {
			at, source = st.headerTime(h.eventTime, at), "header "+HeaderEventTime
		}
	}
	in.Time = at
	if !in.TimeAssumed || len(h.eventTime) > 0 {
		latest := o.BrokerTime.UTC().Truncate(day).Add(2 * day) // the end of the day after the broker's
		if at.Before(earliest) || !at.Before(latest) {
			st.fault(source, EventTime, "wants a time from 2020-01-01 to the day after the broker's")
		}
		skew := at.Sub(o.BrokerTime)
		in.TimeSuspect = !in.TimeAssumed && (skew > suspectSkew || skew < -suspectSkew)
	}
	return given
}

// headerTime reads the time of HeaderEventTime; otherwise stands for one that cannot be read.
func (st *state) headerTime(s []byte, otherwise time.Time) time.Time {
	t, ok := instant(s)
	if !ok {
		st.fault("header "+HeaderEventTime, BadValue, wantTime)
		return otherwise
	}
	return t
}

// setID sets the event's id; version7 says that its own bits tell a time.
func (st *state) setID(in *audit.Interaction, h headers, o audit.Origin) (id audit.ID, version7 bool) {
	given := st.word(fID, maxID)
	var err error
	switch {
	case given != "":
		id, in.GivenID = audit.EventID(in.Tenant, given)
	case len(h.eventID) > 0:
		if id, err = audit.ParseID(string(h.eventID)); err != nil {
			st.fault("header "+HeaderEventID, BadValue, "wants a UUID")
		}
	default:
		id, in.IDAssumed = o.EventID(), true
	}
	if err == nil && id.IsZero() {
		st.fault(names[fID], BadValue, "is the nil UUID, which names no event")
	}
	in.ID = id
	_, version7 = id.Time()
	return id, version7
}

// setTrace takes trace_id, else traceparent, else the header, else derives a trace from the id, so
// that a second delivery has the same.
func (st *state) setTrace(in *audit.Interaction, h headers) {
	trace := st.hex(fTraceID, audit.ValidTraceID, "wants a W3C trace id: 32 hexadecimal digits, not all zero")
	span := st.hex(fSpanID, audit.ValidSpanID, "wants a W3C span id: 16 hexadecimal digits, not all zero")
	parent := st.text(fTraceparent)
	parentTrace, parentSpan, ok := audit.ParseTraceparent(strings.ToLower(parent))
	if !ok && parent != "" {
		st.fault(names[fTraceparent], BadValue, "wants a W3C traceparent such as 00-<32 hexadecimal digits>-<16>-01")
	}
	if !ok {
		parentTrace, parentSpan, ok = audit.ParseTraceparent(string(h.traceparent))
	}
	if trace == "" && ok {
		trace = parentTrace
	}
	if span == "" && ok && trace == parentTrace {
		span = parentSpan
	}
	if trace == "" {
		sum := sha256.Sum256(in.ID[:])
		trace = hex.EncodeToString(sum[:16])
	}
	in.TraceID, in.SpanID = trace, span
}

// hex reads a trace or span id; capitals and the dashes of a UUID are taken off.
func (st *state) hex(f field, valid func(string) bool, want string) string {
	s := st.text(f)
	if s == "" || valid(s) {
		return s
	}
	s = strings.ToLower(s)
	if _, err := audit.ParseID(s); err == nil {
		s = strings.ReplaceAll(s, "-", "")
	}
	if !valid(s) {
		st.fault(names[f], BadValue, want)
		return ""
	}
	return s
}

// setCall reads the facts about the call of the model.
func (st *state) setCall(in *audit.Interaction) {
	in.Provider = st.word(st.either(fProvider, fLLMProvider), maxWord)
	in.Model = st.word(st.either(fModel, fLLMModel), maxWord)
	for _, s := range []*string{&in.Provider, &in.Model} {
		if *s == "" {
			*s, in.Incomplete = "unknown", true
		}
	}
	in.PromptTokens, in.ResponseTokens, in.LatencyMS, in.CostMicroUSD = audit.Unknown, audit.Unknown, audit.Unknown, audit.Unknown
	if n, ok := st.whole(fPromptTokens); ok {
		in.PromptTokens = n
	}
	if n, ok := st.whole(fResponseTokens); ok {
		in.ResponseTokens = n
	}
	if n, ok := st.number(fLatency, maxInt32); ok {
		in.LatencyMS = int32(math.Round(n))
	}
	if n, ok := st.number(fCost, maxCostUSD); ok {
		in.CostMicroUSD = int64(math.Round(n * microPerUSD))
	}
	in.SensitivityScore = st.word(fSensitivity, maxWord)
	in.ContainedPII = audit.Tristate(st.flag(fPII))
	in.ContainedProprietary = audit.Tristate(st.flag(fProprietary))
	in.ContainedCustomerData = audit.Tristate(st.flag(fCustomerData))
	in.Status = st.status(in.ErrorMessage != "")
	st.setTemplate(in)
	if n, ok := st.number(fSchemaVersion, maxInt32); ok && n != 1 {
		st.fault(names[fSchemaVersion], BadValue, "wants 1, the only version there is")
	}
}

func (st *state) status(failed bool) string {
	switch s := st.raw(fStatus); string(s) {
	case "success", "error", "blocked":
		return string(s)
	case "":
		if failed {
			return "error"
		}
		return "success"
	}
	st.fault(names[fStatus], BadValue, "wants success, error or blocked")
	return ""
}

func (st *state) setTemplate(in *audit.Interaction) {
	v := st.present(fTemplate)
	if v == nil {
		return
	}
	o, err := v.Object()
	if err != nil {
		st.fault(names[fTemplate], WrongType, "wants an object with id and version")
		return
	}
	ms, base := st.membersOf(o, names[fTemplate])
	for _, m := range ms {
		into := &in.TemplateID
		switch string(m.key) {
		case "id":
		case "version":
			into = &in.TemplateVersion
		default:
			st.fault("template."+shown(m.key), UnknownField, "is not a field of template, which has id and version; put your own fields under metadata")
			continue
		}
		if m.value.Type() == fastjson.TypeNull {
			continue
		}
		s, err := m.value.StringBytes()
		switch {
		case err != nil:
			st.fault("template."+string(m.key), WrongType, "wants a string")
		case utf8.RuneCount(s) > maxWord:
			st.fault("template."+string(m.key), BadValue, "wants at most "+strconv.Itoa(maxWord)+" characters")
		default:
			*into = string(s)
		}
	}
	st.members = st.members[:base]
}
