package model

import (
	"context"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/store"
)

// Source reads more about items, one statement a table however many they are: *store.Tenant.
type Source interface {
	Facts(ctx context.Context, items []*store.Item) (map[store.Key]audit.Interaction, error)
	Texts(ctx context.Context, items []*store.Item) (map[store.Key]store.Texts, error)
	Verdicts(ctx context.Context, items []*store.Item) (map[store.Key][]store.StoredVerdict, error)
	Reviews(ctx context.Context, items []*store.Item) (map[store.Key][]store.Review, error)
	Feedback(ctx context.Context, items []*store.Item) (map[store.Key][]store.Feedback, error)
}

// Sight is what a caller may see of records.
type Sight struct {
	Texts  bool // prompts, responses, evidence, notes
	People bool // who the user was
	// Advice is what a rule suggests; its words are the rule's, so everybody may see them. nil suggests nothing.
	Advice func(rule string) audit.Advice
}

// SightOf is what a principal may see without a reason.
func SightOf(p *auth.Principal) Sight {
	return Sight{Texts: p.Can(auth.ReadTexts), People: p.Can(auth.ReadPeople)}
}

// Revealed sees everything; who asked is on record.
var Revealed = Sight{Texts: true, People: true}

// TextMasked is the state of texts that the caller may not see; whether they are still held is then not said.
const TextMasked store.TextState = "masked"

// Page is interactions that were read together, and what was read about them since. It lives as long as
// a request and is safe for concurrent use.
type Page struct {
	src   Source
	sight Sight
	items []*store.Item

	interactions load[map[store.Key]audit.Interaction]
	stored       load[map[store.Key]store.Texts]
	judged       load[map[store.Key][]store.StoredVerdict]
	reviewed     load[map[store.Key][]store.Review]
	answered     load[map[store.Key][]store.Feedback]
	cuts         cuts
}

// NewPage makes the audits of items, in their order.
func NewPage(src Source, sight Sight, items []store.Item) []*Audit {
	p := &Page{src: src, sight: sight, items: make([]*store.Item, len(items))}
	audits := make([]*Audit, len(items))
	for i := range items {
		audits[i] = &Audit{Item: items[i], page: p}
		p.items[i] = &audits[i].Item
	}
	return audits
}

// One is the page of one item.
func One(src Source, sight Sight, it *store.Item) *Audit {
	return NewPage(src, sight, []store.Item{*it})[0]
}

// Pending is an interaction that was taken in and is not in the store yet: no verdict, no review.
func Pending(sight Sight, it *store.Item, in *audit.Interaction) *Audit {
	return One(pending{in}, sight, it)
}

// facts are the interactions, without texts.
func (p *Page) facts(ctx context.Context) (map[store.Key]audit.Interaction, error) {
	return p.interactions.get(func() (map[store.Key]audit.Interaction, error) { return p.src.Facts(ctx, p.items) })
}

func (p *Page) verdicts(ctx context.Context) (map[store.Key][]store.StoredVerdict, error) {
	return p.judged.get(func() (map[store.Key][]store.StoredVerdict, error) { return p.src.Verdicts(ctx, p.items) })
}

func (p *Page) reviews(ctx context.Context) (map[store.Key][]store.Review, error) {
	return p.reviewed.get(func() (map[store.Key][]store.Review, error) { return p.src.Reviews(ctx, p.items) })
}

func (p *Page) feedback(ctx context.Context) (map[store.Key][]store.Feedback, error) {
	return p.answered.get(func() (map[store.Key][]store.Feedback, error) { return p.src.Feedback(ctx, p.items) })
}

// texts are as much of the texts as the caller may see: the one place that masks. Who may see none reads none.
func (p *Page) texts(ctx context.Context) (map[store.Key]store.Texts, error) {
	return p.stored.get(func() (map[store.Key]store.Texts, error) {
		seen := map[store.Key]store.Texts{}
		if !p.sight.Texts && !p.sight.People {
			for _, it := range p.items {
				seen[it.Key()] = store.Texts{State: TextMasked}
			}
			return seen, nil
		}
		all, err := p.src.Texts(ctx, p.items)
		for key, t := range all {
			seen[key] = p.sight.mask(t)
		}
		return seen, err
	})
}

func (s Sight) mask(t store.Texts) store.Texts {
	in := &t.Interaction
	if !s.People {
		in.UserID, in.UserEmail, in.UserRole = "", "", ""
	}
	if !s.Texts {
		people := audit.Interaction{UserID: in.UserID, UserEmail: in.UserEmail, UserRole: in.UserRole}
		t = store.Texts{State: TextMasked, Interaction: people}
	}
	return t
}

// pending is the source of an interaction that nothing is stored of.
type pending struct{ in *audit.Interaction }

func (s pending) Facts(_ context.Context, items []*store.Item) (map[store.Key]audit.Interaction, error) {
	return map[store.Key]audit.Interaction{items[0].Key(): *s.in}, nil
}

func (s pending) Texts(_ context.Context, items []*store.Item) (map[store.Key]store.Texts, error) {
	return map[store.Key]store.Texts{items[0].Key(): {State: store.TextPresent, Interaction: *s.in}}, nil
}

func (pending) Verdicts(context.Context, []*store.Item) (map[store.Key][]store.StoredVerdict, error) {
	return nil, nil
}

func (pending) Reviews(context.Context, []*store.Item) (map[store.Key][]store.Review, error) {
	return nil, nil
}

func (pending) Feedback(context.Context, []*store.Item) (map[store.Key][]store.Feedback, error) {
	return nil, nil
}
