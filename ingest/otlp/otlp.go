// Package otlp decodes what OpenTelemetry instrumentation of models sends: OTLP traces and logs, as protobuf or
// as JSON, over HTTP or as values of Kafka records (a Collector's otlp_proto, otlp_json).
//
// Instrumentations agree on the envelope only. How each tells a call stands in a file of its own and in the list
// dialects: genai.go (OpenTelemetry's own conventions, Vercel AI SDK 7), events.go (its log records and span events),
// openllmetry.go, openinference.go, langfuse.go, vercel.go (AI SDK 4 to 6), litellm.go, mlflow.go.
//
// A span becomes one part or none. The group is the trace id, the key the span id. A call of a model is a Model part.
// What wraps one and repeats its texts is Outer. All other spans are Context: they tell tenant, user, domain or system
// instructions, or nothing but what they stand under, so that a call finds whom it belongs to. Left out are only spans
// that nothing can be learnt from: roots without any of these, and calls of databases, which have no spans beneath.
//
// Done, that nothing more can come, is said of a root span alone, in dialects that tell everything on it, when
// texts of both sides are there. Beneath another span it is never said: that one may name tenant, domain, user or the system
// prompt, or be a wrapper whose copy must meet this call; spans end, and so are sent, inside out. Nor is it said in
// OpenTelemetry's own conventions, where a log record may tell the same call again.
//
// Cost is some tens of µs a span, twice that in JSON. A payload is refused whole (audit.KindInvalid) when it does not parse, nests deeper than 128
// messages or would take more than 128 MiB in memory, which is checked first; of one that parses, spans without valid ids or with more than 800 KiB of texts
// are refused by themselves (call.Partial). Errors quote nothing.
package otlp

import (
	"time"

	"github.com/evenhand/evenhand/ingest/call"
)

const (
	format     = "otlp"
	maxText    = 800 << 10 // bytes of a call's texts: an event and its envelope must fit a message of 900,000
	maxValues  = 50_000    // of a text that is more than that, before its images are left out
	maxWord    = 1024      // characters of a name in an event
	maxDomain  = 256
	maxLatency = 24 * 24 * time.Hour // milliseconds of 31 bits
	unnamed    = "unknown_service"
	jsonDeep   = 20 // levels of a value that goes into an event, which has 32; deeper ones go as their JSON text
)

// Traces decodes ExportTraceServiceRequest.
func Traces(n Names) call.Format { return traces{n.compiled()} }

// Logs decodes ExportLogsServiceRequest.
func Logs(n Names) call.Format { return logs{n.compiled()} }

type (
	traces struct{ names names }
	logs   struct{ names names }
)

func (traces) Name() string { return "otlptraces" }
func (logs) Name() string   { return "otlplogs" }
