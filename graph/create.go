package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph/model"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/store"
)

// Intake takes interactions in for createLlmInteractionAudit, by the rules of POST /v1/interactions.
type Intake struct {
	Decoder  *ingest.Decoder
	Producer ingest.Producer
	Limit    int // bytes of one message; 0 leaves it to the decoder
}

// take puts an interaction into the log and gives what the read model will hold of it before the analysis.
func (i *Intake) take(ctx context.Context, by *auth.Principal, traceparent string, input any) (*store.Item, *audit.Interaction, error) {
	if i == nil {
		return nil, nil, refuse(Unavailable, "this process takes no interactions")
	}
	event, err := eventOf(input)
	if err != nil {
		return nil, nil, err
	}
	m, in, faults := i.Decoder.Prepare(event, ingest.Sender{Tenant: by.Tenant, Traceparent: traceparent, Now: time.Now(), Limit: i.Limit})
	if len(faults) > 0 {
		return nil, nil, faulty(faults)
	}
	if err := i.Producer.Produce(ctx, []ingest.Message{m}); err != nil {
		return nil, nil, notTaken(err, in.ID)
	}
	return pendingItem(in), in, nil
}

// eventOf gives the bytes of the event.
func eventOf(input any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(input); err != nil {
		return nil, refuse(BadUserInput, "input: wants the JSON object of an event")
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// faulty names every field at fault under extensions.fields; another tenant's name is forbidden.
func faulty(faults []ingest.Fault) error {
	e := refuse(BadUserInput, "input: %s", faults[0])
	if n := len(faults) - 1; n > 0 {
		e = refuse(BadUserInput, "input: %s, and %d more: see extensions.fields", faults[0], n)
	}
	e.Extensions["fields"] = faults
	for _, f := range faults {
		if f.Code == ingest.TenantMismatch {
			e.Message, e.Extensions["code"] = "input: the tenant is not yours", string(Forbidden)
		}
	}
	return e
}

// notTaken says whether to come again; with the id, the same event counts once however often it is sent.
func notTaken(err error, id audit.ID) error {
	var e *gqlerror.Error
	switch audit.KindOf(err) {
	case audit.KindOverloaded:
		e = refuse(Overloaded, "too much is under way or the log is full; send the event again with this id")
	case audit.KindUnavailable:
		e = refuse(Unavailable, "the log did not acknowledge the event, which may have been taken; send it again with this id")
	case audit.KindInvalid:
		e = refuse(BadUserInput, "input: the broker takes no message of this size")
	default:
		return err
	}
	e.Extensions["id"] = id.String()
	return e
}

// pendingItem is the row of an interaction that waits for its analysis.
func pendingItem(in *audit.Interaction) *store.Item {
	return &store.Item{
		EventID: in.ID, Digest: in.Digest, Tenant: in.Tenant, Time: in.Time, SortTime: in.SortTime(), TimeAssumed: in.TimeAssumed, TimeSuspect: in.TimeSuspect,
		TraceID: in.TraceID, App: in.Application, Domain: in.Domain, Provider: in.Provider, Model: in.Model, Sensitivity: in.SensitivityScore,
		Status: in.Status, AnalysisStatus: audit.Pending, WithoutContent: in.WithoutContent, Truncated: in.Truncated, Action: audit.NoAction,
	}
}

// createAudit answers createLlmInteractionAudit: the texts as they were given, to who gave them.
func (r *Resolver) createAudit(ctx context.Context, input any) (*model.Audit, error) {
	var traceparent string
	if op := graphql.GetOperationContext(ctx); op.Headers != nil {
		traceparent = op.Headers.Get("Traceparent")
	}
	it, in, err := r.Intake.take(ctx, auth.From(ctx), traceparent, input)
	if err != nil {
		return nil, err
	}
	return model.Pending(model.Revealed, it, in), nil
}
