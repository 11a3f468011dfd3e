// Package remediation tells trackers of work about breaches: one issue a breach, a comment for each
// later transition, links to exactly its interactions; and takes back what people did with the issue.
//
// Outbox first. [Service.Sweep], a job of every minute, derives tickets from the rows of breaches ([Derive]
// is a pure function, ids and all), writes them to the table tickets, and publishes the breach on
// evenhand.remediation. The router's handler reads the breach's tickets, sends what is pending in order,
// one at a time, and writes each as sent. Whatever is lost on the way is found by the next sweep;
// whatever is said twice changes nothing, because trackers know tickets by our ids (see sinks.Tracker).
// A ticket waits until those before it were sent, and all wait for the issue; a dead comment holds up nobody.
//
// Errors that pass are tried again, twice at once and then ever more rarely, without end; while a tracker
// is away it is left alone. What it will never take is dead: [Outbox.List] shows it and [Outbox.Retry] sends
// it again.
//
// The other way: [Inbox] takes Linear's webhooks, checks and notes each, and publishes the id. The
// handler reads the issue itself, so late, doubled or overtaken deliveries say nothing wrong, and proposes
// what follows for the breach to the arbiter: mitigated when the issue was closed, open when a person
// opened it again. What no webhook tells, the sweep finds when it asks the tracker, every few minutes.
//
// Costs are small: some queries a message, some messages a breach. No text of people comes near: breaches hold none.
package remediation

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Policy is what an operator may set about what is said. Start from DefaultPolicy.
type Policy struct {
	// Labels are put on issues.
	Labels []string
	// DueDays is after how many days an issue is due, by severity; 0 sets no day.
	DueDays map[audit.Severity]int
	// Review and Grafana are URL templates of links to the interactions of a window; "" for none.
	// {tenant} {domain} {kind} {group} {policy} {breach} {board} {from} {to} (RFC 3339) {from_ms} {to_ms} are filled in.
	Review, Grafana string
	// CommentResolved tells the issue when the rate is back near its baseline. People close it.
	CommentResolved bool
}

// DefaultPolicy asks for 2, 7, 14 and 30 days.
func DefaultPolicy() Policy {
	return Policy{
		Labels:          []string{"evenhand"},
		DueDays:         map[audit.Severity]int{audit.Critical: 2, audit.High: 7, audit.Medium: 14, audit.Low: 30},
		CommentResolved: true,
	}
}

// Validate reports every fault, keys as an operator writes them.
func (p Policy) Validate() error {
	var errs []error
	for _, s := range audit.Severities {
		if d := p.DueDays[s]; d < 0 || d > 366 {
			errs = append(errs, fmt.Errorf("linear.due_days.%s: %d is not in 0..366", strings.ToLower(string(s)), d))
		}
	}
	for _, l := range []struct{ key, template string }{{"review", p.Review}, {"grafana", p.Grafana}} {
		if _, err := fill(l.template, &audit.Breach{}); err != nil {
			errs = append(errs, fmt.Errorf("linear.links.%s: %w", l.key, err))
		}
	}
	return errors.Join(errs...)
}

// Observer is told what happens; its methods must be fast and safe for concurrent use.
type Observer interface {
	// Ticket tells of an attempt to send: outcome is sent, or the kind of the error.
	Ticket(target, action, outcome string)
}

type silent struct{}

func (silent) Ticket(string, string, string) {}

// Options is what the program sets. Start from DefaultOptions.
type Options struct {
	// RetryMin and RetryMax bound the wait before a ticket is sent again. Default 5s and 10m.
	RetryMin, RetryMax time.Duration
	// Quick is the wait before the two attempts that follow a first one at once. Default 500ms.
	Quick time.Duration
	// RestMax bounds how long a tracker that is away is left alone. Default 1m.
	RestMax time.Duration
	// Poll is how often trackers are asked how the issues of breaches stand that are not over; 0 is never. Default 5m.
	Poll time.Duration
	// PerSecond bounds messages handled. Default 20.
	PerSecond int
	Observer  Observer     // nil: nobody looks
	Logger    *slog.Logger // nil is quiet
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// DefaultOptions are for trackers that people use.
func DefaultOptions() Options {
	return Options{RetryMin: 5 * time.Second, RetryMax: 10 * time.Minute, Quick: 500 * time.Millisecond, RestMax: time.Minute, Poll: DefaultPoll, PerSecond: 20}
}

// Publisher publishes messages; *bus.Publisher is one. It returns after the brokers took them.
type Publisher interface {
	Publish(topic string, messages ...*message.Message) error
}

// Target is a tracker with what is said to it.
type Target struct {
	Tracker sinks.Tracker
	Policy  Policy
}
