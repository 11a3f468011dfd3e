package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/evenhand/evenhand/ingest"
)

// rowReader gives the rows of an input one by one with their line (or element) number, from 1.
// A *rowError is about one row: the next call goes on behind it. Any other error is the end.
type rowReader interface {
	next() (row map[string]any, line int, err error)
	// digest is of all rows so far as they are written: what a later run tells the same input by.
	digest() string
}

// witness digests what a reader has given so far.
type witness struct{ h hash.Hash }

func newWitness() witness { return witness{sha256.New()} }

func (w witness) add(b []byte) {
	_, _ = w.h.Write(b)
	_, _ = w.h.Write([]byte{'\n'})
}

func (w witness) digest() string { return hex.EncodeToString(w.h.Sum(nil)) }

type rowError struct{ err error }

func (e *rowError) Error() string { return e.err.Error() }
func (e *rowError) Unwrap() error { return e.err }

// countingReader counts what was read, for progress.
type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func openRows(r io.Reader, format, name string) (rowReader, error) {
	br := bufio.NewReaderSize(r, 1<<20)
	skipMark(br)
	if format == "auto" {
		format = guessFormat(br, name)
	}
	switch format {
	case "csv":
		c := csv.NewReader(br)
		c.LazyQuotes = false
		head, err := c.Read()
		if err != nil {
			return nil, fmt.Errorf("csv: the first line must name the columns: %w", err)
		}
		rows := &csvRows{witness: newWitness(), c: c, head: head}
		rows.note(head)
		return rows, nil
	case "json":
		d := json.NewDecoder(br)
		d.UseNumber()
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return nil, errors.New("json: wants an array of objects; for one object a line use --format ndjson")
		}
		return &jsonRows{witness: newWitness(), d: d}, nil
	}
	return &ndjsonRows{witness: newWitness(), r: br}, nil
}

// skipMark passes over the byte order mark that some editors and tables write before UTF-8.
func skipMark(br *bufio.Reader) {
	if head, _ := br.Peek(3); string(head) == "\ufeff" {
		_, _ = br.Discard(len(head))
	}
}

func guessFormat(br *bufio.Reader, name string) string {
	if strings.HasSuffix(strings.ToLower(name), ".csv") {
		return "csv"
	}
	head, _ := br.Peek(512)
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("[")) {
		return "json"
	}
	return "ndjson"
}

type ndjsonRows struct {
	witness
	r    *bufio.Reader
	line int
}

func (n *ndjsonRows) next() (map[string]any, int, error) {
	for {
		b, err := n.r.ReadBytes('\n')
		if len(b) == 0 && err != nil {
			return nil, n.line, err
		}
		n.line++
		if b = bytes.TrimSpace(b); len(b) == 0 {
			continue
		}
		n.add(b)
		row, err := object(b)
		return row, n.line, err
	}
}

// object reads one object, whose values stay as they are written: the check sees what a door would. An error is a *rowError.
func object(b []byte) (map[string]any, error) {
	if !utf8.Valid(b) { // decoding would mend it
		return nil, errNotUTF8
	}
	var raw json.RawMessage
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&raw); err != nil {
		return nil, &rowError{jsonFault(err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &rowError{errors.New("bad_json: more than one value on the line")}
	}
	row, err := members(raw)
	if err != nil {
		return nil, &rowError{err}
	}
	return row, nil
}

// members takes a JSON object apart, its values as json.RawMessage. It refuses what a map would lose: a name that stands twice.
func members(value json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	if open, err := d.Token(); err != nil {
		return nil, jsonFault(err)
	} else if open != json.Delim('{') {
		return nil, errors.New("wrong_type: wants a JSON object")
	}
	row := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, jsonFault(err)
		}
		name, _ := t.(string) // what stands before a value is a string, else it was a fault
		if _, twice := row[name]; twice {
			return nil, fmt.Errorf("duplicate_key: %s: stands twice", ingest.Shown(name))
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, jsonFault(err)
		}
		row[name] = v
	}
	return row, nil
}

type jsonRows struct {
	witness
	d *json.Decoder
	n int
}

func (j *jsonRows) next() (map[string]any, int, error) {
	if !j.d.More() {
		if _, err := j.d.Token(); err != nil {
			return nil, j.n, fmt.Errorf("element %d: %w", j.n+1, jsonFault(err))
		}
		return nil, j.n, io.EOF
	}
	j.n++
	var raw json.RawMessage
	if err := j.d.Decode(&raw); err != nil {
		return nil, j.n, fmt.Errorf("element %d: %w", j.n, jsonFault(err))
	}
	j.add(raw)
	row, err := object(raw)
	return row, j.n, err
}

// jsonFault says what is wrong with JSON without quoting it.
func jsonFault(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("bad_json: %s at byte %d", syntax.Error(), syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF): // an array that is not closed
		return errors.New("bad_json: ends too early")
	}
	return err
}

type csvRows struct {
	witness
	c    *csv.Reader
	head []string
	line int // of the last row
}

// note adds cells to the digest.
func (r *csvRows) note(cells []string) {
	for _, c := range cells {
		r.add([]byte(c))
	}
}

func (r *csvRows) next() (map[string]any, int, error) {
	rec, err := r.c.Read()
	var fault *csv.ParseError
	switch {
	case errors.As(err, &fault):
		r.line = fault.StartLine
		return nil, r.line, &rowError{fmt.Errorf("csv: %w", fault.Err)}
	case err != nil:
		return nil, r.line, err
	}
	r.note(rec)
	r.line, _ = r.c.FieldPos(0)
	row := map[string]any{}
	for i, name := range r.head {
		if !utf8.ValidString(rec[i]) {
			return nil, r.line, errNotUTF8
		}
		if rec[i] != "" {
			row[name] = cell(rec[i])
		}
	}
	return row, r.line, nil
}

// errNotUTF8 refuses what would be audited as other text than it is.
var errNotUTF8 = &rowError{errors.New("invalid_utf8: the text is not UTF-8; convert the file first, for example: iconv -f latin1 -t utf-8")}

// cell is a value without a type of JSON, of a table or a flag. It takes that of the field that it becomes.
type cell string

// as is the cell's value in a field: numbers, booleans and JSON as such where the field is of that type and the whole cell is one,
// else text, which the check refuses in the words of the doors.
func (c cell) as(field string) any {
	s := strings.TrimSpace(string(c))
	switch field {
	case "contained_pii", "contained_proprietary", "contained_customer_data":
		s = strings.ToLower(s) // TRUE of spreadsheets, True of Python
	case "prompt_tokens", "response_tokens", "latency_ms", "estimated_cost_usd", "schema_version",
		"messages", "metadata", "query_context", "group_attributes", "retrieved_context", "template", "redaction_summary":
	default:
		return string(c)
	}
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return string(c)
}

// absent tells whether an event counts a value as not there: null and "".
func absent(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case json.RawMessage:
		return string(v) == "null" || string(v) == `""`
	case cell:
		return v == ""
	case string:
		return v == ""
	}
	return false
}

// text is a value that is a string; "" of others.
func text(v any) (s string) {
	switch v := v.(type) {
	case json.RawMessage:
		_ = json.Unmarshal(v, &s) // no string: the check says so
	case string:
		s = v
	}
	return s
}
