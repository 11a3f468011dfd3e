package door

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"

	"github.com/evenhand/evenhand/ingest"
)

// line is one event of a body and the place that messages name: the line of NDJSON, the position in
// an array, from 1.
type line struct {
	n     int
	value []byte
}

// split cuts a body into events: NDJSON when the content type says so or when the first of several
// lines is a JSON value by itself, else one object or an array of them. What is broken stays in its
// line; the decoder says what is wrong with it.
func split(body []byte, contentType string) (lines []line, bad *ingest.Fault) {
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 {
		return nil, &ingest.Fault{Code: ingest.MissingField, Message: "the body is empty; send one event, an array of events, or one event a line"}
	}
	if isNDJSON(trimmed, contentType) {
		for i, l := range bytes.Split(body, []byte("\n")) {
			if l = bytes.TrimSpace(l); len(l) > 0 {
				lines = append(lines, line{i + 1, l})
			}
		}
		return lines, nil
	}
	if trimmed[0] != '[' {
		return []line{{1, trimmed}}, nil
	}
	return elements(trimmed)
}

func isNDJSON(body []byte, contentType string) bool {
	switch media, _, _ := mime.ParseMediaType(contentType); strings.ToLower(media) {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines", "application/jsonlines":
		return true
	}
	first, _, more := bytes.Cut(body, []byte("\n"))
	return more && json.Valid(first)
}

// elements cuts an array. Each element is checked by the decoder later, so depth and names are held
// there; only the array itself is read here.
func elements(body []byte) (lines []line, bad *ingest.Fault) {
	if at := ingest.CheckJSON(body); at != nil {
		return nil, at
	}
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, &ingest.Fault{Code: ingest.BadJSON, Message: "not one JSON array"}
	}
	if len(items) == 0 {
		return nil, &ingest.Fault{Code: ingest.MissingField, Message: "the array is empty"}
	}
	for i, item := range items {
		lines = append(lines, line{i + 1, item})
	}
	return lines, nil
}
