package cloudevents

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func TestModes(t *testing.T) {
	for _, tc := range []struct {
		kind              string
		structured, batch bool
	}{
		{"application/cloudevents+json", true, false},
		{"Application/CloudEvents+JSON; charset=UTF-8", true, false},
		{"application/cloudevents-batch+json", false, true},
		{"application/cloudevents+avro", true, false},
		{"application/json", false, false},
		{"", false, false},
		{";;", false, false},
	} {
		if s, b := IsStructured(tc.kind), IsBatch(tc.kind); s != tc.structured || b != tc.batch {
			t.Errorf("%q: structured %v, batch %v", tc.kind, s, b)
		}
	}
	if _, ok := HTTP(http.Header{"Content-Type": {"application/json"}}, nil); ok {
		t.Error("binary without a version")
	}
}

// Values of headers are unquoted, then percent-decoded once (http-protocol-binding.md, 3.1.3.2).
func TestValuesOfHeaders(t *testing.T) {
	for value, want := range map[string]string{
		"plain":            "plain",
		"Euro%20%E2%82%AC": "Euro €",
		`"quoted \"x\""`:   `quoted "x"`,
		"%2520":            "%20",
		`"`:                `"`,
		"a+b":              "a+b",
	} {
		e, ok := HTTP(http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/a"}, "Ce-Type": {"t"}, "Ce-Subject": {value}}, []byte("{}"))
		fields := e.Native()
		if !ok || len(e.Faults()) > 0 || !slices.Contains(fields, Field{"conversation_id", want}) {
			t.Errorf("%s: %v %v", value, e.Faults(), fields)
		}
	}
}

// A record's key is the partition key, unless an attribute says another or it is no text.
func TestKeyOfARecord(t *testing.T) {
	for _, tc := range []struct{ key, attribute, want string }{{"k", "", "k"}, {"k", "a", "a"}, {"\xff", "", ""}, {strings.Repeat("k", 5000), "", ""}} {
		hs := []audit.Header{{Key: HeaderVersion, Value: []byte("1.0")}, {Key: "ce_id", Value: []byte("1")}, {Key: "ce_source", Value: []byte("/a")}, {Key: "ce_type", Value: []byte("t")}}
		if tc.attribute != "" {
			hs = append(hs, audit.Header{Key: "ce_partitionkey", Value: []byte(tc.attribute)})
		}
		e := Kafka(hs, []byte(tc.key), []byte("{}"))
		if faults := e.Faults(); len(faults) > 0 || e.attributes["partitionkey"] != tc.want {
			t.Errorf("%.9q: %v %q", tc.key, faults, e.attributes["partitionkey"])
		}
	}
}

// FuzzHTTP: any header gives an event whose faults are told in the same order and quote no value, or fields in UTF-8.
func FuzzHTTP(f *testing.F) {
	f.Add("Ce-Subject", "a%20b", "application/json")
	f.Add("ce-id", `"\"`, "text/plain")
	f.Add("Ce-\xff", "%zz", ";")
	f.Add("Ce-"+strings.Repeat("\xff0", 40), "%", "")
	f.Fuzz(func(t *testing.T, name, value, kind string) {
		h := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/a"}, "Ce-Type": {"t"}, "Content-Type": {kind}}
		h[name] = append(h[name], value)
		e, _ := HTTP(h, []byte("{}"))
		again, _ := HTTP(h, []byte("{}"))
		faults := e.Faults()
		if !slices.Equal(faults, again.Faults()) {
			t.Fatal("two orders of faults")
		}
		for _, fault := range faults {
			if fault.Code == "" || fault.Message == "" || len(fault.Field) > 100 {
				t.Fatalf("%+v", fault)
			}
		}
		for _, field := range e.Native() {
			if len(faults) == 0 && strings.ToValidUTF8(field.Value, "") != field.Value {
				t.Fatalf("%q", field)
			}
		}
	})
}
