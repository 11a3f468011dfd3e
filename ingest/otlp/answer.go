package otlp

import (
	"net/http"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/evenhand/evenhand/ingest/call"
)

// Answer is the body of a success, ExportTraceServiceResponse or ExportLogsServiceResponse: empty, or it says by a
// partial success how much was refused, nil for nothing. f is the format of what came.
func Answer(f call.Format, some *call.Partial, asJSON bool) []byte {
	if _, ok := f.(logs); ok {
		m := &collogspb.ExportLogsServiceResponse{}
		if some != nil {
			m.PartialSuccess = &collogspb.ExportLogsPartialSuccess{RejectedLogRecords: some.Refused, ErrorMessage: some.Why}
		}
		return encoded(m, asJSON)
	}
	m := &coltracepb.ExportTraceServiceResponse{}
	if some != nil {
		m.PartialSuccess = &coltracepb.ExportTracePartialSuccess{RejectedSpans: some.Refused, ErrorMessage: some.Why}
	}
	return encoded(m, asJSON)
}

// Fault is the body of an answer that is no success: google.rpc.Status, in protobuf.
func Fault(status int, say string) []byte {
	return encoded(&statuspb.Status{Code: Code(status), Message: say}, false)
}

// Code is the code of google.rpc.Status for an HTTP status.
func Code(status int) int32 {
	switch status {
	case http.StatusUnauthorized:
		return 16 // UNAUTHENTICATED
	case http.StatusForbidden:
		return 7 // PERMISSION_DENIED
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		return 8 // RESOURCE_EXHAUSTED
	case http.StatusServiceUnavailable:
		return 14 // UNAVAILABLE
	case http.StatusInternalServerError:
		return 13 // INTERNAL
	}
	return 3 // INVALID_ARGUMENT
}

func encoded(m proto.Message, asJSON bool) []byte {
	if asJSON {
		return []byte(protojson.Format(m))
	}
	b, _ := proto.Marshal(m) // fails for texts that are no UTF-8, and these are ours
	return b
}
