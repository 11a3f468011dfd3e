package litellm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// object is a JSON object of which only what is asked for is read. Its readers give nothing for what is absent or of another type.
type object map[string]json.RawMessage

// read takes a payload apart. A name that stands twice is refused, as in every event: who reads which would be a matter of taste.
func read(raw []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, _ := d.Token(); t != json.Delim('{') {
		return nil, errors.New("wants a JSON object")
	}
	o := object{}
	for d.More() {
		name, _ := d.Token() // raw is known to be good
		key, _ := name.(string)
		if _, twice := o[key]; twice {
			return nil, errors.New("has a name twice")
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, errors.New("is broken")
		}
		o[key] = v
	}
	if o.text("call_type") == "" || o.callID() == "" || !o.has("messages") && !o.has("response") {
		return nil, errors.New("is no StandardLoggingPayload: wants call_type, litellm_call_id or id, and messages or response")
	}
	return o, nil
}

func (o object) has(name string) bool { _, ok := o[name]; return ok }

// callID is LiteLLM's id of the call; payloads had none before it was added.
func (o object) callID() string { return cmp.Or(o.text("litellm_call_id"), o.text("id")) }

func (o object) text(name string) (s string) {
	_ = json.Unmarshal(o[name], &s)
	return s
}

func (o object) number(name string) (n float64, ok bool) {
	var p *float64
	err := json.Unmarshal(o[name], &p)
	if err != nil || p == nil {
		return 0, false
	}
	return *p, true
}

func (o object) object(name string) (sub object) {
	_ = json.Unmarshal(o[name], &sub)
	return sub
}

func (o object) list(name string) (items []json.RawMessage) {
	_ = json.Unmarshal(o[name], &items)
	return items
}

// part gives the call that a payload tells of; ok is false when it is none of a model.
func (o object) part(from call.Payload) (p call.Part, ok bool) {
	answers, shaped := answersOf(o["response"])
	if !generates[o.text("call_type")] && !shaped {
		return p, false
	}
	id := o.callID()
	p = call.Part{Format: Name, Kind: call.Model, Group: id, Key: id, Tenant: from.Tenant, Time: from.Received, Answers: answers, Messages: messagesOf(o["messages"])}
	p.System = o.system()
	p.Withheld = withhold(&p)
	o.facts(&p)
	o.outcome(&p)
	o.people(&p)
	return p, true
}

// facts are those of the call of the model.
func (o object) facts(p *call.Part) {
	if end, ok := o.number("endTime"); ok && end > 0 && end < 1<<40 {
		p.Time = time.UnixMicro(int64(math.Round(end * 1e6))).UTC()
	}
	if s := o.took(); s > 0 && s < math.MaxInt32/1000 {
		p.Latency = time.Duration(s * float64(time.Second))
	}
	p.Provider = o.text("custom_llm_provider")
	p.Model = strings.TrimPrefix(o.text("model"), p.Provider+"/") // the router writes openai/gpt-4o, the SDK gpt-4o
	for i, name := range []string{"prompt_tokens", "completion_tokens"} {
		if n, ok := o.number(name); ok && n >= 0 && n <= math.MaxInt32 {
			whole := int32(n)
			p.Tokens[i] = &whole
		}
	}
	if c, ok := o.number("response_cost"); ok && c >= 0 {
		p.CostUSD = &c
	}
	// Zeros say that nobody counted: the call failed, or a stream told no usage. What a blocked one cost stands in the breakdown.
	if zero(p.Tokens[0]) && zero(p.Tokens[1]) {
		p.Tokens = [2]*int32{}
		if p.CostUSD != nil && *p.CostUSD == 0 {
			p.CostUSD = nil
		}
	}
	if p.CostUSD == nil {
		if c, ok := o.object("cost_breakdown").number("total_cost"); ok && c > 0 {
			p.CostUSD = &c
		}
	}
	if id := strings.ReplaceAll(strings.ToLower(o.text("trace_id")), "-", ""); audit.ValidTraceID(id) {
		p.TraceID = id
	}
	p.Session = o.text("session_id")
}

// took is how long the call took, in seconds; 0 is not known. Of a stream response_time is that of the first token.
func (o object) took() float64 {
	s, _ := o.number("response_time")
	start, begun := o.number("startTime")
	if end, ended := o.number("endTime"); begun && ended && start > 0 && string(o["stream"]) == "true" {
		return max(s, end-start)
	}
	return s
}

func zero(n *int32) bool { return n == nil || *n == 0 }

// outcome says how the call ended and whether more may be told of it: where a guard looked, that may be ours.
func (o object) outcome(p *call.Part) {
	p.Status, p.Done = "success", !p.Withheld && len(o.list("guardrail_information")) == 0
	if o.text("status") != "failure" {
		return
	}
	p.Status, p.Done = "error", false
	if o.object("status_fields").text("guardrail_status") == "guardrail_intervened" {
		p.Status = "blocked"
	}
	p.Error = cmp.Or(o.text("error_str"), o.object("error_information").text("error_message"), o.object("error_information").text("error_class"))
}
