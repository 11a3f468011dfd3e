package model

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// What stands for originalQuery, which is never null, where the text is not shown.
const (
	Dropped = "[dropped]"
	Masked  = "[masked]"
)

// Audit is LlmInteractionAudit: a row of the read model, and the way to what else is known of it.
type Audit struct {
	Item store.Item
	page *Page
}

var errNoPage = audit.E("graph: record", audit.KindInternal, errors.New("an interaction without its page"))

// about gives what a page read about one of its items; the zero value where nothing is known.
func about[T any](ctx context.Context, a *Audit, read func(*Page, context.Context) (map[store.Key]T, error)) (v T, err error) {
	if a.page == nil {
		return v, errNoPage
	}
	all, err := read(a.page, ctx)
	return all[a.Item.Key()], err
}

func (a *Audit) facts(ctx context.Context) (audit.Interaction, error) {
	return about(ctx, a, (*Page).facts)
}

// texts are masked already.
func (a *Audit) texts(ctx context.Context) (store.Texts, error) { return about(ctx, a, (*Page).texts) }

func (a *Audit) text(ctx context.Context, of func(*audit.Interaction) string) (*string, error) {
	t, err := a.texts(ctx)
	return ptr(of(&t.Interaction)), err
}

// The fields of the row.

func (a *Audit) ID() string                { return a.Item.EventID.String() }
func (a *Audit) ResultID() string          { return a.Item.ResultID().String() }
func (a *Audit) TenantID() string          { return a.Item.Tenant }
func (a *Audit) LlmProvider() string       { return a.Item.Provider }
func (a *Audit) LlmModel() string          { return a.Item.Model }
func (a *Audit) SensitivityScore() *string { return ptr(a.Item.Sensitivity) }
func (a *Audit) Status() string            { return a.Item.Status }
func (a *Audit) LogTimestamp() time.Time   { return a.Item.Time }
func (a *Audit) BiasDetected() bool        { return a.Item.BiasDetected }
func (a *Audit) HumanReviewed() bool       { return a.Item.HumanReviewed }
func (a *Audit) Flagged() bool             { return a.Item.Flagged }
func (a *Audit) Unsafe() bool              { return a.Item.Unsafe }
func (a *Audit) Gated() bool               { return a.Item.Gated }
func (a *Audit) Domain() string            { return string(a.Item.Domain) }
func (a *Audit) Application() *string      { return ptr(a.Item.App) }
func (a *Audit) TraceID() string           { return a.Item.TraceID }
func (a *Audit) IDConflict() bool          { return a.Item.IDConflict }
func (a *Audit) TimeAssumed() bool         { return a.Item.TimeAssumed }
func (a *Audit) Truncated() bool           { return a.Item.Truncated }
func (a *Audit) Severity() *audit.Severity { return severity(a.Item.MaxSeverity) }

// Kinds are those of all findings in the response.
func (a *Audit) Kinds() []string { return list(a.Item.Kinds) }

// Action is none where no policy asked for one.
func (a *Audit) Action() string {
	if a.Item.Action == "" {
		return string(audit.NoAction)
	}
	return string(a.Item.Action)
}

// BiasAnalysisStatus is pending until there is a verdict.
func (a *Audit) BiasAnalysisStatus() string {
	if a.Item.AnalysisStatus == "" {
		return string(audit.Pending)
	}
	return string(a.Item.AnalysisStatus)
}

// analysed tells whether somebody looked: what failed or waits is never shown as clean.
func (a *Audit) analysed() bool {
	return a.Item.AnalysisStatus == audit.Done || a.Item.AnalysisStatus == audit.Partial || a.Item.BiasDetected
}

// BiasType is null when nobody looked, empty when nothing was found.
func (a *Audit) BiasType() []string {
	if !a.analysed() {
		return nil
	}
	return list(a.Item.BiasTypes)
}

// BiasConfidenceScore has the two decimals of the record.
func (a *Audit) BiasConfidenceScore() *float64 {
	if !a.analysed() {
		return nil
	}
	c := math.Round(float64(a.Item.Confidence)/1e4) / 100
	return &c
}

// The fields of the interaction.

func (a *Audit) PromptTokens(ctx context.Context) (*int, error) {
	in, err := a.facts(ctx)
	return known(in.PromptTokens), err
}

