package ingest_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
)

func TestReadShort(t *testing.T) {
	d := ingest.NewDecoder(ingest.Options{})
	for _, tc := range []struct{ line, id, text, fault string }{
		{`{"id":"a","text":"x \u00e9\n"}`, "a", "x é\n", ""},
		{` {"text":"x","id":17,"other":{}} `, "17", "x", ""},
		{`{"text":""}`, "", "", ""},
		{"\ufeff" + `{"id":"9","text":"x"}`, "9", "x", ""}, // files that were put together
		{`{"id":null,"text":"lone \ud800."}`, "", "lone \ufffd.", ""},
		{`{"id":"a","text":null}`, "a", "", ingest.WrongType},
		{`{"id":"a","text":["x"]}`, "a", "", ingest.WrongType},
		{`{"id":"a","text":"x","text":"y"}`, "a", "y", ingest.DuplicateKey},
	} {
		s := d.ReadShort([]byte(tc.line))
		code := ""
		if s.Fault != nil {
			code = s.Fault.Code
		}
		if !s.Given || s.Domain != audit.General || s.ID != tc.id || s.Text != tc.text || code != tc.fault {
			t.Errorf("%s: %+v, fault %q", tc.line, s, code)
		}
	}
	long := strings.Repeat("é", 257)
	for _, tc := range []struct{ line, domain, fault string }{ // "" is the decoder's domain
		{`{"text":"x","domain":"hr"}`, "hr", ""},
		{`{"domain":"HR","text":"x"}`, "hr", ""},
		{`{"text":"x","domain":null}`, "", ""},
		{`{"text":"x","domain":"space"}`, "general", ""}, // as a full interaction's
		{`{"text":"x","domain":7}`, "", "wrong_type domain"},
		{`{"text":"x","domain":"` + long + `"}`, "general", "bad_value domain"},
		{`{"text":"x","domain":"hr","domain":"hr"}`, "hr", "duplicate_key domain"},
		{`{"text":"x","domian":"hr"}`, "", "unknown_field domian"},
		{`{"doman":"hr","text":"x"}`, "", "unknown_field doman"},
		{`{"text":"x","domains":[],"domain":"hr"}`, "hr", ""},
		{`{"text":"x","remain":"hr"}`, "", ""},
		{`{"text":"x","response":"y"}`, "", "bad_value text"},
		{`{"prompt":"y","text":"x"}`, "", "bad_value text"},
		{`{"text":"x","messages":[]}`, "", "bad_value text"},
		{`{"text":"x","prompt":null,"response":""}`, "", ""},
	} {
		for _, d := range []struct {
			decoder *ingest.Decoder
			domain  audit.Domain
		}{{d, audit.General}, {ingest.NewDecoder(ingest.Options{DefaultTenant: "acme", Domain: audit.Finance}), audit.Finance}} {
			s, fault := d.decoder.ReadShort([]byte(tc.line)), ""
			if s.Fault != nil {
				fault = s.Fault.Code + " " + s.Fault.Field
			}
			if !s.Given || s.Domain != cmp.Or(audit.Domain(tc.domain), d.domain) || fault != tc.fault {
				t.Errorf("%s: %s, fault %q", tc.line, s.Domain, fault)
			}
		}
	}
	for _, line := range []string{``, `nonsense`, `[]`, `7`, `{"id":"a"}`, `{"id":"a","id":"b"}`, "{\"text\":\"raw\ttab\"}", `{"text":"x"} y`, "{\"text\":\"\xff\"}"} {
		if s := d.ReadShort([]byte(line)); s.Given || s.Fault != nil {
			t.Errorf("%s: %+v", line, s)
		}
	}
}

// What it gives is what encoding/json gives.
func FuzzReadShort(f *testing.F) {
	f.Add([]byte(`{"id":"a","text":"x"}`))
	f.Add([]byte(`{"id":1.50,"text":"\ud83d\ude42 \ud800 \\","n":[1,{"a":"b"}]}`))
	d := ingest.NewDecoder(ingest.Options{})
	f.Fuzz(func(t *testing.T, line []byte) {
		s := d.ReadShort(line)
		if !s.Given || s.Fault != nil {
			return
		}
		var want struct{ Text string }
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(line, &keys); err != nil {
			t.Fatalf("%q was read: %v", line, err)
		}
		if err := json.Unmarshal([]byte(`{"text":`+string(keys["text"])+`}`), &want); err != nil || s.Text != want.Text {
			t.Errorf("%q: %q, want %q, %v", line, s.Text, want.Text, err)
		}
	})
}
