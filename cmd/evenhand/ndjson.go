package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ndjsonRows are objects one a line, or over several lines as pretty printers write them; each has the number of its first line.
type ndjsonRows struct {
	witness
	r     *bufio.Reader
	ahead [][]byte // lines that were looked at and not given
	line  int
}

func (n *ndjsonRows) next() (map[string]any, int, error) {
	for {
		b, err := n.take()
		if err != nil {
			return nil, n.line, err
		}
		n.line++
		if len(bytes.TrimSpace(b)) == 0 {
			continue
		}
		return n.row(b)
	}
}

// take gives the next line; an error only where there is none.
func (n *ndjsonRows) take() ([]byte, error) {
	if len(n.ahead) > 0 {
		b := n.ahead[0]
		n.ahead = n.ahead[1:]
		return b, nil
	}
	b, err := n.r.ReadBytes('\n')
	if len(b) > 0 {
		err = nil
	}
	return b, err
}

// row reads what begins with a line. Most lines are a whole object: only what is none is looked at twice.
func (n *ndjsonRows) row(b []byte) (map[string]any, int, error) {
	line, one := n.line, bytes.TrimSpace(b)
	row, err := object(one)
	if err == nil || one[0] != '{' {
		n.add(one)
		return row, line, err
	}
	whole, fault := n.whole(b)
	if whole != nil {
		n.add(whole)
		row, err = object(whole)
		return row, line, err
	}
	if n.add(one); fault != nil && len(one) == 1 {
		n.skip(margin(b))
		err = &rowError{err: fault}
	}
	return row, line, err
}

// whole gives an object whose first line is b together with the lines that end it. Where they do not, they are still to be read: a bad line
// takes none with it, and fault says what an object that only begins in it has.
func (n *ndjsonRows) whole(b []byte) (whole []byte, fault error) {
	more := &lineReader{rows: n, margin: margin(b)}
	var raw json.RawMessage
	err := json.NewDecoder(io.MultiReader(bytes.NewReader(b), more)).Decode(&raw)
	if err == nil && len(more.read) > 0 {
		n.line += len(more.read)
		return bytes.TrimSpace(bytes.Join(append([][]byte{b}, more.read...), nil)), nil
	}
	n.ahead = append(more.read, n.ahead...)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, errSpread):
		return nil, errSpread
	case (errors.As(err, &syntax) || errors.Is(err, errOwn)) && len(more.read) > 0:
		return nil, fmt.Errorf("bad_json: the object that begins here has a fault in line %d", n.line+len(more.read))
	}
	return nil, errors.New("bad_json: the object that begins here does not end")
}

// skip passes over the rest of an object at fault that begins with a line of its brace alone: up to a brace that closes, or before one that
// opens, where the first one stands or to its left.
func (n *ndjsonRows) skip(at int) {
	for {
		b, err := n.take()
		if err != nil {
			return
		}
		left := bytes.TrimSpace(b)
		outer := len(left) > 0 && margin(b) <= at
		if outer && left[0] == '{' {
			n.ahead = append([][]byte{b}, n.ahead...)
			return
		}
		n.add(left)
		if n.line++; outer && left[0] == '}' {
			return
		}
	}
}

// margin counts the blanks before a line.
func margin(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t")) }

// maxSpread bytes of one object are looked at. Without the blanks of a pretty printer it may be an event.
const maxSpread = 16 << 20

var errSpread = errors.New("too_large: the object that begins here has more than 16 MiB")

// errOwn ends an object before a line that is one of its own: it would be within the other, were that broken off.
var errOwn = errors.New("a line of its own")

// lineReader gives one line at a time, so that nothing is read behind the line in which a value ends.
type lineReader struct {
	rows   *ndjsonRows
	margin int // of the object's first line
	read   [][]byte
	rest   []byte // of the last line
	size   int
}

func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.size > maxSpread {
			return 0, errSpread
		}
		b, err := l.rows.take()
		if err != nil {
			return 0, err
		}
		l.read = append(l.read, b)
		if margin(b) <= l.margin && wholeLine(bytes.TrimSpace(b)) {
			return 0, errOwn
		}
		l.rest, l.size = b, l.size+len(b)
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// wholeLine tells whether a line is an object that has something.
func wholeLine(b []byte) bool { return len(b) > 2 && b[0] == '{' && json.Valid(b) }
