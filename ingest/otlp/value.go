package otlp

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// plain gives an attribute's value as JSON has it. The parser bounds its depth.
func plain(v *commonpb.AnyValue) any {
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return x.StringValue
	case *commonpb.AnyValue_BoolValue:
		return x.BoolValue
	case *commonpb.AnyValue_IntValue:
		return json.Number(strconv.FormatInt(x.IntValue, 10))
	case *commonpb.AnyValue_DoubleValue:
		if math.IsNaN(x.DoubleValue) || math.IsInf(x.DoubleValue, 0) {
			return strconv.FormatFloat(x.DoubleValue, 'g', -1, 64)
		}
		return x.DoubleValue
	case *commonpb.AnyValue_BytesValue:
		return strings.ToValidUTF8(string(x.BytesValue), "\uFFFD")
	case *commonpb.AnyValue_ArrayValue:
		list := make([]any, 0, len(x.ArrayValue.GetValues()))
		for _, e := range x.ArrayValue.GetValues() {
			list = append(list, plain(e))
		}
		return list
	case *commonpb.AnyValue_KvlistValue:
		m := make(map[string]any, len(x.KvlistValue.GetValues()))
		for _, kv := range x.KvlistValue.GetValues() {
			m[kv.GetKey()] = plain(kv.GetValue())
		}
		return m
	}
	return nil
}

// index reads a whole number from 0.
func index(v any) (int, error) {
	n, err := strconv.ParseUint(scalar(v), 10, 31)
	return int(n), err //nolint:gosec // 31 bits
}

// decimal reads a finite number from 0.
func decimal(v any) (float64, error) {
	f, err := strconv.ParseFloat(scalar(v), 64)
	if err == nil && (f < 0 || math.IsInf(f, 0) || math.IsNaN(f)) {
		err = strconv.ErrRange
	}
	return f, err
}

// scalar writes a text, number or boolean as text; "" is anything else.
func scalar(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case json.Number:
		return x.String()
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	}
	return ""
}

// parsed gives the object or array that a text is as JSON, else the text.
func parsed(s string) any {
	if t := strings.TrimLeft(s, " \t\r\n"); t == "" || t[0] != '{' && t[0] != '[' {
		return s
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return s
	}
	if _, err := d.Token(); err != io.EOF {
		return s
	}
	return v
}

// unquoted takes off the quotes of a text that was written as JSON.
func unquoted(s string) string {
	var in string
	if len(s) > 1 && s[0] == '"' && json.Unmarshal([]byte(s), &in) == nil {
		return in
	}
	return s
}

// written is a value as JSON text.
func written(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // plain and parsed make nothing that JSON cannot have
		return ""
	}
	return string(b)
}

// shallow is v with what lies deeper than so many levels as its JSON text, for which an event always has room.
func shallow(v any, levels int) any {
	switch x := v.(type) {
	case map[string]any:
		if levels == 0 {
			return written(x)
		}
		for k := range x {
			x[k] = shallow(x[k], levels-1)
		}
	case []any:
		if levels == 0 {
			return written(x)
		}
		for i := range x {
			x[i] = shallow(x[i], levels-1)
		}
	}
	return v
}
