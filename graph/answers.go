package graph

import (
	"context"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/graph/model"
	"github.com/evenhand/evenhand/store"
)

// eventID reads the id of an interaction.
func eventID(id string) (audit.ID, error) {
	v, err := audit.ParseID(id)
	if err != nil {
		return v, invalid("id", "not a UUID (want 8-4-4-4-12 hexadecimal digits)")
	}
	return v, nil
}

// contentOf is which of several contents of an id is meant; the zero id where nothing was said.
func contentOf(resultID *string) (v audit.ID, err error) {
	if resultID == nil {
		return v, nil
	}
	if v, err = audit.ParseID(*resultID); err != nil {
		return v, invalid("resultId", "not a UUID (want 8-4-4-4-12 hexadecimal digits)")
	}
	return v, nil
}

// selected tells whether a field of the answer is asked for.
func selected(ctx context.Context, name string) bool {
	return slices.ContainsFunc(graphql.CollectFieldsCtx(ctx, nil), func(f graphql.CollectedField) bool { return f.Name == name })
}

// connection reads a page of a list and, when it is asked for, how many there are.
func (r *Resolver) connection(ctx context.Context, f store.Filter, p store.Page) (*generated.LlmInteractionAuditConnection, error) {
	_, tenant := r.caller(ctx)
	var res *store.Result
	var total uint64
	var more bool
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if res, err = tenant.List(gctx, f, p); err != nil || res.Next == nil || !selected(ctx, "pageInfo") {
			return err
		}
		behind, err := tenant.List(gctx, f, store.Page{Limit: 1, Sort: p.Sort, After: res.Next}) // a full page may be the last
		more = err == nil && len(behind.Items) > 0
		return err
	})
	if selected(ctx, "totalCount") {
		g.Go(func() (err error) {
			total, err = tenant.Count(gctx, f)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := &generated.LlmInteractionAuditConnection{Nodes: r.Audits(ctx, res.Items), Edges: []*generated.LlmInteractionAuditEdge{}, PageInfo: &generated.PageInfo{}, TotalCount: number(total)}
	for i, n := range out.Nodes {
		out.Edges = append(out.Edges, &generated.LlmInteractionAuditEdge{Cursor: res.Items[i].Cursor().String(), Node: n})
	}
	if len(out.Edges) > 0 {
		out.PageInfo.EndCursor = &out.Edges[len(out.Edges)-1].Cursor
	}
	out.PageInfo.HasNextPage = more
	return out, nil
}

// number is a count as an Int of GraphQL, which has 32 bits.
func number(n uint64) int { return int(min(n, 1<<31-1)) }

// trend reads what a trend is asked for.
func trend(in generated.BiasTrendInput) (q store.TrendQuery, err error) {
	if q.Window, err = window("input.from", in.From, in.To); err != nil {
		return q, err
	}
	q.Measure = in.Measure
	if q.Bucket = store.Day; in.Bucket != nil {
		q.Bucket = *in.Bucket
	}
	if in.GroupBy != nil {
		q.Group = *in.GroupBy
	}
	var domain string
	for _, f := range []struct {
		name string
		from *string
		to   *string
	}{{"kind", in.Kind, &q.Kind}, {"domain", in.Domain, &domain}, {"application", in.Application, &q.App}, {"llmModel", in.LlmModel, &q.Model}} {
		if f.from == nil {
			continue
		}
		if *f.from == "" {
			return q, invalid("input."+f.name, "empty; leave it out to see all")
		}
		*f.to = *f.from
	}
	if q.Domain = audit.Domain(domain); domain != "" && !q.Domain.Known() {
		return q, invalid("input.domain", "want one of %s", audit.List(audit.Domains))
	}
	switch {
	case q.Group == store.ByFindings && q.Kind != "":
		return q, invalid("input.kind", "not together with groupBy KIND")
	case q.Group == store.ByFindings && q.Measure != store.Detected && q.Measure != store.OfKind: // DETECTED is what an input has that names none
		return q, invalid("input.measure", "not together with groupBy KIND, which counts each kind")
	case q.Group == store.ByFindings:
		q.Measure = store.OfKind
	case q.Measure == store.OfKind && q.Kind == "":
		return q, invalid("input.kind", "measure KIND wants one, or groupBy KIND")
	case q.Measure != store.OfKind && q.Kind != "":
		return q, invalid("input.kind", "goes with measure KIND only")
	}
	return q, nil
}

// points are those of a series; a rate of nothing is null.
func points(s store.TrendSeries) *generated.TrendSeries {
	out := &generated.TrendSeries{Points: []*generated.TrendPoint{}}
	if s.Group != "" {
		out.Group = &s.Group
	}
	for _, p := range s.Points {
		at := &generated.TrendPoint{At: p.At, N: number(p.N), K: number(p.K)}
		if p.N > 0 {
			at.Rate, at.Lower, at.Upper = &p.Rate.Rate, &p.Lower, &p.Upper
		}
		out.Points = append(out.Points, at)
	}
	return out
}

// lately is the window of figures that name none: the last seven days, as evenhand rates has them. An event that is
// dated ahead of its arrival is in them once its time has come.
func lately(w store.Window, now time.Time) store.Window {
	if w.To.IsZero() {
		w.To = now.UTC().Truncate(time.Millisecond)
	}
	if w.From.IsZero() {
		if w.From = now.UTC().Truncate(time.Millisecond).AddDate(0, 0, -7); w.From.After(w.To) {
			w.From = w.To.AddDate(0, 0, -7)
		}
	}
	return w
}

func coverage(c store.Coverage, w store.Window) *generated.Coverage {
	out := &generated.Coverage{
		From: w.From, To: w.To, Received: number(c.Received), Analysed: number(c.Analysed), Failed: number(c.Failed),
		Partial: number(c.Partial), Pending: number(c.Pending), Abandoned: number(c.Abandoned), WithoutResponse: number(c.Skipped - min(c.WithoutContent, c.Skipped)), WithoutContent: number(c.WithoutContent), OtherLanguages: number(c.OtherLanguages), OtherDomains: number(c.OtherDomains), Rejected: number(c.Rejected),
	}
	if c.Received > c.Skipped {
		s := min(1, float64(c.Analysed)/float64(c.Received-c.Skipped))
		out.Share = &s
	}
	return out
}

func entry(e *store.TaxonomyEntry) *generated.TaxonomyEntry {
	out := &generated.TaxonomyEntry{ID: number(uint64(e.ID)), BiasKey: e.Key, SeverityLevel: int(e.Severity)}
	if e.Description != "" {
		out.Description = &e.Description
	}
	return out
}

// breaches makes a page of breaches.
func (r *Resolver) breaches(ctx context.Context, bs []audit.Breach) []*model.Breach {
	p, t := r.caller(ctx)
	return model.Breaches(t, r.advised(model.SightOf(p)), bs)
}
