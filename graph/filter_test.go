package graph_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

// condition is a filter with what it says of a record.
type condition struct {
	filter map[string]any
	holds  func(*audit.Interaction, *audit.Verdict) bool
}

func is(name string, value any, holds func(*audit.Interaction, *audit.Verdict) bool) condition {
	return condition{map[string]any{name: value}, holds}
}

// conditions are all filters; said are ann's decisions, which are the newest, and bobs those of bob.
func conditions(said, bobs map[audit.ID]string) []condition {
	type (
		in = *audit.Interaction
		vd = *audit.Verdict
	)
	differ := func(i in) bool { return bobs[i.ID] != "" && bobs[i.ID] != said[i.ID] }
	middle := noon.Add(-70 * time.Minute)
	return []condition{
		is("tenantId", "acme", func(in, vd) bool { return true }),
		is("userId", "u-3", func(i in, _ vd) bool { return i.UserID == "u-3" }),
		is("llmProvider", "mistral", func(i in, _ vd) bool { return i.Provider == "mistral" }),
		is("llmModel", "m-2", func(i in, _ vd) bool { return i.Model == "m-2" }),
		is("sensitivityScore", "high", func(i in, _ vd) bool { return i.SensitivityScore == "high" }),
		is("biasDetected", true, func(_ in, v vd) bool { return v.Detected }),
		is("biasDetected", false, func(_ in, v vd) bool { return !v.Detected }),
		is("humanReviewed", true, func(i in, _ vd) bool { return said[i.ID] != "" }),
		is("humanReviewed", false, func(i in, _ vd) bool { return said[i.ID] == "" }),
		is("reviewDecision", "dismissed", func(i in, _ vd) bool { return said[i.ID] == "dismissed" }),
		is("reviewDecision", "unsure", func(i in, _ vd) bool { return said[i.ID] == "unsure" }),
		is("reviewsDiffer", true, func(i in, _ vd) bool { return differ(i) }),
		is("reviewsDiffer", false, func(i in, _ vd) bool { return !differ(i) }),
		is("reviewedBy", "ann", func(i in, _ vd) bool { return said[i.ID] != "" }),
		is("reviewedBy", "bob", func(i in, _ vd) bool { return bobs[i.ID] != "" }),
		is("notReviewedBy", "bob", func(i in, _ vd) bool { return bobs[i.ID] == "" }),
		is("logTimestampStart", middle.Format(time.RFC3339Nano), func(i in, _ vd) bool { return !i.Time.Before(middle) }),
		is("logTimestampEnd", middle.Format(time.RFC3339Nano), func(i in, _ vd) bool { return i.Time.Before(middle) }),
		is("logTimestampStart", "1815-12-10T00:00:00Z", func(in, vd) bool { return true }),
		is("logTimestampEnd", "9999-12-31T23:59:59.9999+14:00", func(in, vd) bool { return true }),
		is("domain", "hr", func(i in, _ vd) bool { return i.Domain == audit.HR }),
		is("application", "desk", func(i in, _ vd) bool { return i.Application == "desk" }),
		is("traceId", fmt.Sprintf("%032x", 22), func(i in, _ vd) bool { return i.TraceID == fmt.Sprintf("%032x", 22) }),
		is("eventId", "22", func(i in, _ vd) bool { return i.GivenID == "22" }),
		is("eventId", audit.DeriveID("acme", "22").String(), func(i in, _ vd) bool { return i.GivenID == "22" }),
		is("flagged", true, func(_ in, v vd) bool { return v.Flagged }),
		is("flagged", false, func(_ in, v vd) bool { return !v.Flagged }),
		is("unsafe", true, func(_ in, v vd) bool { return v.Unsafe }),
		is("gated", true, func(_ in, v vd) bool { return v.Gated }),
		is("effectiveBias", true, func(i in, v vd) bool { return v.Detected && said[i.ID] != "dismissed" || said[i.ID] == "confirmed" }),
		is("effectiveBias", false, func(i in, v vd) bool { return !v.Detected && said[i.ID] != "confirmed" || said[i.ID] == "dismissed" }),
		is("biasType", "charter.sex", func(_ in, v vd) bool { return slices.Contains(v.BiasTypes, "charter.sex") }),
		is("kind", "safety.pii_leakage", func(_ in, v vd) bool {
			return slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Kind == "safety.pii_leakage" })
		}),
		is("minSeverity", "MEDIUM", func(_ in, v vd) bool { return v.MaxSeverity >= 2 }),
		is("minBiasScore", 0.6, func(_ in, v vd) bool { return v.BiasSum >= 600_000 }),
		is("minConfidence", 0.75, func(_ in, v vd) bool { return v.Confidence >= 750_000 }),
		is("biasAnalysisStatus", "failed", func(_ in, v vd) bool { return v.Status == audit.Failed }),
		is("status", "blocked", func(i in, _ vd) bool { return i.Status == "blocked" }),
		is("action", "warn", func(_ in, v vd) bool { return v.Action == audit.Warn }),
	}
}

