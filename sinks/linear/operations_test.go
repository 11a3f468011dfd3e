package linear

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/evenhand/evenhand/sinks/linear/lineartest"
)

// Every operation fits Linear's published schema, and every file is an operation that Send or Issue uses.
func TestOperationsFitTheSchema(t *testing.T) {
	sdl, err := os.ReadFile(lineartest.Shared(t, "data", "linear", "schema.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	schema, gerr := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(sdl)})
	if gerr != nil {
		t.Fatal(gerr)
	}
	files, err := operations.ReadDir("operations")
	if err != nil || len(files) != 9 {
		t.Fatalf("%d operations, %v", len(files), err)
	}
	for _, f := range files {
		name := f.Name()[:len(f.Name())-len(filepath.Ext(f.Name()))]
		doc, errs := gqlparser.LoadQueryWithRules(schema, operation(name), rules.NewDefaultRules())
		if len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
			continue
		}
		if len(doc.Operations) != 1 || len(doc.Operations[0].SelectionSet) != 1 {
			t.Errorf("%s: wants one operation with one field", name)
		}
	}
	if _, errs := gqlparser.LoadQueryWithRules(schema, "{ issue(id: \"x\") { nosuch } }", rules.NewDefaultRules()); len(errs) == 0 {
		t.Error("a wrong field is taken")
	}
}
