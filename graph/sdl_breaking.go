package graph

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Breaking lists what clients of a released schema would notice: what is gone, has another type or another
// nullability, must now be given, or asks for another permission. What is added is no break.
func Breaking(released, now *ast.Schema) (faults []string) {
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for name, was := range released.Types {
		if was.BuiltIn {
			continue
		}
		is := now.Types[name]
		switch {
		case is == nil:
			say("%s is gone", name)
			continue
		case is.Kind != was.Kind:
			say("%s was %s and is %s", name, was.Kind, is.Kind)
			continue
		}
		for _, f := range was.Fields {
			if g := is.Fields.ForName(f.Name); g == nil {
				say("%s.%s is gone", name, f.Name)
			} else {
				faults = append(faults, brokenField(name+"."+f.Name, f, g)...)
			}
		}
		for _, g := range is.Fields {
			if was.Kind == ast.InputObject && was.Fields.ForName(g.Name) == nil && g.Type.NonNull && g.DefaultValue == nil {
				say("%s.%s is new and must be given", name, g.Name)
			}
		}
		for _, v := range was.EnumValues {
			if is.EnumValues.ForName(v.Name) == nil {
				say("%s.%s is gone", name, v.Name)
			}
		}
		for _, member := range was.Types {
			if !slices.Contains(is.Types, member) {
				say("%s is no longer one of %s", member, name)
			}
		}
		for _, i := range was.Interfaces {
			if !slices.Contains(is.Interfaces, i) {
				say("%s is no longer a %s", name, i)
			}
		}
	}
	slices.Sort(faults)
	return faults
}

func brokenField(name string, was, is *ast.FieldDefinition) (faults []string) {
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if a, b := was.Type.String(), is.Type.String(); a != b {
		say("%s was %s and is %s", name, a, b)
	}
	if a, b := defaulted(was.DefaultValue), defaulted(is.DefaultValue); a != b {
		say("%s had the default%s and has%s", name, orNone(a), orNone(b))
	}
	if a, b := permission(was), permission(is); a != b {
		say("%s asked for the permission %q and asks for %q", name, a, b)
	}
	for _, a := range was.Arguments {
		b := is.Arguments.ForName(a.Name)
		switch {
		case b == nil:
			say("%s(%s) is gone", name, a.Name)
			continue
		case a.Type.String() != b.Type.String():
			say("%s(%s) was %s and is %s", name, a.Name, a.Type, b.Type)
		}
		if x, y := defaulted(a.DefaultValue), defaulted(b.DefaultValue); x != y {
			say("%s(%s) had the default%s and has%s", name, a.Name, orNone(x), orNone(y))
		}
	}
	for _, b := range is.Arguments {
		if was.Arguments.ForName(b.Name) == nil && b.Type.NonNull && b.DefaultValue == nil {
			say("%s(%s) is new and must be given", name, b.Name)
		}
	}
	return faults
}

func orNone(s string) string {
	if s == "" {
		return " none"
	}
	return s
}
