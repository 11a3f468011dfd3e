package facts

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// kept is what the store gives back of what an analyzer said.
func (o outside) kept() *store.Said {
	v := o.verdict()
	s := &store.Said{Verdict: *v, Fields: o.fields()}
	for _, t := range o.texts() {
		switch t.Kind {
		case clickhouse.KindMitigation:
			s.Outside.Mitigation = t.Text
		case clickhouse.KindReport:
			s.Outside.Report = t.Text
		}
	}
	return s
}

func patchOf[T any](t *rapid.T, name string, values ...T) Patch[T] {
	switch rapid.IntRange(0, 2).Draw(t, name) {
	case 0:
		return Patch[T]{}
	case 1:
		return Null[T]()
	}
	return Of(values[rapid.IntRange(0, len(values)-1).Draw(t, name+" value")])
}

// Left out keeps, null clears, a value holds, whatever came before and through the store: after any
// sequence of calls each field is what the last call that named it said.
func TestPatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := outside{}
		model := map[string]any{} // by field; absent is not said
		note := func(field string, given bool, value any) {
			if given {
				delete(model, field)
				if !reflect.ValueOf(value).IsNil() {
					model[field] = reflect.ValueOf(value).Elem().Interface()
				}
			}
		}
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			b := Bias{
				Detected:   patchOf(t, "detected", true, false),
				Types:      patchOf(t, "types", []string{}, []string{"charter.age", "charter.sex"}),
				Scores:     patchOf(t, "scores", []audit.NamedScore{}, []audit.NamedScore{{Name: "a", Value: 0}, {Name: "b", Value: audit.One}}),
				Confidence: patchOf(t, "confidence", audit.Score(0), audit.Score(864_999)),
				Mitigation: patchOf(t, "mitigation", json.RawMessage(`{}`), json.RawMessage(`{"type":"REPHRASE_PROMPT"}`)),
				Report:     patchOf(t, "report", json.RawMessage(`{"a":1}`)),
			}
			note("detected", b.Detected.Given, b.Detected.Value)
			note("types", b.Types.Given, b.Types.Value)
			note("scores", b.Scores.Given, b.Scores.Value)
			note("confidence", b.Confidence.Given, b.Confidence.Value)
			note("mitigation", b.Mitigation.Given, b.Mitigation.Value)
			note("report", b.Report.Given, b.Report.Value)
			said = last(said.kept()).patched(b)
		}
		got := map[string]any{}
		put := func(field string, value any) {
			if v := reflect.ValueOf(value); !v.IsNil() {
				got[field] = v.Elem().Interface()
			}
		}
		put("detected", said.detected)
		put("types", said.types)
		put("scores", said.scores)
		put("confidence", said.confidence)
		put("mitigation", said.mitigation)
		put("report", said.report)
		empty := func(m map[string]any) { // an empty list comes back from the store as none
			for k, v := range m {
				if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice && rv.Len() == 0 {
					m[k] = "empty"
				}
			}
		}
		empty(model)
		empty(got)
		if !reflect.DeepEqual(got, model) {
			t.Fatalf("said %v, want %v", got, model)
		}
		v := said.verdict()
		want, given := model["detected"]
		if !given {
			types, _ := model["types"].([]string)
			want = len(types) > 0
		}
		if v.Detected != want {
			t.Fatalf("detected %v, want %v of %v", v.Detected, want, model)
		}
		fields := said.fields()
		for field := range model {
			if !slices.Contains(fields, field) {
				t.Fatalf("%s is missing in %v", field, fields)
			}
		}
	})
}

func TestReviewPatches(t *testing.T) {
	before := store.Reviewed{Last: &store.Review{Decision: Confirmed, Tags: []string{"charter.age"}}, Notes: "first"}
	gone := store.Reviewed{Last: &store.Review{Decision: Withdrawn}, Notes: ""}
	for _, tc := range []struct {
		name   string
		before store.Reviewed
		r      Review
		want   string
	}{
		{"nothing said before", store.Reviewed{}, Review{HumanReviewed: true}, "unsure  "},
		{"kept", before, Review{HumanReviewed: true}, "confirmed charter.age first"},
		{"a tag alone", before, Review{HumanReviewed: true, Tag: Of(Tag{Decision: Dismissed})}, "dismissed  first"},
		{"tags without a decision keep it", before, Review{HumanReviewed: true, Tag: Of(Tag{Tags: []string{"charter.sex"}})}, "confirmed charter.sex first"},
		{"tags without any decision before", store.Reviewed{}, Review{HumanReviewed: true, Tag: Of(Tag{Tags: []string{"charter.sex"}})}, "unsure charter.sex "},
		{"tags after it was taken back", gone, Review{HumanReviewed: true, Tag: Of(Tag{Tags: []string{"charter.sex"}})}, "unsure charter.sex "},
		{"tag cleared", before, Review{HumanReviewed: true, Tag: Null[Tag]()}, "unsure  first"},
		{"notes cleared", before, Review{HumanReviewed: true, Notes: Null[string]()}, "confirmed charter.age "},
		{"notes", before, Review{HumanReviewed: true, Notes: Of("second")}, "confirmed charter.age second"},
		{"taken back", before, Review{}, "withdrawn  "},
		{"after it was taken back", gone, Review{HumanReviewed: true}, "unsure  "},
	} {
		tag, notes := tc.r.over(tc.before)
		if got := tag.Decision + " " + strings.Join(tag.Tags, ",") + " " + notes; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestCanonical(t *testing.T) {
	deep := strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1)
	for _, tc := range []struct{ name, in, want string }{
		{"keys in order, numbers as written", ` { "b" : 1.50, "a" : [1e3, {"z":null,"y":"<é>"}] } `, `{"a":[1e3,{"y":"<é>","z":null}],"b":1.50}`},
		{"empty", `{}`, `{}`},
		{"a list", `[1]`, "x: is not a JSON object"},
		{"a text", `"a"`, "x: is not a JSON object"},
		{"cut short", `{"a":`, "x: is cut short"},
		{"two values", `{} {}`, "x: something follows the value"},
		{"a name twice", `{"a":1,"b":{"c":1,"c":2}}`, "x: a name stands twice in one object"},
		{"deep", deep, "x: is nested deeper than 32"},
		{"large", `{"a":"` + strings.Repeat("x", maxObject) + `"}`, "x: is larger than 256 KiB"},
		{"no UTF-8", "{\"a\":\"\xff\"}", "x: is not UTF-8"},
		{"nothing", ``, "x: is not a JSON object"},
	} {
		got, err := canonical("x", json.RawMessage(tc.in))
		if said := string(got); err != nil && err.Error() != tc.want || err == nil && said != tc.want {
			t.Errorf("%s: %.80s %v, want %.80s", tc.name, said, err, tc.want)
		}
	}
}

// FuzzCanonical: what is taken is an object, and its own canonical form.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}]}`, `{"a":1,"a":2}`, `[]`, `{"a":"\ud800"}`, `{"":{}}`, "{\"a\":\"\u2028\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := canonical("x", json.RawMessage(s))
		if err != nil {
			return
		}
		var o map[string]any
		if json.Unmarshal(once, &o) != nil || o == nil {
			t.Fatalf("%q became %q, which is no object", s, once)
		}
		if again, err := canonical("x", once); err != nil || string(again) != string(once) {
			t.Fatalf("%q became %q, then %q: %v", s, once, again, err)
		}
	})
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"charter.sxe", "charter.sex", 1}, {"charter.se", "charter.sex", 1}, {"abc", "abd", 1}} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("%s %s: %d", tc.a, tc.b, got)
		}
	}
}
