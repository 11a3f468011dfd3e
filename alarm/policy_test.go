package alarm

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
)

func TestShippedPolicy(t *testing.T) {
	p, err := DefaultPolicies()
	if err != nil {
		t.Fatal(err)
	}
	d := p.For(Cell{"acme", audit.HR, "charter.sex"})
	if d.Name != "default" || d.Ticket.Q != 0.01 || d.Ticket.Window != 24*time.Hour || d.Baseline.Days != 28 || d.Baseline.Weight != 200 || d.Baseline.Floor != 0.002 || d.Fast.Z != 3.09 || !d.Critical.Confirmed || d.Critical.Unconfirmed || d.Mitigation.Count != 5 {
		t.Errorf("%+v", d)
	}
	for _, k := range keys { // each is named in the file
		group, name, _ := strings.Cut(k.name, ".")
		if name == "" {
			name = group
		}
		if !strings.Contains(string(shipped), " "+name+": ") && !strings.Contains(string(shipped), " "+name+":\t") {
			t.Errorf("policy.yaml does not name %s", k.name)
		}
	}
}

// TestQuietKinds holds that personal data, wording and a judging model open no breach as shipped, that everything else may, and
// that a file can ask for them: before the shipped policies, or in place of one.
func TestQuietKinds(t *testing.T) {
	shipped := policies(t, "")
	asked := policies(t, `policies: [{name: tell-pii, tenant: acme, kind: "pii.*"}, {name: quiet-idiom, kind: idiom, off: false}]`)
	for _, tc := range []struct {
		kind         string
		quiet, asked bool // off as shipped; off for acme, which asked
	}{
		{"pii.email", true, false}, {"pii.credential", true, false}, {"idiom", true, false},
		{"gendered_language", true, true}, {"microaggression", true, true}, {"job_advert_wording", true, true},
		{"language", true, true}, {"sentiment", true, true},
		{"judge.stereotype", true, true}, {"dei.accessibility", true, true}, {"offensive.slur", true, true},
		{"", false, false}, {"toxicity", false, false}, {"charter.language", false, false},
		{"safety.pii_leakage", false, false}, {"safety.violence", false, false}, {"terms.gender", false, false},
	} {
		c := Cell{"acme", audit.HR, tc.kind}
		if got := shipped.For(c); got.Off != tc.quiet {
			t.Errorf("%q: %s, off %v", tc.kind, got.Name, got.Off)
		}
		if got := asked.For(c); got.Off != tc.asked {
			t.Errorf("%q asked for: %s, off %v", tc.kind, got.Name, got.Off)
		}
	}
	if got := asked.For(Cell{"other", audit.HR, "pii.email"}); !got.Off {
		t.Errorf("another tenant's: %s", got.Name)
	}
	for _, kind := range slices.Sorted(maps.Keys(audit.WordingSeverity)) {
		if kind != "toxicity" && !shipped.For(Cell{"acme", audit.HR, kind}).Off {
			t.Errorf("wording %s is not quiet", kind)
		}
	}
}

func TestFirstMatchHolds(t *testing.T) {
	p := policies(t, `
policies:
  - {name: acme-any, tenant: acme, kind: any, ticket: {q: 0.2}}
  - {name: hr, domain: hr, kind: "charter.*", ticket: {q: 0.05}, cooldown: 48h}
  - {name: teams, tenant: "team-*", off: true}
defaults: {repeat: 12h}
`)
	for _, tc := range []struct {
		c    Cell
		want string
		q    float64
	}{
		{Cell{"acme", audit.HR, ""}, "acme-any", 0.2},
		{Cell{"acme", audit.HR, "charter.sex"}, "hr", 0.05},
		{Cell{"acme", audit.HR, "terms.gender"}, "default", 0.01},
		{Cell{"team-7", audit.HR, "charter.sex"}, "hr", 0.05},
		{Cell{"team-7", audit.Finance, "charter.sex"}, "teams", 0.01},
		{Cell{"team", audit.Finance, "charter.sex"}, "default", 0.01},
	} {
		got := p.For(tc.c)
		if got.Name != tc.want || got.Ticket.Q != tc.q || got.Repeat != 12*time.Hour || got.Ticket.MinN != 30 {
			t.Errorf("%+v: %+v", tc.c, got)
		}
	}
}

