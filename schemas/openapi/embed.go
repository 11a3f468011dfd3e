// Package openapi holds the OpenAPI 3.1 description of the HTTP doors.
package openapi

import _ "embed"

// Document is evenhand.json.
//
//go:embed evenhand.json
var Document []byte
