package linear_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/linear"
	"github.com/evenhand/evenhand/sinks/linear/lineartest"
	"github.com/evenhand/evenhand/sinks/trackertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(url string) linear.Config {
	c := linear.DefaultConfig()
	c.APIKey, c.Team, c.Endpoint, c.Timeout = lineartest.Key, lineartest.Team, url, 2*time.Second
	return c
}

func open(t *testing.T, c linear.Config) *linear.Tracker {
	t.Helper()
	tr, err := linear.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func TestContract(t *testing.T) {
	stub := lineartest.Start(t)
	trackertest.Run(t, func(t *testing.T) *trackertest.Bench {
		stub.Reset(t)
		return &trackertest.Bench{
			Tracker: open(t, config(stub.URL)),
			Absent:  open(t, config("http://"+closedPort(t)+"/graphql")),
			Said:    func(t *testing.T) []audit.ID { return said(t, stub) },
			LoseAnswers: func(t *testing.T, n int) {
				stub.Fail(t, lineartest.Fault{Mode: "lost_ack", Times: n})
			},
			Break: func(t *testing.T, n int) { stub.Fail(t, lineartest.Fault{Mode: "http500", Times: n}) },
			Busy:  func(t *testing.T) { stub.Fail(t, lineartest.Fault{Mode: "ratelimit400", RetryAfter: 30}) },
			Refuse: func(t *testing.T) *sinks.Ticket {
				k := trackertest.Issue("no title")
				k.Title = ""
				return k
			},
		}
	})
}

// said gives the ids of issues and comments in the order in which they were made.
func said(t *testing.T, stub *lineartest.Stub) (out []audit.ID) {
	t.Helper()
	type thing struct {
		id string
		at time.Time
	}
	var all []thing
	s := stub.State(t)
	for _, i := range s.Issues {
		all = append(all, thing{i.ID, i.CreatedAt})
	}
	for _, c := range s.Comments {
		all = append(all, thing{c.ID, c.CreatedAt})
	}
	slices.SortFunc(all, func(a, b thing) int { return a.at.Compare(b.at) })
	for _, x := range all {
		id, err := audit.ParseID(x.id)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, id)
	}
	return out
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// An issue has everything that the ticket says, in the team's triage.
func TestIssueAsSeenInLinear(t *testing.T) {
	stub := lineartest.Start(t)
	tr := open(t, config(stub.URL))
	issue := trackertest.Issue("a")
	r, err := tr.Send(t.Context(), issue)
	if err != nil || r.Key != "BIAS-1" || r.RemoteID != issue.ID.String() || !strings.Contains(r.URL, "BIAS-1") {
		t.Fatalf("%+v %v", r, err)
	}
	for range 2 {
		if _, err := tr.Send(t.Context(), trackertest.About(issue, sinks.Attach, "trend")); err != nil {
			t.Fatal(err)
		}
	}
	s := stub.State(t)
	if i := s.Issues[0]; i.Title != issue.Title || i.Description != issue.Body || i.DueDate != "2026-12-01" || i.Priority != 2 || i.State != "Triage" || !slices.Equal(i.Labels, issue.Labels) {
		t.Errorf("%+v", i)
	}
	if len(s.Attachments) != 1 || s.Attachments[0].Metadata["n"] != 12.0 || s.Attachments[0].Title != "trend" {
		t.Errorf("%+v", s.Attachments)
	}
	if st, err := tr.Issue(t.Context(), issue.ID); err != nil || st.Closed != "" {
		t.Errorf("%+v %v", st, err)
	}
	for _, closed := range []string{"completed", "canceled", "duplicate"} {
		stub.Move(t, "BIAS-1", closed)
		if st, err := tr.Issue(t.Context(), issue.ID); err != nil || st.Closed != closed || time.Since(st.ClosedAt).Abs() > time.Minute {
			t.Errorf("%s: %+v %v", closed, st, err)
		}
		if _, err := tr.Send(t.Context(), trackertest.About(issue, sinks.Reopen, "x")); err != nil {
			t.Fatal(err)
		}
		if i := stub.State(t).Issues[0]; i.State != "Triage" {
			t.Errorf("after %s it was opened again as %s", closed, i.State)
		}
	}
	second := trackertest.Issue("b")
	if _, err := tr.Send(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	stub.Move(t, "BIAS-2", "completed")
	all, err := tr.Issues(t.Context(), []audit.ID{issue.ID, second.ID, audit.DerivedV4("nobody's")})
	if err != nil || len(all) != 2 || all[issue.ID].Closed != "" || all[second.ID].Closed != "completed" || time.Since(all[second.ID].ClosedAt).Abs() > time.Minute {
		t.Errorf("%+v %v", all, err)
	}
	stub.Move(t, "BIAS-1", "started") // somebody works on it: that is left alone
	if _, err := tr.Send(t.Context(), trackertest.About(issue, sinks.Reopen, "y")); err != nil {
		t.Fatal(err)
	}
	if i := stub.State(t).Issues[0]; i.State != "In Progress" {
		t.Errorf("an open issue was moved to %s", i.State)
	}
	if _, err := tr.Issue(t.Context(), audit.DerivedV4("nobody's")); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("%v", err)
	}
}

// Every way in which the stub can fail, before and after the work is done: one kind of error each, and
// the next attempt makes the one issue whole.
func TestFaults(t *testing.T) {
	stub := lineartest.Start(t)
	for _, tc := range []struct {
		mode string
		want audit.Kind
	}{
		{"http500", audit.KindUnavailable},
		{"http502_html", audit.KindUnavailable},
		{"ratelimit400", audit.KindOverloaded},
		{"ratelimit429", audit.KindOverloaded},
		{"auth", audit.KindUnavailable},
		{"graphql_error", audit.KindUnavailable},
		{"timeout", audit.KindUnavailable},
		{"reset", audit.KindUnavailable},
		{"lost_ack", audit.KindUnavailable},
		{"lost_ack_hang", audit.KindUnavailable},
		{"slow", audit.KindUnavailable},
		{"success_false", audit.KindUnavailable},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			stub.Reset(t)
			c := config(stub.URL)
			c.Timeout = 300 * time.Millisecond
			tr := open(t, c)
			issue := trackertest.Issue(tc.mode)
			stub.Fail(t, lineartest.Fault{Mode: tc.mode, Match: "issueCreate", DelayMS: 600})
			if _, err := tr.Send(t.Context(), issue); audit.KindOf(err) != tc.want {
				t.Errorf("%v", err)
			}
			deadline, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for {
				r, err := tr.Send(deadline, issue)
				if err == nil {
					if r.Key != "BIAS-1" {
						t.Errorf("%+v", r)
					}
					break
				}
				if audit.KindOf(err) == audit.KindInvalid || deadline.Err() != nil {
					t.Fatal(err)
				}
			}
			if n := len(stub.State(t).Issues); n != 1 {
				t.Errorf("%d issues", n)
			}
		})
	}
}

