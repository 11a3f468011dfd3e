package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/judge/lane"
	"github.com/evenhand/evenhand/schemas/graphql"
	"github.com/evenhand/evenhand/store"
)

// graphqlCmd prints what GraphQL serves, without any service.
type graphqlCmd struct {
	Schema schemaCmd `cmd:"" help:"Print the schema in GraphQL's schema language, for code generators and editors."`
	Docs   sdlDocs   `cmd:"" help:"Print the reference in Markdown, as docs/graphql-reference.md has it."`
}

type schemaCmd struct{}

// Run prints the files that the schema is made of.
func (schemaCmd) Run(io *stdio) error {
	for i, s := range graphql.Sources {
		if i > 0 {
			fmt.Fprintln(io.out)
		}
		fmt.Fprint(io.out, s.Text)
	}
	return nil
}

type sdlDocs struct{}

// Run prints the reference.
func (sdlDocs) Run(io *stdio) error {
	fmt.Fprint(io.out, graph.Reference(graph.New(graph.Parts{}).Schema().Schema()))
	return nil
}

// graphEnd is what serves GraphQL in this process.
type graphEnd struct {
	*graph.Handler
	feed *graph.Feed
}

// startGraphQL builds resolvers over the store, the writer of facts, the log and the feed.
func (st *stack) startGraphQL() error {
	s := st.settings
	writer, err := st.facts()
	if err != nil {
		return err
	}
	feed := graph.NewFeed(graph.FlaggedIn(st.reader), s.GraphQL, st.log)
	r := graph.New(graph.Parts{
		Store: st.reader, Facts: writer, Log: st.log, Feed: feed, Advice: st.analyzer.Advice,
		Intake: &graph.Intake{Decoder: ingest.NewDecoder(s.decoder()), Producer: &frontDoor{st}, Limit: kafkaconn.MaxMessage},
	})
	r.Gates = st.gates
	if st.judge != nil {
		r.Judge = &judgeWish{st.judge.asker, st.reader, s.Judge.version()}
	}
	st.graphql = &graphEnd{graph.NewHandler(r.Schema(), s.GraphQL, graph.HandlerOptions{Log: st.log, Metrics: st.metrics}), feed}
	return nil
}

// judgeWish asks the judge by its topic.
type judgeWish struct {
	asker   *lane.Asker
	store   *store.Store
	version string
}

var wishes = map[lane.Wish]generated.JudgeRequestOutcome{
	lane.Requested: generated.JudgeRequestOutcomeRequested, lane.AlreadyJudged: generated.JudgeRequestOutcomeAlreadyJudged, lane.NothingToJudge: generated.JudgeRequestOutcomeNothingToJudge,
}

// Request implements graph.Judge.
func (w *judgeWish) Request(ctx context.Context, tenant string, id audit.ID, again bool) (generated.JudgeRequestOutcome, audit.ID, error) {
	o, result, err := w.asker.Request(ctx, w.store.WithTenant(tenant), id, w.version, again)
	return wishes[o], result, err
}

// mount serves GraphQL to callers that package auth lets in, and the page to try it on where that is on.
// Writing is asked of each mutation by the schema; reading of all, so that strangers learn nothing of it.
func (e *graphEnd) mount(mux *http.ServeMux, a *auth.Authenticator, playground bool) {
	mux.Handle(graph.Path, a.Middleware(auth.Read, graph.Refused, e))
	if playground {
		mux.Handle("GET "+graph.Path+"/playground", graph.Playground())
	}
}

// close ends what Drain has not.
func (e *graphEnd) close() {
	e.Drain()
	e.feed.Close()
}

// validateGraphQL adds what only the listener's address can tell.
func (s settings) validateGraphQL() error {
	errs := []error{s.GraphQL.Validate()}
	if s.GraphQL.Playground && s.public() {
		errs = append(errs, errors.New("graphql.playground: the page is served on a loopback address only; set http.addr to 127.0.0.1:PORT"))
	}
	return errors.Join(errs...)
}
