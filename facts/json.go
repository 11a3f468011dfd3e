package facts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	maxObject = 256 << 10 // bytes of a JSON object in canonical form
	maxDepth  = 32
)

// canonical checks a JSON object and gives its canonical form: keys sorted, no space, numbers as written.
func canonical(field string, raw json.RawMessage) (json.RawMessage, error) {
	fault := func(format string, a ...any) error { return fmt.Errorf(field+": "+format, a...) }
	if len(raw) > 2*maxObject {
		return nil, fault("is larger than %d KiB", maxObject>>10)
	}
	if !utf8.Valid(raw) {
		return nil, fault("is not UTF-8")
	}
	if err := plain(raw); err != nil {
		return nil, fault("%w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil || v == nil {
		return nil, fault("is not a JSON object")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // maps come in the order of their keys
		return nil, fault("cannot be written as JSON")
	}
	b := bytes.TrimRight(out.Bytes(), "\n")
	if len(b) > maxObject {
		return nil, fault("is larger than %d KiB", maxObject>>10)
	}
	return b, nil
}

// plain refuses what JSON parsers disagree about: duplicate names, what follows the value; and what is
// nested too deep. It names no values.
func plain(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var open []map[string]bool // names seen in the objects around; nil for an array
	name := false              // the next string is one
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			if len(open) > 0 {
				return errors.New("is cut short")
			}
			return nil
		}
		if err != nil {
			return errors.New("is not JSON")
		}
		if d, ok := tok.(json.Delim); ok {
			switch d {
			case '{', '[':
				if len(open) == maxDepth {
					return fmt.Errorf("is nested deeper than %d", maxDepth)
				}
				var names map[string]bool
				if d == '{' {
					names = map[string]bool{}
				}
				open = append(open, names)
			default:
				open = open[:len(open)-1]
			}
		} else if name {
			key, _ := tok.(string)
			names := open[len(open)-1]
			if names[key] {
				return errors.New("a name stands twice in one object")
			}
			names[key], name = true, false
			continue
		}
		if len(open) == 0 && dec.More() {
			return errors.New("something follows the value")
		}
		name = len(open) > 0 && open[len(open)-1] != nil && dec.More()
	}
}