// What is asked once is not asked again, until Linear does not know it any more.
func TestTeamIsAskedForOnce(t *testing.T) {
	stub := lineartest.Start(t)
	tr := open(t, config(stub.URL))
	count := func(field string) (n int) {
		for _, r := range stub.State(t).Requests {
			if slices.Contains(r.Root, field) {
				n++
			}
		}
		return n
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := tr.Send(t.Context(), trackertest.Issue(name)); err != nil {
			t.Fatal(err)
		}
	}
	if count("teams") != 1 || count("issueLabels") != 2 || count("issueLabelCreate") != 2 {
		t.Errorf("%d teams, %d labels, %d made", count("teams"), count("issueLabels"), count("issueLabelCreate"))
	}
	stub.Reset(t) // its labels are gone
	if _, err := tr.Send(t.Context(), trackertest.Issue("d")); err != nil {
		t.Fatal(err)
	}
	if s := stub.State(t); len(s.Issues) != 1 || len(s.Issues[0].Labels) != 2 {
		t.Errorf("%+v", s.Issues)
	}
	c := config(stub.URL)
	c.Team = "NOBODY"
	if _, err := open(t, c).Send(t.Context(), trackertest.Issue("e")); audit.KindOf(err) != audit.KindUnavailable || !strings.Contains(err.Error(), "linear.team") {
		t.Errorf("%v", err)
	}
	c = config(stub.URL)
	c.APIKey = "lin_api_wrong"
	if _, err := open(t, c).Send(t.Context(), trackertest.Issue("f")); audit.KindOf(err) != audit.KindUnavailable || strings.Contains(err.Error(), "lin_api") {
		t.Errorf("%v", err)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	err := linear.Config{Endpoint: "http://example.com/graphql", Labels: []string{""}}.Validate()
	for _, key := range []string{"linear.api_key", "linear.team", "linear.endpoint", "linear.labels", "linear.timeout"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not in %v", key, err)
		}
	}
}
