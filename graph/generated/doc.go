// Package generated is what gqlgen makes of the schema (go generate in package graph); this file alone is
// written by hand.
package generated
