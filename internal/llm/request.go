package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var schemaName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// validate tells what is wrong with a request.
func (q Request) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if fault := modelFault(q.Model); fault != "" {
		bad("model: %s", fault)
	}
	if strings.ContainsFunc(q.Key.Reveal(), func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		bad("api_key: holds what no key does")
	}
	if len(q.Messages) == 0 {
		bad("messages: there are none")
	}
	for i, m := range q.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			bad("messages[%d].role: is neither user nor assistant", i)
		}
	}
	if !(q.Temperature >= 0 && q.Temperature <= 2) {
		bad("temperature: %v is not in 0..2", q.Temperature)
	}
	if q.MaxTokens < 0 {
		bad("max_tokens: %d is negative", q.MaxTokens)
	}
	if q.Schema != nil {
		var object map[string]json.RawMessage
		if !schemaName.MatchString(q.Schema.Name) {
			bad("schema.name: wants 1 to 64 letters, digits, _ or -")
		}
		if json.Unmarshal(q.Schema.JSON, &object) != nil {
			bad("schema: is not a JSON object")
		}
	}
	return errors.Join(errs...)
}

const (
	bytesPerToken = 3    // of English about 4, of other scripts fewer
	guessedOutput = 1000 // tokens of an answer without a limit
	template      = 1000 // tokens that a server may put around a request
	unbound       = 4    // times the limit of tokens: some servers do not count reasoning
)

// estimate is what a request may cost in tokens, for the budget.
func (q Request) estimate() int64 {
	output := cmp.Or(q.MaxTokens, guessedOutput)
	return q.input() + int64(output)
}

func (q Request) input() int64 { return q.bytes() / bytesPerToken }

func (q Request) bytes() int64 {
	n := len(q.System)
	for _, m := range q.Messages {
		n += len(m.Content) + 4*bytesPerToken
	}
	if q.Schema != nil {
		n += len(q.Schema.JSON)
	}
	return int64(n)
}

// tokens is what an answer cost; guessed where the server does not say, and no more than it can have cost: one false figure does not spend
// a day.
func (a *Answer) tokens(q Request) int64 {
	if a.Usage == (Usage{}) {
		return q.input() + int64(len(a.Text)/bytesPerToken)
	}
	most := q.bytes() + template + unbound*int64(max(cmp.Or(q.MaxTokens, guessedOutput), len(a.Text)))
	return min(int64(a.Usage.Input)+int64(a.Usage.Output), most)
}
