package linear

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/evenhand/evenhand/audit"
)

// team knows the ids that issues are made with. They are asked for once, and again when Linear does
// not know one of them any more.
type team struct {
	client *client
	key    string

	mu     sync.Mutex
	id     string
	fresh  string            // state of new issues
	labels map[string]string // id by lower-case name; "" for one that can be neither found nor made
}

// places are the ids for one issue.
type places struct {
	team   string
	fresh  string // "" leaves the state to the team
	labels []string
}

// use hands out the ids; when Linear says that something was not found, they are asked for anew and f
// runs once more.
func (t *team) use(ctx context.Context, labels []string, f func(places) error) error {
	for again := false; ; again = true {
		p, err := t.places(ctx, labels)
		if err != nil {
			return err
		}
		if err = f(p); again || !errors.Is(err, errNotFound) {
			return err
		}
		t.mu.Lock()
		t.id = ""
		t.mu.Unlock()
	}
}

func (t *team) places(ctx context.Context, labels []string) (places, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id == "" {
		if err := t.read(ctx); err != nil {
			return places{}, err
		}
	}
	p := places{team: t.id, fresh: t.fresh, labels: []string{}}
	if err := t.readLabels(ctx, labels); err != nil {
		return places{}, err
	}
	for _, l := range labels {
		if id := t.labels[strings.ToLower(l)]; id != "" && !slices.Contains(p.labels, id) {
			p.labels = append(p.labels, id)
		}
	}
	return p, nil
}

func (t *team) read(ctx context.Context) error {
	var out struct {
		Teams struct {
			Nodes []struct {
				ID     string
				States struct {
					Nodes []struct {
						ID, Type string
						Position float64
					}
				}
			}
		}
	}
	if err := t.client.do(ctx, "team", map[string]any{"key": t.key}, &out); err != nil {
		return err
	}
	if len(out.Teams.Nodes) == 0 {
		return fault(audit.KindUnavailable, fmt.Errorf("the key sees no team %q: set linear.team, or give the key access to it", t.key))
	}
	n := out.Teams.Nodes[0]
	t.id, t.fresh, t.labels = n.ID, "", map[string]string{}
	for _, typ := range []string{"triage", "unstarted", "backlog"} {
		first := -1
		for i, s := range n.States.Nodes {
			if s.Type == typ && (first < 0 || s.Position < n.States.Nodes[first].Position) {
				first = i
			}
		}
		if first >= 0 {
			t.fresh = n.States.Nodes[first].ID
			break
		}
	}
	return nil
}

// readLabels finds or makes the labels that are not known yet. A label is unique by name, whatever its
// case, in team and workspace. One that cannot be made is left out: no issue waits for it.
func (t *team) readLabels(ctx context.Context, names []string) error {
	var missing []string
	for _, l := range names {
		if _, known := t.labels[strings.ToLower(l)]; !known {
			missing = append(missing, l)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := t.findLabels(ctx, missing); err != nil {
		return err
	}
	made := false
	for _, l := range missing {
		if _, found := t.labels[strings.ToLower(l)]; found {
			continue
		}
		made = true
		err := t.client.do(ctx, "label_create", map[string]any{"input": map[string]any{
			"id": audit.DerivedV4("label", t.id, strings.ToLower(l)).String(), "teamId": t.id, "name": l,
		}}, &struct{}{})
		if err != nil && audit.KindOf(err) != audit.KindInvalid {
			return err
		}
	}
	if !made {
		return nil
	}
	if err := t.findLabels(ctx, missing); err != nil { // what was made, here or by others meanwhile
		return err
	}
	for _, l := range missing {
		if _, found := t.labels[strings.ToLower(l)]; !found {
			t.labels[strings.ToLower(l)] = ""
		}
	}
	return nil
}

func (t *team) findLabels(ctx context.Context, names []string) error {
	named := make([]map[string]any, len(names))
	for i, l := range names {
		named[i] = map[string]any{"name": map[string]any{"eqIgnoreCase": l}}
	}
	var out struct {
		IssueLabels struct{ Nodes []struct{ ID, Name string } }
	}
	err := t.client.do(ctx, "labels", map[string]any{"filter": map[string]any{"and": []map[string]any{
		{"or": named},
		{"or": []map[string]any{{"team": map[string]any{"null": true}}, {"team": map[string]any{"id": map[string]any{"eq": t.id}}}}},
	}}}, &out)
	if err != nil {
		return err
	}
	for _, n := range out.IssueLabels.Nodes {
		t.labels[strings.ToLower(n.Name)] = n.ID
	}
	return nil
}
