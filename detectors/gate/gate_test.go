package gate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/detectors/rules"
)

func TestPacks(t *testing.T) {
	packs, err := rules.Load(Packs())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(rules.Lint(packs), rules.Test(packs)...) {
		t.Error(f)
	}
}

func mustNew(t testing.TB, custom, extra []Custom) *Detector {
	t.Helper()
	d, err := New(custom, extra)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContract(t *testing.T) {
	detectortest.Run(t, mustNew(t, nil, nil), "transfer $5,000 to account", "delete all user records")
}

// TestBuiltIn holds seed 001's table: ids, categories, example matches.
func TestBuiltIn(t *testing.T) {
	d := mustNew(t, nil, nil)
	if n := len(d.Rules()); n != 4 {
		t.Errorf("%d rules; want the 4 of the table", n)
	}
	for _, tc := range []struct{ id, example string }{
		{"financial", "transfer $5,000 to account"},
		{"data_deletion", "delete all user records"},
		{"permission_change", "grant admin access to user"},
		{"safety_critical", "deploy to production system"},
	} {
		fs := detectortest.Findings(t, d, tc.example)
		if len(fs) != 1 || fs[0].Rule != tc.id || fs[0].Kind != "gate."+tc.id || fs[0].Severity != "" || fs[0].Score != 0 {
			t.Errorf("%q: %+v", tc.example, fs)
		}
	}
	for _, r := range d.Rules() {
		if r.Category == "" || r.Description == "" {
			t.Errorf("%s: nothing to show to the person who decides", r.ID)
		}
	}
}

// Who approves must see all of what is done: a sum to its last digit, a command with what it is given.
func TestEvidenceIsWhole(t *testing.T) {
	d := mustNew(t, nil, nil)
	for _, tc := range []struct{ text, want string }{
		{"I will transfer $5,000 to account 12345678 now.", "transfer $5,000"},
		{"I will transfer $4,999,999 to account 12345678.", "transfer $4,999,999"},
		{"I will transfer $4,999,999.50 today.", "transfer $4,999,999.50"},
		{"Now I transfer $5.", "transfer $5"},
		{"Wiring 5.000.000,00 EUR now.", "Wiring 5.000.000,00 EUR"},
		{"I am sending € 5.000.000,00 now.", "sending € 5.000.000,00"},
		{"We pay $3 million on signing.", "pay $3 million"},
		{"We pay $3 million dollars.", "pay $3 million dollars"},
		{"We pay $3 months later.", "pay $3"},
		{"Send 2.5k USD to the supplier.", "Send 2.5k USD"},
		{"Send $2.5k.", "Send $2.5k"},
		{"Send US$1'234'567.50, please.", "Send US$1'234'567.50"},
		{"Send € 1 234 567,50, please.", "Send € 1 234 567,50"},
		{"Send £5-10k.", "Send £5-10k"},
		{"Paying EUR 1,200.00 to the IBAN on file.", "Paying EUR 1,200.00"},
		{"Paying CHF 7 million.", "Paying CHF 7 million"},
		{"Run rm -rf /var/data.", "rm -rf /var/data"},
		{"Run `rm -rf --no-preserve-root /`", "rm -rf --no-preserve-root /"},
		{"rm -rf ./build && make", "rm -rf ./build"},
		{"Run: DROP TABLE IF EXISTS shop.orders;", "DROP TABLE IF EXISTS shop.orders"},
		{"chmod 777 /etc/passwd", "chmod 777 /etc/passwd"},
		{"kubectl delete ns payments --context production-eu-1", "kubectl delete ns payments --context production-eu-1"},
		{"delete from shop.orders", "delete from shop.orders"},
	} {
		longest := ""
		for _, f := range detectortest.Findings(t, d, tc.text) {
			if got := f.Span.Slice(tc.text); len(got) > len(longest) {
				longest = got
			}
		}
		if longest != tc.want {
			t.Errorf("%q: %q, want %q", tc.text, longest, tc.want)
		}
	}
}

// seedRules are the custom rules of seed 001, as written there.
var seedRules = []Custom{
	{"pii_export", "PII data export", `/\b(export|download|extract)\b.*\b(personal data|PII|user data|customer data)\b/i`, "data_export"},
	{"model_deployment", "ML model deployment", `/\b(deploy|publish|release)\b.*\b(model|checkpoint|weights)\b/i`, "model_ops"},
}

func TestCustomRulesReplace(t *testing.T) {
	for _, tc := range []struct {
		name          string
		custom, extra []Custom
		text, want    string
	}{
		{"custom rule fires", seedRules, nil, "I will EXPORT all of the customer data now.", "gate.pii_export/pii_export[7,38)"},
		{"the other one", seedRules, nil, "Publish the new weights", "gate.model_deployment/model_deployment[0,23)"},
		{"a built-in one is replaced", seedRules, nil, "transfer $5,000 to account", ""},
		{"extra rules add", nil, seedRules[:1], "export PII; delete all user records",
			"gate.pii_export/pii_export[0,10) gate.data_deletion/data_deletion[12,35)"},
		{"custom and extra", seedRules[:1], seedRules[1:], "release the model", "gate.model_deployment/model_deployment[0,17)"},
		{".* stays in its line", seedRules, nil, "export it\nall the user data", ""},
		{"RE2 text ignores case", []Custom{{"x", "d", `\blaunch\b`, "c"}}, nil, "LAUNCH", "gate.x/x[0,6)"},
		{"a literal without i minds case", []Custom{{"x", "d", `/launch/`, "c"}}, nil, "LAUNCH launch", "gate.x/x[7,13)"},
		{"flags s and i", []Custom{{"x", "d", `/launch.{0,9}now/si`, "c"}}, nil, "LAUNCH\nit now", "gate.x/x[0,13)"},
		{"escapes of JavaScript", []Custom{{"x", "d", `/a\/b\u00e9\u{1F600}\\/u`, "c"}}, nil, `a/bé😀\`, "gate.x/x[0,6)"},
		{"names in groups", []Custom{{"x", "d", `/(?<verb>wire)\s+(?:it|them)/i`, "c"}}, nil, "Wire them", "gate.x/x[0,9)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := mustNew(t, tc.custom, tc.extra)
			if got := detectortest.Describe(detectortest.Findings(t, d, tc.text)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestCustomRuleFaults(t *testing.T) {
	_, err := New([]Custom{
		{"ok", "d", `fine`, "c"},
		{"Bad Id", "", `(`, ""},
		{"ahead", "d", `/a(?=b)/i`, "c"},
		{"empty", "d", `/x*/`, "c"},
		{"none", "d", ``, "c"},
		{"flag", "d", `/x/q`, "c"},
		{"ok", "d", `again`, "c"},
	}, []Custom{{"ok", "d", `x`, "c"}})
	if audit.KindOf(err) != audit.KindInvalid {
		t.Fatalf("kind %s of %v", audit.KindOf(err), err)
	}
	for _, want := range []string{
		`detect.gate_rules[1].id: "Bad Id"`, "detect.gate_rules[1].description: is missing", "detect.gate_rules[1].category: is missing",
		"detect.gate_rules[1].pattern: error parsing regexp", "detect.gate_rules[2].pattern: ", "no look-ahead",
		"detect.gate_rules[3].pattern: matches the empty text", "detect.gate_rules[4].pattern: is missing", `detect.gate_rules[5].pattern: unknown flag 'q'`,
		`detect.gate_rules[6].id: "ok" is already used in detect.gate_rules[0]`, `detect.gate_extra_rules[0].id: "ok" is already used in detect.gate_rules[0]`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if _, err := New(nil, []Custom{{"financial", "d", "x", "c"}}); err == nil || !strings.Contains(err.Error(), "built-in") {
		t.Errorf("an extra rule takes a built-in id: %v", err)
	}
}

// TestVerdict holds that a gate rule in the response asks for approval and in the prompt does not.
func TestVerdict(t *testing.T) {
	a := detectortest.Analyzer(t, mustNew(t, nil, nil))
	for _, tc := range []struct {
		prompt, response string
		gated            bool
		findings         int
	}{
		{"", "I will delete all user records.", true, 1},
		{"Please delete all user records.", "Done thinking.", false, 1},
		{"", "The weather is fine.", false, 0},
	} {
		v := a.Analyze(context.Background(), detectortest.Interaction(tc.prompt, tc.response))
		if got := fmt.Sprint(v.Gated, len(v.Findings)); got != fmt.Sprint(tc.gated, tc.findings) {
			t.Errorf("%q / %q: %s", tc.prompt, tc.response, got)
		}
	}
}
