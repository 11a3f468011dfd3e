package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/evenhand/evenhand/ingest"
)

const (
	maxDepth    = 128     // levels of JSON in a request
	maxMessages = 100_000 // of a request
	metaPrefix  = "evenhand_"

	// What names the application and the conversation of a call.
	applicationHeader, applicationMeta   = "X-Evenhand-Application", metaPrefix + "application"
	conversationHeader, conversationMeta = "X-Evenhand-Conversation", metaPrefix + "conversation"
)

// request is what is read of a body; the rest of it passes as it came.
type request struct {
	body     []byte // as the provider gets it
	fields   map[string][]byte
	model    string // as the caller names it, "" where a stored prompt does
	stream   bool
	metadata gjson.Result
}

// settings are the members of a request that say how the model is to answer, as paths.
var settings = []string{"temperature", "top_p", "top_k", "seed", "n", "max_tokens", "max_completion_tokens", "max_output_tokens", "presence_penalty", "frequency_penalty",
	"reasoning_effort", "reasoning.effort", "verbosity", "service_tier"}

// parameters gives the settings that the caller chose, by their paths: numbers and names.
func (q *request) parameters() map[string]any {
	out := map[string]any{}
	for _, path := range settings {
		first, rest, nested := strings.Cut(path, ".")
		v := gjson.ParseBytes(q.fields[first])
		if nested {
			v = v.Get(rest)
		}
		switch v.Type {
		case gjson.Number:
			out[path] = json.Number(v.Raw) // as it was said: 1e999 is a number of JSON, and none of ours
		case gjson.String:
			out[path] = clip(v.Str)
		}
	}
	return out
}

// usage tells whether the caller wants the tokens at the end of a stream.
func (q *request) usage() bool {
	return gjson.GetBytes(q.fields["stream_options"], "include_usage").Bool()
}

// readRequest checks that a body can be read in one way only: JSON of one meaning, without names that a
// provider might take for others than we do.
func readRequest(body []byte, d dialect) (*request, *fault) {
	texts := d.texts()
	body = bytes.TrimPrefix(body, ingest.Mark) // of a file
	fields, f := object(body, maxDepth, "")
	if f != nil {
		return nil, f
	}
	q := &request{body: body, fields: fields}
	if f := otherLetters(fields, "", "model", "stream", "instructions", texts); f != nil {
		return nil, f
	}
	keepsTexts, keepsModel := d.kept(q)
	model := gjson.ParseBytes(fields["model"])
	if q.model = model.String(); (model.Type != gjson.String || q.model == "") && (model.Type != gjson.Null || !keepsModel) {
		return nil, badRequest("model", "wants the name of a model")
	}
	q.stream = gjson.ParseBytes(fields["stream"]).Bool()
	if m := gjson.ParseBytes(fields["metadata"]); m.IsObject() {
		q.metadata = m
	}
	if _, ok := fields[texts]; !ok && !keepsTexts {
		return nil, badRequest(texts, "is missing")
	}
	return q, nil
}

// outgoing edits the body where it must be: our options leave its metadata, a prefix of ours the model's name.
func (q *request) outgoing(up *upstream, prefix string) *fault {
	var err error
	set := func(b []byte, e error) {
		if e == nil {
			q.body = b
		} else {
			err = e
		}
	}
	if up.StripPrefix && prefix != "" {
		set(sjson.SetBytes(q.body, "model", strings.TrimPrefix(q.model, prefix)))
	}
	kept := 0
	var ours []string
	q.metadata.ForEach(func(k, _ gjson.Result) bool {
		if strings.HasPrefix(k.String(), metaPrefix) {
			ours = append(ours, k.String())
		} else {
			kept++
		}
		return true
	})
	if len(ours) > 0 && kept == 0 {
		set(sjson.DeleteBytes(q.body, "metadata"))
	} else {
		for _, k := range ours {
			set(sjson.DeleteBytes(q.body, "metadata."+gjson.Escape(k)))
		}
	}
	if err != nil {
		return badRequest("metadata", "cannot be edited")
	}
	return nil
}

// object cuts a JSON object into its members; names with escapes are refused, for they could hide one.
func object(b []byte, levels int, param string) (map[string][]byte, *fault) {
	fields, bad := ingest.Members(b, levels)
	if bad != nil {
		return nil, unreadable(param, bad)
	}
	for name := range fields {
		if strings.ContainsRune(name, '\\') {
			return nil, badRequest(param, "has a name with escapes")
		}
	}
	return fields, nil
}

// otherLetters refuses a member whose name differs from a known one in the case of its letters alone: some providers would read it.
func otherLetters(fields map[string][]byte, in string, known ...string) *fault {
	for name := range fields {
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				return badRequest(in+k, "is written in other letters")
			}
		}
	}
	return nil
}

func unreadable(param string, bad *ingest.Fault) *fault {
	return &fault{status: http.StatusBadRequest, kind: kindRequest, code: "evenhand_bad_json", param: param,
		say: strings.TrimSpace(param + " is no JSON that can be read in one way only (" + bad.Code + ")")}
}

func badRequest(param, say string) *fault {
	return &fault{status: http.StatusBadRequest, kind: kindRequest, code: "evenhand_bad_request", param: param, say: strings.TrimSpace(param + " " + say)}
}
