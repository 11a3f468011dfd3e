package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// generator writes operations over a schema: fields, aliases, fragments, variables and arguments by chance.
// What was used is counted, so that a test knows that nothing was left out.
type generator struct {
	*rand.Rand
	schema *ast.Schema
	// value gives a scalar for an argument or a field of an input by its name; of is its type.
	value func(g *generator, name, of string) any
	used  map[string]int

	fragments []string
	variables map[string]any
	declared  []string
	aliases   int
	size      int // fields of the operation at hand
	attacks   int // values of the operation at hand that aim at another tenant
}

// operation is a request as it is sent.
type operationText struct {
	query     string
	variables map[string]any
	root      string
	attacks   int
}

func (o *operationText) body() string {
	b, _ := json.Marshal(map[string]any{"query": o.query, "variables": o.variables})
	return string(b)
}

// chance is true in one of n.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func pickOne[T any](g *generator, of []T) T { return of[g.IntN(len(of))] }

// operation writes one; kind is query or mutation, field the root field that it must have, "" for any.
func (g *generator) operation(kind string, field string) *operationText {
	root := g.schema.Query
	if kind == "mutation" {
		root = g.schema.Mutation
	}
	g.fragments, g.declared, g.variables, g.aliases, g.size, g.attacks = nil, nil, map[string]any{}, 0, 0, 0
	fields := slices.DeleteFunc(slices.Clone(root.Fields), func(f *ast.FieldDefinition) bool { return strings.HasPrefix(f.Name, "__") })
	var sel strings.Builder
	first := field
	for n := 1 + g.IntN(2); n > 0; n-- {
		f := pickOne(g, fields)
		if field != "" {
			f, field = fields.ForName(field), ""
		}
		if first == "" {
			first = f.Name
		}
		sel.WriteString(g.field(root.Name, f, 1, true))
	}
	if g.chance(6) {
		sel.WriteString(" __typename")
	}
	head := kind + " Op"
	if len(g.declared) > 0 {
		head += "(" + strings.Join(g.declared, ", ") + ")"
	}
	return &operationText{head + " {" + sel.String() + "}" + strings.Join(g.fragments, ""), g.variables, first, g.attacks}
}

// field writes a field with its arguments and what is asked below it.
func (g *generator) field(of string, f *ast.FieldDefinition, level int, alias bool) string {
	g.used[of+"."+f.Name]++
	g.size++
	var b strings.Builder
	b.WriteString(" ")
	if alias || g.chance(8) {
		g.aliases++
		fmt.Fprintf(&b, "a%d: ", g.aliases)
	}
	b.WriteString(f.Name)
	var args []string
	for _, a := range f.Arguments {
		if a.Type.NonNull && a.DefaultValue == nil || g.chance(2) {
			g.used[of+"."+f.Name+"("+a.Name+")"]++
			args = append(args, a.Name+": "+g.argument(a.Name, a.Type))
		}
	}
	if len(args) > 0 {
		b.WriteString("(" + strings.Join(args, ", ") + ")")
	}
	if g.chance(25) {
		b.WriteString([]string{" @include(if: true)", " @skip(if: false)", " @skip(if: true)"}[g.IntN(3)])
	}
	if t := g.schema.Types[f.Type.Name()]; t.Kind == ast.Object {
		b.WriteString(" {" + g.selection(t, level+1) + "}")
	}
	return b.String()
}

// selection writes what is asked of a type: some fields, at times in a fragment.
func (g *generator) selection(t *ast.Definition, level int) string {
	var b strings.Builder
	b.WriteString(" __typename")
	for _, f := range t.Fields {
		deep := g.schema.Types[f.Type.Name()].Kind == ast.Object
		if deep && (level > 7 || g.size > 250) || !g.chance(2) {
			continue
		}
		b.WriteString(g.field(t.Name, f, level, deep))
	}
	switch g.IntN(8) {
	case 0:
		return " ... on " + t.Name + " {" + b.String() + "}"
	case 1:
		name := fmt.Sprintf("F%d", len(g.fragments))
		g.fragments = append(g.fragments, "")
		g.fragments[len(g.fragments)-1] = "\nfragment " + name + " on " + t.Name + " {" + b.String() + "}"
		return " ..." + name + " ..." + name
	}
	return b.String()
}

// argument writes a literal or a variable.
func (g *generator) argument(name string, t *ast.Type) string {
	v := g.given(name, t)
	if g.chance(2) {
		return g.literal(v, t)
	}
	variable := fmt.Sprintf("v%d", len(g.declared))
	g.declared = append(g.declared, "$"+variable+": "+t.String())
	g.variables[variable] = v
	return "$" + variable
}

// given makes a value of a type.
func (g *generator) given(name string, t *ast.Type) any {
	if !t.NonNull && g.chance(12) {
		return nil
	}
	if t.Elem != nil {
		return []any{g.given(name, t.Elem)}
	}
	switch def := g.schema.Types[t.NamedType]; def.Kind {
	case ast.Enum:
		v := pickOne(g, def.EnumValues).Name
		g.used[def.Name+"."+v]++
		return enum(v)
	case ast.InputObject:
		o := map[string]any{}
		for _, f := range def.Fields {
			if f.Type.NonNull && f.DefaultValue == nil || g.chance(4) {
				g.used[def.Name+"."+f.Name]++
				o[f.Name] = g.given(f.Name, f.Type)
			}
		}
		return o
	}
	return g.value(g, name, t.NamedType)
}

// enum is a value that stands without quotes in a document.
type enum string

// literal writes a value into the document.
func (g *generator) literal(v any, t *ast.Type) string {
	switch v := v.(type) {
	case enum:
		return string(v)
	case map[string]any:
		var fields []string
		for name, x := range v {
			fields = append(fields, name+": "+g.literal(x, nil))
		}
		slices.Sort(fields)
		return "{" + strings.Join(fields, ", ") + "}"
	case []any:
		var list []string
		for _, x := range v {
			list = append(list, g.literal(x, nil))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	b, _ := json.Marshal(v) // a string of JSON is one of GraphQL
	return string(b)
}
