package graph

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/evenhand/evenhand/schemas/graphql"
)

var (
	updateReference = flag.Bool("update-reference", false, "rewrite docs/graphql-reference.md")
	release         = flag.Bool("release", false, "the schema as it is becomes the released one")
)

const (
	reference = "../docs/graphql-reference.md"
	released  = "../schemas/graphql/released/schema.graphqls"
)

// TestReference: what is committed is what the schema gives.
func TestReference(t *testing.T) {
	want := Reference(New(Parts{}).Schema().Schema())
	if *updateReference {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil { //nolint:gosec // a document for everybody
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil || string(got) != want {
		t.Errorf("docs/graphql-reference.md is not what the schema gives: run go generate ./graph (%v)", err)
	}
}

// TestNothingReleasedIsBroken: clients of the last release go on working. A break that is meant is made by
// releasing: go test ./graph -run Released -release.
func TestNothingReleasedIsBroken(t *testing.T) {
	if *release {
		var all strings.Builder
		for _, s := range graphql.Sources {
			all.WriteString(s.Text)
		}
		if err := os.WriteFile(released, []byte(all.String()), 0o644); err != nil { //nolint:gosec // a document for everybody
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(released)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range Breaking(sdl(t, string(b)), New(Parts{}).Schema().Schema()) {
		t.Error(fault)
	}
}

func sdl(t *testing.T, text string) *ast.Schema {
	t.Helper()
	s, err := gqlparser.LoadSchema(&ast.Source{Input: text})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBreaking(t *testing.T) {
	const was = `directive @may(permission: String!) on FIELD_DEFINITION
		type Query { a(x: Int, n: Int = 5): String @may(permission: "read") b: [Int!] c: U d: N }
		type O implements N { id: ID! } type P implements N { id: ID! } interface N { id: ID! } union U = O | P
		enum E { ONE TWO } input I { x: Int! e: E }`
	for _, tc := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"a field is added", "c: U", "c: U z: Int!", ""},
		{"a type is added", "enum E", "type Z { z: Int } enum E", ""},
		{"an argument that may be left out is added", "x: Int,", "x: Int, y: Int, z: Int! = 3,", ""},
		{"an input field that may be left out is added", "e: E", "e: E z: Int! = 3", ""},
		{"an enum value is added", "ONE TWO", "ONE TWO THREE", ""},
		{"words", "type Query", `"Says more." type Query`, ""},
		{"a field is gone", "b: [Int!]", "", "Query.b is gone"},
		{"a type of a field", "b: [Int!]", "b: [Float!]", "Query.b was [Int!] and is [Float!]"},
		{"nullability of elements", "b: [Int!]", "b: [Int]", "Query.b was [Int!] and is [Int]"},
		{"nullability of a field", "b: [Int!]", "b: [Int!]!", "Query.b was [Int!] and is [Int!]!"},
		{"an argument is gone", "x: Int, ", "", "Query.a(x) is gone"},
		{"an argument's type", "x: Int,", "x: Int!,", "Query.a(x) was Int and is Int!"},
		{"an argument must be given", "x: Int,", "x: Int, y: Int!,", "Query.a(y) is new and must be given"},
		{"an argument's default", "n: Int = 5", "n: Int = 6", "Query.a(n) had the default = 5 and has = 6"},
		{"a default is gone", "n: Int = 5", "n: Int", "Query.a(n) had the default = 5 and has none"},
		{"another permission", `"read"`, `"administer"`, `Query.a asked for the permission "read" and asks for "administer"`},
		{"a permission where none was", "b: [Int!]", `b: [Int!] @may(permission: "read")`, `Query.b asked for the permission "" and asks for "read"`},
		{"an enum value is gone", "ONE TWO", "ONE", "E.TWO is gone"},
		{"an input field must be given", "e: E", "e: E z: Int!", "I.z is new and must be given"},
		{"an input field is gone", "x: Int! ", "", "I.x is gone"},
		{"a union is smaller", "= O | P", "= O", "P is no longer one of U"},
		{"an interface is gone", "type P implements N", "type P", "P is no longer a N"},
		{"another kind", "enum E { ONE TWO }", "scalar E", "E was ENUM and is SCALAR"},
		{"a type is gone", "input I { x: Int! e: E }", "", "I is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if !strings.Contains(was, tc.old) {
				t.Fatal("the case changes nothing")
			}
			if got := strings.Join(Breaking(sdl(t, was), sdl(t, strings.Replace(was, tc.old, tc.new, 1))), "; "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
