// Package litellm reads LiteLLM's StandardLoggingPayload, which its callback generic_api sends (litellm/types/utils.py; captured from
// 1.106.2): a JSON array, one payload, or one a line.
//
// One payload is one call. A call of a model is told whole and is Done, unless a guard looked at it or it failed: then
// LiteLLM says nothing of an answer, though a guard may have seen one, or a second attempt under the same
// litellm_call_id. Such a part waits for what they tell; its group and key are the call id. Embeddings, images and whatever else makes no text are
// ignored, by kind. Fields that are not known, or of another type than they were, are passed over: what is left of a
// call is a call. Nine tenths of a payload, the table of the model's prices, are never read.
//
// A payload costs about the reading of its bytes twice. Parts keep no reference to it.
package litellm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// Name of the format.
const Name = "litellm"

// Format implements call.Format.
type Format struct{}

// Name implements call.Format.
func (Format) Name() string { return Name }

// Parts implements call.Format.
func (Format) Parts(p call.Payload) ([]call.Part, error) {
	parts, _, err := Read(p)
	return parts, err
}

// Ignored counts payloads that tell of no call of a model, by kind: embedding, image, audio, moderation, rerank, other.
type Ignored map[string]int

// Read gives the calls of a payload and counts what it ignores. One element that is no StandardLoggingPayload is an
// error of the whole.
func Read(p call.Payload) ([]call.Part, Ignored, error) {
	all, err := split(p.Body)
	if err != nil { // rare, so good bodies are not searched for it
		if again, still := split(finite(p.Body)); still == nil {
			all, err = again, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	parts, ignored := make([]call.Part, 0, len(all)), Ignored{}
	for i, raw := range all {
		o, err := read(raw)
		if err != nil {
			return nil, nil, fault("payload %d: %w", i+1, err)
		}
		part, ok := o.part(p)
		if !ok {
			ignored[kind(o.text("call_type"))]++
			continue
		}
		parts = append(parts, part)
	}
	return parts, ignored, nil
}

// Looks tells whether a JSON object with these names is a StandardLoggingPayload and no native event: of the names
// that it has had since its first version, those that a native event has not.
func Looks(name string) bool {
	switch name {
	case "call_type", "model_map_information", "litellm_call_id", "hidden_params", "completionStartTime":
		return true
	}
	return false
}

// split cuts an array, or one value after another.
func split(body []byte) (all []json.RawMessage, err error) {
	if !utf8.Valid(body) {
		return nil, fault("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		if err := d.Decode(&all); err != nil {
			return nil, broken(err, d)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return nil, fault("more stands behind the array, at byte %d", d.InputOffset())
		}
		return all, nil
	}
	for {
		var one json.RawMessage
		switch err := d.Decode(&one); {
		case errors.Is(err, io.EOF):
			if len(all) == 0 {
				return nil, fault("the body is empty; send one payload, an array of them, or one a line")
			}
			return all, nil
		case err != nil:
			return nil, broken(err, d)
		}
		all = append(all, one)
	}
}

// finite puts null for the numbers that Python writes and JSON has not: NaN, Infinity, -Infinity. One budget without an end
// would else cost a whole batch.
func finite(body []byte) []byte {
	out := make([]byte, 0, len(body))
	inside := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inside && c == '\\' && i+1 < len(body):
			out = append(out, c)
			i++
		case c == '"':
			inside = !inside
		case !inside:
			if n := infinite(body[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, body[i])
	}
	return out
}

func infinite(b []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// broken names the place; encoding/json's own words may quote the input.
func broken(err error, d *json.Decoder) error {
	at := d.InputOffset()
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = s.Offset
	}
	return fault("no JSON at byte %d", at)
}

func fault(format string, args ...any) error {
	return audit.E("ingest/litellm: read", audit.KindInvalid, fmt.Errorf(format, args...))
}
