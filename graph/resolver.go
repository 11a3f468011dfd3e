// Package graph answers GraphQL: queries from package store, mutations through package facts. The schema
// is schemas/graphql; what gqlgen makes of it lies in generated.
package graph

import (
	"context"
	"log/slog"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/store"
)

//go:generate go run github.com/99designs/gqlgen generate --config gqlgen.yml
//go:generate go test . -run TestReference -update-reference

// Facts is what mutations add facts through: *facts.Writer.
type Facts interface {
	UpdateBias(ctx context.Context, by *auth.Principal, id audit.ID, b facts.Bias) (*store.Item, error)
	Review(ctx context.Context, by *auth.Principal, id audit.ID, r facts.Review) (*store.Item, error)
	Reviews(ctx context.Context, by *auth.Principal, n int, next func(int) (audit.ID, facts.Review, error)) ([]*store.Item, []error)
	Reveal(ctx context.Context, by *auth.Principal, id, content audit.ID, reason string) (*store.Item, error)
	Feedback(ctx context.Context, by *auth.Principal, id audit.ID, f facts.Feedback) (*store.Feedback, error)
	PutTaxonomy(ctx context.Context, by *auth.Principal, e store.TaxonomyEntry) (*store.TaxonomyEntry, error)
}

// Gates is what answers gates: *gates.Service.
type Gates interface {
	Get(ctx context.Context, tenant string, id audit.ID) (*audit.HumanGate, error)
	Decide(ctx context.Context, id audit.ID, by *auth.Principal, a gates.Answer) (g *audit.HumanGate, mine bool, err error)
}

// Judge asks the judge for verdicts, as package judge/lane does. result is the id of the verdict that will answer or has,
// zero where none will.
type Judge interface {
	Request(ctx context.Context, tenant string, id audit.ID, again bool) (o generated.JudgeRequestOutcome, result audit.ID, err error)
}

// Parts are what resolvers work with.
type Parts struct {
	Store *store.Store
	Facts Facts
	Log   *slog.Logger // nil: what goes wrong inside is not logged
	// Advice is what a rule suggests against what it finds. nil: mitigations name no wording.
	Advice func(rule string) audit.Advice

	Intake *Intake // nil: interactions are not taken in
	Feed   *Feed   // nil: there is no stream of what is flagged
	Gates  Gates   // nil: gates are read as they are stored, and not answered
	Judge  Judge   // nil: there is no judging model
}

// Resolver answers the fields of the schema.
type Resolver struct {
	Parts
	words *facts.Vocabulary
}

// New makes the resolvers.
func New(p Parts) *Resolver {
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	return &Resolver{p, facts.NewVocabulary(p.Store, nil)}
}
