package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/graph/model"
)

// tooLate says beside a gate that it was not answered by this caller: who denied what is approved must not take it for done.
func tooLate(ctx context.Context) {
	graphql.AddError(ctx, &Fault{Conflict, "the gate was decided otherwise, or by another; see its decision"})
}

// gate reads a gate as it stands, nil when the tenant has none of the id.
func (r *Resolver) gate(ctx context.Context, id audit.ID) (*audit.HumanGate, error) {
	p, tenant := r.caller(ctx)
	read := func() (*audit.HumanGate, error) { return tenant.Gate(ctx, id) }
	if r.Parts.Gates != nil {
		read = func() (*audit.HumanGate, error) { return r.Parts.Gates.Get(ctx, p.Tenant, id) }
	}
	g, err := read()
	if errors.Is(err, gates.ErrUnknown) {
		return nil, nil
	}
	return g, err
}

// gates makes what is answered of gates that were read together, as far as the caller may see it.
func (r *Resolver) gates(ctx context.Context, gs []audit.HumanGate) []*model.Gate {
	p, tenant := r.caller(ctx)
	return model.Gates(tenant, r.advised(model.SightOf(p)), gates.Reads(p), gs)
}

// ofGate gives errors of answers their codes.
func ofGate(err error) error {
	switch {
	case errors.Is(err, gates.ErrUnknown):
		return &Fault{NotFound, "no such gate"}
	case errors.Is(err, gates.ErrOwn):
		return forbidden("%v", gates.ErrOwn)
	case errors.Is(err, gates.ErrNoPermission):
		return forbidden("the permission %q is missing", "approve")
	}
	return err
}
