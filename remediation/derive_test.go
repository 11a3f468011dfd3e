package remediation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

var update = flag.Bool("update", false, "rewrite golden files")

func derived(b audit.Breach, prev audit.BreachState) string {
	var out []string
	for _, k := range Derive("linear", policy(), &b, prev) {
		out = append(out, string(k.Action))
	}
	return strings.Join(out, " ")
}

func TestDerive(t *testing.T) {
	for _, tc := range []struct {
		name, state, reason, prev, want string
	}{
		{"the first opening", "open", "breached", "", "issue attachment attachment"},
		{"it goes on", "open", "repeated", "open", "comment"},
		{"it returns after it was closed", "open", "returned", "mitigated", "reopen comment"},
		{"it returns after it was over", "open", "returned", "resolved", "reopen comment"},
		{"a person opened the issue again", "open", ReasonReopened, "mitigated", ""},
		{"a person closed the issue", "mitigated", "completed", "open", ""},
		{"it is over", "resolved", "near_baseline", "open", "comment"},
		{"it is over after it was closed", "resolved", "near_baseline", "mitigated", "comment"},
	} {
		b := breach("charter.age")
		b.Seq, b.State, b.Reason = 7, audit.BreachState(tc.state), tc.reason
		if got := derived(b, audit.BreachState(tc.prev)); got != tc.want {
			t.Errorf("%s: %q, not %q", tc.name, got, tc.want)
		}
	}
	b := breach("charter.age")
	b.State = audit.BreachResolved
	quiet := policy()
	quiet.CommentResolved = false
	if got := Derive("linear", quiet, &b, audit.BreachOpen); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// The same transition gives the same tickets; other transitions, breaches and trackers give other ids,
// all of version 4; all of them name the one issue.
func TestDerivedIDs(t *testing.T) {
	seen := map[audit.ID]string{}
	for _, target := range []string{"linear", "webhook"} {
		for _, kind := range []string{"charter.age", "charter.sex"} {
			prev := audit.BreachState("")
			for seq := range uint32(4) {
				b := breach(kind)
				b.Seq = seq + 1
				one, two := Derive(target, policy(), &b, prev), Derive(target, policy(), &b, prev)
				if !reflect.DeepEqual(one, two) {
					t.Error("two derivations differ")
				}
				for _, k := range one {
					where := fmt.Sprint(target, kind, seq, k.Action, k.URL)
					if was, twice := seen[k.ID]; twice {
						t.Errorf("%s and %s have one id", was, where)
					}
					seen[k.ID] = where
					if s := k.ID.String(); s[14] != '4' || !strings.Contains("89ab", s[19:20]) || k.Issue != issueID(target, &b) {
						t.Errorf("%s: %s of %s", where, k.ID, k.Issue)
					}
				}
				prev = audit.BreachOpen
			}
		}
	}
}

func TestIssueFollowsSeverity(t *testing.T) {
	for _, tc := range []struct {
		severity audit.Severity
		priority int
		due      string
	}{{audit.Critical, 1, "2026-11-23"}, {audit.High, 2, "2026-11-28"}, {audit.Medium, 3, "2026-12-05"}, {audit.Low, 4, "2026-12-21"}, {"", 3, ""}} {
		b := breach("charter.age")
		b.Severity = tc.severity
		if k := Derive("linear", policy(), &b, "")[0]; k.Priority != tc.priority || k.Due != tc.due {
			t.Errorf("%s: priority %d, due %s", tc.severity, k.Priority, k.Due)
		}
	}
}

// Why a breach is over is said as it is: of a person's word, whose it is.
func TestWhyItIsOver(t *testing.T) {
	for _, tc := range []struct{ reason, by, want string }{
		{"near_baseline", "", "The rate has stayed near its baseline: the breach is resolved."},
		{"no_traffic", "", "Nothing comes in any more: the breach is resolved."},
		{"policy_changed", "", "The policy that opened the breach does not hold here any more: the breach is resolved."},
		{"rules_changed", "", "The rules have another version, and rates under two versions are not comparable: the breach is resolved."},
		{"quiet", "", "It has not come back since this issue was closed: the breach is resolved."},
		{"fixed", "ann", "`ann` says that the cause is mended: the breach is resolved."},
		{"noise", "ann", "`ann` says that there was no cause: the breach is resolved."},
		{"noise", "", "A person says that there was no cause: the breach is resolved."}, // decided by an earlier version
		{"accepted", "a`b|c", "`a·b·c` accepted the new rate as the usual one: the breach is resolved."},
	} {
		b := breach("charter.age")
		b.State, b.Reason, b.By = audit.BreachResolved, tc.reason, tc.by
		if got := Derive("linear", policy(), &b, audit.BreachOpen)[0].Body; !strings.HasPrefix(got, tc.want+" Close this issue if nothing is left to do.\n") {
			t.Errorf("%s: %s", tc.reason, got)
		}
	}
}

// Whatever ended a breach, a person or new rules too, its return says nothing of why.
func TestReturnAfterTheEnd(t *testing.T) {
	b := breach("charter.age")
	b.Reason = "returned"
	for prev, want := range map[audit.BreachState]string{
		audit.BreachResolved:  "**The breach has returned** after it was resolved.\n",
		audit.BreachMitigated: "**The breach has returned** after this issue was closed.\n",
	} {
		if got := Derive("linear", policy(), &b, prev); len(got) != 2 || !strings.HasPrefix(got[1].Body, want) {
			t.Errorf("%s: %+v", prev, got)
		}
	}
}

// What people read, word by word.
func TestWords(t *testing.T) {
	rate := breach("charter.age")
	blind := breach("")
	blind.Tier, blind.TopRules, blind.Events, blind.BaselineN, blind.Domain, blind.Group = audit.TierBlind, nil, nil, 0, "", "coverage"
	blind.Split = nil
	critical := breach("safety.violence")
	critical.Tier, critical.N, critical.K, critical.BaselineN, critical.Severity, critical.Group = audit.TierPolicy, 0, 2, 0, audit.Critical, "critical"
	critical.By, critical.Confirmed, critical.From = "rita", critical.To.Add(-7*time.Minute), critical.To.Add(-time.Second)
	critical.To, critical.Split = critical.From.Add(time.Second), nil
	often := breach("charter.sex")
	often.Tier, often.Group = audit.TierMitigation, "mitigation"
	hostile := breach("x`|<b>[a](http://evil)")
	hostile.Tenant, hostile.Policy, hostile.Domain = `a"; rm -rf ~ #`, "`p`\n# head", "$(id)"
	hostile.TopRules[0].Rule, hostile.Split[1].Value = "|a|\n", "`m|`\n# head"
	for _, tc := range []struct {
		name string
		b    audit.Breach
		prev audit.BreachState
	}{{"issue_rate", rate, ""}, {"issue_blind", blind, ""}, {"issue_policy", critical, ""}, {"issue_mitigation", often, ""}, {"issue_hostile", hostile, ""},
		{"comment_goes_on", rate, audit.BreachOpen}, {"comment_returned", rate, audit.BreachMitigated}} {
		golden(t, tc.name, Derive("linear", policy(), &tc.b, tc.prev))
	}
	over := rate
	over.State, over.Events = audit.BreachResolved, nil
	golden(t, "comment_resolved", Derive("linear", DefaultPolicy(), &over, audit.BreachOpen))
}

func golden(t *testing.T, name string, list []sinks.Ticket) {
	t.Helper()
	var text string
	for _, k := range list {
		if k.Action == sinks.OpenIssue || k.Action == sinks.Comment {
			text = k.Body
			if k.Title != "" {
				text = "# " + k.Title + "\n\n" + text
			}
		}
	}
	file := filepath.Join("testdata", name+".md")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is\n%s\nrun go test -update if that is as it should be", name, text)
	}
}

