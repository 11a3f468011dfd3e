package gateway

import (
	"cmp"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
)

// dialect is one of OpenAI's two ways to ask a model. It reads what is needed and writes what is ours.
type dialect interface {
	path() string   // at the provider, after base_url
	texts() string  // the member of the request that holds the prompt
	method() string // for the person who decides
	// refused tells what cannot be served because its answer would not come by here; "" for none.
	refused(q *request) string
	// kept tells what a request need not bring, for the provider keeps it: texts, the name of the model.
	kept(q *request) (texts, model bool)
	prompt(q *request) (system string, ms []call.Message, f *fault)
	whole(a *answer, body gjson.Result)
	chunk(a *answer, data gjson.Result)
	// told tells whether a string of an answer, or of an event of a stream, is of what the model says.
	told(path []step, event bool) bool
	channel(event gjson.Result, path []step) (key string, whole bool)
	// called gives the call of a tool that a string of an event is in, or the piece of one, and how the names of its texts begin; "" for none.
	called(event gjson.Result, path []step) (prefix string, call gjson.Result)
	ends(event gjson.Result) (prefixes []string)
	// over tells whether an event says that the answer, or one of several, is at its end.
	over(event gjson.Result) bool
	// marked gives the path of our report in an event of a stream; "" in events that carry none.
	marked(data gjson.Result) string
	// carrier is an event that says nothing, for our report in a stream none of whose events can carry it any more; nil where the report stays out.
	carrier(x *exchange) []byte
	// events tells a completion that came in one piece as a stream; usage wants its tokens at the end.
	events(body []byte, usage bool) []byte
	// instead is a completion that says text, as a body or as the events of a stream.
	instead(x *exchange, text string, stream bool) []byte
	// stop is how a stream ends that was begun and may not go on.
	stop(x *exchange, f *fault) []byte
}

// elements cuts an array of the request into its elements.
func elements(raw []byte, param string) ([][]byte, *fault) {
	items, all, bad := ingest.Elements(raw, maxMessages)
	switch {
	case bad != nil:
		return nil, unreadable(param, bad)
	case all > maxMessages:
		return nil, badRequest(param, "has too many elements")
	}
	return items, nil
}

// model is what answered, else what was asked.
func (x *exchange) model() string { return cmp.Or(x.answer.model, x.req.model) }

// spent is the usage of a completion of ours: the provider's own, none where it told none.
func (x *exchange) spent(none string) json.RawMessage {
	return json.RawMessage(cmp.Or(x.answer.usage, none))
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// sse writes one event of a stream; name "" writes none.
func sse(name string, data []byte) []byte {
	var out []byte
	if name != "" {
		out = append(append(append(out, "event: "...), name...), '\n')
	}
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}

// members gives an object's members as they came.
func members(v gjson.Result) map[string]any {
	out := map[string]any{}
	v.ForEach(func(name, value gjson.Result) bool {
		if _, twice := out[name.String()]; !twice { // as it was read
			out[name.String()] = json.RawMessage(value.Raw)
		}
		return true
	})
	return out
}

// encode is for values of ours, which always can be.
func encode(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
