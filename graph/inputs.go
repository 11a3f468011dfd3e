package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/graph/generated"
)

// patch reads a JSON member: left out, null, or a value that read understands.
func patch[T any](err *error, field string, in graphql.Omittable[any], read func(field string, v any) (T, error)) facts.Patch[T] {
	v, given := in.ValueOK()
	if !given || v == nil || *err != nil {
		return facts.Patch[T]{Given: given}
	}
	value, fault := read(field, v)
	*err = fault
	return facts.Patch[T]{Given: true, Value: &value}
}

// plain is patch of a typed member.
func plain[T any](in graphql.Omittable[*T]) facts.Patch[T] {
	v, given := in.ValueOK()
	return facts.Patch[T]{Given: given, Value: v}
}

// bias reads the verdict of an outside analyzer.
func bias(in generated.UpdateLlmInteractionAuditBiasInput) (b facts.Bias, err error) {
	b.Detected = plain(in.BiasDetected)
	b.Types = patch(&err, "biasType", in.BiasType, keys)
	b.Scores = patch(&err, "biasScore", in.BiasScore, scores)
	b.Mitigation = patch(&err, "mitigationAction", in.MitigationAction, object)
	b.Report = patch(&err, "biasReportSummary", in.BiasReportSummary, object)
	if v, given := in.BiasConfidenceScore.ValueOK(); given && err == nil {
		b.Confidence.Given = true
		if v != nil {
			var c audit.Score
			c, err = share("biasConfidenceScore", v)
			b.Confidence.Value = &c
		}
	}
	return b, err
}

// review reads what a person says.
func review(in generated.RecordBiasReviewInput) (r facts.Review, err error) {
	r.HumanReviewed, r.Notes = in.HumanReviewed, plain(in.ReviewNotes)
	r.Tag = patch(&err, "humanBiasTag", in.HumanBiasTag, tag)
	return r, err
}

// tag reads humanBiasTag: an object with decision and tags, an array of keys, or one key.
func tag(field string, v any) (t facts.Tag, err error) {
	if key, ok := v.(string); ok {
		v = []any{key}
	}
	members, ok := v.(map[string]any)
	if !ok {
		if t.Tags, err = keys(field, v); err != nil {
			err = invalid(field, "want {decision, tags}, an array of keys of the taxonomy, or one key")
		}
		return t, err
	}
	for name, m := range members {
		switch {
		case name == "tags" && m == nil:
		case name == "tags":
			t.Tags, err = keys(field+".tags", m)
		case name == "decision":
			t.Decision, _ = m.(string)
			if !slices.Contains(decisions, t.Decision) {
				err = invalid(field+".decision", "want %s", strings.Join(decisions, ", "))
			}
		default:
			err = invalid(field+"."+name, "unknown member; want decision or tags")
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

var (
	decisions = []string{"confirmed", "dismissed", "unsure"}
	errNumber = errors.New("not a number")
)

// keys reads an array of keys of the taxonomy; which ones there are is the writer's to know.
func keys(field string, v any) ([]string, error) {
	values, ok := v.([]any)
	out := make([]string, 0, len(values))
	for _, v := range values {
		key, isText := v.(string)
		ok = ok && isText && key != ""
		out = append(out, key)
	}
	if !ok {
		return nil, invalid(field, "want an array of keys of the taxonomy")
	}
	return out, nil
}

// scores reads an object of numbers, by name.
func scores(field string, v any) ([]audit.NamedScore, error) {
	members, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(field, "want an object of numbers")
	}
	out := make([]audit.NamedScore, 0, len(members))
	for name, v := range members {
		n, err := decimal(v)
		if err != nil || name == "" || !(n >= 0 && n <= 1) {
			return nil, invalid(field, "want numbers of 0 to 1 by name")
		}
		out = append(out, audit.NamedScore{Name: name, Value: audit.ScoreOf(n)})
	}
	slices.SortFunc(out, func(a, b audit.NamedScore) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func decimal(v any) (float64, error) {
	switch v.(type) {
	case json.Number, float64, int64, int:
	default:
		return 0, errNumber
	}
	b, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	var n float64
	err = json.Unmarshal(b, &n)
	return n, err
}

// object reads a JSON object into canonical JSON: sorted members, numbers as they were sent.
func object(field string, v any) (json.RawMessage, error) {
	if _, ok := v.(map[string]any); !ok {
		return nil, invalid(field, "want an object")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, invalid(field, "not JSON")
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
