package gateway

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/schemas/openapi"
)

// What the gateway itself answers is as the document has it.
func TestErrorsAreAsDescribed(t *testing.T) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.Document))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///openapi.json", v); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("mem:///openapi.json#/components/schemas/GatewayError")
	if err != nil {
		t.Fatal(err)
	}
	gate := func(c *Config, d *Deps) {
		c.Guard.HITLGate = true
		who := &person{answer: make(chan guard.GateDecision, 1)}
		who.answer <- guard.GateDecision{Reason: "denied", Detail: "no"}
		d.Gates = who
	}
	for name, tc := range map[string]struct {
		text, body string
		change     func(*Config, *Deps)
		status     int
	}{
		"blocked":     {biased, prompt("hi", ""), blocks, 400},
		"denied":      {wire, prompt("hi", ""), gate, 403},
		"bad request": {clean, `{}`, nil, 400},
		"unchecked":   {clean, prompt("hi", ""), func(c *Config, d *Deps) { blocks(c, d); d.Guard = brokenGuard{} }, 503},
	} {
		got := start(t, newProvider(t, says(tc.text)).URL, tc.change).do(PathChat, tc.body)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(got.body)))
		if err != nil || got.status != tc.status {
			t.Fatalf("%s: %d %v %s", name, got.status, err, got.body)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v\n%s", name, err, got.body)
		}
	}
}
