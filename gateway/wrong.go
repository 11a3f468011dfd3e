package gateway

import (
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
)

// envelope are members that an answer of the provider's may have beside its error: what things are called by, and no text of a model.
var envelope = []string{"error", "object", "created", "created_at", "model", "provider", "user_id", "request_id", "system_fingerprint", "service_tier"}

// wrong gives what a provider says went wrong in an answer, or in one of its choices, that has the status 200 nevertheless; ok is false for
// nothing, which some say with every answer.
func wrong(v gjson.Result) (e gjson.Result, ok bool) {
	e = v.Get("error")
	return e, e.Exists() && e.Type != gjson.Null && e.Type != gjson.False && e.Raw != `{}` && e.Raw != `""`
}

// longestError is how many bytes of the provider's words about an error are on record.
const longestError = 64 << 10

// fail remembers the provider's own words about an error; the first tells most.
func (a *answer) fail(e gjson.Result) {
	if a.failed == "" {
		a.failed = cmp.Or(audit.Clip(cmp.Or(e.Get("message").String(), e.Str), longestError), "the provider ended its answer with an error")
	}
}

// errorWords gives the provider's words in an error with a status of its own, in the shapes that providers with OpenAI's API have; "" where it has none.
func errorWords(v gjson.Result) string {
	for _, path := range []string{"error.message", "error", "0.error.message", "message", "detail"} {
		if e := v.Get(path); e.Type == gjson.String && e.Str != "" {
			return audit.Clip(e.Str, longestError)
		}
	}
	return ""
}

// failsAlone reads what has no member with what a model says: an error of the provider, which passes as those with a status of their own do.
// Where there are other texts, too, or no error, nobody knows what it says.
func (a *answer) failsAlone(v gjson.Result) {
	e, ok := wrong(v)
	if ok {
		a.fail(e)
	}
	a.opaque = a.opaque || !ok || strangely(v, envelope...) != ""
}
