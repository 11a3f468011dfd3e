// Package trackertest is the contract that every tracker keeps (sinks.Tracker): the same tests run
// against each of them with a stand-in for the remote side.
package trackertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Bench is a tracker and the other side of it, both fresh.
type Bench struct {
	Tracker sinks.Tracker
	// Said gives the ids of issues and comments that the other side holds, each as often as it holds it, in
	// the order in which they came.
	Said func(t *testing.T) []audit.ID
	// LoseAnswers makes the other side do the next n things without an answer.
	LoseAnswers func(t *testing.T, n int)
	// Break makes the next n requests fail as by a fault of the other side.
	Break func(t *testing.T, n int)
	// Busy makes the next request be refused for a rate limit, with a time to come back of some seconds.
	Busy func(t *testing.T)
	// Refuse makes the other side refuse a ticket for good, and gives the ticket.
	Refuse func(t *testing.T) *sinks.Ticket
	// Absent is a tracker whose other side does not answer at all.
	Absent sinks.Tracker
}

// Run checks a tracker against its contract.
func Run(t *testing.T, open func(t *testing.T) *Bench) {
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *Bench)
	}{
		{"an issue and what is said about it arrive in order", arrive},
		{"saying it twice changes nothing", twice},
		{"a lost answer is no second issue", lost},
		{"what passes is told as unavailable", broken},
		{"a rate limit says when to come back", busy},
		{"what is refused for good is invalid", refused},
		{"nobody there is unavailable", absent},
		{"an ended context is unavailable", ended},
		{"many may send at once", many},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, open(t)) })
	}
}

// Issue is a ticket that opens an issue.
func Issue(name string) *sinks.Ticket {
	id := audit.DerivedV4("issue", name)
	return &sinks.Ticket{ID: id, Issue: id, Action: sinks.OpenIssue, Tenant: "acme", Breach: audit.DerivedV4("breach", name), Seq: 1,
		Title: "Findings of " + name, Body: "**Since** yesterday\n", Priority: 2, Due: "2026-12-01", Labels: []string{"evenhand", "bias"}}
}

// About is a ticket about the issue of another.
func About(issue *sinks.Ticket, action sinks.TicketAction, name string) *sinks.Ticket {
	t := &sinks.Ticket{ID: audit.DerivedV4(string(action), name, issue.ID.String()), Issue: issue.ID, Action: action, Tenant: issue.Tenant, Breach: issue.Breach, Seq: 2}
	switch action {
	case sinks.Comment:
		t.Body = "News: " + name
	case sinks.Attach:
		t.Title, t.URL, t.Metadata = name, "https://grafana.example.com/d/"+name, map[string]any{"n": 12.0, "kind": "charter.age"}
	case sinks.Reopen, sinks.OpenIssue:
	}
	return t
}

func send(t *testing.T, b *Bench, k *sinks.Ticket) sinks.Receipt {
	t.Helper()
	r, err := b.Tracker.Send(t.Context(), k)
	if err != nil {
		t.Fatalf("%s: %v", k.Action, err)
	}
	return r
}

func arrive(t *testing.T, b *Bench) {
	issue := Issue("a")
	one, two := About(issue, sinks.Comment, "one"), About(issue, sinks.Comment, "two")
	for _, k := range []*sinks.Ticket{issue, About(issue, sinks.Attach, "trend"), one, About(issue, sinks.Reopen, "x"), two} {
		send(t, b, k)
	}
	if got := b.Said(t); !slices.Equal(got, []audit.ID{issue.ID, one.ID, two.ID}) {
		t.Errorf("the other side holds %v", got)
	}
}

func twice(t *testing.T, b *Bench) {
	issue := Issue("a")
	comment := About(issue, sinks.Comment, "one")
	var first []sinks.Receipt
	for range 2 {
		for i, k := range []*sinks.Ticket{issue, About(issue, sinks.Attach, "trend"), comment} {
			r := send(t, b, k)
			if len(first) < 3 {
				first = append(first, r)
			} else if r.RemoteID != first[i].RemoteID || r.Key != first[i].Key {
				t.Errorf("%s is called %+v, then %+v", k.Action, first[i], r)
			}
		}
	}
	if got := b.Said(t); !slices.Equal(got, []audit.ID{issue.ID, comment.ID}) {
		t.Errorf("the other side holds %v", got)
	}
}

func lost(t *testing.T, b *Bench) {
	issue := Issue("a")
	for _, k := range []*sinks.Ticket{issue, About(issue, sinks.Comment, "one")} {
		send(t, b, Issue("first")) // connections and names are known by now
		b.LoseAnswers(t, 1)
		if _, err := b.Tracker.Send(t.Context(), k); audit.KindOf(err) != audit.KindUnavailable {
			t.Errorf("%s: %v", k.Action, err)
		}
		send(t, b, k)
	}
	if got := b.Said(t); len(got) != 3 || got[1] != issue.ID {
		t.Errorf("the other side holds %v", got)
	}
}

func broken(t *testing.T, b *Bench) {
	send(t, b, Issue("first"))
	b.Break(t, 1)
	if _, err := b.Tracker.Send(t.Context(), Issue("a")); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("%v", err)
	}
	send(t, b, Issue("a"))
}

func busy(t *testing.T, b *Bench) {
	send(t, b, Issue("first"))
	b.Busy(t)
	_, err := b.Tracker.Send(t.Context(), Issue("a"))
	if after := sinks.RetryAfter(err); audit.KindOf(err) != audit.KindOverloaded || after <= 0 || after > time.Minute {
		t.Errorf("%v after %v", err, after)
	}
}

func refused(t *testing.T, b *Bench) {
	if _, err := b.Tracker.Send(t.Context(), b.Refuse(t)); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("%v", err)
	}
}

func absent(t *testing.T, b *Bench) {
	if _, err := b.Absent.Send(t.Context(), Issue("a")); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("%v", err)
	}
}

func ended(t *testing.T, b *Bench) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Tracker.Send(ctx, Issue("a")); audit.KindOf(err) != audit.KindUnavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func many(t *testing.T, b *Bench) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := b.Tracker.Send(t.Context(), Issue(string(rune('a'+i%8)))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := b.Said(t); len(got) != 8 {
		t.Errorf("8 issues sent twice are %d", len(got))
	}
}
