// Package linear opens issues in Linear, comments on them, links them and opens them again. It
// implements sinks.Tracker and sinks.IssueReader over Linear's GraphQL API with the nine operations
// under operations/.
//
// Saying something twice changes nothing: issues and comments are made under the ticket's own id, and
// Linear's answer that the id is taken means that it was said before; an attachment is known by issue
// and URL; reopening looks first. Requests keep below the limits that Linear's headers tell.
//
// Errors: KindOverloaded for rate limits, with the time to come back; KindUnavailable for networks,
// timeouts, 5xx, locks, and for everything that is the key's or the team's fault and not the ticket's;
// KindInvalid for the rest. No text of people is sent or quoted. A Tracker holds idle connections; Close
// lets them go.
package linear

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Name is the tracker's, as rows carry it.
const Name = "linear"

// Tracker sends tickets to one team. It is safe for concurrent use.
type Tracker struct {
	client *client
	team   *team
}

var (
	_ sinks.Tracker     = (*Tracker)(nil)
	_ sinks.IssueReader = (*Tracker)(nil)
)

// New checks the configuration; it connects with the first ticket.
func New(c Config) (*Tracker, error) {
	if err := c.Validate(); err != nil {
		return nil, audit.E("sinks/linear: new", audit.KindInvalid, err)
	}
	cl := newClient(c)
	return &Tracker{client: cl, team: &team{client: cl, key: c.Team}}, nil
}

// Close lets idle connections go.
func (t *Tracker) Close() { t.client.http.CloseIdleConnections() }

// Check asks for the team: it tells whether address, key and team are right.
func (t *Tracker) Check(ctx context.Context) error {
	return t.team.use(ctx, nil, func(places) error { return nil })
}

// Name implements [sinks.Tracker].
func (t *Tracker) Name() string { return Name }

// Send implements [sinks.Tracker].
func (t *Tracker) Send(ctx context.Context, k *sinks.Ticket) (sinks.Receipt, error) {
	switch k.Action {
	case sinks.OpenIssue:
		return t.open(ctx, k)
	case sinks.Attach:
		return t.attach(ctx, k)
	case sinks.Comment:
		return t.comment(ctx, k)
	case sinks.Reopen:
		return t.reopen(ctx, k)
	}
	return sinks.Receipt{}, fault(audit.KindInvalid, fmt.Errorf("an unknown action %q", k.Action))
}

// issue is what operations tell of an issue.
type issue struct {
	ID          string     `json:"id"`
	Identifier  string     `json:"identifier"`
	URL         string     `json:"url"`
	CompletedAt *time.Time `json:"completedAt"`
	CanceledAt  *time.Time `json:"canceledAt"`
	UpdatedAt   time.Time  `json:"updatedAt"`
	State       struct {
		Type string `json:"type"`
	} `json:"state"`
}

func (i *issue) receipt() sinks.Receipt {
	return sinks.Receipt{RemoteID: i.ID, Key: i.Identifier, URL: i.URL}
}

// closed are the types of states of which no work is left.
var closed = []string{"completed", "canceled", "duplicate"}

func (t *Tracker) read(ctx context.Context, id audit.ID) (*issue, error) {
	var out struct{ Issue *issue }
	if err := t.client.do(ctx, "issue", map[string]any{"id": id.String()}, &out); err != nil {
		return nil, err
	}
	if out.Issue == nil {
		return nil, fault(audit.KindInvalid, errNotFound)
	}
	return out.Issue, nil
}

// Issue implements [sinks.IssueReader].
func (t *Tracker) Issue(ctx context.Context, id audit.ID) (s sinks.IssueState, err error) {
	i, err := t.read(ctx, id)
	if err != nil {
		return s, err
	}
	return i.stands(), nil
}

// Issues implements [sinks.IssueReader].
func (t *Tracker) Issues(ctx context.Context, ids []audit.ID) (map[audit.ID]sinks.IssueState, error) {
	var out struct{ Issues struct{ Nodes []issue } }
	if err := t.client.do(ctx, "issues", map[string]any{"ids": ids}, &out); err != nil {
		return nil, err
	}
	all := make(map[audit.ID]sinks.IssueState, len(ids))
	for _, i := range out.Issues.Nodes {
		if id, err := audit.ParseID(i.ID); err == nil { // ours are; another is none of these
			all[id] = i.stands()
		}
	}
	return all, nil
}

