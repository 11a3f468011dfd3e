package sinks

import (
	"context"
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// TicketAction is what a ticket asks of a tracker.
type TicketAction string

// The actions. Comments, attachments and reopenings belong to an issue that was opened before.
const (
	OpenIssue TicketAction = "issue"
	Attach    TicketAction = "attachment" // a link on the issue; unique by its URL
	Comment   TicketAction = "comment"
	Reopen    TicketAction = "reopen" // back to work, if somebody closed it
)

// Ticket is one thing to say to a tracker of work about a breach. It holds no text of people.
type Ticket struct {
	ID     audit.ID     `json:"id"`    // version-4 shaped; of what is made remotely. Saying it twice changes nothing
	Issue  audit.ID     `json:"issue"` // the ID of the issue's own ticket
	Action TicketAction `json:"action"`
	Tenant string       `json:"tenant_id"`
	Breach audit.ID     `json:"breach_id"`
	Seq    uint32       `json:"seq"` // of the transition that it tells of

	Title    string         `json:"title,omitempty"`
	Body     string         `json:"body,omitempty"`     // Markdown
	Priority int            `json:"priority,omitempty"` // 1 urgent … 4 low
	Due      string         `json:"due,omitempty"`      // day, 2006-01-02
	Labels   []string       `json:"labels,omitempty"`
	URL      string         `json:"url,omitempty"`      // of an attachment
	Metadata map[string]any `json:"metadata,omitempty"` // of an attachment: strings and numbers
}

// Receipt is how the tracker names what was made; fields may be empty.
type Receipt struct {
	RemoteID string // the tracker's id
	Key      string // what people call it: BIAS-12
	URL      string
}

// Tracker is a place where people get work.
//
// Send returns after the tracker took the ticket, and tells as done what it had taken before: a ticket
// is sent again when its answer was lost. Tickets of a breach are sent in order, one at a time; Send is
// safe for concurrent use all the same. The kind of an error says what to do: KindInvalid is about the
// ticket, which will never be taken; KindUnavailable and KindOverloaded pass (see [RetryAfter]).
type Tracker interface {
	Name() string // lower_snake_case, stable: rows carry it
	Send(ctx context.Context, t *Ticket) (Receipt, error)
}

// IssueState is where an issue stands in the words of a breach.
type IssueState struct {
	// Closed is completed, canceled or duplicate; "" while the issue is open.
	Closed string
	// ClosedAt is when it was closed, by the tracker's clock; zero while it is open.
	ClosedAt time.Time
	// Started tells that somebody works on it.
	Started bool
}

// IssueReader is a Tracker that can tell how an issue stands. A KindInvalid error says that there is
// no such issue.
type IssueReader interface {
	Issue(ctx context.Context, id audit.ID) (IssueState, error)
	// Issues tells how some stand, at most MostIssues, archived ones too; those that are not there are left out.
	Issues(ctx context.Context, ids []audit.ID) (map[audit.ID]IssueState, error)
}

// MostIssues bounds what is asked of an IssueReader at once.
const MostIssues = 50

// Later is an error of a tracker that said when to come back.
type Later struct {
	After time.Duration
	Err   error
}

func (l *Later) Error() string { return l.Err.Error() }
func (l *Later) Unwrap() error { return l.Err }

// RetryAfter is how long the tracker asked to wait, 0 when it did not.
func RetryAfter(err error) time.Duration {
	if l, ok := errors.AsType[*Later](err); ok {
		return l.After
	}
	return 0
}