func (a *Audit) ResponseTokens(ctx context.Context) (*int, error) {
	in, err := a.facts(ctx)
	return known(in.ResponseTokens), err
}

// EstimatedCostUsd is null when nobody told it.
func (a *Audit) EstimatedCostUsd(ctx context.Context) (*float64, error) {
	in, err := a.facts(ctx)
	if err != nil || in.CostMicroUSD < 0 {
		return nil, err
	}
	usd := float64(in.CostMicroUSD) / 1e6
	return &usd, nil
}

func (a *Audit) ContainedPii(ctx context.Context) (*bool, error) {
	in, err := a.facts(ctx)
	return known3(in.ContainedPII), err
}

func (a *Audit) ContainedProprietary(ctx context.Context) (*bool, error) {
	in, err := a.facts(ctx)
	return known3(in.ContainedProprietary), err
}

func (a *Audit) ContainedCustomerData(ctx context.Context) (*bool, error) {
	in, err := a.facts(ctx)
	return known3(in.ContainedCustomerData), err
}

// DomainGiven is the producer's own name of a domain that has no profile.
func (a *Audit) DomainGiven(ctx context.Context) (*string, error) {
	in, err := a.facts(ctx)
	return ptr(in.DomainGiven), err
}

func (a *Audit) GivenID(ctx context.Context) (*string, error) {
	in, err := a.facts(ctx)
	return ptr(in.GivenID), err
}

// The texts.

func (a *Audit) UserID(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.UserID })
}

func (a *Audit) UserEmail(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.UserEmail })
}

func (a *Audit) UserRole(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.UserRole })
}

func (a *Audit) QueryContext(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.QueryContext })
}

func (a *Audit) SanitizedPrompt(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.SanitizedPrompt })
}

func (a *Audit) ErrorMessage(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.ErrorMessage })
}

// OriginalQuery is the last user message, or what tells why it is not shown.
func (a *Audit) OriginalQuery(ctx context.Context) (string, error) {
	t, err := a.texts(ctx)
	switch t.State {
	case store.TextDropped:
		return Dropped, err
	case TextMasked:
		return Masked, err
	}
	return t.Interaction.Query, err
}

// LlmResponse is as it was received: JSON, or a string.
func (a *Audit) LlmResponse(ctx context.Context) (any, error) {
	t, err := a.texts(ctx)
	switch in := &t.Interaction; {
	case in.ResponseJSON != "":
		return object(in.ResponseJSON), err
	case in.Response != "":
		return in.Response, err
	}
	return nil, err
}

// PromptText is what was judged of the prompt, as much of it as is stored: spans point into it.
func (a *Audit) PromptText(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.Stored(in.Prompt) })
}

// Messages are null where the prompt was one text.
func (a *Audit) Messages(ctx context.Context) (any, error) {
	t, err := a.texts(ctx)
	return object(t.Interaction.Messages), err
}

// ResponseText is what was judged of the response, as much of it as is stored: spans point into it.
func (a *Audit) ResponseText(ctx context.Context) (*string, error) {
	return a.text(ctx, func(in *audit.Interaction) string { return in.Stored(in.Response) })
}

func (a *Audit) RedactionSummary(ctx context.Context) (any, error) {
	t, err := a.texts(ctx)
	return object(t.Interaction.RedactionSummary), err
}

// TextState says whether the texts are shown.
func (a *Audit) TextState(ctx context.Context) (string, error) {
	t, err := a.texts(ctx)
	return string(t.State), err
}

// object is stored JSON as it is; a text that a cut left broken is shown as a string.
func object(s string) any {
	switch {
	case s == "":
		return nil
	case json.Valid([]byte(s)):
		return json.RawMessage(s)
	}
	return s
}

// list is never null.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// known gives null for a figure that nobody told.
func known(n int32) *int {
	if n < 0 {
		return nil
	}
	v := int(n)
	return &v
}

func known3(t audit.Tristate) *bool {
	if t < 0 {
		return nil
	}
	b := t == 1
	return &b
}

// severity is null for none.
func severity(level uint8) *audit.Severity {
	if level < 1 || int(level) > len(audit.Severities) {
		return nil
	}
	return &audit.Severities[level-1]
}
