package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/remediation"
	"github.com/evenhand/evenhand/sinks"
)

// A comment is listed by its first line, not by whose it is.
func TestTicketsListSaysWhatCommentsSay(t *testing.T) {
	var b bytes.Buffer
	list := []remediation.Entry{
		{Ticket: sinks.Ticket{Action: sinks.Comment, Tenant: "kestrel", Body: "**The breach has returned** after this issue was closed.\n\nWindow …\n"}, State: remediation.Sent},
		{Ticket: sinks.Ticket{Action: sinks.OpenIssue, Tenant: "kestrel", Title: "Age findings in hr", Body: "The rate …"}, State: remediation.Sent},
		{Ticket: sinks.Ticket{Action: sinks.Reopen, Tenant: "kestrel"}, State: remediation.Sent},
	}
	if err := printTickets(&b, list, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{"  The breach has returned after this issue was closed.", "  Age findings in hr", "  -"} {
		if !strings.HasSuffix(lines[i+1], want) || strings.Contains(lines[i+1], "kestrel") {
			t.Errorf("%q, want it to end with %q", lines[i+1], want)
		}
	}
}
