// Package cloudevents reads the context of CloudEvents 1.0 whose data is a native event: over HTTP and Kafka, in binary and in structured
// mode. Package ingest cuts JSON, puts context and data together and decodes the outcome as strictly as any
// native event; faults here name the attribute as its sender wrote it, all at once, and quote no value.
//
// Rules are those of the specification 1.0.2 and its bindings (github.com/cloudevents/spec, cloudevents/spec.md,
// bindings/http-protocol-binding.md, bindings/kafka-protocol-binding.md, formats/json-format.md), cited by section. They fit in
// here; the official SDK brings a client, a logger and a second JSON parser.
package cloudevents

import (
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
)

// Fault is one of package ingest, with its codes.
type Fault struct{ Field, Code, Message string }

const (
	badValue  = "bad_value"
	wrongType = "wrong_type"
	missing   = "missing_field"
	twice     = "duplicate_key"
	unknown   = "unknown_field"
)

// MaxAttribute is the longest value of an attribute, in bytes.
const MaxAttribute = 4096

// Event is a CloudEvent.
type Event struct {
	Data       []byte // its JSON; nil for none
	attributes map[string]string
	prefix     string // how faults name an attribute: "header ce_id", "id"
	faults     []Fault
}

// Field is a field of the native event and the text that the context tells for it.
type Field struct{ Name, Value string }

func (e *Event) fault(attribute, code, message string) {
	e.faults = append(e.faults, Fault{e.prefix + audit.Shown(attribute), code, message})
}

// set takes one attribute. Names are lower-case letters and digits (spec.md, Attribute Naming Convention); values hold
// no control characters (Type System).
func (e *Event) set(name, value string) {
	switch _, has := e.attributes[name]; {
	case has:
		e.fault(name, twice, "stands twice")
	case len(value) > MaxAttribute:
		e.fault(name, badValue, "wants at most 4096 bytes")
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		e.fault(name, badValue, "wants UTF-8 without control characters")
	default:
		e.attributes[name] = value
	}
}

func validName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// Faults tells everything that is wrong with the context: what came in cannot be read, the four required attributes
// (spec.md, REQUIRED Attributes) are not all there, the data is not JSON.
func (e *Event) Faults() []Fault {
	faulty := map[string]bool{}
	for _, f := range e.faults {
		faulty[f.Field] = true
	}
	for _, name := range []string{"specversion", "id", "source", "type"} {
		switch v := e.attributes[name]; {
		case faulty[e.prefix+name]:
		case v == "":
			e.fault(name, missing, "is missing; a CloudEvent wants specversion, id, source and type")
		case name == "specversion" && v != "1.0":
			e.fault(name, badValue, "wants 1.0")
		}
	}
	if t := e.attributes["datacontenttype"]; t != "" && !isJSON(t) {
		e.fault("datacontenttype", badValue, "wants application/json: the data is a native event")
	}
	if e.Data == nil && !faulty[e.prefix+"data"] && !faulty[e.prefix+"data_base64"] {
		e.fault("data", missing, "is missing; it wants the native event")
	}
	return e.faults
}

// Native gives what the context tells for fields that the data leaves out. An id that is a UUID is the event's; another is one
// only together with its source (spec.md, id). The partition key, of the record or of the extension, groups events like a
// conversation does, where no subject does and it is not just the tenant.
func (e *Event) Native() []Field {
	a := e.attributes
	id := a["id"]
	if _, err := audit.ParseID(id); err != nil {
		id = a["source"] + "#" + id
	}
	conversation := a["subject"]
	if conversation == "" && a["partitionkey"] != a["tenantid"] {
		conversation = a["partitionkey"]
	}
	var fields []Field
	for _, f := range []Field{
		{"id", id}, {"timestamp", a["time"]}, {"application", a["source"]}, {"conversation_id", conversation},
		{"tenant_id", a["tenantid"]}, {"traceparent", a["traceparent"]},
	} {
		if f.Value != "" {
			fields = append(fields, f)
		}
	}
	return fields
}

// Tenant is the extension tenantid, and how a fault names it.
func (e *Event) Tenant() (tenant, name string) {
	return e.attributes["tenantid"], e.prefix + "tenantid"
}

// Time is the attribute time, and how a fault names it.
func (e *Event) Time() (at, name string) {
	return e.attributes["time"], e.prefix + "time"
}

func media(contentType string) string {
	m, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		m, _, _ = strings.Cut(contentType, ";")
	}
	return strings.ToLower(strings.TrimSpace(m))
}

// isJSON follows json-format.md, 3.1: application/json, text/json, or any type with the suffix +json.
func isJSON(contentType string) bool {
	m := media(contentType)
	return strings.HasSuffix(m, "/json") || strings.HasSuffix(m, "+json")
}

// IsStructured and IsBatch tell the mode by the content type (http-protocol-binding.md, 3): what begins with application/cloudevents is
// structured, with application/cloudevents-batch a batch.
func IsStructured(contentType string) bool {
	return strings.HasPrefix(media(contentType), "application/cloudevents") && !IsBatch(contentType)
}

// IsBatch tells of application/cloudevents-batch+json; see IsStructured.
func IsBatch(contentType string) bool {
	return strings.HasPrefix(media(contentType), "application/cloudevents-batch")
}
