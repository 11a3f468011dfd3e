package graph

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// shape is the size of a selection with its fragments spread. Numbers stop growing at enough.
type shape struct{ depth, fields, aliases, directives int }

const enough = 1 << 20

func (s *shape) add(o shape, below int) {
	s.depth = min(enough, max(s.depth, o.depth+below))
	s.fields, s.aliases, s.directives = min(enough, s.fields+o.fields), min(enough, s.aliases+o.aliases), min(enough, s.directives+o.directives)
}

// measurer sizes a document in one pass before it is validated: every fragment is looked at once,
// however often it is spread.
type measurer struct {
	nesting       int
	introspection bool
	fragments     map[string]*ast.FragmentDefinition
	known         map[string]*shape // nil while it is being measured
	err           *gqlerror.Error
}

// within tells why a document is refused, nil when it is within the limits. The sum over all operations
// counts, since all of them are validated.
func (c Config) within(doc *ast.QueryDocument) *gqlerror.Error {
	m := &measurer{nesting: c.Nesting, introspection: c.Introspection, fragments: map[string]*ast.FragmentDefinition{}, known: map[string]*shape{}}
	for _, f := range doc.Fragments {
		m.fragments[f.Name] = f
	}
	var total shape
	for _, f := range doc.Fragments {
		m.directives(f.Directives)
		m.fragment(f.Name) // unused ones too: validation walks them
	}
	for _, op := range doc.Operations {
		var s shape
		s.directives = m.directives(op.Directives)
		for _, v := range op.VariableDefinitions {
			s.directives += m.directives(v.Directives)
			m.value(v.DefaultValue, 1)
		}
		s.add(m.selection(op.SelectionSet), 0)
		total.add(s, 0)
	}
	for _, l := range []struct {
		limit       string
		found, most int
	}{{"depth", total.depth, c.Depth}, {"aliases", total.aliases, c.Aliases}, {"fields", total.fields, c.Fields}, {"directives", total.directives, c.Directives}} {
		if m.err == nil && l.found > l.most {
			return beyond(l.limit, l.found, l.most, "")
		}
	}
	if m.err == nil {
		pairs := &pairing{fragments: m.fragments, sets: map[*ast.Field]byName{}, left: 10 * c.Fields}
		for _, op := range doc.Operations {
			pairs.inside(pairs.collect(op.SelectionSet, byName{}))
		}
		if pairs.left < 0 {
			return refuse(BadUserInput, "too many fields of one name in one place, which would be compared pair by pair")
		}
	}
	return m.err
}

func (m *measurer) selection(set ast.SelectionSet) (s shape) {
	for _, sel := range set {
		if m.err != nil {
			return s
		}
		switch sel := sel.(type) {
		case *ast.Field:
			if !m.introspection && (sel.Name == "__schema" || sel.Name == "__type") {
				m.err = refuse(Forbidden, "introspection is off (graphql.introspection); the schema: evenhand graphql schema")
			}
			one := shape{depth: 1, fields: 1, directives: m.directives(sel.Directives)}
			if sel.Alias != sel.Name {
				one.aliases = 1
			}
			m.arguments(sel.Arguments)
			one.add(m.selection(sel.SelectionSet), 1)
			s.add(one, 0)
		case *ast.InlineFragment:
			s.directives = min(enough, s.directives+m.directives(sel.Directives))
			s.add(m.selection(sel.SelectionSet), 0)
		case *ast.FragmentSpread:
			s.directives = min(enough, s.directives+m.directives(sel.Directives))
			s.add(m.fragment(sel.Name), 0)
		}
	}
	return s
}

// fragment sizes a fragment once; one that is unknown is left to validation.
func (m *measurer) fragment(name string) shape {
	f := m.fragments[name]
	if f == nil {
		return shape{}
	}
	if s, seen := m.known[name]; seen {
		if s == nil {
			m.err = refuse(BadUserInput, "a fragment spreads itself")
			return shape{}
		}
		return *s
	}
	m.known[name] = nil
	s := m.selection(f.SelectionSet)
	m.known[name] = &s
	return s
}

// directives counts them. @defer answers in parts, which this transport does not have.
func (m *measurer) directives(list ast.DirectiveList) int {
	for _, d := range list {
		if d.Name == "defer" {
			m.err = refuse(BadUserInput, "@defer is not served")
		}
		m.arguments(d.Arguments)
	}
	return len(list)
}

func (m *measurer) arguments(list ast.ArgumentList) {
	for _, a := range list {
		m.value(a.Value, 1)
	}
}

// value bounds a literal's levels and refuses numbers that no variable could hold.
func (m *measurer) value(v *ast.Value, level int) {
	if v == nil || m.err != nil {
		return
	}
	switch v.Kind {
	case ast.IntValue:
		if _, err := strconv.ParseInt(v.Raw, 10, 64); err != nil {
			m.err = refuse(BadUserInput, "a whole number has more than 64 bits")
		}
	case ast.FloatValue:
		if _, err := strconv.ParseFloat(v.Raw, 64); err != nil {
			m.err = refuse(BadUserInput, "a number is out of range")
		}
	case ast.ListValue, ast.ObjectValue:
		if level > m.nesting {
			m.err = beyond("nesting", level, m.nesting, "")
			return
		}
		for _, c := range v.Children {
			m.value(c.Value, level+1)
		}
	}
}

// pairing counts the comparisons by which validation finds fields of one name that cannot be merged: they
// grow with the product of the levels. It stops when left is below zero.
type pairing struct {
	fragments map[string]*ast.FragmentDefinition
	sets      map[*ast.Field]byName
	left      int
}

// byName are the fields of a selection by the name in the answer, fragments spread.
type byName map[string][]*ast.Field

func (p *pairing) collect(set ast.SelectionSet, into byName) byName {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			into[sel.Alias] = append(into[sel.Alias], sel)
		case *ast.InlineFragment:
			p.collect(sel.SelectionSet, into)
		case *ast.FragmentSpread:
			if f := p.fragments[sel.Name]; f != nil {
				p.collect(f.SelectionSet, into)
			}
		}
	}
	return into
}

func (p *pairing) under(f *ast.Field) byName {
	s, known := p.sets[f]
	if !known {
		s = p.collect(f.SelectionSet, byName{})
		p.sets[f] = s
	}
	return s
}

func (p *pairing) inside(s byName) {
	for _, same := range s {
		for i, a := range same {
			for _, b := range same[:i] {
				p.between(a, b)
			}
			if p.left < 0 {
				return
			}
			p.inside(p.under(a))
		}
	}
}

func (p *pairing) between(a, b *ast.Field) {
	if p.left--; p.left < 0 {
		return
	}
	other := p.under(b)
	for name, xs := range p.under(a) {
		for _, x := range xs {
			for _, y := range other[name] {
				if p.between(x, y); p.left < 0 {
					return
				}
			}
		}
	}
}
