package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unicode/utf8"
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

type rowError struct {
	err  error
	more int // rows lost beside it
}

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

// inputForm says how an input is read.
type inputForm struct {
	name, format string
	delimiter    string            // of columns; "" finds it
	column       func(string) bool // tells names that a column of events has
}

func openRows(r io.Reader, form inputForm) (rowReader, error) {
	packed := bufio.NewReaderSize(r, 1<<20)
	br, err := unpacked(packed)
	if err != nil {
		return nil, err
	}
	if br != packed {
		form.name = strings.TrimSuffix(strings.ToLower(form.name), ".gz")
	}
	if head, _ := br.Peek(2); string(head) == "\xff\xfe" || string(head) == "\xfe\xff" || bytes.IndexByte(head, 0) >= 0 {
		return nil, errUTF16
	}
	skipMark(br)
	if form.format == "auto" {
		form.format = form.guess(br)
	}
	switch form.format {
	case "csv":
		return openTable(br, form)
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

// unpacked reads gzip, or what is there.
func unpacked(br *bufio.Reader) (*bufio.Reader, error) {
	if head, _ := br.Peek(2); string(head) != "\x1f\x8b" {
		return br, nil
	}
	z, err := gzip.NewReader(br)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return bufio.NewReaderSize(z, 1<<20), nil
}

// skipMark passes over the byte order mark that some editors and tables write before UTF-8.
func skipMark(br *bufio.Reader) {
	if head, _ := br.Peek(3); string(head) == "\ufeff" {
		_, _ = br.Discard(len(head))
	}
}

// guess tells the format by name, else by how the input begins: what does not begin as JSON is a table, where its first line has columns or
// the name of one.
func (form inputForm) guess(br *bufio.Reader) string {
	ext := strings.ToLower(filepath.Ext(form.name))
	if ext == ".csv" || ext == ".tsv" {
		return "csv"
	}
	head, _ := br.Peek(512)
	switch head = bytes.TrimSpace(head); {
	case bytes.HasPrefix(head, []byte("[")):
		return "json"
	case len(head) == 0 || head[0] == '{' || ext == ".ndjson" || ext == ".jsonl":
		return "ndjson"
	}
	line, _ := firstLine(br)
	_, n := delimiterOf(line)
	if n > 0 && !strings.Contains(line, "{") || form.column(columnName(strings.Trim(line, `"`))) {
		return "csv"
	}
	return "ndjson"
}

// object reads one object, whose values stay as they are written: the check sees what a door would. An error is a *rowError.
func object(b []byte) (map[string]any, error) {
	if !utf8.Valid(b) { // decoding would mend it
		return nil, errNotUTF8
	}
	row, err := members(b)
	if err != nil {
		return nil, &rowError{err: err}
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

// errNotUTF8 refuses what would be audited as other text than it is.
var errNotUTF8 = &rowError{err: errors.New("invalid_utf8: the text is not UTF-8; convert the file first, for example: iconv -f latin1 -t utf-8")}

// errUTF16 is of exports whose every second byte is zero.
var errUTF16 = errors.New(`the input is UTF-16 ("Unicode text"); convert it first: iconv -f utf-16 -t utf-8`)
