package remediation

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/linear"
	"github.com/evenhand/evenhand/sinks/linear/lineartest"
)

// A breach's whole life: its issue, news, closed by a person, back again, over.
func TestLifeOfABreach(t *testing.T) {
	f := newFixture(t)
	f.inbox()
	s := f.service()
	f.run(s)
	b := f.decide(breach("charter.age"), "open", "breached")
	f.until(s, "the issue", f.settled(3))
	f.decide(b, "open", "repeated")
	f.until(s, "the comment", f.settled(4))
	i := f.stub.State(t).Issues[0]
	if i.Priority != 2 || i.DueDate != "2026-11-28" || i.State != "Triage" {
		t.Errorf("%+v", i)
	}
	f.stub.Move(t, "BIAS-1", "completed")
	f.until(s, "mitigated", func() bool { return f.newest(b).State == audit.BreachMitigated })
	if got := f.newest(b); got.Reason != "completed" || got.Seq != 3 || got.Changed.Before(got.Opened) || got.K != b.K {
		t.Errorf("%+v", got)
	}
	f.decide(b, "open", "returned")
	f.until(s, "opened again", func() bool { return f.settled(6)() && f.stub.State(t).Issues[0].State == "Triage" })
	f.decide(b, "resolved", "near_baseline")
	f.until(s, "all said", f.settled(7))
	f.exactly(map[audit.ID][]string{b.ID: {goesOn, returned, near}})
	var mitigated uint64
	if err := f.conn.QueryRow(t.Context(), "SELECT count() FROM "+f.db+".breaches FINAL WHERE state = 'mitigated' AND changed_at > opened_at").Scan(&mitigated); err != nil || mitigated != 1 {
		t.Errorf("%d rows tell the time to mitigate: %v", mitigated, err)
	}
	row, err := f.outbox.List(t.Context(), Filter{Ticket: issueID(linear.Name, &b)})
	if err != nil || len(row) != 1 || row[0].Key != "BIAS-1" || row[0].Link == "" || row[0].SentAt.IsZero() || row[0].RemoteID != row[0].ID.String() {
		t.Errorf("%+v %v", row, err)
	}
}

// Every fault of Linear at every kind of ticket: one issue a breach, all comments in order, all links.
func TestEveryFaultEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it waits for timeouts")
	}
	f := newFixture(t)
	s := f.service()
	f.run(s)
	want := map[audit.ID][]string{}
	n := 0
	for _, mode := range []string{"http500", "http502_html", "ratelimit400", "ratelimit429", "auth", "graphql_error", "timeout", "reset", "lost_ack", "lost_ack_hang", "slow", "success_false"} {
		for _, field := range []string{"issueCreate", "attachmentCreate", "commentCreate", "issueUpdate"} {
			f.stub.Fail(t, lineartest.Fault{Mode: mode, Match: field, DelayMS: 800})
		}
		b := f.decide(breach("kind."+mode), "open", "breached")
		f.decide(b, "open", "repeated")
		f.decide(b, "mitigated", "completed")
		n += 6
		want[b.ID] = []string{goesOn}
		f.until(s, mode, f.settled(n-2))
		f.stub.Move(t, fmt.Sprintf("BIAS-%d", len(want)), "completed")
		f.decide(b, "open", "returned")
		want[b.ID] = append(want[b.ID], returned)
		f.until(s, mode+", returned", f.settled(n))
		if i := f.stub.State(t).Issues[len(want)-1]; i.State != "Triage" {
			t.Errorf("%s: the issue is %s", mode, i.State)
		}
	}
	f.exactly(want)
	for _, r := range f.stub.State(t).Requests {
		if r.Error != "" && r.Fault == "" && r.Error != "conflict on insert of Issue" && r.Error != "conflict on insert of Comment" {
			t.Errorf("%v: %s", r.Root, r.Error)
		}
	}
}

