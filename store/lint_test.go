package store

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scoped are the types whose methods read for one tenant.
var scoped = []string{"Tenant", "Figures", "scope", "list", "Filter", "BreachFilter", "TrendQuery", "Sort", "query"}

// leaves are what SQL is put together from, beside literals and constants: calls and names that hold text of
// this package only, never of a caller. A new one needs a reason here.
var leaves = map[string]string{
	"q.sql(…)": "the builder", "newest.sql(…)": "the builder", "events.sql(…)": "the builder", "narrow.sql(…)": "the builder", "in.sql(…)": "the builder", "keys.sql(…)": "the builder",
	"s.order(…)": "columns of sortColumns and a number", "l.sort.order(…)": "the same", "l.sort.column()": "a column of sortColumns", "s.column()": "the same",
	"anyID(…)": "UUIDs, as hexadecimal digits", "anyOf(…)": "the same", "rows.sql(…)": "the builder", "beyond": "< or >, = may follow", "among(…)": "times, UUIDs, digests as digits", "atPlaces(…)": "times and UUIDs as digits", "beyond(…)": "columns of sortColumns", "day(…)": "a date as digits",
	"strings.Join(days)": "dates as digits", "strings.Join(events)": "dates and UUIDs as digits",
	"fmt.Sprintf(number)": "numbers", "fmt.Sprint(number)": "numbers, ASC or DESC",
	"q.columns()": "of closed maps", "c.column": "of a list in the same function", "column": "of sortColumns", "op": "< or >", "times": "of the builder",
	"cond": "of beyond", "rest": "of the callers here", "columns": "of the callers here", "sql": "of the builder", "q.table": "of scope.from",
	"q.prewhere": "of among or atPlaces, or of byID over the builder", "strings.Join(q.where)": "conditions that and() was given", "s.db": "the settings' name of the database", "table": "see TestReadsGoThroughTheScope",
}

func sources(t *testing.T) (*token.FileSet, []*ast.File) {
	t.Helper()
	set := token.NewFileSet()
	pkgs, err := parser.ParseDir(set, ".", func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, f := range pkgs["store"].Files {
		files = append(files, f)
	}
	return set, files
}

// receiver is the type that a function is a method of, "" for none.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	e := f.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func text(set *token.FileSet, n ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, set, n)
	return b.String()
}

// Reads of tenants reach tables, and the connection, by scope alone: from, each and one, which bind the
// tenant, the limits and the policies' setting.
func TestReadsGoThroughTheScope(t *testing.T) {
	set, files := sources(t)
	known := slices.Concat(TenantTables, CommonTables)
	from := regexp.MustCompile(`(?i)\bfrom\s+\S`)
	seen := 0
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !slices.Contains(scoped, receiver(fn)) && !slices.ContainsFunc(fieldsOf(fn), func(p string) bool { return p == "scope" || p == "*Figures" || p == "*Tenant" }) {
				continue
			}
			seen++
			in := receiver(fn) + "." + fn.Name.Name
			inner := receiver(fn) == "scope" && slices.Contains([]string{"from", "of", "each", "once", "one", "reading"}, fn.Name.Name)
			ast.Inspect(fn, func(n ast.Node) bool {
				at := func() string { return set.Position(n.Pos()).String() + " " + in }
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if (n.Sel.Name == "store" || n.Sel.Name == "conn") && !inner {
						t.Errorf("%s: %s goes round the scope", at(), text(set, n))
					}
				case *ast.BasicLit:
					if n.Kind == token.STRING && from.MatchString(n.Value) && in != "query.sql" {
						t.Errorf("%s: a FROM by hand: %s", at(), n.Value)
					}
				case *ast.CallExpr:
					var table ast.Expr
					switch name := called(n); {
					case name == "from" && len(n.Args) == 1, (name == "key" || name == "fact") && len(n.Args) == 2:
						table = n.Args[0]
					case name == "about" && len(n.Args) == 3:
						table = n.Args[1]
					default:
						return true
					}
					if id, ok := table.(*ast.Ident); ok && id.Name == "table" && slices.Contains([]string{"scope.from", "scope.key", "scope.about", "scope.fact"}, in) {
						return true // its callers are looked at
					}
					lit, ok := table.(*ast.BasicLit)
					if !ok {
						t.Errorf("%s: the table %s is no literal", at(), text(set, table))
						return true
					}
					name, err := strconv.Unquote(lit.Value)
					if name, _, _ = strings.Cut(name, " AS "); err != nil || !slices.Contains(known, name) {
						t.Errorf("%s: table %s is not in TenantTables or CommonTables", at(), lit.Value)
					}
				}
				return true
			})
		}
	}
	if seen < 50 {
		t.Errorf("only %d functions were looked at", seen)
	}
}

