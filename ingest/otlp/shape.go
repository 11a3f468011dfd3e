package otlp

import (
	"reflect"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// shape is what a message takes in memory, without its texts, and which of its fields hold messages, by number; those of
// OTLP are below 32.
type shape struct {
	size   int
	fields [32]*shape
}

var (
	tracesShape = shapeOf((&tracepb.TracesData{}).ProtoReflect().Descriptor(), map[protoreflect.FullName]*shape{})
	logsShape   = shapeOf((&logspb.LogsData{}).ProtoReflect().Descriptor(), map[protoreflect.FullName]*shape{})
)

func shapeOf(d protoreflect.MessageDescriptor, known map[protoreflect.FullName]*shape) *shape {
	if s, has := known[d.FullName()]; has {
		return s
	}
	s := &shape{size: 256} // of a message that the program does not know
	if t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName()); err == nil {
		s.size = 8 + int(reflect.TypeOf(t.Zero().Interface()).Elem().Size()) //nolint:gosec // some hundred bytes, and the pointer to them
	}
	known[d.FullName()] = s // before the fields: values hold values
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); f.Kind() == protoreflect.MessageKind && int(f.Number()) < len(s.fields) {
			s.fields[f.Number()] = shapeOf(f.Message(), known)
		}
	}
	return s
}

// take takes what b needs off room and stops below zero, or where b is broken or nests too deep, which the parser finds too.
func (s *shape) take(b []byte, room *int, depth int) {
	for *room -= s.size; len(b) > 0 && *room >= 0 && depth > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return
		}
		if kind == protowire.BytesType && int(number) < len(s.fields) && s.fields[number] != nil {
			inner, _ := protowire.ConsumeBytes(b[n:])
			s.fields[number].take(inner, room, depth-1)
		}
		b = b[n+size:]
	}
}