// Linear is away for an hour while breaches open and go on. Afterwards all is said, once.
func TestAwayForAnHour(t *testing.T) {
	f := newFixture(t)
	s := f.service()
	f.run(s)
	f.gate.shut.Store(true)
	want := map[audit.ID][]string{}
	for minute := range 60 {
		f.later.Add(int64(time.Minute))
		if minute%6 == 0 {
			b := f.decide(breach(fmt.Sprintf("kind.%d", minute)), "open", "breached")
			f.decide(b, "open", "repeated")
			want[b.ID] = []string{goesOn}
		}
		f.sweep(s)
	}
	f.until(s, "attempts", func() bool {
		list, err := f.outbox.List(t.Context(), Filter{State: Pending})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if list[i].Attempts > 2 && list[i].Class == "unavailable" {
				return len(list) == 40
			}
		}
		return false
	})
	if fig, err := f.outbox.Figures(t.Context()); err != nil || fig.Pending != 40 || fig.Dead != 0 || f.now().Sub(fig.Oldest) < 50*time.Minute {
		t.Errorf("%+v %v", fig, err)
	}
	f.gate.shut.Store(false)
	f.until(s, "all sent", f.settled(40))
	f.exactly(want)
	// What waits for a tracker that is set up no more is nobody's alarm.
	forgotten := breach("charter.age")
	gone := Derive("gone", policy(), &forgotten, "")[0]
	if err := f.outbox.write(t.Context(), Entry{Ticket: gone, Target: "gone", State: Pending, Created: f.now().AddDate(0, 0, -9), Next: f.now(), version: 1}); err != nil {
		t.Fatal(err)
	}
	if out := f.sweep(s); out.Figures != (Figures{Sent: 40}) {
		t.Errorf("%+v", out.Figures)
	}
	if fig, err := f.outbox.Figures(t.Context()); err != nil || fig.Pending != 1 {
		t.Errorf("%+v %v", fig, err)
	}
}

// Several processes sweep and send at once, and one of them goes.
func TestSeveralProcesses(t *testing.T) {
	f := newFixture(t)
	services := []*Service{f.service(), f.service(), f.service()}
	var stops []func()
	for _, s := range services {
		stops = append(stops, f.run(s))
	}
	want := map[audit.ID][]string{}
	for n := range 12 {
		b := f.decide(breach(fmt.Sprintf("kind.%d", n)), "open", "breached")
		f.decide(b, "open", "repeated")
		want[b.ID] = []string{goesOn}
		f.from = time.Time{}
		for _, s := range services {
			f.sweep(s)
		}
		if n == 6 {
			stops[0]()
		}
	}
	f.until(services[1], "all sent", f.settled(48))
	f.exactly(want)
}

// What Linear refuses stands dead in the outbox, holds up nothing but its own words, and goes out
// once a person has mended the cause.
func TestDeadLetters(t *testing.T) {
	f := newFixture(t)
	s := f.service()
	f.run(s)
	b := f.decide(breach("charter.age"), "open", "breached")
	f.until(s, "the issue", f.settled(3))
	f.stub.Fail(t, lineartest.Fault{Mode: "graphql_error", Match: "commentCreate", Message: "conflict, but not the one we know", Times: 1})
	f.decide(b, "open", "repeated")
	f.until(s, "the comment", f.settled(4)) // an internal error passes

	other := breach("charter.sex")
	entries := []Entry{}
	for _, k := range Derive(linear.Name, policy(), &other, "") {
		if k.Action == sinks.OpenIssue {
			k.Title = "" // Linear does not take it
		}
		entries = append(entries, Entry{Ticket: k, Target: linear.Name, State: Pending, Created: f.now(), Next: f.now(), version: 1})
	}
	if err := f.outbox.write(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	f.until(s, "a dead issue", func() bool {
		fig, err := f.outbox.Figures(t.Context())
		return err == nil && fig.Dead == 1 && fig.Pending == 2
	})
	dead, err := f.outbox.List(t.Context(), Filter{State: Dead})
	if err != nil || len(dead) != 1 || dead[0].Class != "invalid" || dead[0].Detail == "" || dead[0].Attempts != 1 {
		t.Fatalf("%+v %v", dead, err)
	}
	// Mended: the title is there now.
	dead[0].Title = "Sex findings"
	dead[0].version++
	if err := f.outbox.write(t.Context(), dead[0]); err != nil {
		t.Fatal(err)
	}
	if n, err := f.outbox.Retry(t.Context(), Filter{Ticket: dead[0].ID}, f.now()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	f.until(s, "the mended issue and its links", f.settled(7))
	f.decide(b, "resolved", "near_baseline")
	f.until(s, "the other breach's news", func() bool { return len(f.stub.State(t).Comments) == 2 })
}
