package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/internal/reply"
)

// Types of errors, in the words of OpenAI's clients where they have one.
const (
	kindRequest    = "invalid_request_error"
	kindAuth       = "authentication_error"
	kindPermission = "permission_error"
	kindLimit      = "rate_limit_error"
	kindServer     = "server_error"
	kindUpstream   = "upstream_error"
	kindPolicy     = "policy_violation"
)

// fault is an answer of ours that is no success, in OpenAI's shape.
type fault struct {
	status int
	kind   string
	code   string
	say    string
	param  string        // "" is null
	after  time.Duration // with 429 and 503
	final  bool          // asking again gives the same: clients would, by the status
	report *report       // what the guard said, else nil
	denied *auth.Denied  // by package auth, else nil
}

// errorBody is OpenAI's error with our report beside its members.
type errorBody struct {
	Message  string  `json:"message"`
	Type     string  `json:"type"`
	Param    *string `json:"param"`
	Code     string  `json:"code"`
	Evenhand *report `json:"evenhand,omitempty"`
}

func (f *fault) body() errorBody {
	b := errorBody{Message: f.say, Type: f.kind, Code: f.code, Evenhand: f.report}
	if f.param != "" {
		b.Param = &f.param
	}
	return b
}

func (f *fault) json() []byte {
	b, _ := json.Marshal(map[string]errorBody{"error": f.body()}) // strings and numbers
	return b
}

// fail answers with a fault.
func fail(w http.ResponseWriter, f *fault) {
	h := w.Header()
	if f.denied != nil {
		f.denied.Challenge(h)
	}
	if f.after > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int((f.after+time.Second-1)/time.Second))))
	}
	if f.final {
		h.Set("X-Should-Retry", "false")
	}
	reply.Bytes(w, f.status, "application/json", append(f.json(), '\n'))
}

// denied turns a refusal of package auth into a fault.
func denied(err error) *fault {
	d := auth.DeniedBy(err)
	f := &fault{status: d.Status, kind: kindAuth, code: "evenhand_" + string(d.Reason), say: d.Say, after: d.After, denied: d}
	switch d.Status {
	case http.StatusBadRequest:
		f.kind = kindRequest
	case http.StatusForbidden:
		f.kind = kindPermission
	case http.StatusTooManyRequests:
		f.kind = kindLimit
	case http.StatusServiceUnavailable:
		f.kind = kindServer
	}
	return f
}
