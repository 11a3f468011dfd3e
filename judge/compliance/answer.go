package compliance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/evenhand/evenhand/schemas/judge"
)

// faults are what an answer fails in. The lines may repeat words of the answer and go to the model alone; Error names
// places of the schema only.
type faults struct {
	where string // the first place, a JSON pointer of the schema's names, or what the whole lacks
	lines []string
}

func (f *faults) Error() string {
	if len(f.lines) == 1 {
		return "1 fault: " + f.where
	}
	return fmt.Sprintf("%d faults, the first: %s", len(f.lines), f.where)
}

func fault(where, line string) *faults { return &faults{where, []string{line}} }

const (
	maxAnswer = 1 << 20 // bytes of an answer that are read
	maxFaults = 20      // lines that are told to the model
)

// schema is the verdict's, compiled once.
var schema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(judge.Verdict))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("verdict.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("verdict.json")
})

// decode reads a model's answer: the JSON object, alone or in fences or prose. What it gives keeps the schema; meta is
// put in its place whatever the answer says of it. Every fault is a *faults.
func decode(answer string, meta Meta) (*Verdict, error) {
	object, err := extract(answer)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(object, &doc); err != nil { // a number that no float64 holds
		return nil, fault("the object", "A number is out of range.")
	}
	doc["meta"] = map[string]any{"version": meta.Version, "evaluated_at": meta.EvaluatedAt, "input_length": meta.InputLength}
	s, err := schema()
	if err != nil {
		return nil, err
	}
	if err := s.Validate(doc); err != nil {
		return nil, schemaFaults(err)
	}
	v := &Verdict{}
	if err := json.Unmarshal(object, v); err != nil && !metaOnly(err) {
		return nil, fault("the object", "A value has the wrong type.")
	}
	v.Meta = meta
	v.fill()
	return v, nil
}

// metaOnly says that the answer's own meta, which nobody reads, is what could not be decoded.
func metaOnly(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong) && (wrong.Field == "meta" || strings.HasPrefix(wrong.Field, "meta."))
}

func schemaFaults(err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	f := &faults{}
	for line := range strings.Lines(invalid.Error()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "- ") && len(f.lines) < maxFaults {
			f.lines = append(f.lines, strings.TrimPrefix(line, "- "))
		}
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	f.where = "the top level"
	if len(invalid.InstanceLocation) > 0 {
		f.where = "/" + strings.Join(invalid.InstanceLocation, "/")
	}
	switch k := invalid.ErrorKind.(type) {
	case *kind.Required:
		f.where += " lacks " + strings.Join(k.Missing, ", ")
	default:
		f.where += ": " + strings.Join(k.KeywordPath(), "/")
	}
	if len(f.lines) == 0 {
		f.lines = []string{"It does not keep the schema."}
	}
	return f
}

// extract gives the one JSON object of an answer. Two objects that differ are a fault: which one is meant cannot be known.
func extract(answer string) (json.RawMessage, error) {
	if len(answer) > maxAnswer {
		return nil, fault("the length", "It is far too long.")
	}
	if thought := strings.TrimSpace(answer); strings.HasPrefix(thought, "<think>") { // what some models say to themselves
		_, answer, _ = strings.Cut(thought, "</think>")
	} else if !strings.HasPrefix(thought, "{") && !strings.HasPrefix(thought, "`") { // of some the template opens the thoughts, and they close them alone
		if _, after, ok := strings.Cut(thought, "</think>\n"); ok {
			answer = after
		}
	}
	var found json.RawMessage
	for rest := answer; ; {
		at := strings.IndexByte(rest, '{')
		if at < 0 {
			break
		}
		dec := json.NewDecoder(strings.NewReader(rest[at:]))
		var object json.RawMessage
		if err := dec.Decode(&object); err != nil {
			if !strings.HasPrefix(strings.TrimSpace(rest[at+1:]), `"`) { // a brace in prose
				rest = rest[at+1:]
				continue
			}
			return nil, fault("its JSON object is broken or cut off", "The JSON object is broken or cut off.")
		}
		rest = rest[at+int(dec.InputOffset()):]
		if found != nil && !bytes.Equal(found, object) {
			return nil, fault("it has more than one JSON object", "There is more than one JSON object.")
		}
		found = object
	}
	if found == nil {
		return nil, fault("it has no JSON object", "There is no JSON object.")
	}
	if name, twice := repeated(found); twice {
		return nil, fault("a key of its JSON stands twice", fmt.Sprintf("The key %q stands twice in one object.", name))
	}
	return found, nil
}

// repeated gives a name that stands twice in one object: parsers disagree about which holds.
func repeated(raw json.RawMessage) (string, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var open []map[string]bool // names of the objects around; nil for an array
	name := false              // the next string is one
	for {
		tok, err := dec.Token()
		if err != nil { // the end, for it was decoded before
			return "", false
		}
		switch d, delim := tok.(json.Delim); {
		case delim && d == '{':
			open = append(open, map[string]bool{})
		case delim && d == '[':
			open = append(open, nil)
		case delim:
			open = open[:len(open)-1]
		case name:
			key, _ := tok.(string)
			names := open[len(open)-1]
			if names[key] {
				return key, true
			}
			names[key], name = true, false
			continue
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}
