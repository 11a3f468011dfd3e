// Package graphql holds the GraphQL schema of the API: the audit record of the specification and what
// stands beside it.
package graphql

import _ "embed"

// Sources are the schema files by name, in the order in which they are read.
var Sources = []struct{ Name, Text string }{{"audit.graphqls", audit}, {"facts.graphqls", facts}, {"gates.graphqls", gates}}

//go:embed audit.graphqls
var audit string

//go:embed facts.graphqls
var facts string

//go:embed gates.graphqls
var gates string
