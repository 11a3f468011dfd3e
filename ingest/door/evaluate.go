package door

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/internal/secret"
)

// EvaluateRequest is seed 002's configuration with the texts to evaluate. Absent fields are empty:
// the evaluator puts its defaults in.
type EvaluateRequest struct {
	Tenant        string // the caller's; whose budget a model's answer comes out of
	Input, Output string
	Mode          string // deterministic, llm, both
	Model         string
	APIKey        secret.Text
	Categories    []string
	CustomTerms   []string
	Check         string // input, output, both
}

// maxAsking is how many requests at once may wait for a model.
const maxAsking = 32

// evaluate answers with what the evaluator says: {score, pass, reasoning, terms, status}.
func (s *server) evaluate(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	req, faults := readEvaluate(body)
	if len(faults) > 0 {
		return badRequest(faults...)
	}
	if p := auth.From(r.Context()); p != nil {
		req.Tenant = p.Tenant
	}
	if req.Mode == "llm" || req.Mode == "both" { // it waits for a model, on a place of its own
		select {
		case s.asking <- struct{}{}:
			defer func() { <-s.asking }()
		default:
			return notServed(audit.E("evaluate", audit.KindOverloaded, errors.New("too many at once")), nil)
		}
		leaveSlot(r.Context())
	}
	res, err := s.Evaluate(r.Context(), req)
	switch {
	case err == nil:
		reply.JSON(w, http.StatusOK, res)
		return nil
	case audit.KindOf(err) == audit.KindInvalid: // names keys and values of the configuration, no texts
		return reply.NewFault(http.StatusBadRequest, reply.BadRequest, err.Error(), nil)
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
