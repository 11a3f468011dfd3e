package door

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

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
		if faults := configFaults(err); len(faults) > 0 {
			return badRequest(faults...)
		}
		return reply.NewFault(http.StatusBadRequest, reply.BadRequest, err.Error(), nil)
	}
	s.Logger.Warn("evaluation failed", "kind", string(audit.KindOf(err)))
	return notServed(err, nil)
}

// keyed is a fault of the evaluator's configuration.
type keyed interface{ Keyed() (key, say string) }

// configFaults gives the faults that a joined error of the evaluator's configuration is made of; none where it is of another kind.
func configFaults(err error) (faults []ingest.Fault) {
	switch e := err.(type) { //nolint:errorlint // each level is looked at
	case keyed:
		key, say := e.Keyed()
		return []ingest.Fault{{Field: key, Code: ingest.BadValue, Message: say}}
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			faults = append(faults, configFaults(each)...)
		}
		return faults
	case interface{ Unwrap() error }:
		return configFaults(e.Unwrap())
	}
	return nil
}

// readEvaluate reads the request and reports every fault at once. A text that the check looks at must be there: an empty one passes,
// and one that was sent under another name must not.
func readEvaluate(body []byte) (r EvaluateRequest, faults []ingest.Fault) {
	members, bad := ingest.Members(body, deepest)
	if bad != nil {
		return r, []ingest.Fault{*bad}
	}
	into := map[string]any{
		"input": &r.Input, "output": &r.Output, "mode": &r.Mode, "model": &r.Model, "api_key": (*string)(&r.APIKey),
		"categories": &r.Categories, "custom_terms": &r.CustomTerms, "check": &r.Check,
	}
	fault := func(field, code, say string) {
		faults = append(faults, ingest.Fault{Field: field, Code: code, Message: say})
	}
	seen, given := map[string]bool{}, map[string]bool{}
	for written, raw := range members {
		name := plain(written)
		dst, ok := into[name]
		if !ok {
			fault(ingest.Shown(name), ingest.UnknownField, "is not a field of this request"+meantField(name, slices.Sorted(maps.Keys(into))))
			continue
		}
		if seen[name] { // once with escapes
			fault(name, ingest.DuplicateKey, "stands twice in the request")
		}
		seen[name], given[name] = true, given[name] || string(raw) != "null"
		if err := json.Unmarshal(raw, dst); err != nil {
			want := "wants a string"
			if _, list := dst.(*[]string); list {
				want = "wants an array of strings"
			}
			fault(name, ingest.WrongType, want)
		}
	}
	for _, side := range sidesOf(r.Check) {
		if !given[side] {
			fault(side, ingest.MissingField, "is missing; the check wants this text (check is "+cmp.Or(r.Check, string(audit.Output))+")")
		}
	}
	slices.SortFunc(faults, func(a, b ingest.Fault) int { return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Code, b.Code)) })
	return r, faults
}

// sidesOf gives the texts that a check looks at; of a check that there is not, none: the evaluator refuses it.
func sidesOf(check string) []string {
	switch check {
	case string(audit.Input):
		return []string{"input"}
	case "", string(audit.Output):
		return []string{"output"}
	case "both":
		return []string{"input", "output"}
	}
	return nil
}

// plain gives a name as it reads where it was written with escapes.
func plain(name string) string {
	if strings.Contains(name, `\`) {
		_ = json.Unmarshal([]byte(`"`+name+`"`), &name) // it is a string of JSON
	}
	return name
}

// elsewhere are the names that other doors and tools have for the texts.
var elsewhere = map[string]string{
	"text": "output", "response": "output", "llm_response": "output", "answer": "output", "completion": "output",
	"prompt": "input", "query": "input", "original_query": "input", "question": "input",
}

// meantField suggests the field that a name was meant for.
func meantField(name string, known []string) string {
	if near := cmp.Or(elsewhere[name], ingest.Nearest(name, known)); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}