func TestLinks(t *testing.T) {
	b := breach("charter.age")
	b.Tenant = "a&b=c/../#"
	p := policy()
	got := p.links(&b)
	if len(got) != 2 || !strings.Contains(got[0].URL, "tenant=a%26b%3Dc%2F..%2F%23&") || !strings.Contains(got[1].URL, "from=1795183200000") {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"https://x/{nosuch}", "https://x/{tenant", "javascript:alert({tenant})", "{tenant}", "/review"} {
		p.Review = bad
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "linear.links.review") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	p = policy()
	p.DueDays = map[audit.Severity]int{audit.High: -1}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "linear.due_days.high") {
		t.Errorf("%v", err)
	}
}

// A link may lead to the dashboard that shows the kind.
func TestBoardOfAKind(t *testing.T) {
	p := policy()
	p.Grafana = "https://grafana.example.com/d/{board}?var-tenant={tenant}"
	for kind, want := range map[string]string{"": "evenhand-bias-rates", "charter.age": "evenhand-bias-rates", "safety.self_harm": "evenhand-safety", "dei.person_first": "evenhand-safety"} {
		b := breach(kind)
		if got := p.links(&b)[1].URL; got != "https://grafana.example.com/d/"+want+"?var-tenant=acme" {
			t.Errorf("%q: %s", kind, got)
		}
	}
}

