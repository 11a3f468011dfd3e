package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Filter says which interactions a list shows. Zero fields do not restrict, but for the window:
// without a start it is the last seven days, or all that is kept where an event or a trace is named.
type Filter struct {
	Window
	UserID        string
	Provider      string
	Model         string
	Sensitivity   string // low, medium, high
	Domain        audit.Domain
	App           string
	BiasType      string // taxonomy key of a bias finding
	Kind          string // taxonomy key of any finding
	TraceID       string // 32 lower-case hexadecimal digits
	EventID       audit.ID
	BiasDetected  *bool
	Flagged       *bool
	HumanReviewed *bool
	Decision      string // that holds of the reviews: confirmed, dismissed, unsure
	Differ        *bool  // one person's review confirms what another's dismisses
	ReviewedBy    string // whose review stands
	NotReviewedBy string // whose does not

	Unsafe         *bool
	Gated          *bool
	Effective      *bool // bias as reviewers left it: detected and not dismissed, or confirmed
	MinSeverity    uint8 // level, 1 LOW … 4 CRITICAL
	MinBiasScore   audit.Score
	MinConfidence  audit.Score
	AnalysisStatus audit.Status
	Status         string // of the LLM call
	Action         audit.Action
}

var errTraceID = errors.New("trace_id: want 32 lower-case hexadecimal digits, not all zero")

func (f Filter) validate() error {
	var errs []error
	if f.TraceID != "" && !audit.ValidTraceID(f.TraceID) {
		errs = append(errs, errTraceID)
	}
	if !f.From.IsZero() && !f.To.IsZero() && f.To.Before(f.From) {
		errs = append(errs, errors.New("end of the time range lies before its start"))
	}
	if f.MinSeverity > uint8(len(audit.Severities)) {
		errs = append(errs, fmt.Errorf("least severity: %d is not in 0..%d", f.MinSeverity, len(audit.Severities)))
	}
	for _, least := range []struct {
		name  string
		value audit.Score
	}{{"bias score", f.MinBiasScore}, {"confidence", f.MinConfidence}} {
		if least.value < 0 || least.value > 1_000_000 {
			errs = append(errs, fmt.Errorf("least %s: is not in 0..1", least.name))
		}
	}
	return errors.Join(errs...)
}

// resolved fills an open window. Who names an event or a trace asks for what is kept of it and not for what is new: few rows,
// which indexes find in all days.
func (f Filter) resolved(now time.Time) Window {
	if f.From.IsZero() && (f.TraceID != "" || !f.EventID.IsZero()) {
		f.From = earliest
	}
	return f.Window.resolved(now)
}

// earliest is the first of ClickHouse's days.
var earliest = time.Unix(0, 0).UTC()

// apply adds the conditions to a query over audit_current of one tenant, but for the user.
func (f Filter) apply(q *query) *query { return f.conditions(q.within(f.Window)) }

// effective is bias as reviewers left it.
const effective = "(bias_detected = 1 AND review != 'dismissed' OR review = 'confirmed')"

