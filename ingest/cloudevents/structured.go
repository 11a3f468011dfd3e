package cloudevents

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
)

// Structured reads an event of the JSON format (json-format.md, 3) from its members as they are written.
func Structured(members map[string][]byte) Event {
	e := Event{attributes: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		raw := members[name]
		if string(raw) == "null" { // an attribute that is not set (3.1)
			continue
		}
		switch name {
		case "data":
			e.Data = raw
		case "data_base64":
			e.base64(raw)
		default:
			if !validName(name) {
				e.fault(name, unknown, "is no name of an attribute, which has lower-case letters and digits; fields of the event stand in data")
				continue
			}
			e.value(name, raw)
		}
	}
	if _, both := members["data_base64"]; both && members["data"] != nil {
		e.fault("data_base64", badValue, "stands beside data: send one of them")
	}
	return e
}

// value reads an attribute: a string, a number or a boolean (json-format.md, 2.2).
func (e *Event) value(name string, raw []byte) {
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			e.fault(name, badValue, "cannot be read")
			return
		}
		e.set(name, s)
	case '{', '[':
		e.fault(name, wrongType, "wants a string")
	default:
		e.set(name, string(raw))
	}
}

// base64 reads data that is told as bytes (json-format.md, 3.1.1).
func (e *Event) base64(raw []byte) {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		e.fault("data_base64", wrongType, "wants a string")
		return
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) == 0 {
		e.fault("data_base64", badValue, "wants base64 as RFC 4648 has it")
		return
	}
	e.Data = b
}