const listed = `query($f: LlmInteractionAuditFilterInput, $alone: Boolean!) {
	llmInteractionAudits(filter: $f, pagination: {limit: 200}) { id }
	llmInteractionAuditConnection(filter: $f, first: 200) @include(if: $alone) { nodes { id } totalCount }
}`

// Each filter alone and each pair of two gives the records of which the same is true, newest first; alone,
// the connection and its count do too.
func TestFilters(t *testing.T) {
	f := newFixture(t)
	records := series("acme", 150)
	f.write(records...)
	f.write(series("beta", 20)...)
	f.writing()
	said, bobs := map[audit.ID]string{}, map[audit.ID]string{}
	bob := as(auth.Reviewer)
	bob.Subject = "bob"
	say := func(who *auth.Principal, of map[audit.ID]string, id audit.ID, decision string) {
		of[id] = decision
		input := fmt.Sprintf(`{"humanReviewed":true,"humanBiasTag":{"decision":%q}}`, decision)
		if decision == "" {
			input = `{"humanReviewed":false}`
		}
		if a := f.ask(who, reviewOp, fmt.Sprintf(`{"id":%q,"input":%s}`, id, input)); len(a.Errors) > 0 {
			t.Fatalf("%+v", a.Errors)
		}
	}
	for i, decision := range []string{"confirmed", "dismissed", "", "confirmed", "confirmed"} { // otherwise than ann twice, once as she does, and once taken back
		if id := records[5*i].Interaction.ID; decision != "" {
			say(bob, bobs, id, decision)
		}
	}
	say(bob, bobs, records[20].Interaction.ID, "")
	for i, decision := range []string{"dismissed", "confirmed", "unsure", "confirmed", "dismissed", "unsure", "confirmed", "dismissed"} {
		say(admin, said, records[5*i].Interaction.ID, decision)
	}
	all := conditions(said, bobs)
	for i, a := range all {
		for j, b := range all[:i+1] {
			if i != j && testing.Short() {
				continue
			}
			filter := maps.Clone(a.filter)
			if maps.Copy(filter, b.filter); len(filter) == 1 && i != j {
				continue // one filter has one value
			}
			if _, to := filter["logTimestampEnd"]; to && filter["logTimestampStart"] == nil && i != j {
				filter["logTimestampStart"] = noon.AddDate(0, 0, -3).Format(time.RFC3339)
			}
			var want []string
			for _, r := range records {
				if a.holds(r.Interaction, r.Verdict) && b.holds(r.Interaction, r.Verdict) {
					want = append(want, r.Interaction.ID.String())
				}
			}
			if i == j && len(want) == 0 {
				t.Errorf("%v holds of nothing: it is not tested", filter)
			}
			vars, err := json.Marshal(map[string]any{"f": filter, "alone": i == j})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				LlmInteractionAudits          []struct{ ID string }
				LlmInteractionAuditConnection *struct {
					Nodes      []struct{ ID string }
					TotalCount int
				}
			}
			f.get(admin, listed, string(vars), &got)
			lists := [][]struct{ ID string }{got.LlmInteractionAudits}
			if c := got.LlmInteractionAuditConnection; c != nil {
				if lists = append(lists, c.Nodes); c.TotalCount != len(want) {
					t.Errorf("count of %s: %d, want %d", vars, c.TotalCount, len(want))
				}
			}
			for _, list := range lists {
				var ids []string
				for _, n := range list {
					ids = append(ids, n.ID)
				}
				if !slices.Equal(ids, want) {
					t.Errorf("%s: %d, want %d: %s", vars, len(ids), len(want), strings.Join(ids, " "))
				}
			}
		}
	}
}