func (f Filter) conditions(q *query) *query {
	for _, c := range []struct{ column, value string }{
		{"provider", f.Provider}, {"model", f.Model}, {"sensitivity_score", f.Sensitivity},
		{"domain", string(f.Domain)}, {"app", f.App}, {"trace_id", f.TraceID},
		{"analysis_status", string(f.AnalysisStatus)}, {"status", f.Status}, {"action", string(f.Action)},
	} {
		if c.value != "" {
			q.and(c.column+" = ?", c.value)
		}
	}
	for _, c := range []struct {
		column string
		value  *bool
	}{{"bias_detected", f.BiasDetected}, {"flagged", f.Flagged}, {"human_reviewed", f.HumanReviewed},
		{"unsafe", f.Unsafe}, {"gated", f.Gated}, {effective, f.Effective}} {
		if c.value != nil {
			q.and(c.column+" = ?", audit.TristateOf(*c.value))
		}
	}
	switch f.Decision {
	case "":
	case "unsure": // the column holds decisions
		q.and("human_reviewed = 1").and("review = ''")
	default:
		q.and("review = ?", f.Decision)
	}
	for _, c := range []struct {
		column string
		least  int64
	}{{"max_severity", int64(f.MinSeverity)}, {"bias_sum", int64(f.MinBiasScore)}, {"confidence", int64(f.MinConfidence)}} {
		if c.least > 0 {
			q.and(c.column+" >= ?", c.least)
		}
	}
	if f.BiasType != "" {
		q.and("has(bias_types, ?)", f.BiasType)
	}
	if f.Kind != "" {
		q.and("has(kinds, ?)", f.Kind)
	}
	if !f.EventID.IsZero() {
		q.and("event_id = toUUID(?)", f.EventID.String())
	}
	return q
}

// byKey leads to the event, the user and the reviewers that a filter names by the keys of tables that have them.
func (f Filter) byKey(s scope, q *query) *query {
	if !f.EventID.IsZero() {
		keys := s.from("interactions").and("event_id = toUUID(?)", f.EventID.String())
		q.and("(event_day, sort_ts, event_id, content_digest) IN ("+keys.sql("event_day, sort_ts, event_id, content_digest", "")+")", keys.args...)
	}
	if f.UserID != "" {
		f.amongUsers(s, q)
	}
	return f.byReviews(s, q)
}

// byReviews restricts a query over audit_current by who said what, which its rows do not tell.
func (f Filter) byReviews(s scope, q *query) *query {
	said := func(q *query) *query {
		if !f.From.IsZero() {
			q.and("event_day >= toDate(?)", day(f.From)).and("event_day <= toDate(?)", day(f.To))
		}
		return q.byReviewer()
	}
	among := func(holds bool, keys *query, rest string) {
		if holds {
			q.and("("+keyColumns+") IN ("+keys.sql(keyColumns, rest)+")", keys.args...)
		} else {
			q.and("("+keyColumns+") NOT IN ("+keys.sql(keyColumns, rest)+")", keys.args...)
		}
	}
	if f.Differ != nil {
		among(*f.Differ, said(s.from("reviews").current()), "GROUP BY "+keyColumns+" HAVING countIf(said = 'confirmed') > 0 AND countIf(said = 'dismissed') > 0")
	}
	for _, who := range []struct {
		name  string
		holds bool
	}{{f.ReviewedBy, true}, {f.NotReviewedBy, false}} {
		if who.name != "" {
			among(who.holds, said(s.from("reviews").current().and("reviewer = ?", who.name)).and("said != 'withdrawn'"), "")
		}
	}
	return q
}

// amongUsers restricts a query over audit_current to the user's events.
func (f Filter) amongUsers(s scope, q *query) *query {
	events := f.ofUser(s)
	return q.and("(event_day, sort_ts, event_id) IN ("+events.sql("event_day, sort_ts, event_id", "")+")", events.args...)
}

// ofUser asks for the user's events of the window. Who took part is a matter of the event and not of the
// version, so the winning versions of those need no second look.
func (f Filter) ofUser(s scope) *query {
	q := f.named(s, s.from("interaction_users").and("user_id = ?", f.UserID))
	if f.From.IsZero() {
		return q
	}
	return q.and("event_day >= toDate(?)", day(f.From)).and("event_day <= toDate(?)", day(f.To))
}

// named restricts a user's events to those that the filter names, so that none of the others is gone through.
func (f Filter) named(s scope, q *query) *query {
	if !f.EventID.IsZero() {
		q.and("event_id = toUUID(?)", f.EventID.String())
	}
	if f.TraceID != "" {
		events := s.from("interactions").and("trace_id = ?", f.TraceID)
		q.and("event_id IN ("+events.sql("event_id", "")+")", events.args...)
	}
	return q
}
