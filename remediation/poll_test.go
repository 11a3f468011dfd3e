package remediation

import (
	"fmt"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks/linear/lineartest"
)

// What people do with issues is found where no webhook tells, also after Linear did not answer for a while.
func TestClosedWithoutAWebhook(t *testing.T) {
	f := newFixture(t)
	s := f.service()
	f.run(s)
	later := func() { f.later.Add(int64(DefaultPoll)) }
	is := func(b audit.Breach, want audit.BreachState) func() bool {
		return func() bool { return f.newest(b).State == want }
	}
	b, other := f.decide(breach("charter.age"), "open", "breached"), f.decide(breach("charter.sex"), "open", "breached")
	f.until(s, "the issues", f.settled(6))
	if out := f.sweep(s); out.Moved != 0 {
		t.Errorf("%+v before anybody did anything", out)
	}
	name := f.key(b)
	f.stub.Move(t, name, "completed")
	if f.sweep(s); f.newest(b).State != audit.BreachOpen {
		t.Error("Linear was asked before its time")
	}
	f.gate.shut.Store(true)
	later()
	if out := f.sweep(s); out.Moved != 0 {
		t.Errorf("%+v while Linear was away", out)
	}
	f.gate.shut.Store(false)
	later()
	f.until(s, "mitigated", is(b, audit.BreachMitigated))
	if got := f.newest(b); got.Reason != "completed" || got.By != "" || got.K != b.K {
		t.Errorf("%+v", got)
	}
	f.stub.Move(t, name, "started")
	later()
	f.until(s, "opened again by a person", is(b, audit.BreachOpen))
	if got := f.newest(b); got.Reason != ReasonReopened {
		t.Errorf("%+v", got)
	}

	// A breach that returned: its issue is still closed until our own reopening arrives, which is no second closing.
	f.stub.Move(t, name, "canceled")
	later()
	f.until(s, "mitigated again", is(b, audit.BreachMitigated))
	f.stub.Fail(t, lineartest.Fault{Mode: "http500", Match: "issueUpdate", Times: 3})
	f.decide(b, "open", "returned")
	later()
	f.until(s, "opened again in Linear", func() bool {
		later()
		return f.settled(8)() && f.stub.State(t).Issues[0].State == "Triage"
	})
	if got := f.newest(b); got.State != audit.BreachOpen {
		t.Errorf("%+v", got)
	}
	if got := f.newest(other); got.State != audit.BreachOpen || got.Seq != 1 {
		t.Errorf("the other breach %+v", got)
	}

	opt := quick(f.now)
	opt.Poll = 0
	never, err := New(f.outbox, f.pub, opt, Target{linearTo(t, f.gate.URL+"/graphql"), policy()})
	if err != nil {
		t.Fatal(err)
	}
	f.stub.Move(t, name, "completed")
	later()
	if out, err := never.Sweep(t.Context(), f.from); err != nil || out.Moved != 0 {
		t.Errorf("%+v %v without polling", out, err)
	}
}

// key is what Linear calls the issue of a breach.
func (f *fixture) key(b audit.Breach) string {
	f.Helper()
	list, err := f.outbox.List(f.Context(), Filter{Breach: b.ID, Limit: 1})
	if err != nil || len(list) == 0 {
		f.Fatal(len(list), err)
	}
	for _, i := range f.stub.State(f.T).Issues {
		if i.ID == list[0].Issue.String() || i.ID == list[0].ID.String() {
			return i.Identifier
		}
	}
	f.Fatal(fmt.Sprintf("no issue of breach %s", b.ID))
	return ""
}