func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

func fieldsOf(fn *ast.FuncDecl) (types []string) {
	for _, p := range fn.Type.Params.List {
		switch e := p.Type.(type) {
		case *ast.Ident:
			types = append(types, e.Name)
		case *ast.StarExpr:
			if id, ok := e.X.(*ast.Ident); ok {
				types = append(types, "*"+id.Name)
			}
		}
	}
	return types
}

// SQL is made of literals, constants and the closed list above; what callers say is bound.
func TestNoSQLOfStrings(t *testing.T) {
	set, files := sources(t)
	constants := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					for _, id := range s.(*ast.ValueSpec).Names {
						constants[id.Name] = true
					}
				}
			}
			return true
		})
	}
	for _, name := range []string{"itemColumns", "factColumns", "verdictColumns", "breachColumns", "gateColumns"} { // of row structs
		constants[name] = true
	}
	used := 0
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !slices.Contains(scoped, receiver(fn)) {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				var parts []ast.Expr
				switch name := called(call); {
				case name == "and" && len(call.Args) > 0:
					parts = call.Args[:1]
				case name == "sql" && len(call.Args) == 2:
					parts = call.Args
				case name == "inside" && len(call.Args) == 3:
					parts = call.Args[1:]
				case (name == "each" || name == "one") && len(call.Args) > 3:
					parts = call.Args[2:3]
				case name == "items" && len(call.Args) == 4, name == "breaches" && len(call.Args) == 4, name == "keys" && len(call.Args) == 5:
					parts = call.Args[3:4]
				}
				for _, p := range parts {
					for _, leaf := range leavesOf(set, p) {
						used++
						if !constants[leaf] && leaves[leaf] == "" {
							t.Errorf("%s: %s is put into SQL; bind it, or say in leaves why it is closed", set.Position(call.Pos()), leaf)
						}
					}
				}
				return true
			})
		}
	}
	if used < 40 {
		t.Errorf("only %d parts of SQL were looked at", used)
	}
}

// leavesOf are the parts of a concatenation that are no literals.
func leavesOf(set *token.FileSet, e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return nil
	case *ast.ParenExpr:
		return leavesOf(set, e.X)
	case *ast.BinaryExpr:
		return append(leavesOf(set, e.X), leavesOf(set, e.Y)...)
	case *ast.CallExpr:
		name := text(set, e.Fun)
		switch name {
		case "strings.Join":
			return []string{name + "(" + text(set, e.Args[0]) + ")"}
		case "fmt.Sprintf", "fmt.Sprint":
			for _, a := range e.Args { // the numbers of a LIMIT, and closed columns
				if s := text(set, a); !regexp.MustCompile(`^("[^"]*"|column|direction|limit|limit ?\+ ?1|n|k)$`).MatchString(s) {
					return []string{name + "(" + s + ")"}
				}
			}
			return []string{name + "(number)"}
		}
		if len(e.Args) > 0 {
			return []string{name + "(…)"}
		}
		return []string{name + "()"}
	}
	return []string{text(set, e)}
}