// An event that is named is found however old it is, by the id that its application gave too.
func TestNamedEventsOfAnyAge(t *testing.T) {
	f := newFixture(t)
	old := sample("acme", 10)
	old.Interaction.Time, old.Interaction.TraceID = noon.AddDate(0, 0, -21), strings.Repeat("ab", 16)
	f.write(sample("acme", 1), old)
	for _, filter := range []string{`eventId: "10"`, `eventId: "` + old.Interaction.ID.String() + `"`, `traceId: "` + old.Interaction.TraceID + `"`} {
		var got struct {
			LlmInteractionAudits          []struct{ GivenID string }
			LlmInteractionAuditConnection struct {
				Nodes      []struct{ GivenID string }
				TotalCount int
			}
		}
		f.get(admin, `{ llmInteractionAudits(filter: {`+filter+`}) { givenId } llmInteractionAuditConnection(filter: {`+filter+`}) { nodes { givenId } totalCount } }`, "", &got)
		c := got.LlmInteractionAuditConnection
		if len(got.LlmInteractionAudits) != 1 || got.LlmInteractionAudits[0].GivenID != "10" || len(c.Nodes) != 1 || c.TotalCount != 1 {
			t.Errorf("%s: %+v", filter, got)
		}
	}
}

// A type or kind that nothing can have is refused, since a list of none or a rate of zero would be taken for
// an answer; what own rules or an administrator may have named is asked for.
func TestUnknownKinds(t *testing.T) {
	f := newFixture(t)
	f.writing()
	if a := f.ask(admin, `mutation { putTaxonomyEntry(input: {biasKey: "brand.tone", severityLevel: 2}) { id } }`, ""); len(a.Errors) > 0 {
		t.Fatalf("%+v", a.Errors)
	}
	const typed, kind = "query($k: String!) { llmInteractionAuditConnection(filter: {biasType: $k}) { totalCount } }", "query($k: String!) { llmInteractionAuditConnection(filter: {kind: $k}) { totalCount } }"
	const trend, breach = "query($k: String!) { biasTrend(input: {measure: KIND, kind: $k}) { series { points { k } } } }", "query($k: String!) { breaches(kind: $k) { nodes { id } } }"
	for _, tc := range []struct{ query, kind, want string }{ // want: "" is answered
		{typed, "charter.sx", `filter.biasType: "charter.sx" is not in the taxonomy; the nearest key is "charter.sex"`},
		{"query($k: String!) { llmInteractionAudits(filter: {biasType: $k}) { id } }", "terms.gendr", `filter.biasType: "terms.gendr" is not in the taxonomy; the nearest key is "terms.gender"`},
		{typed, "charter.sex", ""},
		{typed, "brand.tone", ""},
		{typed, "gate.wire_transfer", `filter.biasType: "gate.wire_transfer" is not in the taxonomy`},
		{kind, "toxicty", `filter.kind: "toxicty" is not in the taxonomy; the nearest key is "toxicity"`},
		{kind, "What she said", "filter.kind: is not a key of the taxonomy; biasTaxonomy lists them"},
		{kind, "gate.", "filter.kind: is not a key of the taxonomy"},
		{kind, "gate.wire-transfer.big", ""},
		{kind, "pii.staff_number", ""},
		{kind, "judge.stereotype", ""},
		{trend, "charter.sx", `input.kind: "charter.sx" is not in the taxonomy; the nearest key is "charter.sex"`},
		{trend, "safety.violence", ""},
		{breach, "charter.aeg", `kind: "charter.aeg" is not in the taxonomy; the nearest key is "charter.age"`},
		{breach, "brand.tone", ""},
	} {
		a := f.ask(admin, tc.query, fmt.Sprintf(`{"k":%q}`, tc.kind))
		if tc.want == "" && len(a.Errors) > 0 || tc.want != "" && (a.codes() != "BAD_USER_INPUT" || !strings.HasPrefix(a.Errors[0].Message, tc.want)) {
			t.Errorf("%s of %q: %+v, want %q", tc.query, tc.kind, a.Errors, tc.want)
		}
	}
}
