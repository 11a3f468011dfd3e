package cloudevents

import (
	"net/url"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// HeaderVersion is the header of a Kafka record in binary mode.
const HeaderVersion = "ce_specversion"

// HTTP reads a request in binary mode (http-protocol-binding.md, 3.1) from its http.Header; ok is false when it is in another.
func HTTP(h map[string][]string, body []byte) (e Event, ok bool) {
	if len(h["Ce-Specversion"]) == 0 {
		return e, false
	}
	e = Event{Data: filled(body), attributes: map[string]string{}, prefix: "header ce-"}
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names) // so that faults have an order
	for _, header := range names {
		name, is := strings.CutPrefix(strings.ToLower(header), "ce-")
		if !is {
			continue
		}
		for _, v := range h[header] {
			text, err := url.PathUnescape(unquoted(v))
			if err != nil {
				e.fault(name, badValue, "is not percent-encoded well")
				continue
			}
			e.name(name, text)
		}
	}
	for _, v := range h["Content-Type"] {
		e.contentType(v)
	}
	return e, true
}

// Kafka reads a record in binary mode (kafka-protocol-binding.md, 3.2). The key is the partition key (3.1).
func Kafka(headers []audit.Header, key, value []byte) Event {
	e := Event{Data: filled(value), attributes: map[string]string{}, prefix: "header ce_"}
	for _, h := range headers {
		if name, is := strings.CutPrefix(h.Key, "ce_"); is {
			e.name(name, string(h.Value))
		} else if strings.EqualFold(h.Key, "content-type") {
			e.contentType(string(h.Value))
		}
	}
	if _, has := e.attributes["partitionkey"]; !has && len(key) > 0 && len(key) <= MaxAttribute {
		e.set("partitionkey", string(key))
		e.faults = slices.DeleteFunc(e.faults, func(f Fault) bool { return f.Field == e.prefix+"partitionkey" }) // a key of bytes is none
	}
	return e
}

func (e *Event) name(name, value string) {
	if !validName(name) {
		e.fault(name, unknown, "is no name of an attribute, which has lower-case letters and digits")
		return
	}
	if name != "datacontenttype" { // it is the content type (3.1.1)
		e.set(name, value)
	}
}

func (e *Event) contentType(v string) {
	if v != "" {
		e.set("datacontenttype", v)
	}
}

// unquoted takes a quoted string apart, which earlier versions sent (http-protocol-binding.md, 3.1.3.2).
func unquoted(v string) string {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return v
	}
	var b strings.Builder
	for i := 1; i < len(v)-1; i++ {
		if v[i] == '\\' && i+1 < len(v)-1 {
			i++
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

func filled(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
