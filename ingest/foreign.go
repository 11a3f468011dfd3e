package ingest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/cloudevents"
	"github.com/evenhand/evenhand/ingest/litellm"
	"github.com/evenhand/evenhand/sources"
)

// foreign is a format other than the native event that one message may have. It is told by a header, or by top-level
// names that no native event has and that the decoder meets anyway: native events pay nothing for it.
type foreign uint8

const (
	native     foreign = iota
	cloudEvent         // structured mode; in binary mode the value is a native event
	liteLLM            // a single StandardLoggingPayload
)

// notice looks at a name that a native event does not have, and tells whether it needs no fault of its own.
func (st *state) notice(key []byte) bool {
	switch {
	case st.translated || st.allowed != nil:
		return false
	case string(key) == "specversion":
		st.foreign = cloudEvent
	case st.foreign == native && litellm.Looks(string(key)):
		if st.looks++; st.looks > 1 {
			st.foreign = liteLLM
		}
	}
	return st.foreign != native
}

// parseAny fills st.values from a message in any of the formats.
func (st *state) parseAny(rec sources.Record, h headers) bool {
	value := rec.Value
	switch {
	case h.cloudEvent:
		value = st.unwrap(cloudevents.Kafka(rec.Headers, rec.Key, value))
	case len(h.contentType) > 0 && cloudevents.IsStructured(string(h.contentType)):
		value = st.structured(value)
	case !st.parse(value):
		return false
	case st.foreign == native:
		return true
	default:
		value = st.translate(value)
	}
	if value == nil {
		return false
	}
	clear(st.values[:])
	st.foreign, st.translated = native, true
	return st.parse(value)
}

// translate gives the native event of a message that parse has recognised; nil with faults when there is none.
func (st *state) translate(value []byte) []byte {
	if st.foreign == cloudEvent {
		return st.structured(value)
	}
	parts, _, err := litellm.Read(call.Payload{Body: value, Tenant: st.tenant})
	switch {
	case err != nil:
		st.fault("", BadValue, err.Error())
		return nil
	case len(parts) == 0:
		st.fault("call_type", NoInteraction, "is no call of a model that makes text")
		return nil
	}
	event, err := parts[0].Event(cmp.Or(st.tenant, parts[0].Claimed, st.d.defaultTenant))
	if err != nil {
		st.fault("", BadValue, "cannot be written as an event")
		return nil
	}
	return event
}

// structured cuts an event of CloudEvents' JSON format.
func (st *state) structured(value []byte) []byte {
	if len(value) > st.d.limits.Message {
		return value // parse says so
	}
	members, fault := Members(value, st.d.limits.Depth)
	if fault != nil {
		st.faults = append(st.faults, *fault)
		return nil
	}
	return st.unwrap(cloudevents.Structured(members))
}

// unwrap gives a CloudEvent's data with what its context tells and it leaves out; nil with faults.
func (st *state) unwrap(e cloudevents.Event) []byte {
	if faults := e.Faults(); len(faults) > 0 {
		for _, f := range faults {
			st.fault(f.Field, f.Code, f.Message)
		}
		return nil
	}
	members, fault := Members(e.Data, st.d.limits.Depth)
	if fault != nil {
		if fault.Code == DuplicateKey {
			return e.Data // the decoder names it
		}
		st.fault("data", fault.Code, fault.Message)
		return nil
	}
	if tenant, name := e.Tenant(); tenant != "" && !blank(members["tenant_id"]) {
		if given, _ := json.Marshal(tenant); !bytes.Equal(given, members["tenant_id"]) {
			st.fault(name, TenantMismatch, "differs from the event's tenant_id")
			return nil
		}
	}
	if at, name := e.Time(); at != "" && blank(members[names[fTimestamp]]) {
		if _, ok := instant([]byte(at)); !ok {
			st.fault(name, BadValue, wantTime)
			return nil
		}
	}
	for _, f := range e.Native() {
		if blank(members[f.Name]) {
			members[f.Name], _ = json.Marshal(f.Value)
		}
	}
	instructed(members)
	return object(members)
}

// instructed puts instructions that stand beside a prompt among the messages: the one field that natives have not and
// applications send in their CloudEvents.
func instructed(members map[string][]byte) {
	system, prompt := members["system"], members["prompt"]
	if len(system) == 0 || system[0] != '"' || !blank(members["messages"]) || len(prompt) > 0 && prompt[0] != '"' {
		return
	}
	delete(members, "system")
	delete(members, "prompt")
	b := append([]byte(`[{"role":"system","content":`), system...)
	if len(prompt) > 0 {
		b = append(append(b, `},{"role":"user","content":`...), prompt...)
	}
	members["messages"] = append(b, "}]"...)
}

func blank(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" || string(raw) == `""` }

// object writes members, names as they were written, in the order of their names.
func object(members map[string][]byte) []byte {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
		b = append(b, members[name]...)
	}
	return append(b, '}')
}

// Unwrap gives the native event that a CloudEvent carries, with what its context tells and the data leaves out. The
// event itself is checked by whoever decodes it.
func (d *Decoder) Unwrap(e cloudevents.Event) ([]byte, []Fault) {
	return d.unwrapped(len(e.Data), func(st *state) []byte { return st.unwrap(e) })
}

// UnwrapStructured is Unwrap for an event of CloudEvents' JSON format.
func (d *Decoder) UnwrapStructured(value []byte) ([]byte, []Fault) {
	return d.unwrapped(len(value), func(st *state) []byte { return st.structured(value) })
}

func (d *Decoder) unwrapped(size int, by func(*state) []byte) ([]byte, []Fault) {
	st := d.state()
	defer d.release(st, size)
	value := by(st)
	return value, st.faults
}

// isContentType compares the name of a header; Kafka's are written in several ways.
func isContentType(name string) bool {
	return len(name) == len("content-type") && strings.EqualFold(name, "content-type")
}
