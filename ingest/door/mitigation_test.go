package door

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	chschema "github.com/evenhand/evenhand/schemas/clickhouse"
)

// One mitigation has one wording, whoever asks: POST /analyze-bias or the view.
func TestMitigationsAreWordedAsInTheView(t *testing.T) {
	files, err := chschema.Render(chschema.Options{Database: "evenhand"})
	if err != nil {
		t.Fatal(err)
	}
	view, err := fs.ReadFile(files, "00023_mitigations.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, words, ok := strings.Cut(string(view), "transform(v.mitigation,")
	words, _, found := strings.Cut(words, "AS mitigation_action")
	if !ok || !found {
		t.Fatal("the view does not word mitigations any more")
	}
	if n := strings.Count(words, "'") / 2; n != 2*len(audit.Mitigations)+1 { // the type and its words, and the default
		t.Errorf("the view words %d mitigations, the door %d", n/2, len(audit.Mitigations))
	}
	for _, kind := range audit.Mitigations {
		text := audit.MitigationDetails(kind)
		if !strings.Contains(words, "'"+kind+"'") || !strings.Contains(words, "'"+text+"'") {
			t.Errorf("the view words %s otherwise than %q", kind, text)
		}
	}
}