// What comes next for a breach, by its history and how its issue stands.
func TestFollow(t *testing.T) {
	at := func(h int) time.Time { return time.Date(2026, 11, 22, h, 0, 0, 0, time.UTC) }
	history := func(states ...audit.BreachState) (out []audit.Breach) {
		for i, s := range states {
			out = append(out, audit.Breach{Seq: uint32(i + 1), State: s, Changed: at(i)})
		}
		return out
	}
	open, mitigated, resolved := audit.BreachOpen, audit.BreachMitigated, audit.BreachResolved
	closed := func(h int) sinks.IssueState { return sinks.IssueState{Closed: "completed", ClosedAt: at(h)} }
	for _, tc := range []struct {
		name    string
		history []audit.Breach
		is      sinks.IssueState
		want    string
	}{
		{"open and open", history(open), sinks.IssueState{}, ""},
		{"closed", history(open), closed(5), "2 mitigated completed"},
		{"closed, by a clock behind ours", history(open), closed(0), "2 mitigated completed"},
		{"closed before news of it came", history(open, open, open), closed(0), "4 mitigated completed"},
		{"closed and known to be", history(open, mitigated), closed(1), ""},
		{"opened by a person", history(open, mitigated), sinks.IssueState{Started: true}, "3 open reopened_by_person"},
		{"back, the old closing", history(open, mitigated, open), closed(1), ""},
		{"back, with news, the old closing", history(open, mitigated, open, open), closed(1), ""},
		{"back and closed again", history(open, mitigated, open, open), closed(3), "5 mitigated completed"},
		{"over", history(open, resolved), closed(9), ""},
		{"over and open", history(open, resolved), sinks.IssueState{}, ""},
		{"back after it was over", history(open, resolved, open), closed(1), ""},
	} {
		got := ""
		if next, ok := Follow(tc.history, tc.is); ok {
			got = fmt.Sprintf("%d %s %s", next.Seq, next.State, next.Reason)
		}
		if got != tc.want {
			t.Errorf("%s: %q, not %q", tc.name, got, tc.want)
		}
	}
}

// Tickets are made of a breach alone, and these are all places of a breach where words can stand: names, codes and ids.
// A field that could hold texts of people must not come among them.
func TestTicketsHoldNoTextOfPeople(t *testing.T) {
	var words []string
	var walk func(name string, of reflect.Type)
	walk = func(name string, of reflect.Type) {
		switch of.Kind() {
		case reflect.String, reflect.Interface, reflect.Map:
			words = append(words, name)
		case reflect.Slice, reflect.Array, reflect.Pointer:
			walk(name, of.Elem())
		case reflect.Struct:
			if of == reflect.TypeFor[time.Time]() {
				return
			}
			for i := range of.NumField() {
				walk(strings.TrimPrefix(name+"."+of.Field(i).Name, "."), of.Field(i).Type)
			}
		}
	}
	walk("", reflect.TypeFor[audit.Breach]())
	if got, want := strings.Join(words, " "), "Tenant Policy Tier Domain Kind Group State Reason Severity RuleSet TopRules.Rule Mitigation By Split.Of Split.Value"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
