package graph

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/store"
)

// The store's days lie between these; no interaction lies before or behind.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2149, 1, 1, 0, 0, 0, 0, time.UTC)
)

// bound is an end of a window in the store's milliseconds: both ends are rounded up, since starts are
// inclusive and ends exclusive.
func bound(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	at := t.UTC().Truncate(time.Millisecond)
	if at.Before(*t) {
		at = at.Add(time.Millisecond)
	}
	if at.Before(earliest) {
		return earliest
	}
	if at.After(latest) {
		return latest
	}
	return at
}

// statuses are those of an LLM call.
var statuses = []string{"success", "error", "blocked"}

// words are conditions that a field equals a text.
type words []struct {
	name string
	from *string
	to   *string
	of   []string // what it may be; nil: anything
}

// where reads the conditions of a list. Null and left out do not restrict; an empty text is refused,
// since nobody means it, and so is a type or kind that nothing can have: a list of none would look like an answer.
func (r *Resolver) where(ctx context.Context, in *generated.LlmInteractionAuditFilterInput) (store.Filter, error) {
	f, err := where(auth.From(ctx), in)
	if err == nil && f.BiasType != "" {
		err = r.words.CheckType(ctx, "filter.biasType", f.BiasType)
	}
	if err == nil && f.Kind != "" {
		err = r.words.CheckKind(ctx, "filter.kind", f.Kind)
	}
	return f, err
}

// where is Resolver.where without what the vocabulary has to say.
func where(p *auth.Principal, in *generated.LlmInteractionAuditFilterInput) (f store.Filter, err error) {
	if in == nil {
		return f, nil
	}
	switch {
	case in.TenantID != nil && *in.TenantID != p.Tenant:
		return f, forbidden("filter.tenantId: not the tenant of the credential")
	case in.UserID != nil && !p.Can(auth.ReadPeople):
		return f, forbidden("filter.userId: the permission %q is missing", auth.ReadPeople)
	}
	var domain, status, action string
	for _, w := range (words{
		{"userId", in.UserID, &f.UserID, nil}, {"llmProvider", in.LlmProvider, &f.Provider, nil}, {"llmModel", in.LlmModel, &f.Model, nil},
		{"sensitivityScore", in.SensitivityScore, &f.Sensitivity, nil}, {"application", in.Application, &f.App, nil},
		{"traceId", in.TraceID, &f.TraceID, nil}, {"biasType", in.BiasType, &f.BiasType, nil}, {"kind", in.Kind, &f.Kind, nil}, {"status", in.Status, &f.Status, statuses},
		{"reviewDecision", in.ReviewDecision, &f.Decision, decisions}, {"reviewedBy", in.ReviewedBy, &f.ReviewedBy, nil}, {"notReviewedBy", in.NotReviewedBy, &f.NotReviewedBy, nil},
		{"domain", in.Domain, &domain, names(audit.Domains)},
		{"biasAnalysisStatus", in.BiasAnalysisStatus, &status, names([]audit.Status{audit.Pending, audit.Done, audit.Partial, audit.Failed, audit.Skipped, audit.Abandoned})},
		{"action", in.Action, &action, names([]audit.Action{audit.NoAction, audit.Log, audit.Warn, audit.Gate, audit.Block})},
	}) {
		switch {
		case w.from == nil:
			continue
		case *w.from == "":
			return f, invalid("filter."+w.name, "empty; leave it out to see all")
		case w.of != nil && !slices.Contains(w.of, *w.from):
			return f, invalid("filter."+w.name, "want one of %s", strings.Join(w.of, ", "))
		}
		*w.to = *w.from
	}
	f.Domain, f.AnalysisStatus, f.Action = audit.Domain(domain), audit.Status(status), audit.Action(action)
	if f.TraceID != "" && !audit.ValidTraceID(f.TraceID) {
		return f, invalid("filter.traceId", "want 32 lower-case hexadecimal digits, not all zero")
	}
	if in.EventID != nil {
		if f.EventID, _ = audit.EventID(p.Tenant, *in.EventID); *in.EventID == "" || f.EventID.IsZero() {
			return f, invalid("filter.eventId", "names no event; leave it out to see all")
		}
	}
	f.BiasDetected, f.HumanReviewed, f.Flagged, f.Unsafe, f.Gated, f.Effective, f.Differ = in.BiasDetected, in.HumanReviewed, in.Flagged, in.Unsafe, in.Gated, in.EffectiveBias, in.ReviewsDiffer
	if in.MinSeverity != nil {
		f.MinSeverity = in.MinSeverity.Level()
	}
	if f.MinBiasScore, err = share("filter.minBiasScore", in.MinBiasScore); err != nil {
		return f, err
	}
	if f.MinConfidence, err = share("filter.minConfidence", in.MinConfidence); err != nil {
		return f, err
	}
	f.Window, err = window("filter.logTimestampStart", in.LogTimestampStart, in.LogTimestampEnd)
	return f, err
}

