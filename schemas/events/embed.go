// Package events holds the JSON Schemas (2020-12) of the events that people send to Evenhand.
package events

import _ "embed"

// Interaction is the schema of the native event, interaction.v1.json.
//
//go:embed interaction.v1.json
var Interaction []byte
