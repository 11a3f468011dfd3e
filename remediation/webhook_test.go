package remediation

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/webhook"
)

// The generic webhook beside Linear: each gets its own tickets, and one that is away holds up no other,
// not even when it is asked how an issue stands.
func TestTwoTrackers(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	var got []sinks.Ticket
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var k sinks.Ticket
		if err := json.NewDecoder(r.Body).Decode(&k); err != nil {
			t.Error(err)
		}
		got = append(got, k)
	}))
	defer server.Close()
	c := webhook.DefaultConfig()
	c.URL, c.Secret, c.Allow = server.URL, "0123456789abcdef", []string{"127.0.0.0/8"}
	hook, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Close()
	s := f.serviceFor(linearTo(t, f.gate.URL+"/graphql"), hook)
	f.run(s)
	f.gate.shut.Store(true)
	b := f.decide(breach("charter.age"), "open", "breached")
	f.sweep(s)
	if err := s.publish(note{Target: "linear", Issue: issueID("linear", &b)}); err != nil {
		t.Fatal(err)
	}
	f.decide(b, "open", "repeated")
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(got)
	}
	f.until(s, "the webhook's", func() bool { return count() >= 4 })
	f.gate.shut.Store(false)
	f.until(s, "both", f.settled(8))
	f.exactly(map[audit.ID][]string{b.ID: {goesOn}})
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 4 || got[0].Action != sinks.OpenIssue || got[3].Action != sinks.Comment || got[3].Issue != got[0].ID || got[0].ID == issueID("linear", &b) {
		t.Errorf("%+v", got)
	}
}

// The query that an issue shows runs as it stands and finds the window.
func TestQueriesRun(t *testing.T) {
	f := newFixture(t)
	for _, tier := range []audit.BreachTier{audit.TierRate, audit.TierPolicy, audit.TierBlind, audit.TierMitigation} {
		for _, kind := range []string{"", "charter.age"} {
			b := breach(kind)
			b.Tier = tier
			rows, err := f.conn.Query(t.Context(), strings.Replace(query(&b), "audit_current", f.db+".audit_current", 1))
			if err != nil {
				t.Errorf("%s: %v", tier, err)
				continue
			}
			_ = rows.Close()
		}
	}
}