func TestPrintedPoliciesAreTheSame(t *testing.T) {
	p := policies(t, "policies: [{name: hr, domain: hr, ticket: {q: 0.05}, critical: {unconfirmed: true}}, {name: x, tenant: \"a*\"}]")
	var b strings.Builder
	if err := p.Print(&b); err != nil {
		t.Fatal(err)
	}
	again, err := ParsePolicies([]byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	for i, q := range again.list {
		if q != p.list[i] {
			t.Errorf("%+v\n%+v", q, p.list[i])
		}
	}
	if !strings.Contains(b.String(), "  - name: hr\n    tenant: \"*\"\n    domain: \"hr\"\n    kind: \"*\"\n    ticket:\n      q: 0.05\n    critical:\n      unconfirmed: true\n") {
		t.Error(b.String())
	}
}

func TestFaultsAreNamedAtOnce(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"no version", "defaults: {off: true}", "line 1: version: is missing; write version: 1"},
		{"newer", "version: 2", `line 1: version: "2" is not known here; write 1`},
		{"not YAML", "version: [", "not YAML: yaml: line 1: did not find expected node content"},
		{"list", "[]", "line 1: the file: is not a group of keys\nline 1: version: is missing; write version: 1"},
		{"several", `version: 1
defaults:
  ticket: {q: 2, minn: 3, min_k: few}
  cooldown: 90m
  repeat: 30h
  critical: {confirmed: maybe}
other: 1
policies:
  - name: Bad Name
    domain: sales
    kind: ""
  - name: default
    ticket: 5
  - {name: a, ticket: {long_window: 12h}, blind: {resolve: 0.5}}
  - {name: a, off: true, off: false}`, `line 3: defaults.ticket.q: 2 is not in above 0..0.5
line 3: defaults.ticket.minn: unknown key; did you mean ticket.min_n?
line 3: defaults.ticket.min_k: "few" is not a whole number
line 4: defaults.cooldown: "90m" is not a number of whole hours such as 24h
line 6: defaults.critical.confirmed: "maybe" is neither true nor false
line 7: other: unknown key; a file has version, defaults and policies
line 11: policies[0].kind: is empty; * matches all
line 9: policies[0].domain: "sales" is not a domain; it is one of general, hr, finance, healthcare, education, or ends in *
line 9: policies[0].name: "Bad Name" is no name; take up to 64 of a-z 0-9 . _ -
line 13: policies[1].ticket: is not a group of keys
line 12: policies[1].name: "default" is taken; breaches bear the name of their policy, so each needs its own
line 14: policies[2].ticket.long_window: 12h is not above ticket.window (24h); 0h switches it off
line 14: policies[2].blind.resolve: 0.5 is below blind.coverage (0.9), which would open and resolve in turn
line 15: policies[3]: off stands twice; keep one
line 15: policies[3].name: "a" is taken; breaches bear the name of their policy, so each needs its own`},
		{"not a list", "version: 1\npolicies: {a: 1}", `line 2: policies: is not a list; begin each policy with "- name: …"`},
		{"a group, and kinds", "version: 1\npolicies:\n  - {name: a, tickt: {q: 0.1}}\n  - {name: b, kind: charter.sx}\n  - {name: c, kind: charter.s*}\n  - {name: d, kind: safety.violent*}", `line 3: policies[0].tickt: unknown key; did you mean ticket?
line 4: policies[1].kind: no finding is of kind "charter.sx"; behind "charter." stands one of sex, race, colour, ethnic_origin, social_origin, genetic_features, language, religion, political_opinion, national_minority, property, birth, disability, age, sexual_orientation, nationality, or a beginning and *
line 6: policies[3].kind: no finding is of kind "safety.violent*"; behind "safety." stands one of violence, self_harm, illegal_instructions, pii_leakage, hallucination_indicator, or a beginning and *`},
		{"a second document", "version: 1\n---\nversion: 1\ndefaults: {off: true}\n", "line 2: a second document, which nobody would read; write all policies into one, without ---"},
		{"a second document that is no YAML", "version: 1\n---\n{", "not YAML: yaml: line 3: did not find expected node content"},
		{"far from any key", "version: 1\ndefaults: {zzz: 1}", "line 2: defaults.zzz: unknown key; `evenhand alarms policy` prints all keys"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParsePolicies([]byte(tc.file))
			if err == nil || errors.Unwrap(err).Error() != tc.want || audit.KindOf(err) != audit.KindInvalid {
				t.Errorf("got\n%v\nwant\n%s", err, tc.want)
			}
		})
	}
}

func FuzzPolicies(f *testing.F) {
	f.Add(string(shipped))
	f.Add("version: 1\npolicies: [{name: a, ticket: {q: 0.1}}]")
	f.Fuzz(func(t *testing.T, file string) {
		p, err := ParsePolicies([]byte(file))
		if (p == nil) == (err == nil) {
			t.Fatal(p, err)
		}
		if err != nil {
			return
		}
		var b strings.Builder
		if err := p.Print(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := ParsePolicies([]byte(b.String())); err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
	})
}
