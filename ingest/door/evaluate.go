package door

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
)

// EvaluateRequest is seed 002's configuration with the texts to evaluate. Absent fields are empty:
// the evaluator puts its defaults in.
type EvaluateRequest struct {
	Input, Output string
	Mode          string // deterministic, llm, both
	Model         string
	APIKey        Secret
	Categories    []string
	CustomTerms   []string
	Check         string // input, output, both
}

// Secret prints as ***.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// evaluate answers with what the evaluator says: {score, pass, reasoning, terms}.
func (s *server) evaluate(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	req, faults := readEvaluate(body)
	if len(faults) > 0 {
		return badRequest(faults...)
	}
	answer, err := s.Evaluate(r.Context(), req)
	switch {
	case err == nil:
		reply(w, http.StatusOK, answer)
		return nil
	case audit.KindOf(err) == audit.KindInvalid: // names keys and values of the configuration, no texts
		return &fault{http.StatusBadRequest, CodeBadRequest, err.Error(), nil}
	}
	s.Logger.Warn("evaluation failed", "kind", string(audit.KindOf(err)))
	return notServed(err, nil)
}

// readEvaluate reads the request and reports every fault at once.
func readEvaluate(body []byte) (r EvaluateRequest, faults []ingest.Fault) {
	if at := ingest.CheckJSON(body); at != nil {
		return r, []ingest.Fault{*at}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return r, []ingest.Fault{{Code: ingest.WrongType, Message: "wants a JSON object"}}
	}
	into := map[string]any{
		"input": &r.Input, "output": &r.Output, "mode": &r.Mode, "model": &r.Model, "api_key": (*string)(&r.APIKey),
		"categories": &r.Categories, "custom_terms": &r.CustomTerms, "check": &r.Check,
	}
	for name, raw := range fields {
		dst, ok := into[name]
		if !ok {
			faults = append(faults, ingest.Fault{Field: ingest.Shown(name), Code: ingest.UnknownField, Message: "is not a field of this request"})
			continue
		}
		if err := json.Unmarshal(raw, dst); err != nil {
			want := "wants a string"
			if _, list := dst.(*[]string); list {
				want = "wants an array of strings"
			}
			faults = append(faults, ingest.Fault{Field: name, Code: ingest.WrongType, Message: want})
		}
	}
	if fields["input"] == nil && fields["output"] == nil {
		faults = append(faults, ingest.Fault{Field: "output", Code: ingest.MissingField, Message: "is missing; output or input wants the text to evaluate"})
	}
	slices.SortFunc(faults, func(a, b ingest.Fault) int {
		if a.Field < b.Field {
			return -1
		}
		return 1
	})
	return r, faults
}
