package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"mime"
	"regexp"
	"strings"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
)

// Limits of one payload. A message of two bytes becomes a value of hundreds, so they are counted before they are made.
const (
	maxMemory  = 128 << 20 // bytes of a payload's messages, without their texts
	maxObjects = 400_000   // braces of a payload in JSON, whose messages cannot be told apart so soon
	maxDepth   = 128       // messages inside each other; a value inside a value takes two or three
)

// IsJSON tells how a payload is written: by its content type, else by how it begins, which no protobuf of OTLP does.
func IsJSON(contentType string, body []byte) bool {
	switch media, _, _ := mime.ParseMediaType(contentType); media {
	case "application/json":
		return true
	case "application/x-protobuf", "application/protobuf":
		return false
	}
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// spans reads a trace payload; TracesData is ExportTraceServiceRequest on the wire.
func spans(p call.Payload) (*tracepb.TracesData, error) {
	m := &tracepb.TracesData{}
	written, err := read(p, m, tracesShape)
	if err != nil || !written {
		return m, err
	}
	for _, rs := range m.ResourceSpans {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				s.TraceId, s.SpanId, s.ParentSpanId = fromHex(s.TraceId, 16), fromHex(s.SpanId, 8), fromHex(s.ParentSpanId, 8)
			}
		}
	}
	return m, nil
}

// records reads a log payload.
func records(p call.Payload) (*logspb.LogsData, error) {
	m := &logspb.LogsData{}
	written, err := read(p, m, logsShape)
	if err != nil || !written {
		return m, err
	}
	for _, rl := range m.ResourceLogs {
		for _, sl := range rl.GetScopeLogs() {
			for _, r := range sl.GetLogRecords() {
				r.TraceId, r.SpanId = fromHex(r.TraceId, 16), fromHex(r.SpanId, 8)
			}
		}
	}
	return m, nil
}

// read parses a payload; asJSON says that ids are still as JSON had them.
func read(p call.Payload, m proto.Message, s *shape) (asJSON bool, err error) {
	if IsJSON(p.ContentType, p.Body) {
		if bytes.Count(p.Body, []byte("{")) > maxObjects {
			return true, invalid("the payload has too many objects: send fewer spans or records at once")
		}
		options := protojson.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}
		if err = options.Unmarshal(p.Body, m); err != nil {
			if body, bad := withoutBadIDs(p.Body); bad {
				proto.Reset(m)
				err = options.Unmarshal(body, m)
			}
		}
		if err != nil {
			return true, invalid("the body is no OTLP in JSON, or nests too deep") // the library's error may quote
		}
		return true, nil
	}
	room := maxMemory
	if s.take(p.Body, &room, maxDepth); room < 0 {
		return false, invalid("the payload has too many messages: send fewer spans or records at once")
	}
	if (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}).Unmarshal(p.Body, m) != nil {
		return false, invalid("the body is no OTLP in protobuf, or breaks off, or nests too deep")
	}
	return false, nil
}

// fromHex mends an id: OTLP writes ids in hexadecimal where protobuf's JSON form has base64, so the parser took digits
// for base64. An id that was written as base64 has its length already. nil is an id that is neither.
func fromHex(id []byte, size int) []byte {
	if len(id) == size || len(id) == 0 {
		return id
	}
	raw, err := hex.DecodeString(base64.StdEncoding.EncodeToString(id))
	if err != nil {
		return nil
	}
	return raw
}

// An id in JSON. Quotes inside a string are escaped, so only a member is followed by a colon.
var idMember = regexp.MustCompile(`("(?:traceId|spanId|parentSpanId|trace_id|span_id|parent_span_id)"\s*:\s*)"([^"\\]*)"`)

// withoutBadIDs empties ids that the parser cannot read as bytes, such as one of an odd length: by those the whole payload would
// be refused, without them it is their spans alone.
func withoutBadIDs(body []byte) (mended []byte, bad bool) {
	mended = idMember.ReplaceAllFunc(body, func(member []byte) []byte {
		m := idMember.FindSubmatch(member)
		if isBase64(string(m[2])) {
			return member
		}
		bad = true
		return append(bytes.Clone(m[1]), '"', '"')
	})
	return mended, bad
}

// isBase64 tells what protobuf's JSON form takes for bytes: base64 of either alphabet, padded or not.
func isBase64(s string) bool {
	e := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		e = base64.URLEncoding
	}
	if len(s)%4 != 0 {
		e = e.WithPadding(base64.NoPadding)
	}
	_, err := e.DecodeString(s)
	return err == nil
}

func invalid(say string) error { return audit.E("otlp", audit.KindInvalid, errors.New(say)) }
