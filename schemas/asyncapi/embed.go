// Package asyncapi holds the AsyncAPI 3 description of the topics.
package asyncapi

import _ "embed"

// Document is evenhand.yaml.
//
//go:embed evenhand.yaml
var Document []byte