// window reads a range of time; ends that are left out stay open.
func window(field string, from, to *time.Time) (store.Window, error) {
	w := store.Window{From: bound(from), To: bound(to)}
	if from != nil && to != nil && w.To.Before(w.From) {
		return w, invalid(field, "lies behind the end of the range")
	}
	return w, nil
}

// share reads a decimal of 0 to 1; 0 when it is left out.
func share(field string, v *float64) (audit.Score, error) {
	if v == nil {
		return 0, nil
	}
	if !(*v >= 0 && *v <= 1) {
		return 0, invalid(field, "not in 0..1")
	}
	return audit.ScoreOf(*v), nil
}

// count reads how many are wanted.
func count(field string, n *int) (int, error) {
	switch {
	case n == nil:
		return store.DefaultLimit, nil
	case *n < 1 || *n > store.MaxLimit:
		return 0, invalid(field, "%d is not in 1..%d", *n, store.MaxLimit)
	}
	return *n, nil
}

// page reads limit and offset.
func page(in *generated.PaginationInput) (p store.Page, err error) {
	if in == nil {
		in = &generated.PaginationInput{}
	}
	if p.Limit, err = count("pagination.limit", in.Limit); err != nil {
		return p, err
	}
	if in.Offset != nil {
		p.Offset = *in.Offset
	}
	if p.Offset < 0 || p.Offset > store.MaxOffset {
		return p, invalid("pagination.offset", "%d is not in 0..%d; llmInteractionAuditConnection has cursors", p.Offset, store.MaxOffset)
	}
	return p, nil
}

func names[S ~string](of []S) []string {
	out := make([]string, len(of))
	for i, s := range of {
		out[i] = string(s)
	}
	return out
}

// cursored reads a page that goes by cursors.
func cursored(order *generated.AuditOrder, first *int, after *string) (p store.Page, err error) {
	if p.Limit, err = count("first", first); err != nil {
		return p, err
	}
	if order != nil {
		p.Sort = store.Sort{By: order.Field, Ascending: order.Direction == generated.SortDirectionAsc}
	}
	if after != nil {
		c, err := store.ParseCursor(*after)
		if err != nil {
			return p, invalid("after", "not a cursor that this service gave out")
		}
		p.After = &c
	}
	return p, nil
}

// ofBreaches reads the conditions of a list of breaches.
func ofBreaches(state *audit.BreachState, domain, kind *string) (f store.BreachFilter, err error) {
	if state != nil {
		f.State = *state
	}
	if f.Domain = audit.Domain(value(domain)); domain != nil && !f.Domain.Known() {
		return f, invalid("domain", "want one of %s", audit.List(audit.Domains))
	}
	if f.Kind = value(kind); kind != nil && f.Kind == "" {
		return f, invalid("kind", "empty; leave it out to see all")
	}
	return f, nil
}

// value gives "" for null.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
