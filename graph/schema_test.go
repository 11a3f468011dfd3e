package graph_test

import (
	"os"
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph"
)

var served = graph.New(graph.Parts{}).Schema().Schema()

// What the specification names is served as it says, type by type; inputs may only grow by what may be
// left out.
func TestSchemaKeepsTheContract(t *testing.T) {
	b, err := os.ReadFile("testdata/contract.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	contract, err := gqlparser.LoadSchema(&ast.Source{Name: "contract.graphqls", Input: string(b)})
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for name, want := range contract.Types {
		if want.BuiltIn {
			continue
		}
		got := served.Types[name]
		if got == nil || got.Kind != want.Kind {
			t.Errorf("%s: served as %+v", name, got)
			continue
		}
		for _, f := range want.Fields {
			fields++
			g := got.Fields.ForName(f.Name)
			if g == nil || g.Type.String() != f.Type.String() {
				t.Errorf("%s.%s: want %s, served as %+v", name, f.Name, f.Type, g)
				continue
			}
			for _, a := range f.Arguments {
				if ga := g.Arguments.ForName(a.Name); ga == nil || ga.Type.String() != a.Type.String() {
					t.Errorf("%s.%s(%s): want %s, served as %+v", name, f.Name, a.Name, a.Type, ga)
				}
			}
			for _, a := range g.Arguments {
				if f.Arguments.ForName(a.Name) == nil && a.Type.NonNull && a.DefaultValue == nil {
					t.Errorf("%s.%s(%s): must be given, which the contract does not know", name, f.Name, a.Name)
				}
			}
		}
		for _, g := range got.Fields {
			if want.Kind == ast.InputObject && want.Fields.ForName(g.Name) == nil && g.Type.NonNull && g.DefaultValue == nil {
				t.Errorf("%s.%s: must be given, which the contract does not know", name, g.Name)
			}
		}
	}
	if fields < 50 {
		t.Errorf("only %d fields were compared", fields)
	}
}

// A field without a permission would be open to everybody.
func TestEveryRootFieldNamesItsPermission(t *testing.T) {
	n := 0
	for _, root := range []*ast.Definition{served.Query, served.Mutation, served.Subscription} {
		for _, f := range root.Fields {
			if f.Name == "__schema" || f.Name == "__type" {
				continue
			}
			n++
			d := f.Directives.ForName("may")
			if d == nil || !slices.Contains(auth.Permissions, auth.Permission(d.Arguments.ForName("permission").Value.Raw)) {
				t.Errorf("%s.%s has no @may with a known permission", root.Name, f.Name)
			}
		}
	}
	if n < 16 {
		t.Errorf("only %d fields were looked at", n)
	}
}