func (i *issue) stands() (s sinks.IssueState) {
	s.Started = i.State.Type == "started"
	if slices.Contains(closed, i.State.Type) {
		s.Closed, s.ClosedAt = i.State.Type, i.UpdatedAt.UTC()
		for _, at := range []*time.Time{i.CompletedAt, i.CanceledAt} {
			if at != nil {
				s.ClosedAt = at.UTC()
			}
		}
	}
	return s
}

// payload is what mutations on issues give.
type payload struct {
	Success bool
	Issue   *issue
}

// unsuccessful is an answer without an error and without success: what became of it is not known.
var errUnsuccessful = errors.New("the answer says neither an error nor success")

func (p *payload) receipt() (sinks.Receipt, error) {
	if !p.Success || p.Issue == nil {
		return sinks.Receipt{}, fault(audit.KindUnavailable, errUnsuccessful)
	}
	return p.Issue.receipt(), nil
}

func (t *Tracker) open(ctx context.Context, k *sinks.Ticket) (sinks.Receipt, error) {
	var out struct{ IssueCreate payload }
	err := t.team.use(ctx, k.Labels, func(p places) error {
		input := map[string]any{
			"id": k.ID.String(), "teamId": p.team, "title": k.Title, "description": k.Body, "priority": k.Priority, "labelIds": p.labels,
		}
		if p.fresh != "" {
			input["stateId"] = p.fresh
		}
		if k.Due != "" {
			input["dueDate"] = k.Due
		}
		return t.client.do(ctx, "issue_create", map[string]any{"input": input}, &out)
	})
	switch {
	case errors.Is(err, errConflict): // an earlier attempt arrived
		i, err := t.read(ctx, k.ID)
		if err != nil {
			return sinks.Receipt{}, err
		}
		return i.receipt(), nil
	case err != nil:
		return sinks.Receipt{}, err
	}
	return out.IssueCreate.receipt()
}

func (t *Tracker) comment(ctx context.Context, k *sinks.Ticket) (sinks.Receipt, error) {
	var out struct {
		CommentCreate struct {
			Success bool
			Comment struct{ ID, URL string }
		}
	}
	done := sinks.Receipt{RemoteID: k.ID.String()}
	err := t.client.do(ctx, "comment_create", map[string]any{"input": map[string]any{
		"id": k.ID.String(), "issueId": k.Issue.String(), "body": k.Body,
	}}, &out)
	switch {
	case errors.Is(err, errConflict):
		return done, nil
	case err != nil:
		return sinks.Receipt{}, err
	case !out.CommentCreate.Success:
		return sinks.Receipt{}, fault(audit.KindUnavailable, errUnsuccessful)
	}
	done.URL = out.CommentCreate.Comment.URL
	return done, nil
}

// attach sends no id: issue and URL are what Linear knows an attachment by.
func (t *Tracker) attach(ctx context.Context, k *sinks.Ticket) (sinks.Receipt, error) {
	var out struct {
		AttachmentCreate struct {
			Success    bool
			Attachment struct{ ID, URL string }
		}
	}
	err := t.client.do(ctx, "attachment_create", map[string]any{"input": map[string]any{
		"issueId": k.Issue.String(), "url": k.URL, "title": k.Title, "subtitle": k.Body, "metadata": k.Metadata,
	}}, &out)
	a := out.AttachmentCreate
	switch {
	case err != nil:
		return sinks.Receipt{}, err
	case !a.Success:
		return sinks.Receipt{}, fault(audit.KindUnavailable, errUnsuccessful)
	}
	return sinks.Receipt{RemoteID: a.Attachment.ID, URL: a.Attachment.URL}, nil
}

func (t *Tracker) reopen(ctx context.Context, k *sinks.Ticket) (sinks.Receipt, error) {
	i, err := t.read(ctx, k.Issue)
	if err != nil {
		return sinks.Receipt{}, err
	}
	if !slices.Contains(closed, i.State.Type) {
		return i.receipt(), nil
	}
	var out struct{ IssueUpdate payload }
	err = t.team.use(ctx, k.Labels, func(p places) error {
		input := map[string]any{"addedLabelIds": p.labels}
		if p.fresh != "" {
			input["stateId"] = p.fresh
		}
		return t.client.do(ctx, "issue_update", map[string]any{"id": k.Issue.String(), "input": input}, &out)
	})
	if err != nil {
		return sinks.Receipt{}, err
	}
	return out.IssueUpdate.receipt()
}
