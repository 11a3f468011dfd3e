package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/evenhand/evenhand/ingest"
)

// cell is a value without a type of JSON, of a table or a flag. It takes that of the field that it becomes.
type cell string

// as is the cell's value in a field: numbers, booleans and JSON as such where the field is of that type and the whole cell is one,
// else text, which the check refuses in the words of the doors.
func (c cell) as(field string) any {
	s := strings.TrimSpace(string(c))
	switch field {
	case "contained_pii", "contained_proprietary", "contained_customer_data":
		s = strings.ToLower(s) // TRUE of spreadsheets, True of Python
	case "prompt_tokens", "response_tokens", "latency_ms", "estimated_cost_usd", "schema_version",
		"messages", "metadata", "query_context", "group_attributes", "retrieved_context", "template", "redaction_summary":
	default:
		return string(c)
	}
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return string(c)
}

// absent tells whether an event counts a value as not there: null and "".
func absent(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case json.RawMessage:
		return string(v) == "null" || string(v) == `""`
	case cell:
		return v == ""
	case string:
		return v == ""
	}
	return false
}

// text is a value that is a string; "" of others.
func text(v any) (s string) {
	switch v := v.(type) {
	case json.RawMessage:
		_ = json.Unmarshal(v, &s) // no string: the check says so
	case string:
		s = v
	}
	return s
}

// maxLevels of nesting are read; the check refuses fewer.
const maxLevels = 1000

// members takes a JSON object apart, its values as json.RawMessage. It refuses what a map would lose: a name that stands twice.
func members(value []byte) (map[string]any, error) {
	raw, fault := ingest.Members(value, maxLevels)
	if fault != nil {
		return nil, fmt.Errorf("%s: %s", fault.Code, strings.TrimSuffix(fault.Message, " of the body"))
	}
	row := make(map[string]any, len(raw)+2)
	for name, v := range raw {
		if strings.Contains(name, `\`) {
			_ = json.Unmarshal([]byte(`"`+name+`"`), &name) // it is a string of JSON
		}
		if _, twice := row[name]; twice {
			return nil, fmt.Errorf("%s: a name stands twice", ingest.DuplicateKey)
		}
		row[name] = json.RawMessage(v)
	}
	return row, nil
}

// take removes what stands under a name, or under a path of names with dots between them, and gives it.
func take(row map[string]any, path string) (any, bool) {
	if v, ok := row[path]; ok {
		delete(row, path)
		return v, true
	}
	name, rest, _ := strings.Cut(path, ".")
	raw, ok := row[name].(json.RawMessage)
	if !ok || rest == "" {
		return nil, false
	}
	inner, err := members(raw)
	if err != nil {
		return nil, false // no object, or one that the check refuses
	}
	v, ok := take(inner, rest)
	if !ok {
		return nil, false
	}
	if delete(row, name); len(inner) > 0 {
		left, err := encoded(inner)
		if err != nil {
			return nil, false
		}
		row[name] = json.RawMessage(left)
	}
	return v, true
}
