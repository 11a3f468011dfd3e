package door

import (
	"bytes"
	"mime"
	"strings"

	"github.com/evenhand/evenhand/ingest"
)

// line is one event of a body and the place that messages name: the line of NDJSON, the position in
// an array, from 1.
type line struct {
	n      int
	value  []byte
	faults []ingest.Fault // found before the decoder looks
}

// split cuts a body into events: NDJSON when the content type says so or when the first of several
// lines is a JSON value by itself, else one object or an array of them. What is broken stays in its
// line; the decoder says what is wrong with it. Only limit events are kept; all is their number.
func split(body []byte, contentType string, limit int) (lines []line, all int, bad *ingest.Fault) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return nil, 0, &ingest.Fault{Code: ingest.MissingField, Message: "the body is empty; send one event, an array of events, or one event a line"}
	case isNDJSON(trimmed, contentType):
		n := 0
		for l := range bytes.Lines(body) {
			n++
			if l = bytes.TrimSpace(l); len(l) == 0 {
				continue
			}
			if all++; all <= limit {
				lines = append(lines, line{n: n, value: l})
			}
		}
		return lines, all, nil
	case trimmed[0] != '[':
		return []line{{n: 1, value: trimmed}}, 1, nil
	}
	items, all, bad := ingest.Elements(trimmed, limit)
	if bad == nil && all == 0 {
		bad = &ingest.Fault{Code: ingest.MissingField, Message: "the array is empty"}
	}
	for i, item := range items {
		lines = append(lines, line{n: i + 1, value: item})
	}
	return lines, all, bad
}

func isNDJSON(body []byte, contentType string) bool {
	switch media, _, _ := mime.ParseMediaType(contentType); strings.ToLower(media) {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines", "application/jsonlines":
		return true
	}
	first, _, more := bytes.Cut(body, []byte("\n"))
	return more && ingest.CheckJSON(first) == nil
}
