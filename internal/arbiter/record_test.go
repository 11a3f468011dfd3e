package arbiter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/schemas/asyncapi"
	"github.com/evenhand/evenhand/sources"
)

// What is written is what the AsyncAPI document describes.
func TestRecordsAreAsDescribed(t *testing.T) {
	var tree any
	if err := yaml.Unmarshal(asyncapi.Document, &tree); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///evenhand.yaml", doc); err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]wire{
		"logID":    {Log: logs[0].String(), By: "host/1"},
		"proposal": {Log: logs[0].String(), Proposal: logs[1].String(), Seq: 3, By: "host/1", Value: json.RawMessage(`{"a":"<"}`), Restored: time.Now().UTC().Format(time.RFC3339Nano)},
	} {
		schema, err := c.Compile("mem:///evenhand.yaml#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := encode(w)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseKey(t *testing.T) {
	for _, s := range []string{"gate/1", "breach/a/b/c", "x_1/é"} {
		if k, err := ParseKey(s); err != nil || k.String() != s {
			t.Errorf("%q: %+v %v", s, k, err)
		}
	}
	for _, s := range []string{"", "gate", "gate/", "/1", "Gate/1", "1a/b", "a b/c", "a/\xff", "a/" + strings.Repeat("x", 513)} {
		if k, err := ParseKey(s); err == nil {
			t.Errorf("%q is %+v", s, k)
		}
	}
}

// FuzzParse: any record is judged without a panic, and what is taken can be written again.
func FuzzParse(f *testing.F) {
	good, _ := encode(wire{Log: logs[0].String(), Proposal: logs[1].String(), Seq: 1, By: "x", Value: json.RawMessage(`{"state":"open"}`)})
	f.Add([]byte("alarm/a"), good)
	f.Add([]byte("lease/a"), good)
	f.Add([]byte(genesisKey), []byte(`{"v":1,"log":"`+logs[0].String()+`"}`))
	f.Add([]byte("once/a"), []byte(`{"v":2}`))
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r := sources.Record{Offset: 7, Time: time.Unix(1, 0), Key: key, Value: value}
		fold := newFold(rules(t), nil)
		fold.log = logs[0]
		o, err := fold.judge(&r)
		if err != nil || !o.won || o.genesis {
			return
		}
		d := o.decision
		if d.Key.String() != string(key) || d.Proposal.IsZero() || d.N != 1 {
			t.Fatalf("%+v", d)
		}
		again, err := encode(wire{Log: d.Log.String(), Proposal: d.Proposal.String(), Seq: d.Seq, By: d.Proposer, Value: d.Value})
		if err != nil {
			t.Fatal(err)
		}
		p, err := parse(&sources.Record{Key: key, Value: again})
		if err != nil || p.log != (audit.ID(logs[0])) || p.decision.Proposal != d.Proposal {
			t.Fatalf("%+v %v", p, err)
		}
	})
}
