package remediation

import (
	"strconv"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Codes of reasons that come from people, by way of the tracker.
const (
	ReasonReopened = "reopened_by_person"
)

// Derive says what a tracker is told about a transition of a breach whose state before it was prev
// ("" for its first), in order. It is a pure function: the same transition gives the same tickets, ids
// and all, in every process.
//
// The first opening is an issue and its links. Opened again, a comment; after it was mitigated or
// resolved the issue is opened again first. Resolved is a comment if the policy wants one. What people
// did in the tracker is not told to it.
func Derive(target string, p Policy, b *audit.Breach, prev audit.BreachState) []sinks.Ticket {
	issue := issueID(target, b)
	ticket := func(action sinks.TicketAction, n int) sinks.Ticket {
		return sinks.Ticket{ID: audit.DerivedV4("ticket", target, b.ID.String(), strconv.Itoa(int(b.Seq)), string(action), strconv.Itoa(n)),
			Issue: issue, Action: action, Tenant: b.Tenant, Breach: b.ID, Seq: b.Seq}
	}
	comment := func() sinks.Ticket {
		c := ticket(sinks.Comment, 0)
		c.Body = p.say("comment", b, prev)
		return c
	}
	switch {
	case b.State == audit.BreachOpen && prev == "":
		return p.opening(issue, b, ticket)
	case b.State == audit.BreachOpen && b.Reason == ReasonReopened:
		return nil
	case b.State == audit.BreachOpen && prev == audit.BreachOpen:
		return []sinks.Ticket{comment()}
	case b.State == audit.BreachOpen:
		again := ticket(sinks.Reopen, 0)
		again.Labels = p.Labels
		return []sinks.Ticket{again, comment()}
	case b.State == audit.BreachResolved && p.CommentResolved:
		return []sinks.Ticket{comment()}
	}
	return nil
}

// issueID is what the issue of a breach is called by us.
func issueID(target string, b *audit.Breach) audit.ID {
	return audit.DerivedV4("issue", target, b.ID.String())
}

// opening is the issue and its links.
func (p Policy) opening(id audit.ID, b *audit.Breach, ticket func(sinks.TicketAction, int) sinks.Ticket) []sinks.Ticket {
	i := ticket(sinks.OpenIssue, 0)
	i.ID, i.Title, i.Body, i.Labels = id, title(b), p.say("issue", b, ""), p.Labels
	i.Priority = 3
	if l := int(b.Severity.Level()); l > 0 {
		i.Priority = 5 - l // critical is urgent, 1; low is 4
	}
	if d := p.DueDays[b.Severity]; d > 0 {
		i.Due = b.Opened.UTC().AddDate(0, 0, d).Format("2006-01-02")
	}
	out := []sinks.Ticket{i}
	for n, l := range p.links(b) {
		a := ticket(sinks.Attach, n)
		a.Title, a.URL = l.Title, l.URL
		a.Body = stamp(b.From) + " – " + stamp(b.To)
		a.Metadata = map[string]any{
			"breach": b.ID.String(), "tenant": b.Tenant, "policy": b.Policy, "tier": string(b.Tier), "domain": string(b.Domain), "kind": b.Kind,
			"from": b.From.UTC().Format("2006-01-02T15:04:05Z"), "to": b.To.UTC().Format("2006-01-02T15:04:05Z"),
			"n": float64(b.N), "k": float64(b.K), "rate": b.Rate, "baseline": b.Baseline,
		}
		out = append(out, a)
	}
	return out
}
