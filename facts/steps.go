package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

const (
	attempts = 3                      // of a write that did not reach the store, or of which it is not known
	pause    = 200 * time.Millisecond // before the second; twice as long before the third
	// afterwards bounds each of the steps after the fact is stored, which go on when the caller has left.
	afterwards = 20 * time.Second
)

// stored makes a write, and makes it again when the store did not answer.
func stored(ctx context.Context, write func(context.Context) error) error {
	for n, d := 1, pause; ; n, d = n+1, 2*d {
		err := write(ctx)
		if err == nil || n == attempts || audit.KindOf(err) != audit.KindUnavailable {
			return err
		}
		t := time.NewTimer(d)
		select {
		case <-ctx.Done():
			t.Stop()
			return err
		case <-t.C:
		}
	}
}

// show has the read model follow, once for all facts that wait, and reads what is told of them. Where that
// fails, the item as it was gets what was said.
func (w *Writer) show(ctx context.Context, kind string, t *store.Tenant, it *store.Item, add func(*store.Item)) shown {
	key := it.Key()
	out, err := w.showing.together(key, func() (out shown, err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
		defer cancel()
		behind := w.Current.Follow(ctx, key)
		if out.item, err = t.Reread(ctx, it); err == nil {
			out.event, err = t.StreamEvent(ctx, it)
		}
		return out, errors.Join(behind, err)
	})
	now := *it
	if out.item != nil {
		now = *out.item // others have the same pointer
	}
	if err != nil {
		w.missed(kind, "unshown", it, err)
		add(&now)
	}
	out.item = &now
	return out
}

// showAll is show of reviews of one tenant: one rewrite and one reading serve them all.
func (w *Writer) showAll(ctx context.Context, t *store.Tenant, rs []*reviewed) []*store.Item {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	keys, its := make([]store.Key, len(rs)), make([]*store.Item, len(rs))
	for i, r := range rs {
		keys[i], its[i] = r.it.Key(), r.it
	}
	behind := w.Current.Follow(ctx, keys...)
	read, err := t.RereadAll(ctx, its)
	out := make([]*store.Item, len(rs))
	for i, r := range rs {
		now, gone := *r.it, store.ErrNotFound
		if n := read[keys[i]]; n != nil {
			now, gone = *n, nil
		}
		if err := cmp.Or(errors.Join(behind, err), gone); err != nil {
			w.missed(kindReview, "unshown", r.it, err)
			r.add(&now)
		}
		out[i] = &now
	}
	return out
}

// publish sends what is told of interactions.
func (w *Writer) publish(ctx context.Context, kind string, its []*store.Item, send func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	if err := send(ctx); err != nil {
		for _, it := range its {
			w.missed(kind, "unpublished", it, err)
		}
	}
}

// missed tells of a step that others make up for.
func (w *Writer) missed(kind, step string, it *store.Item, err error) {
	w.Observer.Fact(kind, step)
	w.Logger.Warn("a fact is stored, a later step failed and will be made up for", "fact", kind, "step", step, "tenant", it.Tenant, "interaction_id", it.EventID.String(), "error", err.Error())
}

func (w *Writer) publishVerdict(ctx context.Context, t *store.Tenant, it *store.Item, v *audit.Verdict, e audit.StreamEvent) {
	w.publish(ctx, kindVerdict, []*store.Item{it}, func(ctx context.Context) error {
		if e.AuditID.IsZero() { // the row could not be shown
			var err error
			if e, err = t.StreamEvent(ctx, it); err != nil {
				return err
			}
		}
		e.Time, e.ResultID = v.Time, v.ResultID
		return w.Stream.Publish(ctx, []audit.StreamEvent{e})
	})
}

// tell gives the verdict to Told. The list's row has no span; where it cannot be read the trace alone is told.
func (w *Writer) tell(ctx context.Context, t *store.Tenant, it *store.Item, v *audit.Verdict) {
	if w.Told == nil {
		return
	}
	in := audit.Interaction{ID: it.EventID, Tenant: it.Tenant, TraceID: it.TraceID, Domain: it.Domain}
	if facts, err := t.Facts(ctx, []*store.Item{it}); err == nil {
		in.SpanID = facts[it.Key()].SpanID
	}
	w.Told(&audit.Record{Origin: it.Origin, Interaction: &in, Verdict: v})
}

// publishOpinions tells of facts, by their ids, each on the interaction of its place, all of one tenant.
func (w *Writer) publishOpinions(ctx context.Context, kind string, its []*store.Item, ids []audit.ID) {
	if len(ids) == 0 {
		return
	}
	w.publish(ctx, kind, its, func(ctx context.Context) error {
		keys := make([]store.Key, len(its))
		for i, it := range its {
			keys[i] = it.Key()
		}
		os, err := w.Store.OpinionsOf(ctx, keys, ids)
		if err == nil && len(os) < len(ids) {
			err = errors.New("the fact is not to be read yet")
		}
		if err != nil {
			return err
		}
		return w.Opinions.Opinions(ctx, os)
	})
}

// textsKept refuses texts for an interaction whose own texts have reached their limit: they would make a
// partition anew that was dropped, and outlive what they speak of. names are the fields that hold some.
func (w *Writer) textsKept(ctx context.Context, it *store.Item, names ...string) error {
	if w.TextsGo == nil || len(names) == 0 {
		return nil
	}
	goes, err := w.TextsGo(ctx, it.Tenant, it.Key().Day)
	if err != nil || w.Now().Before(goes) {
		return err
	}
	var errs []error
	for _, n := range names {
		errs = append(errs, fmt.Errorf("%s: the texts of this interaction have reached their limit of retention; no text is taken for it any more", n))
	}
	return audit.E("facts", audit.KindInvalid, errors.Join(errs...))
}
