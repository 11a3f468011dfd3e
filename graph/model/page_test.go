package model

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// broken is a source that fails, and counts.
type broken struct{ reads int }

func (b *broken) fail() error {
	b.reads++
	return audit.E("store", audit.KindUnavailable, errors.New("away"))
}

func (b *broken) Facts(context.Context, []*store.Item) (map[store.Key]audit.Interaction, error) {
	return nil, b.fail()
}

func (b *broken) Texts(context.Context, []*store.Item) (map[store.Key]store.Texts, error) {
	return nil, b.fail()
}

func (b *broken) Verdicts(context.Context, []*store.Item) (map[store.Key][]store.StoredVerdict, error) {
	return nil, b.fail()
}

func (b *broken) Reviews(context.Context, []*store.Item) (map[store.Key][]store.Review, error) {
	return nil, b.fail()
}

func (b *broken) Feedback(context.Context, []*store.Item) (map[store.Key][]store.Feedback, error) {
	return nil, b.fail()
}

// What cannot be read is asked for once and fails every field that needs it, told of once.
func TestWhatCannotBeReadFailsOnce(t *testing.T) {
	b := &broken{}
	items := make([]store.Item, 50)
	for i := range items {
		items[i] = store.Item{Tenant: "acme", EventID: audit.NewID(time.Now()), HumanReviewed: true, AnalysisStatus: audit.Done}
	}
	first := 0
	for _, a := range NewPage(b, Revealed, items) {
		ctx := t.Context()
		var errs []error
		keep := func(_ any, err error) { errs = append(errs, err) }
		keep(a.OriginalQuery(ctx))
		keep(a.LlmResponse(ctx))
		keep(a.PromptText(ctx))
		keep(a.Messages(ctx))
		keep(a.ResponseText(ctx))
		keep(a.UserEmail(ctx))
		keep(a.TextState(ctx))
		keep(a.PromptTokens(ctx))
		keep(a.EstimatedCostUsd(ctx))
		keep(a.BiasScore(ctx))
		keep(a.MitigationAction(ctx))
		keep(a.BiasReportSummary(ctx))
		keep(a.Findings(ctx))
		keep(a.HumanBiasTag(ctx))
		keep(a.ReviewNotes(ctx))
		keep(a.Reviews(ctx))
		keep(a.Feedback(ctx))
		for i, err := range errs {
			var s *Shared
			if audit.KindOf(err) != audit.KindUnavailable || !errors.As(err, &s) {
				t.Fatalf("field %d: %v", i, err)
			}
			if s.First() {
				first++
			}
		}
	}
	if b.reads != 5 || first != 5 {
		t.Errorf("%d reads, %d told of, want 5", b.reads, first)
	}
	if _, err := (&Audit{}).OriginalQuery(t.Context()); audit.KindOf(err) != audit.KindInternal {
		t.Errorf("an interaction of no page: %v", err)
	}
}

// An interaction that was just taken in is shown from what was taken in.
func TestPending(t *testing.T) {
	in := &audit.Interaction{Tenant: "acme", ID: audit.NewID(time.Now()), Time: time.Now().UTC().Truncate(time.Millisecond), Query: "Who?", PromptTokens: 3}
	a := Pending(Sight{Texts: true}, &store.Item{Tenant: in.Tenant, EventID: in.ID, Time: in.Time}, in)
	ctx := t.Context()
	if q, err := a.OriginalQuery(ctx); q != "Who?" || err != nil {
		t.Errorf("query %q %v", q, err)
	}
	if n, err := a.PromptTokens(ctx); err != nil || *n != 3 {
		t.Errorf("tokens %v %v", n, err)
	}
	if v, err := a.BiasReportSummary(ctx); v != nil || err != nil || a.BiasType() != nil || a.BiasAnalysisStatus() != "pending" || a.BiasConfidenceScore() != nil || a.Action() != "none" {
		t.Errorf("an analysis before there is one: %v %v", v, err)
	}
	if fs, err := a.Findings(ctx); len(fs) != 0 || fs == nil || err != nil {
		t.Errorf("findings %v %v", fs, err)
	}
}

// Times are read in RFC 3339 alone and written in UTC with milliseconds; faults do not repeat what was sent.
func TestDateTime(t *testing.T) {
	for given, want := range map[any]string{"2026-03-01T10:30:00.12+01:00": "2026-03-01T09:30:00.12Z", "2026-03-01T09:30:00Z": "2026-03-01T09:30:00Z", "2026-03-01": "", "": "", "secret": "", 7: "", nil: ""} {
		at, err := UnmarshalDateTime(given)
		if want == "" {
			if audit.KindOf(err) != audit.KindInvalid {
				t.Errorf("%v: %v %v", given, at, err)
			}
			continue
		}
		if err != nil || at.Format(time.RFC3339Nano) != want {
			t.Errorf("%v: %v %v", given, at, err)
		}
	}
}
