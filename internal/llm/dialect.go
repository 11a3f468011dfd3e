package llm

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

// Form is how the form of an answer is asked for.
type Form string

// The forms, strictest first; the weaker ones show the schema to the model.
const (
	FormSchema Form = "json_schema" // the server holds the model to the schema
	FormObject Form = "json_object" // the server holds the model to JSON
	FormText   Form = "text"        // nobody holds it
)

// about is what of a request a refusal names.
type about struct{ format, temperature, seed, maxTokens bool }

// quotation is more than the name of a field or a value in quotation marks; what follows an opening mark counts where no other closes it.
// It and all behind it may be the text's words.
var quotation = regexp.MustCompile("[\"'`“‘«][^\"'`”’»]*[^\"'`”’»A-Za-z0-9_.\\[\\]-]")

// longestName bounds where a message that is about a field names it.
const longestName = 120

// aboutOf looks for the fields' names in a refusal's param or, where it has none, at the beginning of its message, before any quotation.
func aboutOf(param, message string) about {
	in := strings.ToLower(param)
	if in == "" {
		in = strings.ToLower(message[:min(len(message), longestName)])
		if at := quotation.FindStringIndex(in); at != nil {
			in = in[:at[0]]
		}
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(in, w) {
				return true
			}
		}
		return false
	}
	return about{
		format:      has("response_format", "json_schema", "json_object", "response format", "json schema", "grammar", "structured output", "guided", "json mode", "text.format"),
		temperature: has("temperature"),
		seed:        has("seed"),
		maxTokens:   has("max_tokens"),
	}
}

// dialect is what a model was found not to take. The zero value leaves nothing out.
type dialect struct {
	weaker                                 int // steps down from FormSchema
	noTemperature, noSeed, completionLimit bool
}

// form is how the form of the answer to q is asked for, "" when it wants none.
func (d dialect) form(q Request) Form {
	if q.Schema == nil {
		return ""
	}
	return []Form{FormSchema, FormObject, FormText}[d.weaker]
}

// after gives the dialect to try next when a request in d was refused; ok is false when the refusal is about something else.
func (d dialect) after(r *refused, q Request) (next dialect, ok bool) {
	if r == nil || r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity && r.status != http.StatusNotImplemented || r.filtered() || r.code == codeLength {
		return d, false
	}
	next = d
	switch {
	case r.about.temperature && !d.noTemperature:
		next.noTemperature = true
	case r.about.seed && q.Seed != nil && !d.noSeed:
		next.noSeed = true
	case r.about.maxTokens && q.MaxTokens > 0 && !d.completionLimit:
		next.completionLimit = true
	case (r.about.format || r.plain) && q.Schema != nil && d.weaker < 2: // one without a reason is worth a try
		next.weaker++
	}
	return next, next != d
}

// join keeps what either was found not to take.
func (d dialect) join(o dialect) dialect {
	return dialect{max(d.weaker, o.weaker), d.noTemperature || o.noTemperature, d.noSeed || o.noSeed, d.completionLimit || o.completionLimit}
}

// dialects remembers them by model and schema: a server may refuse one schema and take another. What was learned is forgotten after a
// while, and tried anew: servers change.
type dialects struct {
	mu    sync.Mutex
	known map[[2]string]learned
}

type learned struct {
	dialect
	at time.Time
}

// remembered is for how long.
const remembered = time.Hour

// maxDialects bounds the memory: callers may name any model.
const maxDialects = 1000

func dialectKey(model string, s *Schema) [2]string {
	if s == nil {
		return [2]string{model}
	}
	return [2]string{model, s.Name}
}

func (d *dialects) of(key [2]string) dialect {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of := d.known[key]; time.Since(of.at) < remembered {
		return of.dialect
	}
	return dialect{}
}

func (d *dialects) learn(key [2]string, found dialect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxDialects {
		d.known = map[[2]string]learned{}
	}
	of := d.known[key]
	if time.Since(of.at) >= remembered {
		of = learned{at: time.Now()}
	}
	of.dialect = of.join(found)
	d.known[key] = of
}

// params makes the body of a request.
func (d dialect) params(model string, q Request) openai.ChatCompletionNewParams {
	system := q.System
	p := openai.ChatCompletionNewParams{Model: model}
	switch d.form(q) {
	case FormSchema:
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: q.Schema.Name, Strict: openai.Bool(true), Schema: q.Schema.JSON}}
	case FormObject:
		p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
		system = withSchema(system, q.Schema.JSON)
	case FormText:
		system = withSchema(system, q.Schema.JSON)
	}
	if system != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(system))
	}
	for _, m := range q.Messages {
		if m.Role == "assistant" {
			p.Messages = append(p.Messages, openai.AssistantMessage(m.Content))
		} else {
			p.Messages = append(p.Messages, openai.UserMessage(m.Content))
		}
	}
	if !d.noTemperature {
		p.Temperature = openai.Float(q.Temperature)
	}
	if q.Seed != nil && !d.noSeed {
		p.Seed = openai.Int(*q.Seed)
	}
	switch {
	case q.MaxTokens > 0 && d.completionLimit:
		p.MaxCompletionTokens = openai.Int(int64(q.MaxTokens))
	case q.MaxTokens > 0:
		p.MaxTokens = openai.Int(int64(q.MaxTokens))
	}
	return p
}

func withSchema(system string, schema json.RawMessage) string {
	return strings.TrimSpace(system + "\n\nAnswer with one JSON object and nothing else. It keeps this JSON schema:\n" + string(schema))
}
