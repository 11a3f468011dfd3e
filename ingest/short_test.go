package ingest_test

import (
	"encoding/json"
	"testing"

	"github.com/evenhand/evenhand/ingest"
)

func TestReadShort(t *testing.T) {
	d := ingest.NewDecoder(ingest.Options{})
	for _, tc := range []struct{ line, id, text, fault string }{
		{`{"id":"a","text":"x \u00e9\n"}`, "a", "x é\n", ""},
		{` {"text":"x","id":17,"other":{}} `, "17", "x", ""},
		{`{"text":""}`, "", "", ""},
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
		if !s.Given || s.ID != tc.id || s.Text != tc.text || code != tc.fault {
			t.Errorf("%s: %+v, fault %q", tc.line, s, code)
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
