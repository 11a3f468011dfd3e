package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/graph/model"
	"github.com/evenhand/evenhand/store"
)

// Schema is what is served: the fields with their resolvers, behind the permissions that the schema asks
// for with @may.
func (r *Resolver) Schema() graphql.ExecutableSchema {
	return generated.NewExecutableSchema(generated.Config{Resolvers: r, Directives: generated.DirectiveRoot{May: may}})
}

// may lets a caller with the permission pass.
func may(ctx context.Context, _ any, next graphql.Resolver, permission string) (any, error) {
	switch p := auth.From(ctx); {
	case p == nil:
		return nil, errUnauthenticated
	case p.Tenant == "":
		return nil, forbidden("the credential is bound to no tenant")
	case !p.Can(auth.Permission(permission)):
		return nil, forbidden("the permission %q is missing", permission)
	}
	return next(ctx)
}

// caller gives who asks and what its tenant may read. Behind may there is one.
func (r *Resolver) caller(ctx context.Context) (*auth.Principal, *store.Tenant) {
	p := auth.From(ctx)
	return p, r.Store.WithTenant(p.Tenant)
}

// Audits makes what is answered of items that were read together, as far as the caller may see it.
func (r *Resolver) Audits(ctx context.Context, items []store.Item) []*model.Audit {
	p, t := r.caller(ctx)
	return model.NewPage(t, r.advised(model.SightOf(p)), items)
}

// advised lets a sight name what rules suggest.
func (r *Resolver) advised(s model.Sight) model.Sight {
	s.Advice = r.Advice
	return s
}

// written answers with the item that a fact was just added to.
func (r *Resolver) written(ctx context.Context, it *store.Item, err error) (*model.Audit, error) {
	if err != nil {
		return nil, err
	}
	return r.Audits(ctx, []store.Item{*it})[0], nil
}
