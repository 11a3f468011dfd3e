package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Reference writes the reference of a schema in Markdown, in the order of its files.
func Reference(s *ast.Schema) string {
	b := &strings.Builder{}
	b.WriteString("# GraphQL reference\n\nMade from the schema by `go generate ./graph`; how to use it: [graphql.md](graphql.md).\n\n" +
		"`!` is never null. What needs a permission names it; who has which is told under [access](graphql.md#access).\n")
	for _, root := range []struct {
		title string
		def   *ast.Definition
	}{{"Queries", s.Query}, {"Mutations", s.Mutation}, {"Subscriptions", s.Subscription}} {
		if root.def == nil {
			continue
		}
		fmt.Fprintf(b, "\n## %s\n", root.title)
		for _, f := range root.def.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			fmt.Fprintf(b, "\n### %s\n\n```graphql\n%s\n```\n", f.Name, signature(f))
			if p := permission(f); p != "" {
				fmt.Fprintf(b, "\nNeeds `%s`. %s\n", p, oneLine(f.Description))
			} else if f.Description != "" {
				fmt.Fprintf(b, "\n%s\n", oneLine(f.Description))
			}
			for i, a := range f.Arguments {
				if a.Description != "" {
					if i == 0 || f.Arguments[i-1].Description == "" {
						b.WriteString("\n")
					}
					fmt.Fprintf(b, "- `%s`: %s\n", a.Name, oneLine(a.Description))
				}
			}
		}
	}
	for _, kind := range []struct {
		title string
		of    ast.DefinitionKind
	}{{"Types", ast.Object}, {"Inputs", ast.InputObject}, {"Enumerations", ast.Enum}, {"Scalars", ast.Scalar}} {
		fmt.Fprintf(b, "\n## %s\n", kind.title)
		for _, d := range inOrder(s, kind.of) {
			definition(b, d)
		}
	}
	return b.String()
}

// inOrder are the schema's own definitions of a kind as its files have them.
func inOrder(s *ast.Schema, kind ast.DefinitionKind) (ds []*ast.Definition) {
	for _, d := range s.Types {
		if d.Kind == kind && !d.BuiltIn && d != s.Query && d != s.Mutation && d != s.Subscription {
			ds = append(ds, d)
		}
	}
	slices.SortFunc(ds, func(a, b *ast.Definition) int {
		if c := strings.Compare(a.Position.Src.Name, b.Position.Src.Name); c != 0 {
			return c
		}
		return a.Position.Start - b.Position.Start
	})
	return ds
}

func definition(b *strings.Builder, d *ast.Definition) {
	fmt.Fprintf(b, "\n### %s\n", d.Name)
	if d.Description != "" {
		fmt.Fprintf(b, "\n%s\n", oneLine(d.Description))
	}
	if len(d.Fields)+len(d.EnumValues) > 0 {
		b.WriteString("\n")
	}
	item := func(name, text string) {
		if fmt.Fprintf(b, "- `%s`", name); text != "" {
			fmt.Fprintf(b, ": %s", oneLine(text))
		}
		b.WriteString("\n")
	}
	for _, f := range d.Fields {
		item(signature(f), f.Description)
	}
	for _, v := range d.EnumValues {
		item(v.Name, v.Description)
	}
}

// signature is a field as the schema writes it, without its directives.
func signature(f *ast.FieldDefinition) string {
	args := make([]string, len(f.Arguments))
	for i, a := range f.Arguments {
		args[i] = a.Name + ": " + a.Type.String() + defaulted(a.DefaultValue)
	}
	s := f.Name
	if len(args) > 0 {
		s += "(" + strings.Join(args, ", ") + ")"
	}
	return s + ": " + f.Type.String() + defaulted(f.DefaultValue)
}

func defaulted(v *ast.Value) string {
	if v == nil {
		return ""
	}
	return " = " + v.String()
}

// permission is what a field asks of its caller, "" for nothing.
func permission(f *ast.FieldDefinition) string {
	if d := f.Directives.ForName("may"); d != nil {
		if a := d.Arguments.ForName("permission"); a != nil {
			return a.Value.Raw
		}
	}
	return ""
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
