package stream

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/schemas/asyncapi"
)

// opinionSchema is the message's form as AsyncAPI publishes it.
func opinionSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	var doc struct {
		Components struct {
			Schemas struct {
				Opinion map[string]any `yaml:"opinion"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(asyncapi.Document, &doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///opinion", doc.Components.Schemas.Opinion); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///opinion")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpinions(t *testing.T) {
	conn := embedded(t)
	p := publisher(t, conn)
	no := false
	base := audit.Opinion{
		ID: audit.ID{7}, Kind: audit.OpinionReview, Interaction: audit.ID{1, 2}, Tenant: "acme", Domain: audit.HR, RuleSet: "2026.11.1", Decision: "dismissed", Tags: []string{"charter.age"},
		Findings: []audit.OpinionFinding{{Kind: "charter.age", Rule: "age.a", RuleVersion: "1", Side: audit.Output}},
		Time:     time.Date(2026, 11, 21, 10, 20, 30, 4_000_000, time.UTC), TraceID: "0af7651916cd43dd8448eb211c80319c",
	}
	answer := base
	answer.Kind, answer.Decision, answer.Tags, answer.Helped, answer.Findings = audit.OpinionFeedback, "", nil, &no, []audit.OpinionFinding{}
	if err := p.Opinions(t.Context(), []audit.Opinion{base, answer}); err != nil {
		t.Fatal(err)
	}
	if err := p.Opinions(t.Context(), nil); err != nil {
		t.Error(err)
	}
	schema := opinionSchema(t)
	for i, m := range read(t, conn, kafkaconn.Feedback, 2) {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Value))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("message %d: %s: %v", i, m.Value, err)
		}
		want := regexp.MustCompile(`^opinion_id=07000000-0000-0000-0000-000000000000\ncontent-type=application/json\ntraceparent=00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$`)
		if string(m.Key) != base.Interaction.String() || !want.MatchString(headers(m)) {
			t.Errorf("key %s, headers\n%s", m.Key, headers(m))
		}
	}
}
